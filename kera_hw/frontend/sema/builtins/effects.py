"""Built-ins with effects. The tree holds no tokens: lowering threads them."""
from __future__ import annotations

from kera_hw.frontend.sema.checking.arguments import Arguments, builtin
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import Context, Value, broken, is_poison, poison
from kera_hw.frontend.sema.typing.elementwise import make_op
from kera_hw.frontend.sema.typing.types import make_tensor
from kera_hw.frontend.sema.typing.unify import ERROR, describe, has_error, resolve, scalar_part
from kera_hw.types import UNIT, IntType, Type, is_scalar


def _sends(ctx: Context, args: Arguments, effect: str, op: str, label: str, values: list[Value]) -> Value:
    """An effect that takes values and gives nothing."""
    ctx.effects.append((effect, args.span))
    text = args.string(ctx, label)

    def build() -> hir.Expr:
        made = [value.build() for value in values]
        for value, item in zip(values, made):
            if not is_poison(item) and not is_scalar(scalar_part(item.type)):
                ctx.report("K0304", f"`{args.name}` takes numbers, bools and tensors of them, and this is "
                           f"{describe(item.type)}.", value.span)
                return poison(args.span)
        return poison(args.span) if text is None else make_op(op, UNIT, args.span, made, {label: text})

    return Value(UNIT, args.span, build)


@builtin("print")
def _print(ctx: Context, args: Arguments) -> Value:
    values = [ctx.expr(expr, args.span) for expr in args.rest]
    return _sends(ctx, args, "io", "effect.print", "label", values)


@builtin("write_tensor")
def _write(ctx: Context, args: Arguments) -> Value:
    return _sends(ctx, args, "fs.write", "effect.write_tensor", "name", [args.value(ctx, "x")])


@builtin("send")
def _send(ctx: Context, args: Arguments) -> Value:
    return _sends(ctx, args, "net", "effect.send", "channel", [args.value(ctx, "x")])


def _receives(ctx: Context, args: Arguments, effect: str, op: str, label: str) -> Value:
    """An effect that gives a value of the type in the turbofish."""
    ctx.effects.append((effect, args.span))
    text, kind = args.string(ctx, label), args.type(ctx)
    if text is None or has_error(kind):
        return broken(args.span)
    if not is_scalar(scalar_part(kind)):
        return ctx.fail(
            "K0304",
            f"`{args.name}` gives numbers, bools and tensors of them, not {describe(kind)}.",
            args.span,
        )
    return Value(kind, args.span, lambda: make_op(op, kind, args.span, [], {label: text, "type": kind}))


@builtin("read_tensor")
def _read(ctx: Context, args: Arguments) -> Value:
    return _receives(ctx, args, "fs.read", "effect.read_tensor", "name")


@builtin("recv")
def _recv(ctx: Context, args: Arguments) -> Value:
    return _receives(ctx, args, "net", "effect.recv", "channel")


@builtin("now")
def _now(ctx: Context, args: Arguments) -> Value:
    ctx.effects.append(("time", args.span))
    kind = IntType(64, False)
    return Value(kind, args.span, lambda: make_op("effect.now", kind, args.span, []))


@builtin("random")
def _random(ctx: Context, args: Arguments) -> Value:
    ctx.effects.append(("rand", args.span))
    element = args.type(ctx)
    extents = [ctx.size(expr) for expr in args.rest]
    if has_error(element) or any(extent is None for extent in extents):
        ctx.shared.errors += 1
        return broken(args.span)
    if not is_scalar(element):
        return ctx.fail("K0304", f"`random` draws numbers and bools, not {describe(element)}.", args.span)
    shape = tuple(extent or 0 for extent in extents)
    kind: Type = make_tensor(ctx, element, shape, args.span) if shape else element
    if kind is ERROR:
        return broken(args.span)
    attrs = {"shape": shape, "type": element}
    return Value(kind, args.span, lambda: make_op("effect.random", resolve(kind), args.span, [], attrs))
