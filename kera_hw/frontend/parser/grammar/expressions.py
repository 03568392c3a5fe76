"""Operators: a Pratt parser over unary expressions, and what may follow an expression."""
from __future__ import annotations

from kera_hw.frontend.parser.core import EXPR_START
from kera_hw.frontend.parser.grammar.foreign import Foreign
from kera_hw.frontend.parser.rules import Completed, Marker
from kera_hw.frontend.syntax.kinds import ASSIGN_KINDS, SPELLING, SyntaxKind
from kera_hw.support import Fix

K = SyntaxKind

_COMPARE, _ADD, _CAST = 3, 8, 10
_POWER: dict[SyntaxKind, int] = {
    K.PIPE_PIPE: 1, K.AMP_AMP: 2,
    K.EQ_EQ: _COMPARE, K.BANG_EQ: _COMPARE, K.LT: _COMPARE, K.LT_EQ: _COMPARE, K.GT: _COMPARE,
    K.GT_EQ: _COMPARE,
    K.PIPE: 4, K.CARET: 5, K.AMP: 6, K.SHL: 7, K.SHR: 7, K.PLUS: _ADD, K.MINUS: _ADD,
    K.STAR: 9, K.SLASH: 9, K.PERCENT: 9, K.AS_KW: _CAST,
}
_RANGE_OPS = (K.DOT_DOT, K.DOT_DOT_EQ)


