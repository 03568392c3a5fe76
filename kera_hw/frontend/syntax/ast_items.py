"""Typed views of a file and its items."""
from __future__ import annotations

from kera_hw.frontend.syntax.ast_atoms import Path
from kera_hw.frontend.syntax.ast_base import Ast, Expr, Item, Stmt, Type
from kera_hw.frontend.syntax.ast_blocks import Block
from kera_hw.frontend.syntax.kinds import SyntaxKind as K
from kera_hw.frontend.syntax.red import SyntaxToken


class SourceUnit(Ast):
    """One file."""

    __slots__ = ()
    KIND = K.SOURCE_UNIT

    @property
    def items(self) -> list[Item]:
        return self._children(Item)


class _Callable(Item):
    """What functions and streams have in common."""

    __slots__ = ()

    @property
    def size_params(self) -> list[SizeParam]:
        """The compile-time sizes in `<..>`; empty where none are written."""
        found = self._child(SizeParamList)
        return found.params if found else []

    @property
    def params(self) -> list[Param]:
        found = self._child(ParamList)
        return found.params if found else []

    @property
    def return_type(self) -> Type | None:
        """The type after `->`; None means `()`."""
        return self._after((K.ARROW,), Type)

    @property
    def lacks_return_type(self) -> bool:
        """Whether `->` stands there without a type, which the parser has reported."""
        return self.return_type is None and self._token(K.ARROW) is not None

    @property
    def effects(self) -> EffectList | None:
        """The effects after `!`; None means pure."""
        return self._child(EffectList)

    @property
    def body(self) -> Block | None:
        return self._child(Block)


class FnItem(_Callable):
    """`fn name<N>(params) -> T ! effects { .. }`."""

    __slots__ = ()
    KIND = K.FN_ITEM


class StreamItem(_Callable):
    """`stream name(params) -> T { .. }`."""

    __slots__ = ()
    KIND = K.STREAM_ITEM


class SizeParamList(Ast):
    """`<M, N>`."""

    __slots__ = ()
    KIND = K.SIZE_PARAM_LIST

    @property
    def params(self) -> list[SizeParam]:
        return self._children(SizeParam)


class SizeParam(Ast):
    """One compile-time size."""

    __slots__ = ()
    KIND = K.SIZE_PARAM

    @property
    def name_token(self) -> SyntaxToken | None:
        return self._token(K.IDENT)

    @property
    def name(self) -> str | None:
        token = self.name_token
        return token.text if token else None


class ParamList(Ast):
    """`(a: T, mut b: U)`."""

    __slots__ = ()
    KIND = K.PARAM_LIST

    @property
    def params(self) -> list[Param]:
        return self._children(Param)


class Param(Ast):
    """One parameter."""

    __slots__ = ()
    KIND = K.PARAM

    @property
    def is_mut(self) -> bool:
        """True for `mut x: T`, a parameter the body may assign to."""
        return self._has(K.MUT_KW)

    @property
    def name_token(self) -> SyntaxToken | None:
        return self._token(K.IDENT)

    @property
    def name(self) -> str | None:
        token = self.name_token
        return token.text if token else None

    @property
    def type(self) -> Type | None:
        return self._child(Type)


class EffectList(Ast):
    """`! io, fs.read`."""

    __slots__ = ()
    KIND = K.EFFECT_LIST

    @property
    def effects(self) -> list[Effect]:
        return self._children(Effect)


class Effect(Ast):
    """One effect's dotted name."""

    __slots__ = ()
    KIND = K.EFFECT

    @property
    def name(self) -> str:
        """`io`, `fs.read`, without any white space inside."""
        return "".join(token.text for token in self.node.tokens)


class ConstItem(Item, Stmt):
    """`const NAME: T = value;`, at the top level or in a body."""

    __slots__ = ()
    KIND = K.CONST_ITEM

    @property
    def type(self) -> Type | None:
        return self._after((K.COLON,), Type)

    @property
    def value(self) -> Expr | None:
        return self._after((K.EQ,), Expr)


class StructItem(Item):
    """`struct Name { field: T, .. }`."""

    __slots__ = ()
    KIND = K.STRUCT_ITEM

    @property
    def fields(self) -> list[StructField]:
        return self._children(StructField)


class StructField(Ast):
    """One declared field."""

    __slots__ = ()
    KIND = K.STRUCT_FIELD

    @property
    def name_token(self) -> SyntaxToken | None:
        return self._token(K.IDENT)

    @property
    def name(self) -> str | None:
        token = self.name_token
        return token.text if token else None

    @property
    def type(self) -> Type | None:
        return self._child(Type)


class TypeAliasItem(Item):
    """`type Name = T;`."""

    __slots__ = ()
    KIND = K.TYPE_ALIAS_ITEM

    @property
    def type(self) -> Type | None:
        return self._child(Type)


class UseItem(Item):
    """`use module;` or `use module::name;`."""

    __slots__ = ()
    KIND = K.USE_ITEM

    @property
    def path(self) -> Path | None:
        return self._child(Path)

    @property
    def name_token(self) -> SyntaxToken | None:
        path = self.path
        return path.name_token if path else None


class TestItem(Item):
    """`test "label" { .. }`."""

    __slots__ = ()
    KIND = K.TEST_ITEM
    __test__ = False  # not a pytest class, whatever its name says

    @property
    def label_token(self) -> SyntaxToken | None:
        return self._token(K.STRING)

    @property
    def label(self) -> str | None:
        """The text between the quotes, as written."""
        token = self.label_token
        return token.text.strip('"') if token else None

    @property
    def body(self) -> Block | None:
        return self._child(Block)
