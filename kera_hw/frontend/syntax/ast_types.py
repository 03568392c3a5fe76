"""Typed views of types as written."""
from __future__ import annotations

from kera_hw.frontend.syntax.ast_atoms import Path
from kera_hw.frontend.syntax.ast_base import Ast, Expr, Type
from kera_hw.frontend.syntax.kinds import SyntaxKind as K
from kera_hw.frontend.syntax.red import SyntaxToken


class NameType(Type):
    """`u32`, `Sample`, `dsp::Frame`, or with arguments `fix<24, 20>`."""

    __slots__ = ()
    KIND = K.NAME_TYPE

    @property
    def path(self) -> Path | None:
        return self._child(Path)

    @property
    def name(self) -> str | None:
        """The last name of the path."""
        path = self.path
        return path.name if path else None

    @property
    def generics(self) -> GenericArgList | None:
        """The `<..>` list, None where none is written."""
        return self._child(GenericArgList)

    @property
    def args(self) -> list[GenericArg]:
        """The arguments in `<..>`; empty where none are written."""
        generics = self.generics
        return generics.args if generics else []


class GenericArgList(Ast):
    """`<a, b>` of a type or of a turbofish."""

    __slots__ = ()
    KIND = K.GENERIC_ARG_LIST

    @property
    def args(self) -> list[GenericArg]:
        return self._children(GenericArg)


class GenericArg(Ast):
    """One compile-time argument: a type or a size.

    A bare name may be either, so it is a NameType in ``type`` and the reader looks it up; everything
    else is decided by its form: ``type`` for `[u8; 4]` or `fix<8, 4>`, ``expr`` for `8` or `N + 1`.
    """

    __slots__ = ()
    KIND = K.GENERIC_ARG

    @property
    def type(self) -> Type | None:
        return self._child(Type)

    @property
    def expr(self) -> Expr | None:
        return None if self.type else self._child(Expr)

    @property
    def bare_path(self) -> Path | None:
        """The path where the argument is a bare name (a type or a constant)."""
        written = self.type
        if isinstance(written, NameType) and written.generics is None:
            return written.path
        return None


class TensorType(Type):
    """`[T; d0, d1]`."""

    __slots__ = ()
    KIND = K.TENSOR_TYPE

    @property
    def element(self) -> Type | None:
        return self._before((K.SEMICOLON,), Type)

    @property
    def dims(self) -> list[Expr]:
        """The extents, outermost first."""
        return self._all_after((K.SEMICOLON,), Expr)


class TupleType(Type):
    """`(A, B)`, `(A,)`, and the unit type `()`."""

    __slots__ = ()
    KIND = K.TUPLE_TYPE

    @property
    def elements(self) -> list[Type]:
        return self._children(Type)


class ParenType(Type):
    """`(T)`, which is T."""

    __slots__ = ()
    KIND = K.PAREN_TYPE

    @property
    def inner(self) -> Type | None:
        return self._child(Type)


class RefType(Type):
    """`&T` or `&mut T`."""

    __slots__ = ()
    KIND = K.REF_TYPE

    @property
    def is_mut(self) -> bool:
        return self._has(K.MUT_KW)

    @property
    def inner(self) -> Type | None:
        return self._child(Type)


class SpaceType(Type):
    """`device T` and its like."""

    __slots__ = ()
    KIND = K.SPACE_TYPE

    @property
    def space_token(self) -> SyntaxToken | None:
        return self._token(K.SPACE_KW)

    @property
    def space(self) -> str | None:
        """`host`, `device`, `pinned`, `unified` or `remote`."""
        token = self.space_token
        return token.text if token else None

    @property
    def inner(self) -> Type | None:
        return self._child(Type)
