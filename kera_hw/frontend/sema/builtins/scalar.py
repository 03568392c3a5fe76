"""Built-ins on scalars and, element by element, on tensors."""
from __future__ import annotations

from collections.abc import Callable

from kera_hw.frontend.sema.builtins.reduce import reduction
from kera_hw.frontend.sema.checking.arguments import Arguments, builtin
from kera_hw.frontend.sema.checking.operators import negate, shift
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import Context, Value, broken, is_poison, poison
from kera_hw.frontend.sema.typing.elementwise import (
    common_frame,
    family,
    family_name,
    framed,
    make_op,
    same_elements,
)
from kera_hw.frontend.sema.typing.unify import (
    ANY,
    ERROR,
    Unknown,
    describe,
    has_error,
    resolve,
    scalar_part,
    shallow,
    unify,
)
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import TypeRuleError
from kera_hw.support import Span
from kera_hw.types import (
    BOOL,
    U32,
    BoolType,
    IntType,
    TensorType,
    TupleType,
    Type,
    numpy_dtype,
)

_ANY_NUMBER = "integer fixed floating"
_FLOAT_NAMES = (
    "sqrt", "rsqrt", "recip", "floor", "ceil", "round", "trunc", "exp", "exp2", "log", "log2", "sin", "cos",
    "tanh", "sigmoid", "erf", "gelu", "silu",
)


def elementwise(
    ctx: Context, args: Arguments, values: list[Value], allowed: str, op: str | None = None,
    result: Callable[[Type], Type] = lambda element: element,
) -> Value:
    """An operation of one family on operands of one element type; ``result`` gives its element type."""
    frame = common_frame(ctx, values)
    element = same_elements(ctx, values) if frame is not False else ERROR
    if element is ERROR:
        return broken(args.span)
    kind = framed(frame, result(element))

    def build() -> hir.Expr:
        made = [value.build() for value in values]
        prefix = family(ctx, element, f"`{args.name}`", args.name_span, allowed)
        return (
            poison(args.span)
            if prefix is None
            else make_op(f"{prefix}.{op or args.name}", kind, args.span, made)
        )

    return Value(kind, args.span, build)


@builtin(*_FLOAT_NAMES)
def _float(ctx: Context, args: Arguments) -> Value:
    return elementwise(ctx, args, [args.value(ctx, "x")], "floating")


@builtin("is_nan", "is_finite")
def _float_test(ctx: Context, args: Arguments) -> Value:
    return elementwise(ctx, args, [args.value(ctx, "x")], "floating", result=lambda _: BOOL)


@builtin("abs", "sign")
def _number(ctx: Context, args: Arguments) -> Value:
    return elementwise(ctx, args, [args.value(ctx, "x")], _ANY_NUMBER)


@builtin("neg")
def _neg(ctx: Context, args: Arguments) -> Value:
    return negate(ctx, args.value(ctx, "x"), args.span, args.name_span)


@builtin("relu")
def _relu(ctx: Context, args: Arguments) -> Value:
    """max(x, 0): one operation on floats, the maximum with zero elsewhere."""
    value = args.value(ctx, "x")
    if shallow(value.type) is ERROR:
        return broken(args.span)

    def build() -> hir.Expr:
        made = value.build()
        element = resolve(scalar_part(value.type))
        prefix = family(ctx, element, "`relu`", args.name_span)
        if prefix is None:
            return poison(args.span)
        if prefix == "floating":
            return make_op("floating.relu", made.type, args.span, [made])
        zero = hir.Const(element, args.span, numpy_dtype(element).type(0))
        return make_op(f"{prefix}.max", made.type, args.span, [made, zero])

    return Value(value.type, args.span, build)


@builtin("min", "max")
def _extremum(ctx: Context, args: Arguments) -> Value:
    """Of two values element by element, or, with one argument, over a tensor."""
    if not args.has("b"):
        return reduction(ctx, args, args.value(ctx, "a"))
    if args.has("axis"):
        return ctx.fail("K0306", f"`{args.name}` of two values has no axis.", args.name_span, args.span)
    return elementwise(ctx, args, [args.value(ctx, "a"), args.value(ctx, "b")], _ANY_NUMBER)


