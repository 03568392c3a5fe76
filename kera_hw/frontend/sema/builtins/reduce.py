"""Reductions, products of tensors, and neural built-ins."""
from __future__ import annotations

from fractions import Fraction

from kera_hw.frontend.sema.checking.arguments import Arguments, builtin
from kera_hw.frontend.sema.names.builtins import ORDERS, PRODUCTS
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import Context, Value, broken, poison
from kera_hw.frontend.sema.typing.elementwise import family, make_op, same_elements
from kera_hw.frontend.sema.typing.literals import literal_value
from kera_hw.frontend.sema.typing.unify import ERROR, describe, resolve, scalar_part, shallow
from kera_hw.support import Span
from kera_hw.types import BOOL, F32, U32, FloatType, IntType, TensorType, Type

#: Families each reduction is defined for.
_ALLOWED = {
    "sum": "integer fixed floating",
    "prod": "integer floating",
    "mean": "integer floating",
    "any": "bool",
    "all": "bool",
    "min": "integer fixed floating",
    "max": "integer fixed floating",
    "argmin": "integer fixed floating",
    "argmax": "integer fixed floating",
}
_NEEDS_ITEMS = ("min", "max", "argmin", "argmax", "mean")


@builtin("sum", "prod", "any", "all")
def _reduce_x(ctx: Context, args: Arguments) -> Value:
    return reduction(ctx, args, args.value(ctx, "x"))


@builtin("mean", "argmin", "argmax")
def _reduce_a(ctx: Context, args: Arguments) -> Value:
    return reduction(ctx, args, args.value(ctx, "a"))


def reduction(ctx: Context, args: Arguments, value: Value) -> Value:
    """A reduction over one axis, or over the whole tensor."""
    source = shallow(value.type)
    if not isinstance(source, TensorType):
        if source is ERROR:
            return broken(args.span)
        return ctx.fail(
            "K0304", f"`{args.name}` reduces a tensor, and this is {describe(source)}.", value.span, args.span
        )
    axis = args.axis(ctx, len(source.shape))
    ordered = args.name in ("sum", "prod", "mean")
    order = args.mode(ctx, "order", ORDERS, "") if ordered else ""
    if axis is None or order is None:
        return broken(args.span)
    length = source.size if axis < 0 else source.shape[axis]
    if length == 0 and args.name in _NEEDS_ITEMS:
        return ctx.fail("K0311", f"`{args.name}` of an empty axis has no value.", value.span, args.span)
    decided = {"argmin": U32, "argmax": U32, "any": BOOL, "all": BOOL}
    element = decided.get(args.name, source.element)
    rest = () if axis < 0 else source.shape[:axis] + source.shape[axis + 1:]
    kind: Type = TensorType(element, rest, source.space) if rest else element

    def build() -> hir.Expr:
        made = value.build()
        found = resolve(source.element)
        prefix = family(ctx, found, f"`{args.name}`", args.name_span, _ALLOWED[args.name])
        if prefix is None or (args.name == "mean" and not _countable(ctx, args, found, length)):
            return poison(args.span)
        attrs: dict[str, object] = {"axis": axis}
        if ordered:
            attrs["order"] = (order or "lanes") if prefix == "floating" else ""
        return make_op(f"reduce.{args.name}", kind, args.span, [made], attrs)

    return Value(kind, args.span, build)


def _countable(ctx: Context, args: Arguments, element: Type, count: int) -> bool:
    """Whether an integer type holds the count that it is divided by; K0304 when not."""
    if not isinstance(element, IntType) or count <= element.max:
        return True
    ctx.report(
        "K0304", f"`{args.name}` divides by {count}, which {describe(element)} does not hold; convert to a "
        "wider type first.", args.name_span,
    )
    return False


# ---------------------------------------------------------------- products


def _operands(ctx: Context, args: Arguments, names: tuple[str, ...], ranks: tuple[int, ...]) -> list[
        tuple[Value, TensorType]] | None:
    """Tensor operands of given ranks in one space, with one element type; None when reported."""
    values = [args.value(ctx, name) for name in names]
    found: list[tuple[Value, TensorType]] = []
    for value, name, rank in zip(values, names, ranks):
        kind = shallow(value.type)
        if kind is ERROR:
            return None
        if not isinstance(kind, TensorType) or len(kind.shape) != rank:
            ctx.report(
                "K0311",
                f"`{name}` of `{args.name}` has {rank} {'axis' if rank == 1 else 'axes'}, and this "
                f"is {describe(kind)}.",
                value.span,
            )
            return None
        if found and kind.space != found[0][1].space:
            ctx.space_mismatch(value, kind, found[0][1], [(found[0][0].span, "the other operand")])
            return None
        found.append((value, kind))
    return None if same_elements(ctx, values) is ERROR else found


