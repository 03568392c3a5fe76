"""Red trees: green trees seen from the root, with absolute byte offsets and parents."""
from __future__ import annotations

from collections.abc import Iterator

from kera_hw.frontend.syntax.green import GreenNode, GreenToken
from kera_hw.frontend.syntax.kinds import LAST_TRIVIA, SyntaxKind
from kera_hw.support import Span


class SyntaxToken:
    """A leaf at its place in the file."""

    __slots__ = ("green", "parent", "start")

    def __init__(self, green: GreenToken, parent: SyntaxNode, start: int) -> None:
        self.green = green
        self.parent = parent
        self.start = start

    @property
    def kind(self) -> SyntaxKind:
        return self.green.kind

    @property
    def span(self) -> Span:
        return Span(self.start, self.start + self.green.width_bytes)

    @property
    def data(self) -> bytes:
        return self.green.text

    @property
    def text(self) -> str:
        """Decoded text; undecodable bytes are replaced."""
        return self.green.text.decode("utf-8", "replace")

    def __repr__(self) -> str:
        return f"{self.green!r}@{self.start}"


class SyntaxNode:
    """An inner node at its place in the file.

    Children are made once and kept, so a node met twice is the same object and may key a dict.
    """

    __slots__ = ("_elements", "green", "parent", "start")

    def __init__(self, green: GreenNode, parent: SyntaxNode | None = None, start: int = 0) -> None:
        self.green = green
        self.parent = parent
        self.start = start
        self._elements: tuple[SyntaxElement, ...] | None = None

    @property
    def kind(self) -> SyntaxKind:
        return self.green.kind

    @property
    def span(self) -> Span:
        """Bytes covered. Nodes begin and end with a token, not with trivia (doc comments aside)."""
        return Span(self.start, self.start + self.green.width_bytes)

    @property
    def data(self) -> bytes:
        return self.green.data

    @property
    def text(self) -> str:
        """Decoded text; undecodable bytes are replaced."""
        return self.green.data.decode("utf-8", "replace")

    @property
    def elements(self) -> tuple[SyntaxElement, ...]:
        """Child nodes and tokens in order, trivia included."""
        if self._elements is None:
            start = self.start
            made: list[SyntaxElement] = []
            for child in self.green.children:
                made.append(
                    SyntaxToken(child, self, start) if isinstance(child, GreenToken)
                    else SyntaxNode(child, self, start)
                )
                start += child.width_bytes
            self._elements = tuple(made)
        return self._elements

    @property
    def children(self) -> list[SyntaxNode]:
        """Child nodes, no tokens."""
        return [element for element in self.elements if isinstance(element, SyntaxNode)]

    @property
    def tokens(self) -> list[SyntaxToken]:
        """Tokens that are direct children, trivia left out."""
        return [
            element for element in self.elements
            if isinstance(element, SyntaxToken) and element.green.kind > LAST_TRIVIA
        ]

    def descendants(self) -> Iterator[SyntaxNode]:
        """This node and all below it, parents first, without recursion."""
        stack: list[SyntaxNode] = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def leaves(self) -> Iterator[SyntaxToken]:
        """All tokens below, trivia included, in source order, without recursion."""
        stack: list[SyntaxElement] = [self]
        while stack:
            element = stack.pop()
            if isinstance(element, SyntaxToken):
                yield element
            else:
                stack.extend(reversed(element.elements))

    def token_at(self, offset: int) -> SyntaxToken | None:
        """The leaf that covers a byte offset, None outside this node."""
        node: SyntaxNode = self
        if not node.start <= offset < node.start + node.green.width_bytes:
            return None
        while True:
            for element in node.elements:
                if element.start <= offset < element.start + element.green.width_bytes:
                    if isinstance(element, SyntaxToken):
                        return element
                    node = element
                    break

    def dump(self) -> str:
        """The subtree, one element a line, for tests and for debugging."""
        lines: list[str] = []
        stack: list[tuple[SyntaxElement, int]] = [(self, 0)]
        while stack:
            element, depth = stack.pop()
            if isinstance(element, SyntaxToken):
                if not element.kind.is_trivia:
                    lines.append(f"{'  ' * depth}{element.kind.name} {element.text!r}")
            else:
                lines.append(f"{'  ' * depth}{element.kind.name}")
                stack.extend((child, depth + 1) for child in reversed(element.elements))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"{self.green!r}@{self.start}"


SyntaxElement = SyntaxNode | SyntaxToken
