"""Lambdas and the built-ins that take them: map, zip, reduce, scan."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from kera_hw.frontend.sema.checking.arguments import Arguments, builtin
from kera_hw.frontend.sema.checking.patterns import bind_pattern
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import Context, Value, broken, is_poison, poison, rule
from kera_hw.frontend.sema.typing.elementwise import common_frame
from kera_hw.frontend.sema.typing.types import make_tensor, resolve_type
from kera_hw.frontend.sema.typing.unify import ERROR, describe, has_error, resolve, shallow, unify
from kera_hw.frontend.syntax import ast
from kera_hw.support import Span
from kera_hw.types import TensorType, Type

BuildLambda = Callable[[], hir.Lambda | None]


@rule(ast.Lambda)
def _lambda(ctx: Context, expr: ast.Lambda) -> Value:
    return ctx.fail("K0321", "A lambda can only be the last argument of `map`, `zip`, `reduce` or `scan`.",
                    expr.span)


def walk_lambda(
    ctx: Context, expr: ast.Expr | None, types: Sequence[Type], name: str, span: Span,
) -> tuple[Value, BuildLambda] | None:
    """Walk a lambda whose parameters have the given types: its body, and how to make it."""
    while isinstance(expr, ast.ParenExpr):
        expr = expr.inner
    if not isinstance(expr, ast.Lambda):
        if expr is None or isinstance(expr, ast.Error):
            ctx.shared.errors += 1
            return None
        listed = ", ".join("xyz"[: len(types)])
        ctx.report("K0321", f"`{name}` takes a lambda here: `|{listed}| ..`.", expr.span)
        return None
    params = expr.params
    if len(params) != len(types):
        where = params[0].span.join(params[-1].span) if params else expr.span
        ctx.report(
            "K0321",
            f"The lambda of `{name}` has {len(types)} "
            f"{'parameter' if len(types) == 1 else 'parameters'}, and this one has {len(params)}.",
            where,
        )
        return None
    ctx.lambda_level += 1
    effects = len(ctx.effects)
    with ctx.block():
        made = [_parameter(ctx, param, kind) for param, kind in zip(params, types)]
        body = ctx.expr(expr.body, expr.span)
    ctx.lambda_level -= 1
    if len(ctx.effects) > effects:
        effect, place = ctx.effects[effects]
        ctx.report("K0321", f"A lambda cannot have effects, and this one has `{effect}`.", place)

    def build() -> hir.Lambda | None:
        result = body.build()
        if is_poison(result) or any(pattern is None for _, pattern in made):
            return None
        lets = tuple(
            hir.Let(pattern.span, pattern, hir.Local(var.type, var.span, var))
            for var, pattern in made if pattern is not None and not isinstance(pattern, hir.Binding)
        )
        if lets:
            result = hir.Block(result.type, result.span, lets, result)
        return hir.Lambda(tuple(var for var, _ in made), result, expr.span)

    return body, build


def _parameter(ctx: Context, param: ast.LambdaParam, kind: Type) -> tuple[hir.Var, hir.Pattern | None]:
    """The variable of a parameter, and the pattern that takes it apart."""
    if param.type is not None:
        wanted = resolve_type(ctx, param.type)
        if not unify(wanted, kind):
            ctx.report("K0302", f"This parameter receives {describe(kind)}, not {describe(wanted)}.",
                       param.type.span)
    pattern = bind_pattern(ctx, param.pattern, kind, param.span)
    if isinstance(pattern, hir.Binding):
        return pattern.var, pattern
    return ctx.new_var("_", kind, param.span), pattern


def tensor_operand(ctx: Context, args: Arguments, name: str = "a") -> tuple[Value, TensorType] | None:
    """A walked operand that must be a tensor; None when reported."""
    return as_tensor(ctx, args, args.value(ctx, name))


def as_tensor(ctx: Context, args: Arguments, value: Value) -> tuple[Value, TensorType] | None:
    """The operand with its type, where that is a tensor; None when reported."""
    kind = shallow(value.type)
    if isinstance(kind, TensorType):
        return value, kind
    if kind is not ERROR:
        ctx.report("K0304", f"`{args.name}` takes a tensor, and this is {describe(kind)}.", value.span)
    return None


@builtin("map")
def _map(ctx: Context, args: Arguments) -> Value:
    operand = tensor_operand(ctx, args)
    if operand is None:
        return broken(args.span)
    value, kind = operand
    return _elementwise(ctx, args, [value], kind)


@builtin("zip")
def _zip(ctx: Context, args: Arguments) -> Value:
    first, second = tensor_operand(ctx, args, "a"), tensor_operand(ctx, args, "b")
    if first is None or second is None:
        return broken(args.span)
    values = [first[0], second[0]]
    frame = common_frame(ctx, values)
    return _elementwise(ctx, args, values, frame) if isinstance(frame, TensorType) else broken(args.span)


def _elementwise(ctx: Context, args: Arguments, values: list[Value], frame: TensorType) -> Value:
    elements = [kind.element for value in values if isinstance(kind := shallow(value.type), TensorType)]
    walked = walk_lambda(ctx, args.given.get("f"), elements, args.name, args.span)
    if walked is None:
        return broken(args.span)
    body, lambda_ = walked
    kind = make_tensor(ctx, body.type, frame.shape, args.span) if frame.space == "host" else _in_space(
        ctx, body, frame, args.span)
    return _higher_order(args, kind, values, lambda_)


def _in_space(ctx: Context, body: Value, frame: TensorType, span: Span) -> Type:
    inner = shallow(body.type)
    if isinstance(inner, TensorType):
        inner = TensorType(inner.element, inner.shape, frame.space)
    return make_tensor(ctx, inner, frame.shape, span, frame.space)


def _higher_order(args: Arguments, kind: Type, values: list[Value], lambda_: BuildLambda) -> Value:
    span = args.span

    def build() -> hir.Expr:
        made = tuple(value.build() for value in values)
        body = lambda_()
        if body is None or has_error(kind) or any(is_poison(item) for item in made):
            return poison(span)
        return hir.HigherOrder(resolve(kind), span, args.name, made, body)

    return Value(kind, span, build)


@builtin("reduce", "scan")
def _fold(ctx: Context, args: Arguments) -> Value:
    operand = tensor_operand(ctx, args)
    init = args.value(ctx, "init")
    if operand is None:
        return broken(args.span)
    value, kind = operand
    rest = kind.shape[1:]
    row = TensorType(kind.element, rest, kind.space) if rest else kind.element
    walked = walk_lambda(ctx, args.given.get("f"), [init.type, row], args.name, args.span)
    if walked is None:
        return broken(args.span)
    body, lambda_ = walked
    good = ctx.expect(body, init.type, [(init.span, f"the initial value is {describe(init.type)}")])
    result = init.type
    if args.name == "scan":
        result = make_tensor(ctx, result, (kind.shape[0],), args.span)
    return _higher_order(args, result if good else ERROR, [value, init], lambda_)
