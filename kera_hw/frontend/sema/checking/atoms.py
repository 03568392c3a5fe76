"""Literals, names, and the expressions that build and take apart products and tensors."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.frontend.sema.names.scope import Broken, Held, ItemSymbol, Local, closest
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import Context, Value, broken, is_poison, poison, rule, unit
from kera_hw.frontend.sema.typing.literals import literal_value, range_text
from kera_hw.frontend.sema.typing.paths import constant_of, find
from kera_hw.frontend.sema.typing.types import builtin_type, make_tensor, product_type
from kera_hw.frontend.sema.typing.unify import (
    ANY,
    ERROR,
    FLOAT_LITERAL,
    INT_LITERAL,
    Unknown,
    describe,
    has_error,
    resolve,
    shallow,
)
from kera_hw.frontend.syntax import ast
from kera_hw.support import Fix, Span
from kera_hw.types import (
    BOOL,
    F32,
    I32,
    UNIT,
    FixType,
    FloatType,
    IntType,
    StructType,
    TensorType,
    TupleType,
    Type,
    is_scalar,
)


@rule(ast.Literal)
def _literal(ctx: Context, expr: ast.Literal) -> Value:
    span = expr.span
    if expr.is_bool:
        known = np.bool_(expr.bool_value)
        return Value(BOOL, span, lambda: hir.Const(BOOL, span, known))
    if expr.is_string:
        return ctx.fail("K0304", "A string can only be the label or name that an effect takes.", span)
    return number(ctx, expr, None, span)


def number(ctx: Context, expr: ast.Literal, wanted: Type | None, span: Span) -> Value:
    """A number literal, of the wanted type, its suffix's, or one to be inferred."""
    value = expr.exact_value
    suffix = expr.suffix
    kind = builtin_type(suffix) if suffix is not None else wanted
    if (
        value is None
        or (suffix is not None and kind is None)
        or (expr.is_float and isinstance(kind, IntType))
    ):
        ctx.shared.errors += 1
        return broken(span)  # the lexer has reported it
    kind = kind or ctx.unknown(INT_LITERAL if expr.is_int else FLOAT_LITERAL)

    def build() -> hir.Expr:
        found = resolve(kind)
        if not isinstance(found, (IntType, FixType, FloatType)):
            return poison(span)
        known = literal_value(value, expr.negative, found)
        if known is None and isinstance(kind, Unknown) and found in (I32, F32) and ctx.shared.errors:
            return poison(span)  # its type by default, perhaps for want of what was reported
        if known is None:
            text = expr.text.replace(" ", "")
            ctx.report(
                "K0303", f"The literal `{text}` does not fit `{found}`, which holds {range_text(found)}.",
                expr.span,
            )
            return poison(span)
        return hir.Const(found, span, known)

    return Value(kind, span, build, literal=expr if suffix is None else None)


@rule(ast.ParenExpr)
def _paren(ctx: Context, expr: ast.ParenExpr) -> Value:
    return ctx.expr(expr.inner, expr.span)


@rule(ast.PathExpr)
def _path(ctx: Context, expr: ast.PathExpr) -> Value:
    path, span = expr.path, expr.span
    symbol = find(ctx, path) if path is not None else None
    if path is None or symbol is None:
        ctx.shared.errors += 1
        return broken(span)
    name = path.name or ""
    if expr.generics is not None:
        return ctx.fail("K0314", f"`{name}` is not called here, so it takes no compile-time arguments.", span)
    if isinstance(symbol, Local) and (not ctx.constant or symbol in ctx.own):
        return local_value(symbol, span)
    if isinstance(symbol, Held) and not ctx.constant:
        return ctx.fail(
            "K0326", f"`{name}` holds an instance of a stream; advance it with `{name}.step(..)`.", span,
        )
    if isinstance(symbol, ItemSymbol) and isinstance(symbol.node, (ast.FnItem, ast.StreamItem)):
        return ctx.fail("K0205", f"`{name}` is {symbol.kind_text}; call it: `{name}(..)`.", span)
    found = constant_of(ctx, symbol, name, span)
    if found is None:
        return broken(span)
    return Value(found.type, span, lambda: hir.Const(found.type, span, found.value))


