"""Green trees: immutable, position-free, sharing equal parts; the leaves concatenate to the file."""
from __future__ import annotations

from collections.abc import Iterator

from kera_hw.frontend.syntax.kinds import SyntaxKind


class GreenToken:
    """One leaf: a kind and the exact bytes it covers. Treat as immutable."""

    __slots__ = ("kind", "text", "width_bytes")

    def __init__(self, kind: SyntaxKind, text: bytes) -> None:
        self.kind = kind
        self.text = text
        self.width_bytes = len(text)

    def __repr__(self) -> str:
        return f"{self.kind.name} {self.text!r}"


class GreenNode:
    """One inner node: a kind and its children, trivia included. Treat as immutable."""

    __slots__ = ("children", "kind", "width_bytes")

    def __init__(self, kind: SyntaxKind, children: tuple[GreenElement, ...]) -> None:
        self.kind = kind
        self.children = children
        self.width_bytes = sum([child.width_bytes for child in children])

    def leaves(self) -> Iterator[GreenToken]:
        """All tokens in source order, without recursion."""
        stack: list[GreenElement] = [self]
        while stack:
            element = stack.pop()
            if isinstance(element, GreenToken):
                yield element
            else:
                stack.extend(reversed(element.children))

    @property
    def data(self) -> bytes:
        """The bytes of the subtree."""
        return b"".join([leaf.text for leaf in self.leaves()])

    def __repr__(self) -> str:
        return f"{self.kind.name}[{len(self.children)}]"


GreenElement = GreenNode | GreenToken


class GreenCache:
    """Shares equal tokens and equal small nodes while one tree is built."""

    _SMALL = 3  # larger nodes repeat too seldom to pay for the look-up

    def __init__(self) -> None:
        self._tokens: dict[tuple[SyntaxKind, bytes], GreenToken] = {}
        self._nodes: dict[tuple[SyntaxKind, tuple[int, ...]], GreenNode] = {}

    def token(self, kind: SyntaxKind, text: bytes) -> GreenToken:
        key = (kind, text)
        found = self._tokens.get(key)
        if found is None:
            found = self._tokens[key] = GreenToken(kind, text)
        return found

    def node(self, kind: SyntaxKind, children: list[GreenElement]) -> GreenNode:
        if len(children) > self._SMALL:
            return GreenNode(kind, tuple(children))
        # Identities are stable keys: a cached node keeps its children alive.
        key = (kind, tuple([id(child) for child in children]))
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = GreenNode(kind, tuple(children))
        return found
