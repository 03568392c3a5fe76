"""Types, paths and compile-time arguments."""
from __future__ import annotations

from kera_hw.frontend.parser.core import CLOSERS, OPENERS, ParserCore
from kera_hw.frontend.syntax.kinds import SPACE_WORDS, SyntaxKind

K = SyntaxKind
_SPACE_FOLLOW = (K.IDENT, K.L_BRACKET, K.L_PAREN)  # what makes `device` a space and not a name


class Types(ParserCore):
    """Mixin for everything that can follow a `:` or an `as`."""

    def path(self) -> None:
        marker = self.open()
        self.bump()
        while self.at(K.COLON_COLON) and self.nth(1) is not K.LT:
            self.bump()
            if not self.name("a name after `::`"):
                break
        self.close(marker, K.PATH)

    def type_(self, under_as: bool = False) -> None:
        with self.nested() as ok:
            if ok:
                self._type(under_as)

    def _type(self, under_as: bool) -> None:
        if self.at(K.IDENT):
            self._named_type(under_as)
        elif self.at(K.L_BRACKET):
            self._tensor_type()
        elif self.at(K.L_PAREN):
            self._tuple_type()
        elif self.at(K.AMP):
            marker = self.open()
            self.bump()
            self.eat(K.MUT_KW)
            self.type_(under_as)
            self.close(marker, K.REF_TYPE)
        else:
            self.unexpected("a type")

    def _named_type(self, under_as: bool) -> None:
        marker = self.open()
        word = self.word()
        if word in SPACE_WORDS and self.nth(1) in _SPACE_FOLLOW:
            self.bump(K.SPACE_KW)
            self.type_(under_as)
            self.close(marker, K.SPACE_TYPE)
            return
        self.path()
        # `x as u32 < y` compares: under `as` only the fixed-point types take arguments.
        if self.at(K.COLON_COLON) and self.nth(1) is K.LT:
            self.bump()
            self.generic_args()
        elif self.at(K.LT) and (not under_as or word in (b"fix", b"ufix")):
            self.generic_args()
        self.close(marker, K.NAME_TYPE)

    def _tensor_type(self) -> None:
        marker = self.open()
        opener = self.pos
        self.bump()
        self.expected_closers.append(K.R_BRACKET)
        self.type_()
        if self.at(K.SEMICOLON):
            self.bump()
            self.expected_closers.pop()
            self._dims(opener)
        else:
            self.missing("`;` and the extents of a tensor type")
            self.skip_until(frozenset((K.COMMA, K.SEMICOLON, K.EQ, K.L_BRACE)))
            self.expected_closers.pop()
            if not self.eat(K.R_BRACKET):
                self.unclosed(opener, K.R_BRACKET)
        self.close(marker, K.TENSOR_TYPE)

    def _dims(self, opener: int) -> None:
        self.expected_closers.append(K.R_BRACKET)
        while True:
            self.expression()
            if not self.eat(K.COMMA) or self.at(K.R_BRACKET):
                break
        self.expected_closers.pop()
        if not self.eat(K.R_BRACKET):
            self.unclosed(opener, K.R_BRACKET, "`,`")

    def _tuple_type(self) -> None:
        marker = self.open()
        count = self.comma_list(K.R_PAREN, self.type_)
        self.close(marker, K.PAREN_TYPE if count == 1 else K.TUPLE_TYPE)

    def generic_args(self) -> None:
        marker = self.open()
        self.comma_list(K.GT, self._generic_arg)
        self.close(marker, K.GENERIC_ARG_LIST)

    def _generic_arg(self) -> None:
        marker = self.open()
        if self._at_type_arg():
            self.type_()
        else:
            self.size_expression()
        self.close(marker, K.GENERIC_ARG)

    def _at_type_arg(self) -> bool:
        """Types and sizes are told apart by form; a bare name counts as a type (see ast.GenericArg)."""
        if self.at(K.L_BRACKET) or self.at(K.AMP):
            return True
        if self.at(K.L_PAREN):
            return self._paren_holds_type()
        if not self.at(K.IDENT):
            return False
        if self.word() in SPACE_WORDS and self.nth(1) in _SPACE_FOLLOW:
            return True
        ahead = 1
        while self.nth(ahead) is K.COLON_COLON and self.nth(ahead + 1) is K.IDENT:
            ahead += 2
        return self.nth(ahead) in (K.COMMA, K.GT, K.LT, K.COLON_COLON, K.END)

    def _paren_holds_type(self) -> bool:
        """`(A, B)`, `()` and `([u8; 4])` are types, `(N + 1)` is a size."""
        leading = 0
        while leading < 200 and self.nth(leading) is K.L_PAREN:
            leading += 1
        if self.nth(leading) in (K.R_PAREN, K.L_BRACKET, K.AMP):
            return True
        if self.word(leading) in SPACE_WORDS and self.nth(leading + 1) in _SPACE_FOLLOW:
            return True
        return self._type_mark_within(leading)

    def _type_mark_within(self, leading: int) -> bool:
        """Whether a tuple's comma or a type's `<` stands inside the parentheses that begin here."""
        depth = leading
        # The bound keeps the look-ahead linear on broken files.
        for ahead in range(leading, leading + 500):
            kind = self.nth(ahead)
            if kind in OPENERS:
                depth += 1
            elif kind in CLOSERS:
                depth -= 1
                leading = min(leading, depth)
            comma = kind is K.COMMA and depth <= leading
            if comma or (kind is K.LT and self.nth(ahead - 1) is not K.COLON_COLON):
                return True
            if depth == 0 or kind is K.END:
                break
        return False