def local_value(symbol: Local, span: Span) -> Value:
    """Reading a variable."""
    var = symbol.var
    return Value(var.type, span, lambda: hir.Local(resolve(var.type), span, var), borrow=symbol.borrow)


@rule(ast.Borrow)
def _borrow(ctx: Context, expr: ast.Borrow) -> Value:
    ctx.expr(expr.operand, expr.span)
    mark = "&mut" if expr.is_mut else "&"
    return ctx.fail(
        "K0317", f"`{mark}` lends a variable to a call, and exists only as its argument.", expr.span
    )


@rule(ast.Range)
def _range(ctx: Context, expr: ast.Range) -> Value:
    return ctx.fail("K0304", "A range can only be the head of a `for`, an entry of a slice, or a pattern.",
                    expr.span)


# ---------------------------------------------------------------- products


@rule(ast.TupleExpr)
def _tuple(ctx: Context, expr: ast.TupleExpr) -> Value:
    span = expr.span
    items = [ctx.expr(item) for item in expr.elements]
    if not items:
        return Value(UNIT, span, lambda: unit(span))
    kind = product_type(ctx, TupleType(tuple(item.type for item in items)), span)
    return Value(kind, span, lambda: _aggregate(kind, span, items))


def _aggregate(kind: Type, span: Span, items: Sequence[Value]) -> hir.Expr:
    made = tuple(item.build() for item in items)
    if kind is ERROR or any(is_poison(item) for item in made):
        return poison(span)
    return hir.Aggregate(resolve(kind), span, made)


@rule(ast.StructLit)
def _struct(ctx: Context, expr: ast.StructLit) -> Value:
    given = [(field, _field_value(ctx, field)) for field in expr.fields]
    kind = _struct_type(ctx, expr.path)
    if not isinstance(kind, StructType):
        return broken(expr.span)
    declared = dict(kind.fields)
    values: dict[str, Value] = {}
    for field, value in given:
        token = field.name_token
        if token is None:
            continue
        if token.text not in declared:
            meant = closest(token.text, list(declared))
            tail = f"; did you mean `{meant}`?" if meant else "."
            ctx.report(
                "K0208", f"The struct `{kind}` has no field `{token.text}`{tail}", token.span,
                fix=Fix(f"use `{meant}`", token.span, meant) if meant else None,
            )
        elif token.text in values:
            ctx.report("K0325", f"The field `{token.text}` is given twice.", token.span)
        else:
            ctx.expect(value, declared[token.text])
            values[token.text] = value
    missing = [name for name in declared if name not in values]
    if missing and len(given) <= len(declared) - len(missing):
        names = ", ".join(f"`{name}`" for name in missing)
        where = expr.path.span if expr.path else expr.span
        ctx.report("K0325", f"The literal of `{kind}` lacks {names}.", where)
    if missing:
        return Value(kind, expr.span, lambda: poison(expr.span))
    ordered = [values[name] for name in declared]
    return Value(kind, expr.span, lambda: _aggregate(kind, expr.span, ordered))


def _field_value(ctx: Context, field: ast.StructLitField) -> Value:
    if not field.is_shorthand:
        return ctx.expr(field.value, field.span)
    token = field.name_token
    symbol = ctx.lookup(token.text) if token else None
    if token is None:
        return broken(field.span)
    if isinstance(symbol, Local) and (not ctx.constant or symbol in ctx.own):
        return local_value(symbol, token.span)
    if symbol is None:
        return ctx.fail("K0201", f"Nothing named `{token.text}` is in scope.", token.span)
    found = constant_of(ctx, symbol, token.text, token.span)
    if found is None:
        return broken(token.span)
    return Value(found.type, token.span, lambda: hir.Const(found.type, token.span, found.value))


def _struct_type(ctx: Context, path: ast.Path | None) -> Type | None:
    symbol = find(ctx, path) if path is not None else None
    if path is None or symbol is None or isinstance(symbol, Broken):
        ctx.shared.errors += 1
        return None
    if isinstance(symbol, ItemSymbol) and symbol.failed_import:
        ctx.shared.errors += 1
        return None
    if isinstance(symbol, ItemSymbol) and isinstance(symbol.node, (ast.StructItem, ast.TypeAliasItem)):
        kind = ctx.checker.named_type(symbol)
        if has_error(kind):
            ctx.shared.errors += 1
            return None
        if isinstance(kind, StructType):
            return kind
    ctx.report("K0205", f"`{path.name}` is not a struct, so it has no literal of this form.", path.span)
    return None