def _agree(ctx: Context, args: Arguments, what: str, a: int, b: int, span: Span) -> bool:
    if a != b:
        ctx.report("K0311", f"`{args.name}` needs {what} to agree, and they are {a} and {b}.", span)
    return a == b


def _product(
    ctx: Context, args: Arguments, name: str, kind: Type, operands: list[tuple[Value, TensorType]],
    attrs: dict[str, object], mul: str | None = None, order: str | None = None,
) -> Value:
    """An operation that multiplies and adds; modes are spelled out for floats and empty otherwise."""
    values = [value for value, _ in operands]

    def build() -> hir.Expr:
        made = [value.build() for value in values]
        element = resolve(scalar_part(values[0].type))
        prefix = family(ctx, element, f"`{args.name}`", args.name_span, "integer floating")
        if prefix is None:
            return poison(args.span)
        if mul == "wide" and element != F32:
            ctx.report("K0313", f"`mul: wide` is defined for `f32`, and these are {describe(element)}.",
                       args.name_span)
            return poison(args.span)
        full = dict(attrs)
        floating = prefix == "floating"
        if mul is not None:
            full["mul"] = (mul or "fused") if floating else ""
        if order is not None:
            full["order"] = (order or "lanes") if floating else ""
        return make_op(name, kind, args.span, made, full)

    return Value(kind, args.span, build)


@builtin("dot")
def _dot(ctx: Context, args: Arguments) -> Value:
    operands = _operands(ctx, args, ("a", "b"), (1, 1))
    order = args.mode(ctx, "order", ORDERS, "")
    mul = args.mode(ctx, "mul", PRODUCTS, "")
    if operands is None or order is None or mul is None:
        return broken(args.span)
    (_, a), (second, b) = operands
    if not _agree(ctx, args, "the lengths", a.shape[0], b.shape[0], second.span):
        return broken(args.span)
    return _product(ctx, args, "reduce.dot", a.element, operands, {}, mul, order)


@builtin("matmul")
def _matmul(ctx: Context, args: Arguments) -> Value:
    operands = _operands(ctx, args, ("a", "b"), (2, 2))
    mul = args.mode(ctx, "mul", PRODUCTS, "")
    if operands is None or mul is None:
        return broken(args.span)
    (_, a), (second, b) = operands
    if not _agree(ctx, args, "the columns of `a` and the rows of `b`", a.shape[1], b.shape[0], second.span):
        return broken(args.span)
    kind = TensorType(a.element, (a.shape[0], b.shape[1]), a.space)
    return _product(ctx, args, "reduce.matmul", kind, operands, {}, mul)


def _window(ctx: Context, args: Arguments, size: int, kernel: int, stride: int, pad: int) -> int | None:
    """Positions of a window along one axis; None (reported) when it is larger than the padded axis."""
    room = size + 2 * pad - kernel
    if room < 0:
        ctx.report("K0311", f"A window of {kernel} is larger than the padded axis of {size + 2 * pad}.",
                   args.name_span)
        return None
    return room // stride + 1


@builtin("conv2d")
def _conv2d(ctx: Context, args: Arguments) -> Value:
    operands = _operands(ctx, args, ("x", "w"), (3, 4))
    stride, pad = args.integer(ctx, "stride", 1, 1), args.integer(ctx, "pad", 0, 0)
    mul = args.mode(ctx, "mul", PRODUCTS, "")
    if operands is None or stride is None or pad is None or mul is None:
        return broken(args.span)
    (_, x), (second, w) = operands
    if not _agree(ctx, args, "the channels", x.shape[0], w.shape[1], second.span):
        return broken(args.span)
    rows = _window(ctx, args, x.shape[1], w.shape[2], stride, pad)
    columns = _window(ctx, args, x.shape[2], w.shape[3], stride, pad) if rows is not None else None
    if rows is None or columns is None:
        return broken(args.span)
    kind = TensorType(x.element, (w.shape[0], rows, columns), x.space)
    return _product(ctx, args, "reduce.conv2d", kind, operands, {"pad": pad, "stride": stride}, mul)


