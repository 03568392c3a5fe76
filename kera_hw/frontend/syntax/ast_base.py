"""The base of all typed views, and the helpers that find children in trees that may be incomplete."""
from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, TypeVar

from kera_hw.frontend.syntax.kinds import SyntaxKind
from kera_hw.frontend.syntax.red import SyntaxNode, SyntaxToken
from kera_hw.support import Span

A = TypeVar("A", bound="Ast")

_BY_KIND: dict[SyntaxKind, type[Ast]] = {}


class Ast:
    """A typed view of one syntax node. Views of the same node are equal and hash alike.

    Broken files have trees too: an accessor gives None (or leaves an element out) where the source
    lacks the part.
    """

    __slots__ = ("node",)
    KIND: ClassVar[SyntaxKind | None] = None

    def __init__(self, node: SyntaxNode) -> None:
        self.node = node

    def __init_subclass__(cls) -> None:
        if cls.KIND is not None and "KIND" in cls.__dict__:
            _BY_KIND[cls.KIND] = cls

    @property
    def span(self) -> Span:
        """The bytes of the node in its file."""
        node = self.node
        return Span(node.start, node.start + node.green.width_bytes)

    @property
    def text(self) -> str:
        """The source text of the node."""
        return self.node.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ast) and other.node is self.node

    def __hash__(self) -> int:
        return hash(self.node)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"

    # -- helpers for subclasses --------------------------------------------------------------

    def _token(self, *kinds: SyntaxKind) -> SyntaxToken | None:
        return self._token_of(kinds)

    def _token_of(self, kinds: Collection[SyntaxKind]) -> SyntaxToken | None:
        """The first token of one of the kinds."""
        for number, child in enumerate(self.node.green.children):
            if child.kind in kinds:
                found = self.node.elements[number]
                assert isinstance(found, SyntaxToken)
                return found
        return None

    def _has(self, kind: SyntaxKind) -> bool:
        return kind in [child.kind for child in self.node.green.children]

    def _child(self, cls: type[A]) -> A | None:
        for number, child in enumerate(self.node.green.children):
            own = _BY_KIND.get(child.kind)
            if own is not None and issubclass(own, cls):
                return own(self._node(number))
        return None

    def _children(self, cls: type[A]) -> list[A]:
        views = [_view(node, cls) for node in self.node.children]
        return [view for view in views if view is not None]

    def _before(self, kinds: Collection[SyntaxKind], cls: type[A]) -> A | None:
        """The first child of the class that stands before the first token of the kinds."""
        for number, child in enumerate(self.node.green.children):
            if child.kind in kinds:
                return None
            own = _BY_KIND.get(child.kind)
            if own is not None and issubclass(own, cls):
                return own(self._node(number))
        return None

    def _after(self, kinds: Collection[SyntaxKind], cls: type[A]) -> A | None:
        """The first child of the class that stands after the first token of the kinds."""
        found = self._all_after(kinds, cls)
        return found[0] if found else None

    def _all_after(self, kinds: Collection[SyntaxKind], cls: type[A]) -> list[A]:
        seen = False
        found: list[A] = []
        for number, child in enumerate(self.node.green.children):
            if not seen:
                seen = child.kind in kinds
                continue
            own = _BY_KIND.get(child.kind)
            if own is not None and issubclass(own, cls):
                found.append(own(self._node(number)))
        return found

    def _node(self, number: int) -> SyntaxNode:
        """The child of that number, which is known to be a node."""
        found = self.node.elements[number]
        assert isinstance(found, SyntaxNode)
        return found


class Item(Ast):
    """Anything that may stand at the top level of a file."""

    __slots__ = ()

    @property
    def is_pub(self) -> bool:
        return self._has(SyntaxKind.PUB_KW)

    @property
    def name_token(self) -> SyntaxToken | None:
        """The token of the item's name."""
        return self._token(SyntaxKind.IDENT)

    @property
    def name(self) -> str | None:
        token = self.name_token
        return token.text if token else None

    @property
    def docs(self) -> str:
        """Text of the `///` lines above the item, markers and one leading space removed."""
        lines: list[str] = []
        for element in self.node.elements:
            if isinstance(element, SyntaxToken):
                if element.kind is SyntaxKind.DOC_COMMENT:
                    lines.append(element.text[3:].removeprefix(" ").rstrip("\r"))
                elif not element.kind.is_trivia:
                    break
        return "\n".join(lines)


class Stmt(Ast):
    """Anything that may stand in a block, except its final expression."""

    __slots__ = ()


class Expr(Ast):
    """Any expression."""

    __slots__ = ()


class Type(Ast):
    """Any type as written."""

    __slots__ = ()


class Pattern(Ast):
    """Any pattern, of `let`, `for`, a lambda or `match`."""

    __slots__ = ()


class Error(Item, Stmt, Expr, Type, Pattern):
    """Tokens the parser could not place; it has reported them, so treat the part as unknown."""

    __slots__ = ()
    KIND = SyntaxKind.ERROR


def cast(node: SyntaxNode) -> Ast:
    """The typed view of a node, of the class that belongs to its kind."""
    return _BY_KIND[node.green.kind](node)


def _view(node: SyntaxNode, cls: type[A]) -> A | None:
    """The typed view of a node if it is one of ``cls``."""
    own = _BY_KIND[node.green.kind]
    return own(node) if issubclass(own, cls) else None
