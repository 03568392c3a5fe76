"""Blocks and statements."""
from __future__ import annotations

from kera_hw.frontend.parser.core import (
    BLOCK_LIKE,
    BLOCK_LIKE_START,
    EXPR_START,
    ITEM_KEYWORDS,
    STMT_KEYWORDS,
)
from kera_hw.frontend.parser.grammar.foreign_statements import ForeignStatements
from kera_hw.frontend.parser.rules import Completed, Marker
from kera_hw.frontend.syntax.kinds import SPELLING, SyntaxKind
from kera_hw.support import Fix, Span

K = SyntaxKind
_FOREIGN_ITEMS = ITEM_KEYWORDS - {K.CONST_KW}

#: What to write for a jump.
_JUMPS = {
    "loop": "write `for i in a..b { .. }` or `while c, max N { .. }`",
    "break": "write `while c, max N { .. }`, whose condition ends the loop",
    "continue": "put the rest of the round into an `if`; `while c, max N { .. }` is the loop that ends early",
}


class Statements(ForeignStatements):
    """Mixin for everything between braces."""

    def block(self, is_body: bool = False) -> None:
        """A block, or a report that one is missing. ``is_body``: of a function or stream."""
        if self.at(K.L_BRACE):
            self.block_into(self.open(), is_body)
        elif not self.unbraced_block():
            self.missing("a block in `{ }`")

    def block_into(self, marker: Marker, is_body: bool = False) -> Completed:
        opener = self.pos
        with self.nested() as ok:
            if ok:
                self.bump()
                self.expected_closers.append(K.R_BRACE)
                while not (self.at(K.R_BRACE) or self.at(K.END) or self.at_next_item()):
                    self._statement(is_body)
                self.expected_closers.pop()
                if not self.eat(K.R_BRACE):
                    token = self.tokens[opener]
                    self.error("K0102", "This `{` is never closed.", Span(token.start, token.end))
        return self.close(marker, K.BLOCK)

    def _statement(self, is_body: bool) -> None:
        before = self.pos
        kind = self.current
        if kind is K.LET_KW:
            self._let()
        elif kind is K.CONST_KW:
            self.const_item(self.open())
        elif kind is K.FOR_KW:
            self._for()
        elif kind is K.WHILE_KW:
            self._while()
        elif kind is K.RETURN_KW:
            self._return(is_body)
        elif kind is K.IDENT and self.word() == b"state" and self.nth(1) is K.IDENT:
            self._state()
        elif kind in _FOREIGN_ITEMS or self.at_test():
            self.error("K0110", f"An item ({self.found()}) cannot stand inside a body.")
            self.item()
        elif kind is K.SEMICOLON:
            marker = self.open()
            self.bump()
            self.close(marker, K.EXPR_STMT)
        elif kind is K.IDENT and self._at_foreign_jump():
            self._foreign_jump()
        elif kind is K.IDENT and self.foreign_statement():
            pass
        elif kind in (K.R_PAREN, K.R_BRACKET):
            self.error("K0106", f"This {self.found()} closes nothing.")
            self.bump_error()
        else:
            self._expression_statement()
        if self.pos == before and not self.at(K.END):
            self._recover()

    def _let(self) -> None:
        marker = self.open()
        self.bump()
        self.binding_pattern()
        if self.eat(K.COLON):
            self.type_()
        if self.eat(K.EQ):
            self.expression()
        else:
            self.missing("`=` and a value")
        self.semicolon()
        self.close(marker, K.LET_STMT)

    def _state(self) -> None:
        marker = self.open()
        self.bump(K.STATE_KW)
        self.bump()
        self.annotation("the name of the state")
        if self.eat(K.EQ):
            self.expression()
        self.semicolon()
        self.close(marker, K.STATE_STMT)

    def _return(self, is_body: bool) -> None:
        marker = self.open()
        self.bump()
        if self.current not in (K.SEMICOLON, K.R_BRACE, K.END):
            self.expression()
        if not self.at(K.R_BRACE):
            self.semicolon()
        self.close(marker, K.RETURN_STMT)
        if not is_body or not self.at(K.R_BRACE):
            self.error(
                "K0108", "`return` may only be the last statement of a function or stream body.",
                self.span_since(marker.first_token),
                fix=Fix("let the value be chosen: `if c { early } else { the rest }`"),
            )

    def _for(self) -> None:
        marker = self.open()
        self.bump()
        if self.c_loop():
            self.block()
            self.close(marker, K.ERROR)
            return
        self.binding_pattern()
        if self.eat(K.COLON):
            self.type_()
        if self.expect(K.IN_KW, "the loop variable"):
            self.expression(struct_ok=False)
        self.block()
        self.close(marker, K.FOR_STMT)

    def _while(self) -> None:
        marker = self.open()
        first = self.span_here()
        self.bump()
        self.expression(struct_ok=False)
        if self.at(K.COMMA) and self.nth(1) is K.IDENT and self.word(1) == b"max":
            self.bump()
            self.bump(K.MAX_KW)
            self.expression(struct_ok=False)
        else:
            self.error("K0105", "This `while` has no bound; write `while c, max N { .. }`.", first)
            if self.at(K.COMMA):
                self.bump_error()
                if self.current in EXPR_START and not self.at(K.L_BRACE):
                    self.expression(struct_ok=False)
        self.block()
        self.close(marker, K.WHILE_STMT)

    def _expression_statement(self) -> None:
        marker = self.open()
        if self.current in BLOCK_LIKE_START:
            found = self.block_like_value()
            if not self.at(K.SEMICOLON) and not self.at(K.R_BRACE):
                if found.kind not in BLOCK_LIKE:
                    self.semicolon()
                self.close(marker, K.EXPR_STMT)
                return
        else:
            found = self.open_expression()
        if found is None:
            return
        operator = self.peek_assign()
        if operator is not None:
            self.bump(*operator)
            self.expression()
            if not self.at(K.R_BRACE):
                self.semicolon()
            self.close(marker, K.ASSIGN_STMT)
        elif not self.at(K.R_BRACE):
            self.semicolon()
            self.close(marker, K.EXPR_STMT)
        # else: the block's value; the marker stays abandoned

    # -- what other languages have --------------------------------------------------------------

    def _at_foreign_jump(self) -> bool:
        word, following = self.word(), self.nth(1)
        if word == b"loop":
            return following is K.L_BRACE
        return word in (b"break", b"continue") and following in (K.SEMICOLON, K.R_BRACE)

    def _foreign_jump(self) -> None:
        word = self.word().decode()
        fix = Fix(_JUMPS[word])
        self.error("K0113", f"The language has no `{word}`.", fix=fix)
        marker = self.open()
        self.bump()
        if self.at(K.L_BRACE):
            self.block()
        else:
            self.eat(K.SEMICOLON)
        self.close(marker, K.ERROR)

    # -- recovery -------------------------------------------------------------------------------

    def semicolon(self) -> None:
        """Take `;`, or report it missing and go on where the next statement can begin."""
        if self.eat(K.SEMICOLON) or (self.at(K.END) and self.expected_closers):
            return  # where the file ends too early, the bracket left open is what to report
        self.missing("`;`", insert=SPELLING[K.SEMICOLON])
        self._skip_line()
        self.eat(K.SEMICOLON)

    def _skip_line(self) -> None:
        if self._at_fresh_start():
            return
        marker = self.open()
        while not self._at_fresh_start():
            self.skip_balanced()
        self.close(marker, K.ERROR)

    def _at_fresh_start(self) -> bool:
        return (
            self.new_line[self.pos] or self.current in (K.END, K.SEMICOLON)
            or self.current in STMT_KEYWORDS or self.current in ITEM_KEYWORDS or self.at_expected_closer()
        )

    def _recover(self) -> None:
        """No statement begins here and that has been reported: leave the rest of the line out."""
        marker = self.open()
        self.skip_balanced()
        while not self._at_fresh_start():
            self.skip_balanced()
        self.eat(K.SEMICOLON)
        self.close(marker, K.ERROR)