@builtin("saturating_add", "saturating_sub", "saturating_mul")
def _saturating(ctx: Context, args: Arguments) -> Value:
    return elementwise(ctx, args, [args.value(ctx, "a"), args.value(ctx, "b")], "integer fixed")


@builtin("copysign")
def _copysign(ctx: Context, args: Arguments) -> Value:
    return elementwise(ctx, args, [args.value(ctx, "a"), args.value(ctx, "b")], "floating")


@builtin("fma")
def _fma(ctx: Context, args: Arguments) -> Value:
    return elementwise(ctx, args, [args.value(ctx, name) for name in "abc"], "floating")


@builtin("clamp")
def _clamp(ctx: Context, args: Arguments) -> Value:
    values = [args.value(ctx, name) for name in ("x", "lo", "hi")]
    frame = common_frame(ctx, values)
    element = same_elements(ctx, values) if frame is not False else ERROR
    if element is ERROR:
        return broken(args.span)
    lower = common_frame(ctx, values[:2])
    kind = framed(frame, element)

    def build() -> hir.Expr:
        x, lo, hi = (value.build() for value in values)
        prefix = family(ctx, element, "`clamp`", args.name_span)
        if prefix is None:
            return poison(args.span)
        raised = make_op(f"{prefix}.max", framed(lower, element), args.span, [x, lo])
        return make_op(f"{prefix}.min", kind, args.span, [raised, hi])

    return Value(kind, args.span, build)


@builtin("select")
def _select(ctx: Context, args: Arguments) -> Value:
    values = [args.value(ctx, name) for name in "cab"]
    condition, first, second = values
    if any(shallow(value.type) is ERROR for value in values):
        return broken(args.span)
    if not unify(scalar_part(condition.type), BOOL):
        ctx.expect(Value(scalar_part(condition.type), condition.span, condition.build), BOOL)
        return broken(args.span)
    if any(isinstance(shallow(value.type), TensorType) for value in values):
        frame = common_frame(ctx, values)
        element = same_elements(ctx, values[1:]) if frame is not False else ERROR
        kind = framed(frame, element)
    else:
        kind = first.type if ctx.expect(second, first.type) else ERROR

    def build() -> hir.Expr:
        made = tuple(value.build() for value in values)
        if has_error(kind) or any(is_poison(item) for item in made):
            return poison(args.span)
        return hir.Structural(resolve(kind), args.span, "select", made, (False, True, True))

    return Value(kind, args.span, build)


# ---------------------------------------------------------------- integers and bits


def _integers(ctx: Context, args: Arguments, op: str, result: Callable[[Type], Type], check: Callable[
    [IntType], str | None] = lambda kind: None) -> Value:
    """A bit operation on integers; ``check`` gives a complaint about the resolved type."""
    value = args.value(ctx, "x")
    frame = common_frame(ctx, [value])
    if frame is False:
        return broken(args.span)
    kind = framed(frame, result(scalar_part(value.type)))

    def build() -> hir.Expr:
        made = value.build()
        element = resolve(scalar_part(value.type))
        if family(ctx, element, f"`{args.name}`", args.name_span, "integer") is None:
            return poison(args.span)
        assert isinstance(element, IntType)
        complaint = check(element)
        if complaint is not None:
            ctx.report("K0304", complaint, args.name_span)
            return poison(args.span)
        return make_op(op, kind, args.span, [made])

    return Value(kind, args.span, build)


@builtin("reverse_bits", "popcount", "clz", "ctz")
def _bits(ctx: Context, args: Arguments) -> Value:
    counts = args.name != "reverse_bits"
    return _integers(ctx, args, f"bits.{args.name}", lambda element: U32 if counts else element)


def _whole_bytes(kind: IntType) -> str | None:
    return None if kind.width_bits % 8 == 0 else f"`reverse_bytes` needs whole bytes, and `{kind}` has none."


@builtin("reverse_bytes")
def _reverse_bytes(ctx: Context, args: Arguments) -> Value:
    return _integers(ctx, args, "bits.reverse_bytes", lambda element: element, _whole_bytes)


@builtin("rotl", "rotr")
def _rotate(ctx: Context, args: Arguments) -> Value:
    return shift(ctx, f"bits.{args.name}", args.value(ctx, "x"), args.value(ctx, "amount"), args.span,
                 args.name_span)