@builtin("max_pool2d", "avg_pool2d")
def _pool(ctx: Context, args: Arguments) -> Value:
    operands = _operands(ctx, args, ("x",), (3,))
    size = args.integer(ctx, "size", None, 1)
    stride, pad = args.integer(ctx, "stride", size, 1), args.integer(ctx, "pad", 0, 0)
    if operands is None or size is None or stride is None or pad is None:
        return broken(args.span)
    if pad >= size:
        return ctx.fail(
            "K0311", f"Padding of {pad} leaves windows of {size} without a value.", args.name_span, args.span
        )
    value, x = operands[0]
    rows = _window(ctx, args, x.shape[1], size, stride, pad)
    columns = _window(ctx, args, x.shape[2], size, stride, pad) if rows is not None else None
    if rows is None or columns is None:
        return broken(args.span)
    kind = TensorType(x.element, (x.shape[0], rows, columns), x.space)
    average = args.name == "avg_pool2d"
    allowed = "integer floating" if average else "integer fixed floating"
    attrs = {"pad": pad, "size": size, "stride": stride}

    def build() -> hir.Expr:
        made = value.build()
        element = resolve(x.element)
        prefix = family(ctx, element, f"`{args.name}`", args.name_span, allowed)
        if prefix is None or (average and not _countable(ctx, args, element, size * size)):
            return poison(args.span)
        return make_op(f"reduce.{args.name}", kind, args.span, [made], attrs)

    return Value(kind, args.span, build)


# ---------------------------------------------------------------- neural


def _float_only(ctx: Context, args: Arguments, kind: Type) -> bool:
    return family(ctx, scalar_part(kind), f"`{args.name}`", args.name_span, "floating") is not None


def _neural_axis(ctx: Context, args: Arguments, source: TensorType) -> int | None:
    """The axis, which a tensor of one axis need not name."""
    rank = len(source.shape)
    if not args.has("axis") and rank > 1:
        ctx.report(
            "K0306", f"`{args.name}` also needs `axis`: this tensor has {rank} of them.", args.name_span
        )
        return None
    return args.axis(ctx, rank, 0)


@builtin("softmax", "layer_norm", "rms_norm")
def _normalise(ctx: Context, args: Arguments) -> Value:
    value = args.value(ctx, "a")
    source = shallow(value.type)
    eps = args.value(ctx, "eps") if args.has("eps") else None
    if not isinstance(source, TensorType):
        if source is ERROR:
            return broken(args.span)
        return ctx.fail("K0304", f"`{args.name}` takes a tensor, and this is {describe(source)}.", value.span,
                        args.span)
    axis = _neural_axis(ctx, args, source)
    if axis is None or (eps is not None and not ctx.expect(eps, source.element)):
        return broken(args.span)
    if source.shape[axis] == 0:
        return ctx.fail("K0311", f"`{args.name}` of an empty axis has no value.", value.span, args.span)

    def build() -> hir.Expr:
        made = [value.build()]
        element = resolve(source.element)
        if not _float_only(ctx, args, element):
            return poison(args.span)
        if args.name != "softmax":
            made.append(eps.build() if eps is not None else _default_eps(element, args.span))
        return make_op(f"neural.{args.name}", source, args.span, made, {"axis": axis})

    return Value(source, args.span, build)


def _default_eps(element: Type, span: Span) -> hir.Expr:
    """1e-5, the value most frameworks take."""
    assert isinstance(element, FloatType)
    return hir.Const(element, span, literal_value(Fraction(1, 100_000), False, element))


@builtin("attention")
def _attention(ctx: Context, args: Arguments) -> Value:
    operands = _operands(ctx, args, ("q", "k", "v"), (2, 2, 2))
    if operands is None:
        return broken(args.span)
    (_, q), (second, k), (third, v) = operands
    if not (_agree(ctx, args, "the columns of `q` and `k`", q.shape[1], k.shape[1], second.span)
            and _agree(ctx, args, "the rows of `k` and `v`", k.shape[0], v.shape[0], third.span)):
        return broken(args.span)
    if 0 in (*k.shape, *q.shape, *v.shape):
        return ctx.fail("K0311", "`attention` of an empty tensor has no value.", args.name_span, args.span)
    kind = TensorType(q.element, (q.shape[0], v.shape[1]), q.space)

    def build() -> hir.Expr:
        made = [value.build() for value, _ in operands]
        if not _float_only(ctx, args, q.element):
            return poison(args.span)
        return make_op("neural.attention", kind, args.span, made)

    return Value(kind, args.span, build)
