"""Typed views of expressions; blocks, `if`, `match` and lambdas are in ast_blocks."""
from __future__ import annotations

from kera_hw.frontend.syntax.ast_atoms import Path
from kera_hw.frontend.syntax.ast_base import Ast, Expr, Type
from kera_hw.frontend.syntax.ast_types import GenericArg, GenericArgList
from kera_hw.frontend.syntax.kinds import SyntaxKind as K
from kera_hw.frontend.syntax.red import SyntaxToken


class PathExpr(Expr):
    """A name in an expression: `x`, `dsp::window`, with a turbofish `iota::<i8, 64>`."""

    __slots__ = ()
    KIND = K.PATH_EXPR

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
        """The turbofish list, None where none is written."""
        return self._child(GenericArgList)


class Unary(Expr):
    """`-x` or `!x`. A `-` directly before a literal is part of the Literal instead."""

    __slots__ = ()
    KIND = K.UNARY_EXPR

    @property
    def op_token(self) -> SyntaxToken | None:
        return self._token(K.MINUS, K.BANG)

    @property
    def op(self) -> str:
        """`-` or `!`."""
        token = self.op_token
        return token.text if token else ""

    @property
    def operand(self) -> Expr | None:
        return self._child(Expr)


class Borrow(Expr):
    """`&x` or `&mut x`."""

    __slots__ = ()
    KIND = K.BORROW_EXPR

    @property
    def is_mut(self) -> bool:
        return self._has(K.MUT_KW)

    @property
    def operand(self) -> Expr | None:
        return self._child(Expr)


_BINARY_KINDS = frozenset((
    K.PLUS, K.MINUS, K.STAR, K.SLASH, K.PERCENT, K.SHL, K.SHR, K.AMP, K.CARET, K.PIPE, K.EQ_EQ,
    K.BANG_EQ, K.LT, K.LT_EQ, K.GT, K.GT_EQ, K.AMP_AMP, K.PIPE_PIPE,
))


class Binary(Expr):
    """`lhs op rhs` for every arithmetic, bit, comparison and logical operator."""

    __slots__ = ()
    KIND = K.BINARY_EXPR

    @property
    def op_token(self) -> SyntaxToken | None:
        return self._token_of(_BINARY_KINDS)

    @property
    def op(self) -> str:
        """The operator as written: `+`, `>>`, `<=`, `&&`, ..."""
        token = self.op_token
        return token.text if token else ""

    @property
    def lhs(self) -> Expr | None:
        return self._before(_BINARY_KINDS, Expr)

    @property
    def rhs(self) -> Expr | None:
        return self._after(_BINARY_KINDS, Expr)


class Cast(Expr):
    """`operand as type`."""

    __slots__ = ()
    KIND = K.CAST_EXPR

    @property
    def operand(self) -> Expr | None:
        return self._child(Expr)

    @property
    def type(self) -> Type | None:
        return self._after((K.AS_KW,), Type)


class Range(Expr):
    """`a..b`, `a..=b`, and in slices `a..`, `..b`, `..`."""

    __slots__ = ()
    KIND = K.RANGE_EXPR

    @property
    def start(self) -> Expr | None:
        """The lower bound; None where it is left open."""
        return self._before((K.DOT_DOT, K.DOT_DOT_EQ), Expr)

    @property
    def end(self) -> Expr | None:
        """The upper bound; None where it is left open."""
        return self._after((K.DOT_DOT, K.DOT_DOT_EQ), Expr)

    @property
    def inclusive(self) -> bool:
        return self._has(K.DOT_DOT_EQ)


class ArgList(Ast):
    """`(a, axis: 1)`."""

    __slots__ = ()
    KIND = K.ARG_LIST

    @property
    def args(self) -> list[Arg]:
        return self._children(Arg)


class Arg(Ast):
    """One argument, by position or by name."""

    __slots__ = ()
    KIND = K.ARG

    @property
    def name_token(self) -> SyntaxToken | None:
        return self._token(K.IDENT, K.ELSE_KW)

    @property
    def name(self) -> str | None:
        """The parameter's name (also `else`), None for an argument by position."""
        token = self.name_token
        return token.text if token else None

    @property
    def value(self) -> Expr | None:
        return self._child(Expr)


class Call(Expr):
    """`callee(args)`; ``callee`` is a PathExpr in every call that can mean something."""

    __slots__ = ()
    KIND = K.CALL_EXPR

    @property
    def callee(self) -> Expr | None:
        return self._child(Expr)

    @property
    def name(self) -> str | None:
        """The called name, None unless the callee is an unqualified path."""
        path = self.path
        return path.name if path and not path.is_qualified else None

    @property
    def path(self) -> Path | None:
        callee = self.callee
        return callee.path if isinstance(callee, PathExpr) else None

    @property
    def turbofish(self) -> list[GenericArg]:
        """The arguments in `::<..>`; empty where none are written."""
        callee = self.callee
        generics = callee.generics if isinstance(callee, PathExpr) else None
        return generics.args if generics else []

    @property
    def has_turbofish(self) -> bool:
        callee = self.callee
        return isinstance(callee, PathExpr) and callee.generics is not None

    @property
    def arg_list(self) -> ArgList | None:
        return self._child(ArgList)

    @property
    def args(self) -> list[Arg]:
        arg_list = self.arg_list
        return arg_list.args if arg_list else []