@builtin("add_carry")
def _add_carry(ctx: Context, args: Arguments) -> Value:
    a, b, carry = (args.value(ctx, name) for name in "abc")
    if not unify(scalar_part(carry.type), BOOL):
        ctx.expect(Value(scalar_part(carry.type), carry.span, carry.build), BOOL)
        return broken(args.span)
    frame = common_frame(ctx, [a, b, carry])
    element = same_elements(ctx, [a, b]) if frame is not False else ERROR
    if element is ERROR:
        return broken(args.span)
    kind = TupleType((framed(frame, element), framed(frame, BOOL)))

    def build() -> hir.Expr:
        made = [value.build() for value in (a, b, carry)]
        prefix = family(ctx, element, "`add_carry`", args.name_span, "integer")
        return poison(args.span) if prefix is None else make_op("integer.add_carry", kind, args.span, made)

    return Value(kind, args.span, build)


_BY_ROW = {"mul_wide": "integer.mul_wide", "clmul": "bits.clmul"}


@builtin(*_BY_ROW)
def _by_row(ctx: Context, args: Arguments) -> Value:
    """Two operands of one type; what they give, and whether they may, the row's typing rule says."""
    op = _BY_ROW[args.name]
    values = [args.value(ctx, "a"), args.value(ctx, "b")]
    frame = common_frame(ctx, values)
    element = same_elements(ctx, values) if frame is not False else ERROR
    if element is ERROR:
        return broken(args.span)
    out = ctx.unknown(ANY)

    def attempt() -> bool:
        found = shallow(element)
        if isinstance(found, Unknown):
            return False
        result: Type = ERROR
        if found is not ERROR:
            try:
                (result,) = OPS[op].infer((found, found), {})
            except TypeRuleError as fault:
                ctx.report("K0304", str(fault), args.name_span)
        _settle(ctx, out, result, args.span)
        return True

    ctx.oblige(attempt, lambda: _settle(ctx, out, ERROR, args.span), late=True)
    kind = framed(frame, shallow(out))

    def build() -> hir.Expr:
        return make_op(op, kind, args.span, [value.build() for value in values])

    return Value(kind, args.span, build)


def _settle(ctx: Context, out: Unknown, result: Type, span: Span) -> None:
    if not unify(out, result):
        ctx.report("K0302", f"This is {describe(result)}, and {describe(out)} is needed.", span)


@builtin("cat")
def _cat(ctx: Context, args: Arguments) -> Value:
    values = [args.value(ctx, "a"), *(ctx.expr(expr, args.span) for expr in args.rest)]
    frame = common_frame(ctx, values)
    if frame is False:
        return broken(args.span)
    parts = [scalar_part(value.type) for value in values]
    out = ctx.unknown(ANY)

    def attempt() -> bool:
        found = [resolve(part) for part in parts]
        if any(isinstance(part, Unknown) for part in found):
            return False
        _settle(ctx, out, _cat_type(ctx, values, found, args.span), args.span)
        return True

    ctx.oblige(attempt, lambda: _settle(ctx, out, ERROR, args.span), late=True)
    kind = framed(frame, shallow(out))

    def build() -> hir.Expr:
        return make_op("bits.cat", kind, args.span, [_as_bits(value.build()) for value in values])

    return Value(kind, args.span, build)


def _cat_type(ctx: Context, values: list[Value], parts: list[Type], span: Span) -> Type:
    width = 0
    for value, part in zip(values, parts):
        if part is ERROR:
            return ERROR
        if not isinstance(part, (IntType, BoolType)):
            ctx.report("K0304", f"`cat` joins integers and bools, and this is {describe(part)}.", value.span)
            return ERROR
        width += part.width_bits if isinstance(part, IntType) else 1
    if width > 64:
        ctx.report("K0304", f"The joined value would have {width} bits, more than 64.", span)
        return ERROR
    return IntType(width, False)


def _as_bits(made: hir.Expr) -> hir.Expr:
    """A bool as one bit, for operations on integers alone."""
    if family_name(scalar_part(made.type)) != "bool":
        return made
    bit = IntType(1, False)
    frame = made.type if isinstance(made.type, TensorType) else None
    return make_op("convert.cast", framed(frame, bit), made.span, [made], {"type": bit})
