"""Built-ins that reinterpret and round: bitcast, round_to."""
from __future__ import annotations

from kera_hw.frontend.sema.checking.arguments import Arguments, builtin
from kera_hw.frontend.sema.names.builtins import OVERFLOWS, ROUNDINGS
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import Context, Value, broken, poison
from kera_hw.frontend.sema.typing.elementwise import framed, make_op
from kera_hw.frontend.sema.typing.unify import ERROR, describe, has_error, resolve, scalar_part, shallow
from kera_hw.types import BoolType, FixType, FloatType, IntType, TensorType, Type


def _width(kind: Type) -> int:
    if isinstance(kind, (IntType, FixType, FloatType)):
        return kind.width_bits
    return 1 if isinstance(kind, BoolType) else 0


def _target(ctx: Context, args: Arguments, source: Type) -> Type:
    """The element type asked for; a tensor's type names it too, where the shape agrees."""
    target = args.type(ctx)
    if len(args.turbofish) > 1:
        ctx.report("K0314", f"`{args.name}` takes one type, and here are {len(args.turbofish)}.",
                   args.turbofish[1].span)
        return ERROR
    if not isinstance(target, TensorType) or source is ERROR:
        return target
    if not isinstance(source, TensorType) or source.shape != target.shape:
        ctx.report(
            "K0312", f"`{args.name}` keeps the shape, so {describe(source)} cannot become `{target}`.",
            args.span,
        )
        return ERROR
    return target.element


@builtin("bitcast")
def _bitcast(ctx: Context, args: Arguments) -> Value:
    value = args.value(ctx, "x")
    source = shallow(value.type)
    target = _target(ctx, args, source)
    if has_error(target) or source is ERROR:
        return broken(args.span)
    kind = framed(source if isinstance(source, TensorType) else None, target)

    def build() -> hir.Expr:
        made = value.build()
        element = resolve(scalar_part(value.type))
        if element is ERROR:
            return poison(args.span)
        if not _width(target) or _width(element) != _width(target):
            ctx.report(
                "K0312",
                f"`bitcast` needs equal widths; {describe(element)} has {_width(element)} bits "
                f"and {describe(target)} has {_width(target)}.",
                value.span,
            )
            return poison(args.span)
        return make_op("convert.bitcast", kind, args.span, [made], {"type": target})

    return Value(kind, args.span, build)


@builtin("round_to")
def _round_to(ctx: Context, args: Arguments) -> Value:
    value = args.value(ctx, "x")
    source = shallow(value.type)
    target = _target(ctx, args, source)
    mode = args.mode(ctx, "mode", ROUNDINGS, "half_even")
    overflow = args.mode(ctx, "overflow", OVERFLOWS, "wrap")
    if has_error(target) or source is ERROR or mode is None or overflow is None:
        return broken(args.span)
    if not isinstance(target, FixType):
        where = args.turbofish[0].span
        return ctx.fail("K0304", f"`round_to` gives fixed point, not {describe(target)}.", where, args.span)
    kind = framed(source if isinstance(source, TensorType) else None, target)
    attrs = {"mode": mode, "overflow": overflow, "type": target}

    def build() -> hir.Expr:
        made = value.build()
        element = resolve(scalar_part(value.type))
        if element is ERROR:
            return poison(args.span)
        if not isinstance(element, (FixType, IntType)):
            ctx.report(
                "K0304", f"`round_to` rounds fixed point and integers, not {describe(element)}.", value.span
            )
            return poison(args.span)
        return make_op("convert.round_to", kind, args.span, [made], attrs)

    return Value(kind, args.span, build)