class MethodCall(Expr):
    """`receiver.name(args)`: `x.bits(7, 0)`, `a.at(i, else: 0)`, `(0..N).rev()`, `f.step(x)`."""

    __slots__ = ()
    KIND = K.METHOD_CALL_EXPR

    @property
    def receiver(self) -> Expr | None:
        return self._before((K.DOT,), Expr)

    @property
    def name_token(self) -> SyntaxToken | None:
        return self._token(K.IDENT)

    @property
    def name(self) -> str | None:
        token = self.name_token
        return token.text if token else None

    @property
    def generics(self) -> GenericArgList | None:
        """The turbofish list, None where none is written."""
        return self._child(GenericArgList)

    @property
    def turbofish(self) -> list[GenericArg]:
        generics = self.generics
        return generics.args if generics else []

    @property
    def arg_list(self) -> ArgList | None:
        return self._child(ArgList)

    @property
    def args(self) -> list[Arg]:
        arg_list = self.arg_list
        return arg_list.args if arg_list else []


class Field(Expr):
    """`base.name` of a struct or `base.0` of a tuple."""

    __slots__ = ()
    KIND = K.FIELD_EXPR

    @property
    def base(self) -> Expr | None:
        return self._before((K.DOT,), Expr)

    @property
    def name_token(self) -> SyntaxToken | None:
        """The field's token, an IDENT or (for a tuple) an INT."""
        return self._token(K.IDENT, K.INT)

    @property
    def name(self) -> str | None:
        """The field's name, or the digits of a tuple's position."""
        token = self.name_token
        return token.text if token else None

    @property
    def index(self) -> int | None:
        """The position where a tuple's element is named, else None."""
        token = self._token(K.INT)
        return int(token.text) if token and len(token.data) < 10 else None


class Index(Expr):
    """`base[entries]`; an entry is an index or a Range."""

    __slots__ = ()
    KIND = K.INDEX_EXPR

    @property
    def base(self) -> Expr | None:
        return self._before((K.L_BRACKET,), Expr)

    @property
    def entries(self) -> list[Expr]:
        return self._all_after((K.L_BRACKET,), Expr)


class TupleExpr(Expr):
    """`(a, b)`, `(a,)`, and the unit value `()`."""

    __slots__ = ()
    KIND = K.TUPLE_EXPR

    @property
    def elements(self) -> list[Expr]:
        return self._children(Expr)


class ParenExpr(Expr):
    """`(e)`, which is e."""

    __slots__ = ()
    KIND = K.PAREN_EXPR

    @property
    def inner(self) -> Expr | None:
        return self._child(Expr)


class ArrayLit(Expr):
    """`[a, b, c]`."""

    __slots__ = ()
    KIND = K.ARRAY_EXPR

    @property
    def elements(self) -> list[Expr]:
        return self._children(Expr)


class ArrayRepeat(Expr):
    """`[value; d0, d1]`."""

    __slots__ = ()
    KIND = K.REPEAT_EXPR

    @property
    def value(self) -> Expr | None:
        return self._before((K.SEMICOLON,), Expr)

    @property
    def dims(self) -> list[Expr]:
        """The extents, outermost first."""
        return self._all_after((K.SEMICOLON,), Expr)


class StructLit(Expr):
    """`Quote { price: 1, size }`."""

    __slots__ = ()
    KIND = K.STRUCT_EXPR

    @property
    def path(self) -> Path | None:
        return self._child(Path)

    @property
    def name(self) -> str | None:
        """The last name of the path."""
        path = self.path
        return path.name if path else None

    @property
    def fields(self) -> list[StructLitField]:
        return self._children(StructLitField)


class StructLitField(Ast):
    """`name: value`, or `name` alone for `name: name`."""

    __slots__ = ()
    KIND = K.STRUCT_EXPR_FIELD

    @property
    def name_token(self) -> SyntaxToken | None:
        return self._token(K.IDENT)

    @property
    def name(self) -> str | None:
        token = self.name_token
        return token.text if token else None

    @property
    def is_shorthand(self) -> bool:
        """True for `name` alone: the value is the variable of that name."""
        return not self._has(K.COLON)

    @property
    def value(self) -> Expr | None:
        """The written value; None for a shorthand."""
        return self._child(Expr)
