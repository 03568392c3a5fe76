"""Patterns of `let`, `for`, lambdas and `match`, and the literals they share with expressions."""
from __future__ import annotations

from collections.abc import Callable

from kera_hw.frontend.parser.grammar.foreign import Foreign
from kera_hw.frontend.parser.rules import Completed
from kera_hw.frontend.syntax.kinds import SyntaxKind
from kera_hw.support import Fix

K = SyntaxKind
_RANGE_OPS = (K.DOT_DOT, K.DOT_DOT_EQ)
_LITERALS = frozenset((K.INT, K.FLOAT, K.TRUE_KW, K.FALSE_KW))


class Patterns(Foreign):
    """Mixin for patterns."""

    def literal(self) -> Completed:
        """A literal with the `-` that belongs to it; the caller has seen that one is here."""
        marker = self.open()
        self.eat(K.MINUS)
        self.bump()
        return self.close(marker, K.LITERAL)

    def binding_pattern(self) -> None:
        """`x`, `mut x`, `_`, `(a, b)`."""
        with self.nested() as ok:
            if not ok:
                return
            marker = self.open()
            if self.at(K.IDENT) or self.at(K.MUT_KW):
                self.eat(K.MUT_KW)
                path = self.open()
                self.name("the name of a variable")
                self.close(path, K.PATH)
                self.close(marker, K.NAME_PATTERN)
            elif self.eat(K.UNDERSCORE):
                self.close(marker, K.WILDCARD_PATTERN)
            elif self.at(K.L_PAREN):
                self._tuple_pattern(self.binding_pattern)
            elif self.at(K.L_BRACE):
                advice = "write `let (sum, carry) = ..`; `add_carry(a, b, false)` gives these two"
                self.foreign("Several names are a tuple.", fix=Fix(advice))
                self.skip_balanced()
                self.close(marker, K.ERROR)
            else:
                self.name("the name of a variable")

    def match_pattern(self) -> None:
        """`a | b`, where a bar may also come first."""
        with self.nested() as ok:
            if not ok:
                return
            if not self.at(K.PIPE):
                first = self._single_pattern()
                if first is None or not self.at(K.PIPE):
                    return
                marker = self.open_around(first)
            else:
                marker = self.open()
            while self.eat(K.PIPE):
                if self._single_pattern() is None:
                    break
            self.close(marker, K.OR_PATTERN)

    def _single_pattern(self) -> Completed | None:
        if self.at(K.UNDERSCORE):
            marker = self.open()
            self.bump()
            return self.close(marker, K.WILDCARD_PATTERN)
        if self.at(K.L_PAREN):
            return self._tuple_pattern(self.match_pattern)
        if self.current in _RANGE_OPS:
            return self._range_pattern(None)
        if self.at(K.IDENT):
            marker = self.open()
            self.path()
            if self.current in _RANGE_OPS:
                return self._range_pattern(self.close(marker, K.PATH_EXPR))
            return self.close(marker, K.NAME_PATTERN)
        if self._at_literal():
            literal = self.literal()
            if self.current in _RANGE_OPS:
                return self._range_pattern(literal)
            return self.close(self.open_around(literal), K.LITERAL_PATTERN)
        self.unexpected("a pattern")
        return None

    def _at_literal(self) -> bool:
        return self.current in _LITERALS or (self.at(K.MINUS) and self.nth(1) in (K.INT, K.FLOAT))

    def _range_pattern(self, start: Completed | None) -> Completed:
        """`a..b` with either end open, but not both, and `..=` closed above."""
        marker = self.open_around(start) if start else self.open()
        needs_end = self.at(K.DOT_DOT_EQ) or start is None
        self.bump()
        if self._at_literal():
            self.literal()
        elif self.at(K.IDENT):
            end = self.open()
            self.path()
            self.close(end, K.PATH_EXPR)
        elif needs_end:
            self.unexpected("the upper end of the range")
        return self.close(marker, K.RANGE_PATTERN)

    def _tuple_pattern(self, element: Callable[[], None]) -> Completed:
        marker = self.open()
        count = self.comma_list(K.R_PAREN, element)
        return self.close(marker, K.PAREN_PATTERN if count == 1 else K.TUPLE_PATTERN)
