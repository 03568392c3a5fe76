"""Typed views of patterns.

`let`, `for` and lambdas take NamePattern, WildcardPattern and TuplePattern of those; `match` takes all.
"""
from __future__ import annotations

from kera_hw.frontend.syntax.ast_atoms import Literal, Path
from kera_hw.frontend.syntax.ast_base import Expr, Pattern
from kera_hw.frontend.syntax.kinds import SyntaxKind as K
from kera_hw.frontend.syntax.red import SyntaxToken


class NamePattern(Pattern):
    """`x`, `mut x`: binds a name; in `match` a path to a constant (or a binding)."""

    __slots__ = ()
    KIND = K.NAME_PATTERN

    @property
    def is_mut(self) -> bool:
        return self._has(K.MUT_KW)

    @property
    def path(self) -> Path | None:
        return self._child(Path)

    @property
    def name_token(self) -> SyntaxToken | None:
        path = self.path
        return path.name_token if path else None

    @property
    def name(self) -> str | None:
        path = self.path
        return path.name if path else None


class WildcardPattern(Pattern):
    """`_`."""

    __slots__ = ()
    KIND = K.WILDCARD_PATTERN


class TuplePattern(Pattern):
    """`(a, b)`, `(a,)`, `()`."""

    __slots__ = ()
    KIND = K.TUPLE_PATTERN

    @property
    def elements(self) -> list[Pattern]:
        return self._children(Pattern)


class ParenPattern(Pattern):
    """`(p)`, which is p."""

    __slots__ = ()
    KIND = K.PAREN_PATTERN

    @property
    def inner(self) -> Pattern | None:
        return self._child(Pattern)


class LiteralPattern(Pattern):
    """`0`, `-1i8`, `true`."""

    __slots__ = ()
    KIND = K.LITERAL_PATTERN

    @property
    def literal(self) -> Literal | None:
        return self._child(Literal)


class RangePattern(Pattern):
    """`3..=7`, `0..N`, `8..`, `..=7`; ends are literals or paths (a Literal or PathExpr)."""

    __slots__ = ()
    KIND = K.RANGE_PATTERN

    @property
    def start(self) -> Expr | None:
        """The lower end; None where the range is open below."""
        return self._before((K.DOT_DOT, K.DOT_DOT_EQ), Expr)

    @property
    def end(self) -> Expr | None:
        """The upper end; None where the range is open above."""
        return self._after((K.DOT_DOT, K.DOT_DOT_EQ), Expr)

    @property
    def inclusive(self) -> bool:
        return self._has(K.DOT_DOT_EQ)


class OrPattern(Pattern):
    """`1 | 2`."""

    __slots__ = ()
    KIND = K.OR_PATTERN

    @property
    def alternatives(self) -> list[Pattern]:
        return self._children(Pattern)
