"""Built-ins that arrange the elements of tensors, and transfers between memory spaces."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kera_hw.frontend.sema.checking.arguments import Arguments, builtin
from kera_hw.frontend.sema.checking.lambdas import as_tensor, tensor_operand
from kera_hw.frontend.sema.names.scope import Local
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import (
    TRANSFERS,
    Context,
    Value,
    broken,
    is_poison,
    poison,
    u32_constant,
)
from kera_hw.frontend.sema.typing.elementwise import make_op, shape_text
from kera_hw.frontend.sema.typing.types import make_tensor
from kera_hw.frontend.sema.typing.unify import (
    ERROR,
    INT_LITERAL,
    describe,
    has_error,
    resolve,
    scalar_part,
    shallow,
)
from kera_hw.frontend.syntax import ast
from kera_hw.support import Fix, Span
from kera_hw.types import BoolType, FixType, FloatType, IntType, TensorType, Type, is_scalar, numpy_dtype


def structural(
    args: Arguments, kind: Type, values: list[Value], attrs: Mapping[str, Any] | None = None,
    per_leaf: tuple[bool, ...] | None = None, name: str = "",
) -> Value:
    """A data-moving operation applied leaf by leaf."""
    span = args.span

    def build() -> hir.Expr:
        made = tuple(value.build() for value in values)
        if has_error(kind) or any(is_poison(item) for item in made):
            return poison(span)
        flags = per_leaf or (True,) * len(made)
        return hir.Structural(resolve(kind), span, name or args.name, made, flags, dict(attrs or {}))

    return Value(kind, span, build)


def _with_shape(kind: TensorType, shape: tuple[int, ...]) -> Type:
    return TensorType(kind.element, shape, kind.space) if shape else kind.element


@builtin("shift_in")
def _shift_in(ctx: Context, args: Arguments) -> Value:
    operand, item = tensor_operand(ctx, args), args.value(ctx, "x")
    if operand is None:
        return broken(args.span)
    value, kind = operand
    if kind.shape[0] == 0:
        return ctx.fail(
            "K0311", "`shift_in` needs a tensor with at least one element.", value.span, args.span
        )
    good = ctx.expect(item, _with_shape(kind, kind.shape[1:]), [(value.span, f"this is {describe(kind)}")])
    return structural(args, kind if good else ERROR, [value, item])


@builtin("len")
def _len(ctx: Context, args: Arguments) -> Value:
    # The length is in the type, so in a constant the tensor itself may be a run-time value.
    constant, ctx.constant = ctx.constant, False
    operand = tensor_operand(ctx, args)
    ctx.constant = constant
    if operand is None:
        return broken(args.span)
    made = u32_constant(operand[1].shape[0], args.span)

    def build() -> hir.Expr:
        operand[0].build()  # for its reports alone: the length is in the type
        return made

    return Value(made.type, args.span, build)


@builtin("iota")
def _iota(ctx: Context, args: Arguments) -> Value:
    if len(args.turbofish) != 2:
        return ctx.fail(
            "K0314",
            "`iota` takes an element type and a length: `iota::<u32, 8>()`.",
            args.name_span,
            args.span,
        )
    element = args.type(ctx)
    args.turbofish = args.turbofish[1:]
    sizes = None if has_error(element) else args.sizes(ctx)
    if sizes is None:
        ctx.shared.errors += 1
        return broken(args.span)
    if not isinstance(element, (IntType, FixType, FloatType)):
        return ctx.fail(
            "K0304", f"`iota` counts in a numeric type, not {describe(element)}.", args.name_span, args.span
        )
    kind = TensorType(element, (sizes[0],))
    attrs = {"size": sizes[0], "type": element}
    return Value(kind, args.span, lambda: make_op("tensor.iota", kind, args.span, [], attrs))


@builtin("reshape")
def _reshape(ctx: Context, args: Arguments) -> Value:
    operand, sizes = tensor_operand(ctx, args), args.sizes(ctx)
    if operand is None or sizes is None:
        ctx.shared.errors += 1
        return broken(args.span)
    value, kind = operand
    made = make_tensor(ctx, kind.element, tuple(sizes), args.span, kind.space) if sizes else kind.element
    if not isinstance(made, TensorType):
        return broken(args.span)
    if made.size != kind.size:
        return ctx.fail(
            "K0311",
            f"A tensor of {kind.size} elements cannot have the shape {shape_text(made.shape)}, "
            f"which has {made.size}.",
            args.name_span,
            args.span,
        )
    return structural(args, made, [value], {"shape": made.shape})


@builtin("transpose")
def _transpose(ctx: Context, args: Arguments) -> Value:
    operand = tensor_operand(ctx, args)
    if operand is None:
        return broken(args.span)
    value, kind = operand
    if len(kind.shape) != 2:
        return ctx.fail(
            "K0311",
            f"`transpose` takes a matrix, and this is {describe(kind)}; `permute` names the "
            "order of any number of axes.",
            value.span,
            args.span,
        )
    return structural(args, _with_shape(kind, kind.shape[::-1]), [value], {"axes": (1, 0)}, name="permute")


def _integers(ctx: Context, expr: ast.Expr | None, what: str) -> list[int] | None:
    """Compile-time integers written as a tuple, or one alone."""
    while isinstance(expr, ast.ParenExpr):
        expr = expr.inner
    items = expr.elements if isinstance(expr, ast.TupleExpr) else [expr]
    found = [ctx.size(item, what) for item in items]
    good = [item for item in found if item is not None]
    return good if len(good) == len(found) else None


@builtin("permute")
def _permute(ctx: Context, args: Arguments) -> Value:
    operand = tensor_operand(ctx, args)
    axes = _integers(ctx, args.given.get("axes"), "An axis")
    if operand is None or axes is None:
        ctx.shared.errors += 1
        return broken(args.span)
    value, kind = operand
    if sorted(axes) != list(range(len(kind.shape))):
        listed = ", ".join(map(str, range(len(kind.shape))))
        return ctx.fail("K0309", f"`axes` names each axis of {describe(kind)} once: {listed} in some order.",
                        _span(args, "axes"), args.span)
    shape = tuple(kind.shape[axis] for axis in axes)
    return structural(args, _with_shape(kind, shape), [value], {"axes": tuple(axes)})


def _span(args: Arguments, name: str) -> Span:
    expr = args.given.get(name)
    return expr.span if expr is not None else args.span


@builtin("broadcast")
def _broadcast(ctx: Context, args: Arguments) -> Value:
    value, sizes = args.value(ctx, "a"), args.sizes(ctx)
    kind = shallow(value.type)
    if kind is ERROR or sizes is None:
        ctx.shared.errors += 1
        return broken(args.span)
    shape = kind.shape if isinstance(kind, TensorType) else ()
    wanted = tuple(sizes)
    tail = wanted[len(wanted) - len(shape):] if len(wanted) >= len(shape) else None
    if tail is None or any(have not in (1, want) for have, want in zip(shape, tail)):
        return ctx.fail(
            "K0311",
            f"{shape_text(shape)} does not broadcast to {shape_text(wanted)}: aligned at the "
            "last axis, extents must be equal, or 1.",
            args.name_span,
            args.span,
        )
    element = kind.element if isinstance(kind, TensorType) else kind
    space = kind.space if isinstance(kind, TensorType) else "host"
    made = make_tensor(ctx, element, wanted, args.span, space)
    return structural(args, made, [value], {"shape": wanted})


def _not_concat(ctx: Context, args: Arguments, values: list[Value]) -> Value | None:
    """`concat` of integers, and `concat(a, b, c)`; None for what is neither."""
    kinds = [shallow(value.type) for value in values]
    texts = ", ".join(ctx.file.text(value.span) for value in values)
    if all(isinstance(kind, (IntType, BoolType)) for kind in kinds):
        fix = Fix("join bits with `cat`", args.span, f"cat({texts})")
        message = f"`concat` joins tensors, and this is {describe(kinds[0])}."
        return ctx.fail("K0304", message, values[0].span, args.span, fix=fix)
    third = args.given.get("axis")
    symbol = ctx.lookup(third.name or "") if isinstance(third, ast.PathExpr) else None
    if third is None or not isinstance(symbol, Local) or not isinstance(shallow(symbol.var.type), TensorType):
        return None
    fix = Fix("join two at a time", args.span, f"concat(concat({texts}), {third.text})")
    message = "`concat` joins two tensors, and its third argument is the axis."
    return ctx.fail("K0306", message, third.span, args.span, fix=fix)


@builtin("concat")
def _concat(ctx: Context, args: Arguments) -> Value:
    values = [args.value(ctx, name) for name in ("a", "b")]
    if (refused := _not_concat(ctx, args, values)) is not None:
        return refused
    first, second = (as_tensor(ctx, args, value) for value in values)
    if first is None or second is None:
        return broken(args.span)
    (a, left), (b, right) = first, second
    axis = args.axis(ctx, len(left.shape), 0)
    if axis is None:
        return broken(args.span)
    if len(left.shape) != len(right.shape) or any(
        x != y for i, (x, y) in enumerate(zip(left.shape, right.shape)) if i != axis
    ):
        return ctx.fail(
            "K0311",
            f"{shape_text(left.shape)} and {shape_text(right.shape)} cannot be joined along axis "
            f"{axis}: the other extents must be equal.",
            b.span,
            args.span,
        )
    if not ctx.expect(Value(_with_shape(right, left.shape), b.span, b.build), left):
        return broken(args.span)
    joined = left.shape[axis] + right.shape[axis]
    shape = (*left.shape[:axis], joined, *left.shape[axis + 1:])
    return structural(args, _with_shape(left, shape), [a, b], {"axis": axis})


@builtin("pad")
def _pad(ctx: Context, args: Arguments) -> Value:
    operand = tensor_operand(ctx, args)
    low = _integers(ctx, args.given.get("lo"), "Padding")
    high = _integers(ctx, args.given.get("hi"), "Padding")
    fill = args.value(ctx, "value") if args.has("value") else None
    if operand is None or low is None or high is None:
        ctx.shared.errors += 1
        return broken(args.span)
    value, kind = operand
    rank = len(kind.shape)
    for name, found in (("lo", low), ("hi", high)):
        if len(found) not in (1, rank):
            return ctx.fail("K0309", f"`{name}` is one number for all axes, or one for each of the {rank}.",
                            _span(args, name), args.span)
    lows = tuple(low if len(low) == rank else low * rank)
    highs = tuple(high if len(high) == rank else high * rank)
    if fill is None:
        fill = _zero(ctx, kind, args)
    if fill is None or not ctx.expect(fill, kind.element):
        return broken(args.span)
    shape = tuple(a + extent + b for a, extent, b in zip(lows, kind.shape, highs))
    return structural(args, _with_shape(kind, shape), [value, fill], {"high": highs, "low": lows})


def _zero(ctx: Context, kind: TensorType, args: Arguments) -> Value | None:
    """The default padding: 0 of a number type."""
    if scalar_part(kind) is ERROR:
        return None
    element = ctx.unknown(INT_LITERAL)

    def build() -> hir.Expr:
        known = resolve(element)
        if not isinstance(known, (IntType, FixType, FloatType)):
            return poison(args.span)
        return hir.Const(known, args.span, numpy_dtype(known).type(0))

    return Value(element, args.name_span, build)


@builtin("reverse")
def _reverse(ctx: Context, args: Arguments) -> Value:
    operand = tensor_operand(ctx, args)
    axis = args.axis(ctx, len(operand[1].shape), 0) if operand is not None else None
    if operand is None or axis is None:
        return broken(args.span)
    return structural(args, operand[1], [operand[0]], {"axis": axis})


@builtin("gather")
def _gather(ctx: Context, args: Arguments) -> Value:
    operand, indices = tensor_operand(ctx, args), args.value(ctx, "indices")
    by = shallow(indices.type)
    if operand is None or by is ERROR:
        return broken(args.span)
    value, kind = operand
    if not isinstance(by, TensorType):
        return ctx.fail(
            "K0304",
            f"`gather` takes a tensor of indices, and this is {describe(by)}.",
            indices.span,
            args.span,
        )
    if by.space != kind.space:
        ctx.space_mismatch(indices, by, kind, [(value.span, "the tensor gathered from")])
        return broken(args.span)
    made = _with_shape(kind, by.shape + kind.shape[1:])
    inner = structural(args, made, [value, indices], per_leaf=(True, False))

    def build() -> hir.Expr:
        found = resolve(by.element)
        if not isinstance(found, IntType) and found is not ERROR:
            ctx.report("K0302", f"Indices are integers, and these are {describe(found)}.", indices.span)
            return poison(args.span)
        return inner.build()

    return Value(made, args.span, build)


@builtin("clone")
def _clone(ctx: Context, args: Arguments) -> Value:
    value = args.value(ctx, "x")
    return broken(args.span) if shallow(value.type) is ERROR else structural(args, value.type, [value])


_SPACES = {builtin_name: space for space, builtin_name in TRANSFERS.items()}


@builtin(*_SPACES)
def _transfer(ctx: Context, args: Arguments) -> Value:
    operand = tensor_operand(ctx, args, "x")
    if operand is None:
        return broken(args.span)
    value, kind = operand
    space = _SPACES[args.name]
    made = TensorType(kind.element, kind.shape, space)

    def build() -> hir.Expr:
        tree = value.build()
        element = resolve(kind.element)
        if element is not ERROR and not is_scalar(element):
            ctx.report("K0304", f"Tensors of numbers and bools move between spaces, and this holds "
                       f"{describe(element)}.", value.span)
            return poison(args.span)
        return make_op("memory.transfer", made, args.span, [tree], {"space": space})

    return Value(made, args.span, build)
