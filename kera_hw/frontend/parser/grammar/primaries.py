"""Expressions that need no operator: names, literals, brackets, `if`, `match`, lambdas."""
from __future__ import annotations

from kera_hw.frontend.parser.core import (
    BLOCK_LIKE,
    BLOCK_LIKE_START,
    ITEM_KEYWORDS,
    LITERAL_START,
    STMT_KEYWORDS,
)
from kera_hw.frontend.parser.grammar.foreign_statements import ForeignStatements
from kera_hw.frontend.parser.rules import Completed, Marker
from kera_hw.frontend.syntax.kinds import SyntaxKind
from kera_hw.support import Fix, Span

K = SyntaxKind
_ARMS_END = STMT_KEYWORDS | ITEM_KEYWORDS  # the `}` is missing
_ARM_START = frozenset((K.IDENT, K.UNDERSCORE))
_ARM_STOP = frozenset((K.COMMA, K.FAT_ARROW, K.SEMICOLON))


class Primaries(ForeignStatements):
    """Mixin for atoms."""

    def atom(self, struct_ok: bool) -> Completed | None:
        """An expression without operators; None, with a report, where none begins."""
        kind = self.current
        if kind is K.IDENT:
            return self._path_or_struct(struct_ok)
        if kind in LITERAL_START or kind is K.MINUS:
            return self.literal()
        if kind is K.L_PAREN:
            return self.cast_before(self._paren(), struct_ok)
        if kind is K.L_BRACKET:
            return self._array()
        if kind in (K.IF_KW, K.MATCH_KW) or (kind is K.L_BRACE and struct_ok):
            return self.block_like()
        self.unexpected("an expression")
        return None

    def block_like(self) -> Completed:
        """`if`, `match` or a block; the caller has seen that one is here."""
        if self.at(K.IF_KW):
            return self._if()
        if self.at(K.MATCH_KW):
            return self._match()
        return self.concatenation() or self.block_into(self.open())

    def block_like_value(self) -> Completed:
        """`if`, `match` or a block that ends at its brace, as statements do, unless a `.` follows."""
        found = self.block_like()
        return self.operators_after(self.postfix(found)) if self.at(K.DOT) else found

    # -- names and struct literals --------------------------------------------------------------

    def _path_or_struct(self, struct_ok: bool) -> Completed:
        marker = self.open()
        first = self.pos
        self.path()
        if self.macro(first):
            return self.close(marker, K.ERROR)
        if self.at(K.COLON_COLON):
            self.bump()
            self.generic_args()
            if not self.at(K.L_PAREN):
                self.missing("`(` and the arguments", "the compile-time arguments")
            return self.close(marker, K.PATH_EXPR)
        if self.at(K.L_BRACE):
            if struct_ok:
                return self._struct(marker)
            if self.nth(1) is K.IDENT and self.nth(2) in (K.COLON, K.COMMA):
                refused = self.pos
                found = self._struct(marker)
                self.error_pos, position = -1, self.pos
                self.pos = refused
                span = self.tokens[first].start, self.tokens[position - 1].end
                self._refuse_struct(*span)
                self.pos = position
                return found
        return self.close(marker, K.PATH_EXPR)

    def _refuse_struct(self, start: int, end: int) -> None:
        span = Span(start, end)
        text = self.data[start:end].decode("utf-8", "replace")
        fix = Fix("put parentheses around it", span, f"({text})", safe=True)
        self.error("K0111", "A struct literal in a head needs parentheses.", span, fix=fix)

    def _struct(self, marker: Marker) -> Completed:
        self.comma_list(K.R_BRACE, self._struct_field)
        return self.close(marker, K.STRUCT_EXPR)

    def _struct_field(self) -> None:
        marker = self.open()
        if self.name("the name of a field") and self.eat(K.COLON):
            self.expression()
        self.close(marker, K.STRUCT_EXPR_FIELD)

    # -- brackets -------------------------------------------------------------------------------

    def _paren(self) -> Completed:
        marker = self.open()
        count = self.comma_list(K.R_PAREN, self.any_expression)
        return self.close(marker, K.PAREN_EXPR if count == 1 else K.TUPLE_EXPR)

    def _array(self) -> Completed:
        """`[a, b]` or `[v; d0, d1]`: the token after the first value tells."""
        marker = self.open()
        kind = K.ARRAY_EXPR

        def element() -> None:
            nonlocal kind
            first = kind is K.ARRAY_EXPR and self.kinds[self.pos - 1] is K.L_BRACKET
            self.expression()
            if first and self.at(K.SEMICOLON):
                kind = K.REPEAT_EXPR
                self.bump()
                self.expression()

        self.comma_list(K.R_BRACKET, element)
        return self.close(marker, kind)

    # -- lambdas --------------------------------------------------------------------------------

    def lambda_(self, struct_ok: bool) -> Completed:
        """A lambda; the caller has seen its `|`."""
        marker = self.open()
        if not self.eat(K.PIPE_PIPE):
            self.comma_list(K.PIPE, self._lambda_param)
        self.expression(struct_ok)
        return self.close(marker, K.LAMBDA_EXPR)

    def _lambda_param(self) -> None:
        marker = self.open()
        self.binding_pattern()
        if self.eat(K.COLON):
            self.type_()
        self.close(marker, K.LAMBDA_PARAM)

    # -- if and match ---------------------------------------------------------------------------

    def _if(self) -> Completed:
        """Iterative over `else if`, so that long chains do not nest the parser."""
        outer: list[Marker] = []
        while True:
            outer.append(self.open())
            self.bump()
            self.expression(struct_ok=False)
            if self.then_branch(outer[-1].first_token):
                break
            self.block()
            if self.at_word(b"elif") or self.at_word(b"elsif") or self.at_word(b"elseif"):
                span = self.span_here()
                self.foreign("Chains continue with `else if`.", span,
                             Fix("write `else if`", span, "else if", safe=True))
                continue
            if not self.eat(K.ELSE_KW):
                break
            if self.at(K.IF_KW):
                continue
            self.block()
            break
        while True:
            done = self.close(outer.pop(), K.IF_EXPR)
            if not outer:
                return done

    def _match(self) -> Completed:
        marker = self.open()
        self.bump()
        self.expression(struct_ok=False)
        if self.at(K.L_BRACE):
            self._arms()
        else:
            self.missing("`{` and the arms of the `match`")
        return self.close(marker, K.MATCH_EXPR)

    def _arms(self) -> None:
        opener = self.pos
        self.bump()
        self.expected_closers.append(K.R_BRACE)
        while not (self.at(K.R_BRACE) or self.at(K.END) or self.current in _ARMS_END):
            before = self.pos
            last = self._arm()
            if self.eat(K.COMMA) or (last is not None and last.kind in BLOCK_LIKE):
                continue
            if self.at(K.R_BRACE):
                break
            self.unclosed(opener, K.R_BRACE, "`,`")
            if self.pos > before and (self.current in LITERAL_START or self.current in _ARM_START):
                continue  # as though the comma were there
            self.skip_until(_ARM_STOP)
            if not self.eat(K.COMMA) and self.pos == before and not self.at(K.R_BRACE):
                self.bump_error()
        self.expected_closers.pop()
        if not self.eat(K.R_BRACE):
            self.unclosed(opener, K.R_BRACE)

    def _arm(self) -> Completed | None:
        marker = self.open()
        self.match_pattern()
        if self.at(K.IF_KW):
            self.error("K0101", "A `match` arm has no guard; test inside the arm with `if`.")
            self.skip_until(_ARM_STOP)
        body = None
        if self.expect(K.FAT_ARROW, "the pattern"):
            body = self.block_like_value() if self.current in BLOCK_LIKE_START else self.open_expression()
            if body is not None and self.peek_assign() is not None:
                body = self._assigning_arm(body)
        self.close(marker, K.MATCH_ARM)
        return body

    def _assigning_arm(self, target: Completed) -> Completed:
        """`=> x = e`: an assignment for its effect, as though braces stood around it."""
        statement = self.open_around(target)
        operator = self.peek_assign()
        assert operator is not None
        self.bump(*operator)
        self.expression()
        done = self.close(statement, K.ASSIGN_STMT)
        self.close(self.open_around(done), K.BLOCK)
        return done