@rule(ast.Field)
def _field(ctx: Context, expr: ast.Field) -> Value:
    base = ctx.expr(expr.base, expr.span)
    index = field_index(ctx, base.type, expr)
    if index is None:
        return broken(expr.span)
    kind = field_type(base.type, index)

    def build() -> hir.Expr:
        made = base.build()
        return poison(expr.span) if is_poison(made) else hir.Project(resolve(kind), expr.span, made, index)

    return Value(kind, expr.span, build)


def field_type(kind: Type, index: int) -> Type:
    kind = shallow(kind)
    if isinstance(kind, StructType):
        return kind.fields[index][1]
    assert isinstance(kind, TupleType)
    return kind.items[index]


def field_index(ctx: Context, kind: Type, expr: ast.Field) -> int | None:
    """Position of the field in the product type; None (reported) when there is none."""
    kind, token = shallow(kind), expr.name_token
    if kind is ERROR or token is None:
        ctx.shared.errors += 1
        return None
    if isinstance(kind, TupleType):
        if expr.index is not None and expr.index < len(kind.items):
            return expr.index
        ctx.report(
            "K0208",
            f"{describe(kind)} has {len(kind.items)} elements, numbered from 0, so there is no "
            f"`{token.text}`.",
            token.span,
        )
        return None
    if isinstance(kind, StructType):
        names = [name for name, _ in kind.fields]
        if token.text in names:
            return names.index(token.text)
        meant = closest(token.text, names)
        tail = f"; did you mean `{meant}`?" if meant else "."
        ctx.report("K0208", f"The struct `{kind}` has no field `{token.text}`{tail}", token.span,
                   fix=Fix(f"use `{meant}`", token.span, meant) if meant else None)
        return None
    hint = "; index it first" if isinstance(kind, TensorType) else ""
    ctx.report("K0318", f"{describe(kind)} has no fields{hint}.", token.span)
    return None


# ---------------------------------------------------------------- tensors


@rule(ast.ArrayLit)
def _array(ctx: Context, expr: ast.ArrayLit) -> Value:
    span = expr.span
    items = [ctx.expr(item) for item in expr.elements]
    if not items:
        return _empty(ctx, span)
    first = next((item for item in items if not has_error(item.type)), items[0])
    because = [(first.span, f"this element is {describe(first.type)}")]
    good = True
    for item in items:
        good = (item is first or ctx.expect(item, first.type, because)) and good
    kind = make_tensor(ctx, first.type, (len(items),), span) if good else ERROR

    def build() -> hir.Expr:
        made = tuple(item.build() for item in items)
        if kind is ERROR or any(is_poison(item) for item in made):
            return poison(span)
        return hir.TensorLit(resolve(kind), span, made)

    return Value(kind, span, build)


def _empty(ctx: Context, span: Span) -> Value:
    """`[]`: its elements' type is known from where it goes, or not at all."""
    element = ctx.unknown(ANY)

    def build() -> hir.Expr:
        found = resolve(element)
        if not is_scalar(found):
            ctx.report(
                "K0315", "The element type of an empty tensor is unknown; write `[0u8; 0]`, with a value of "
                "the type.", span,
            )
            return poison(span)
        return hir.TensorLit(TensorType(found, (0,)), span, ())

    return Value(TensorType(element, (0,)), span, build)


@rule(ast.ArrayRepeat)
def _repeat(ctx: Context, expr: ast.ArrayRepeat) -> Value:
    span = expr.span
    value = ctx.expr(expr.value, span)
    extents = [ctx.size(dim) for dim in expr.dims]
    if not extents or any(extent is None for extent in extents):
        ctx.shared.errors += 1
        return broken(span)
    kind = make_tensor(ctx, value.type, tuple(extent or 0 for extent in extents), span)

    def build() -> hir.Expr:
        made = value.build()
        return poison(span) if is_poison(made) or kind is ERROR else hir.TensorFill(resolve(kind), span, made)

    return Value(kind, span, build)
