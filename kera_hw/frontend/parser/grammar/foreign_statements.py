"""Statements and items as in Verilog, C and Python, told as the expressions in foreign.py are."""
from __future__ import annotations

import re

from kera_hw.frontend.parser.grammar.foreign import Foreign
from kera_hw.frontend.parser.grammar.foreign_words import DECLARATIONS, ITEMS, STATEMENTS, scalar_type
from kera_hw.frontend.syntax.kinds import SyntaxKind
from kera_hw.support import Fix, Span

K = SyntaxKind
#: Words that close or fill blocks elsewhere; here they may be names.
_FILLERS = (b"begin", b"end", b"endmodule", b"endcase", b"endfunction", b"pass")
_PROCESSES = (b"initial", b"always", b"always_comb", b"always_ff", b"process")


class ForeignStatements(Foreign):
    """Mixin for what other languages have between braces and at the top level."""

    # -- statements -----------------------------------------------------------------------------

    def foreign_statement(self) -> bool:
        """A statement that begins with a word of another language; False, with nothing taken, for others."""
        word, following = self.word(), self.nth(1)
        if following is K.COLON and self.nth(2) is K.EQ and self.adjacent(1):
            span = self.span_here()
            target = word.decode()
            self._refuse_line("A variable is declared with `let`.", Fix(f"write `let {target} = ..;`"), span)
            return True
        if self._at_declaration() and (word in DECLARATIONS or scalar_type(word.decode()) is not None):
            self._declaration(word)
            return True
        if word == b"enum" and following is K.IDENT and self.nth(2) is K.L_BRACE:
            self._refuse_line("The language has no `enum`.", self._as_constants(), self.span_here())
            return True
        if word in _FILLERS:
            return self._filler(following)
        advice = STATEMENTS.get(word)
        if advice is None or not self._is_statement_word(word, following):
            return False
        self._refuse_line(advice[0], Fix(advice[1]), self.span_here())
        if word == b"case":
            self._pass_over_cases()
        return True

    def _pass_over_cases(self) -> None:
        """The alternatives of a `case` of Verilog."""
        marker = self.open()
        while not (self.at(K.END) or self.at_expected_closer() or self.at_word(b"endcase")):
            self.skip_balanced()
        if self.at_word(b"endcase"):
            self.bump()
        self.close(marker, K.ERROR)

    def _filler(self, following: SyntaxKind) -> bool:
        """`end` and its like after something reported: an echo of that, to be passed over."""
        if not self.had_foreign or (following not in (K.SEMICOLON, K.R_BRACE) and self.same_line(1)):
            return False
        self.bump_error()
        self.eat(K.SEMICOLON)
        return True

    def _is_statement_word(self, word: bytes, following: SyntaxKind) -> bool:
        if word in (b"switch", b"case"):
            end = self.partner(1) if following is K.L_PAREN else None
            if end is None:
                return following is K.IDENT
            return self.nth(end + 1) is K.L_BRACE or self.nth(end + 2) is K.COLON
        if word in _PROCESSES and following is K.AT:
            return True
        return following in (K.IDENT, K.L_BRACE, K.STRING) and self.same_line(1)

    def _refuse_line(self, message: str, fix: Fix, span: Span) -> None:
        """Report a statement, and leave out its line and the braces on it."""
        self.foreign(message, span, fix)
        marker = self.open()
        self.skip_balanced()
        while not (self.at(K.END) or self.new_line[self.pos] or self.at_expected_closer()):
            self.skip_balanced()
        self.close(marker, K.ERROR)

    def _at_declaration(self) -> bool:
        """`int x`, `reg [7:0] x`."""
        if self.nth(1) is K.IDENT:
            return self.same_line(1) and self.nth(2) in (K.EQ, K.SEMICOLON, K.COMMA, K.L_BRACKET, K.COLON)
        end = self.partner(1) if self.nth(1) is K.L_BRACKET else None
        return end is not None and self.nth(end + 1) is K.IDENT

    def _declaration(self, word: bytes) -> None:
        first = self.pos
        kind = scalar_type(word.decode())
        if self.nth(1) is K.L_BRACKET:
            closer = self.partner(1) or 1
            bounds = self.text_of(first + 2, first + closer).split(":")
            digits = [bound.strip() for bound in bounds]
            if len(digits) == 2 and all(digit.isdigit() and len(digit) < 4 for digit in digits):
                width = abs(int(digits[0]) - int(digits[1])) + 1
                kind = f"u{width}" if width <= 64 else None
            at = closer + 1
        else:
            at = 1
        name = self.text_of(first + at, first + at + 1)
        typed = f": {kind}" if kind else ""
        value = ".."
        if self.nth(at + 1) is K.EQ:
            end = self.pos + at + 2
            while self.kinds[end] not in (K.SEMICOLON, K.END) and not self.new_line[end]:
                end += 1
            value = self.text_of(first + at + 2, end)
        shown = f"let {name}{typed} = {value};"
        self._refuse_line(
            "A variable is declared with `let`, its type behind the name.", Fix(f"write `{shown}`"),
            self.span_here(),
        )

    def c_loop(self) -> bool:
        """`for (i = 0; i < n; i++)` behind its `for`; the block is left to the caller."""
        end = self.partner() if self.at(K.L_PAREN) else None
        if end is None or not any(self.nth(ahead) is K.SEMICOLON for ahead in range(end)):
            return False
        self.foreign("A `for` runs over a range.", fix=Fix("write `for i in 0..n { .. }`"))
        marker = self.open()
        self.skip_balanced()
        self.close(marker, K.ERROR)
        return True

    def unbraced_block(self, stop: frozenset[SyntaxKind] = frozenset()) -> bool:
        """`if c:` as in Python or `begin` as in Verilog, where a block should stand: what follows is left
        out, as far as a stop or the end of the block around."""
        if not (self.at(K.COLON) or self.at_word(b"begin")):
            return False
        self.foreign("Blocks stand in braces.", fix=Fix("write `{ .. }`"))
        self.skip_until(stop)
        return True

    # -- items ----------------------------------------------------------------------------------

    def typed_name(self) -> bool:
        """`int x` for `x: i32` as a parameter or field; takes both."""
        if not (self.at(K.IDENT) and self.nth(1) is K.IDENT and self.same_line(1)):
            return False
        first = self.pos
        word, name = self.word().decode("utf-8", "replace"), self.word(1).decode("utf-8", "replace")
        if self.nth(2) not in (K.COMMA, K.R_PAREN, K.R_BRACE, K.SEMICOLON) or scalar_type(word) is None:
            return False
        self.bump_error()
        self.bump()
        span = self.span_since(first)
        fix = Fix("write the name first", span, f"{name}: {scalar_type(word) or word}")
        self.foreign("The type stands behind the name.", span, fix)
        return True

    def foreign_item(self) -> bool:
        """An item as other languages begin one; True where it was reported, with nothing taken."""
        word = self.word() if self.at(K.IDENT) or self.at(K.LET_KW) else b""
        if word == b"enum" and self.nth(1) is K.IDENT:
            self.foreign("The language has no `enum`.", fix=self._as_constants())
            return True
        advice = ITEMS.get(word)
        declares = word in DECLARATIONS or scalar_type(word.decode("utf-8", "replace")) is not None
        if advice is None and declares and self.nth(1) is K.IDENT and self.nth(2) is K.L_PAREN:
            advice = "A function begins with `fn`.", "write `fn name(x: u8) -> u8 { .. }`"
        elif advice is None and declares:
            advice = "Values at the top level are constants.", "write `const N: u32 = ..;`"
        if advice is None:
            return False
        self.foreign(advice[0], fix=Fix(advice[1]))
        return True

    def _as_constants(self) -> Fix:
        """What an `enum` is in Kera: a type and constants, which `match` knows."""
        name = self.word(1).decode("utf-8", "replace")
        end = self.partner(2) if self.nth(2) is K.L_BRACE else None
        names = [
            self.word(ahead).decode("utf-8", "replace") for ahead in range(3, end or 3)
            if self.nth(ahead) is K.IDENT and self.nth(ahead - 1) in (K.L_BRACE, K.COMMA)
        ]
        names = names or ["A", "B"]
        width = max(1, (len(names) - 1).bit_length())
        constants = [f"const {_upper(item)}: {name} = {k};" for k, item in enumerate(names[:4])]
        more = " .." if len(names) > 4 else ""
        return Fix(f"write `type {name} = u{width}; {' '.join(constants)}{more}` and `match` on these")


def _upper(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()
