"""The file and its items."""
from __future__ import annotations

from kera_hw.frontend.parser.core import CLOSERS, ITEM_KEYWORDS
from kera_hw.frontend.parser.grammar.foreign_statements import ForeignStatements
from kera_hw.frontend.parser.rules import Completed, Marker
from kera_hw.frontend.syntax.kinds import SyntaxKind
from kera_hw.support import Fix

K = SyntaxKind
_FUNCTION_WORDS = (b"def", b"func", b"function")
_BODY_STOP = ITEM_KEYWORDS | {K.L_BRACE, K.SEMICOLON}


class Items(ForeignStatements):
    """Mixin for the top level."""

    def source_unit(self) -> None:
        """The whole file."""
        marker = self.open()
        while not self.at(K.END):
            if not self.item():
                self._skip_to_item()
        self.close(marker, K.SOURCE_UNIT)

    def _skip_to_item(self) -> None:
        if self.current in CLOSERS:
            self.error("K0106", f"This {self.found()} closes nothing.")
        elif not self.foreign_item():
            self.error("K0107", f"Expected an item such as `fn` or `const`, found {self.found()}.")
        marker = self.open()
        self.skip_balanced()
        while not (self.at(K.END) or self.current in ITEM_KEYWORDS or self.at_test()):
            self.skip_balanced()
        self.close(marker, K.ERROR)

    def item(self) -> bool:
        """One item; False, with nothing taken and nothing said, where none begins."""
        foreign = self.at(K.IDENT) and self.word() in _FUNCTION_WORDS and self.nth(1) is K.IDENT
        if self.current not in ITEM_KEYWORDS and not self.at_test() and not foreign:
            return False
        marker = self.open()
        exported = self.at(K.PUB_KW)
        if exported:
            self.bump()
            if self.at(K.USE_KW) or self.at_test():
                self.error("K0114", f"`pub` cannot stand before {self.found()}.")
        kind = self.current
        if kind is K.IDENT and self.word() in _FUNCTION_WORDS and self.nth(1) is K.IDENT:
            self.foreign("Functions begin with `fn`.", fix=Fix("write `fn`", self.span_here(), "fn"))
            kind = K.FN_KW
        if kind is K.FN_KW:
            self._callable(marker, K.FN_ITEM)
        elif kind is K.STREAM_KW:
            self._callable(marker, K.STREAM_ITEM)
        elif kind is K.CONST_KW:
            self.const_item(marker)
        elif kind is K.STRUCT_KW:
            self._struct_item(marker)
        elif kind is K.TYPE_KW:
            self._alias(marker)
        elif kind is K.USE_KW:
            self._use(marker)
        elif self.at_test():
            self._test(marker)
        else:
            if not self.foreign_item():
                self.unexpected("an item after `pub`")
            self.close(marker, K.ERROR)
        return True

    def _callable(self, marker: Marker, kind: SyntaxKind) -> None:
        self.bump(K.FN_KW if kind is K.FN_ITEM else None)
        self.name("the name of a function" if kind is K.FN_ITEM else "the name of a stream")
        if self.at(K.LT):
            sizes = self.open()
            self.comma_list(K.GT, self._size_param)
            self.close(sizes, K.SIZE_PARAM_LIST)
        if self.at(K.L_PAREN):
            params = self.open()
            self.comma_list(K.R_PAREN, self._param)
            self.close(params, K.PARAM_LIST)
        else:
            self.missing("`(` and the parameters")
        if self.at(K.FAT_ARROW) or (self.at(K.COLON) and self.same_line(1)):
            arrow = "->" if self.at(K.FAT_ARROW) else " ->"
            self.foreign("The result's type follows `->`.", fix=Fix("write `->`", self.span_here(), arrow))
            self.bump(K.ARROW)
            self.type_()
        elif self.eat(K.ARROW):
            self.type_()
        if self.at(K.BANG):
            self._effects()
        self._body(True)
        self.close(marker, kind)

    def _body(self, is_body: bool) -> None:
        if not self.at(K.L_BRACE):
            if not self.unbraced_block(_BODY_STOP):
                self.missing("a body in `{ }`")
            self.skip_until(_BODY_STOP)
            self.eat(K.SEMICOLON)
        if self.at(K.L_BRACE):
            self.block(is_body)

    def _size_param(self) -> None:
        marker = self.open()
        self.name("the name of a compile-time size")
        if self.at(K.COLON):
            self.error("K0101", "A compile-time size is a name alone, without a type.")
            refused = self.open()
            self.bump()
            self.type_()
            self.close(refused, K.ERROR)
        self.close(marker, K.SIZE_PARAM)

    def _param(self) -> None:
        marker = self.open()
        self.eat(K.MUT_KW)
        if not self.typed_name() and self.name("the name of a parameter"):
            self.annotation("the parameter's name")
        self.close(marker, K.PARAM)

    def _effects(self) -> None:
        marker = self.open()
        self.bump()
        self._effect()
        while self.eat(K.COMMA):
            self._effect()
        self.close(marker, K.EFFECT_LIST)

    def _effect(self) -> None:
        marker = self.open()
        if self.name("the name of an effect"):
            while self.eat(K.DOT):
                if not self.name("the rest of the effect's name"):
                    break
        self.close(marker, K.EFFECT)

    def const_item(self, marker: Marker) -> None:
        """`const N: T = e;` after its marker and `pub`."""
        self.bump()
        self.name("the name of a constant")
        self.annotation("the constant's name")
        if self.expect(K.EQ, "the constant's type"):
            self.expression()
        self.semicolon()
        self.close(marker, K.CONST_ITEM)

    def _struct_item(self, marker: Marker) -> None:
        self.bump()
        self.name("the name of a struct")
        if self.at(K.L_BRACE):
            self.comma_list(K.R_BRACE, self._field)
        else:
            self.missing("`{` and the fields")
            self.skip_until(_BODY_STOP)
            self.eat(K.SEMICOLON)
        self.close(marker, K.STRUCT_ITEM)

    def _field(self) -> None:
        marker = self.open()
        if not self.typed_name() and self.name("the name of a field"):
            self.annotation("the field's name")
        self.close(marker, K.STRUCT_FIELD)

    def _alias(self, marker: Marker) -> None:
        self.bump()
        self.name("the name of a type")
        if self.expect(K.EQ, "the name of the type"):
            self.type_()
        self.semicolon()
        self.close(marker, K.TYPE_ALIAS_ITEM)

    def _use(self, marker: Marker) -> None:
        self.bump()
        if self.at(K.IDENT):
            self.path()
        else:
            self.name("the name of a module")
        self.semicolon()
        self.close(marker, K.USE_ITEM)

    def _test(self, marker: Marker) -> Completed:
        self.bump(K.TEST_KW)
        self.bump()
        if self.near_bad[self.pos] and not self.at(K.L_BRACE):
            self._skip_swallowed_body()  # the name ran on over the `{`
            return self.close(marker, K.TEST_ITEM)
        self._body(False)
        return self.close(marker, K.TEST_ITEM)

    def _skip_swallowed_body(self) -> None:
        refused = self.open()
        while not (self.at(K.R_BRACE) or self.at(K.END) or self.at_next_item()):
            self.skip_balanced()
        self.eat(K.R_BRACE)
        self.close(refused, K.ERROR)