class Expressions(Foreign):
    """Mixin for ranges, binary and unary operators, casts, calls, fields and indices."""

    def expression(self, struct_ok: bool = True) -> Completed | None:
        """Any expression; None, with a report, where none begins. ``struct_ok``: outside of heads."""
        found = self.open_expression(struct_ok)
        if found is not None:
            operator = self.peek_assign()
            if operator is not None:
                self._refuse_assignment(operator)
        return found

    def open_expression(self, struct_ok: bool = True) -> Completed | None:
        """An expression that an assignment operator may follow."""
        with self.nested() as ok:
            if not ok:
                return None
            if self.current in _RANGE_OPS:
                return self._range(self.open(), struct_ok)
            if self.current in (K.PIPE, K.PIPE_PIPE):
                return self.lambda_(struct_ok)
            found = self._binary(0, struct_ok)
            return self._range_after(found, struct_ok) if found else None

    def operators_after(self, found: Completed, struct_ok: bool = True) -> Completed:
        """What binary operators and ranges make of an expression already read."""
        return self._range_after(self._climb(found, 0, struct_ok), struct_ok)

    def _range_after(self, found: Completed, struct_ok: bool) -> Completed:
        if self.current in _RANGE_OPS:
            found = self._range(self.open_around(found), struct_ok)
            if self.current in _RANGE_OPS:
                self.error("K0101", "A range has two ends; ranges do not chain.")
        return self.conditional(found, struct_ok)

    def size_expression(self) -> Completed | None:
        """A compile-time argument: nothing looser than `+`, so that `>` ends the list."""
        with self.nested() as ok:
            return self._binary(_ADD, True) if ok else None

    def _range(self, marker: Marker, struct_ok: bool) -> Completed:
        inclusive = self.at(K.DOT_DOT_EQ)
        self.bump()
        if self.current in EXPR_START and (struct_ok or not self.at(K.L_BRACE)):
            self._binary(0, struct_ok)
        elif inclusive:
            self.unexpected("the upper end of the range")
        return self.close(marker, K.RANGE_EXPR)

    def _binary(self, least: int, struct_ok: bool) -> Completed | None:
        found = self._unary(struct_ok)
        return self._climb(found, least, struct_ok) if found else None

    def _climb(self, lhs: Completed, least: int, struct_ok: bool) -> Completed:
        compared = chained = False
        while True:
            if self.at_step():
                return self.step_after(lhs)
            foreign = self.foreign_operator()
            if foreign is not None and foreign[2] >= least:
                lhs = self._foreign_binary(lhs, foreign, struct_ok)
                continue
            operator, count = self._peek_binary()
            power = _POWER.get(operator, -1)
            if power < 0 or power < least or (power == _ADD and self.nth(1) is K.COLON):
                return lhs
            if power == _COMPARE:
                if compared and not chained:
                    chained = True
                    self._refuse_chain(operator)
                compared = True
            marker = self.open_around(lhs)
            self.bump(operator, count)
            if operator is K.AS_KW:
                self.type_(under_as=True)
                lhs = self.close(marker, K.CAST_EXPR)
                continue
            complete = self._operand(power + 1, struct_ok)
            lhs = self.close(marker, K.BINARY_EXPR)
            if not complete:
                return lhs

    def _foreign_binary(
        self, lhs: Completed, operator: tuple[str, str, int, int], struct_ok: bool,
    ) -> Completed:
        marker, first = self.open_around(lhs), self.pos
        self.bump(count=operator[3])
        span = self.span_since(first)
        self._operand(operator[2] + 1, struct_ok)
        found = self.close(marker, K.ERROR)
        self.refuse_operator(found, operator, span)
        return found

    def _refuse_chain(self, operator: SyntaxKind) -> None:
        fix = None
        if operator is K.GT and self.nth(1) is K.L_PAREN:
            fix = Fix("to give compile-time arguments, write `::<..>` after the name")
        self.error("K0104", f"Comparisons do not chain; `{SPELLING[operator]}` follows another.", fix=fix)

    def _operand(self, least: int, struct_ok: bool) -> bool:
        with self.nested() as ok:
            return ok and self._binary(least, struct_ok) is not None

    def _peek_binary(self) -> tuple[SyntaxKind, int]:
        """The operator here and how many tokens make it up: `>` comes single from the lexer."""
        here = self.kinds[self.pos]
        if here is not K.GT or not self.adjacent(0):
            return here, 1
        if self.nth(1) is K.EQ:
            return K.GT_EQ, 2
        if self.nth(1) is K.GT:
            if self.adjacent(1) and self.nth(2) is K.EQ:
                return K.SHR_EQ, 3
            return K.SHR, 2
        return K.GT, 1

    def peek_assign(self) -> tuple[SyntaxKind, int] | None:
        """The assignment operator here and its number of tokens."""
        operator = self._peek_binary()
        return operator if operator[0] in ASSIGN_KINDS else None

    def _refuse_assignment(self, operator: tuple[SyntaxKind, int]) -> None:
        text = SPELLING[operator[0]]
        fix = Fix("to compare, write `==`", self.span_here(), "==") if operator[0] is K.EQ else None
        self.error("K0109", f"An assignment (`{text}`) is a statement and has no value.", fix=fix)
        marker = self.open()
        self.bump(*operator)
        self.open_expression()
        self.close(marker, K.ERROR)

    # -- unary and postfix ----------------------------------------------------------------------

    def unary_operand(self, struct_ok: bool) -> None:
        """What a prefix operator applies to."""
        with self.nested() as ok:
            if ok:
                self._unary(struct_ok)

    def _unary(self, struct_ok: bool) -> Completed | None:
        kind = self.current
        if kind is K.PLUS:
            return self.step_before(struct_ok)
        if kind is K.STAR and self.nth(1) in (K.IDENT, K.L_PAREN):
            return self.dereference(struct_ok)
        if kind is K.IDENT and (found := self.prefix_word(struct_ok)) is not None:
            return found
        if kind not in (K.MINUS, K.BANG, K.AMP) or (kind is K.MINUS and self.nth(1) in (K.INT, K.FLOAT)):
            found = self.atom(struct_ok)
            return self.postfix(found) if found else None
        marker = self.open()
        self.bump()
        if kind is K.AMP:
            self.eat(K.MUT_KW)
        with self.nested() as ok:
            if ok:
                self._unary(struct_ok)
        return self.close(marker, K.BORROW_EXPR if kind is K.AMP else K.UNARY_EXPR)

    def postfix(self, found: Completed) -> Completed:
        """Calls, indices, fields and methods after an expression already read."""
        while True:
            if self.at(K.L_PAREN):
                marker = self.open_around(found)
                self._args()
                found = self.close(marker, K.CALL_EXPR)
            elif self.at(K.L_BRACKET):
                found = self._index(found)
            elif self.at(K.DOT):
                found = self._dotted(self.open_around(found))
            else:
                return found

    def _index(self, base: Completed) -> Completed:
        marker = self.open_around(base)
        opener, kind = self.pos, K.INDEX_EXPR

        def entry() -> None:
            nonlocal kind
            if not self.at(K.COLON):
                self.expression()
            if self.colon_slice(base.first_token, opener):
                kind = K.ERROR

        if not self.comma_list(K.R_BRACKET, entry):
            self.error("K0101", "An index has at least one entry.", self.span_since(opener))
        return self.close(marker, kind)

    def any_expression(self) -> None:
        """An expression as an element of a list."""
        self.expression()

    def _dotted(self, marker: Marker) -> Completed:
        self.bump()
        if self.eat(K.INT):
            return self.close(marker, K.FIELD_EXPR)
        self.name("a field or method")
        if not self.at(K.L_PAREN) and not (self.at(K.COLON_COLON) and self.nth(1) is K.LT):
            return self.close(marker, K.FIELD_EXPR)
        if self.eat(K.COLON_COLON):
            self.generic_args()
        if self.at(K.L_PAREN):
            self._args()
        else:
            self.missing("`(` and the arguments")
        return self.close(marker, K.METHOD_CALL_EXPR)

    def _args(self) -> None:
        marker = self.open()
        self.comma_list(K.R_PAREN, self._arg)
        self.close(marker, K.ARG_LIST)

    def _arg(self) -> None:
        marker = self.open()
        if self.current in (K.IDENT, K.ELSE_KW) and self.nth(1) is K.COLON:
            self.bump()
            self.bump()
        elif self.current in (K.IDENT, K.ELSE_KW) and self.nth(1) is K.EQ:
            self.bump()
            fix = Fix("write `:`", self.span_here(), ":", safe=True)
            self.error("K0101", "An argument is named with `:`, not with `=`.", fix=fix)
            self.bump_error()
        if self.word() in (b"fix", b"ufix") and self.nth(1) is K.LT:
            self.type_argument()
        else:
            self.expression()
        self.close(marker, K.ARG)
