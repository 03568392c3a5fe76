"""Operators: arithmetic, bits, shifts, comparisons, logic, conversion."""
from __future__ import annotations

from functools import partial

from kera_hw.frontend.sema.checking.atoms import number
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import Context, Value, broken, convertible, is_poison, poison, rule
from kera_hw.frontend.sema.typing.elementwise import (
    common_frame,
    family,
    framed,
    make_op,
    report_element,
    same_elements,
    shape_text,
)
from kera_hw.frontend.sema.typing.fixes import compared_with_zero, for_operands
from kera_hw.frontend.sema.typing.holding import loss
from kera_hw.frontend.sema.typing.types import resolve_type
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
from kera_hw.frontend.syntax import ast
from kera_hw.support import Fix, Span
from kera_hw.types import (
    BOOL,
    U32,
    BoolType,
    FixType,
    FloatType,
    IntType,
    TensorType,
    Type,
    is_scalar,
)

_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem"}
_BITS = {"&": "bits.and", "|": "bits.or", "^": "bits.xor"}
_SHIFTS = {"<<": "bits.shl", ">>": "bits.shr"}
_COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
#: Families each arithmetic operator is defined for.
_ALLOWED = {"+": "integer fixed floating", "-": "integer fixed floating", "*": "integer fixed floating",
            "/": "integer floating", "%": "integer"}


@rule(ast.Binary)
def _binary(ctx: Context, expr: ast.Binary) -> Value:
    """Walk the left spine in a loop: long sums are common, and deep only to one side."""
    spine: list[ast.Binary] = []
    node: ast.Expr | None = expr
    while isinstance(node, ast.Binary):
        spine.append(node)
        node = node.lhs
    value = ctx.expr(node, expr.span)
    for item in reversed(spine):
        token, span = item.op_token, item.span
        op, op_span = (token.text, token.span) if token is not None else ("", span)
        value = binary(ctx, op, value, item.rhs, span, op_span)
    return value


def binary(
    ctx: Context, op: str, lhs: Value, rhs_expr: ast.Expr | None, span: Span, op_span: Span,
    kept: bool = False,
) -> Value:
    """An operator applied to a walked left side and an expression. ``kept``: the left side is assigned to."""
    if op in ("&&", "||"):
        return _logical(ctx, op, lhs, rhs_expr, span)
    ctx.checker.usage.operators[ctx.file.path, span] = op
    rhs = ctx.expr(rhs_expr, span)
    if op in _SHIFTS:
        return shift(ctx, _SHIFTS[op], lhs, rhs, span, op_span)
    frame = common_frame(ctx, [lhs, rhs])
    if frame is False:
        return broken(span)
    if op == "*":
        return _product(ctx, lhs, rhs, frame, span, op_span, kept)
    element = same_elements(ctx, [lhs, rhs], op, kept)
    if element is ERROR:
        return broken(span)
    if op in _COMPARE:
        return _comparison(ctx, op, lhs, rhs, frame, span, op_span)
    kind = framed(frame, element)

    def build() -> hir.Expr:
        args = (lhs.build(), rhs.build())
        name = _operation(ctx, op, element, op_span)
        return poison(span) if name is None else make_op(name, kind, span, args)

    return Value(kind, span, build)


def _operation(ctx: Context, op: str, element: Type, span: Span) -> str | None:
    """The registry name of an arithmetic or bit operator on resolved elements."""
    found = resolve(element)
    if op in _BITS:
        if isinstance(found, (IntType, BoolType)) or found is ERROR:
            return _BITS[op]
        ctx.report("K0304", f"`{op}` works on integers and bools, and these are {describe(found)}.", span)
        return None
    if isinstance(found, FixType) and op in "/%":
        ctx.report(
            "K0304", f"`{op}` is not defined for fixed point; convert to an integer or a float first.", span,
        )
        return None
    if isinstance(found, FloatType) and op == "%":
        ctx.report("K0304", "`%` is not defined for floats.", span)
        return None
    prefix = family(ctx, found, f"`{op}`", span, _ALLOWED.get(op, ""))
    return None if prefix is None else f"{prefix}.{_ARITHMETIC[op]}"


def _product(
    ctx: Context, lhs: Value, rhs: Value, frame: TensorType | bool | None, span: Span, op_span: Span,
    kept: bool,
) -> Value:
    """`*`: one type for integers and floats, the sum of the formats for fixed point."""
    a, b, out = scalar_part(lhs.type), scalar_part(rhs.type), ctx.unknown(ANY)

    def settle(result: Type) -> bool:
        if not unify(out, result):
            ctx.report(
                "K0302", f"This product is {describe(result)}, and {describe(out)} is needed.", span,
            )
        return True

    def same() -> bool:
        if unify(a, b):
            return settle(a)
        report_element(ctx, rhs, [lhs, rhs], "*", kept)
        return settle(ERROR)

    def attempt() -> bool:
        x, y = shallow(a), shallow(b)
        if x is ERROR or y is ERROR:
            return settle(ERROR)
        if isinstance(x, FixType) and isinstance(y, FixType):
            return settle(fixed_product(ctx, x, y, span, (lhs, rhs)))
        if isinstance(x, Unknown) and isinstance(y, Unknown):
            return isinstance(shallow(out), (IntType, FloatType)) and same()
        if isinstance(x, Unknown) or isinstance(y, Unknown):
            known = y if isinstance(x, Unknown) else x
            # Beside fixed point a literal may still become another format.
            return not isinstance(known, FixType) and same()
        return same()

    def insist() -> None:
        if unify(a, b):
            x = shallow(a)
            settle(fixed_product(ctx, x, x, span, (lhs, rhs)) if isinstance(x, FixType) else x)
        else:
            same()

    ctx.oblige(attempt, insist)
    kind = framed(frame, shallow(out))

    def build() -> hir.Expr:
        args = (lhs.build(), rhs.build())
        prefix = family(ctx, a, "`*`", op_span)
        return poison(span) if prefix is None else make_op(f"{prefix}.mul", kind, span, args)

    return Value(kind, span, build)


def fixed_product(ctx: Context, a: FixType, b: FixType, span: Span, values: tuple[Value, Value]) -> Type:
    """The exact product's format; K0320 past 64 bits, K0302 for mixed signedness."""
    if a.signed != b.signed:
        ctx.report("K0302", f"`{a}` and `{b}` differ in signedness, and a product needs one.", span,
                   fix=for_operands(ctx, values, "*"))
        return ERROR
    width, fraction = a.width_bits + b.width_bits, a.fraction_bits + b.fraction_bits
    if width > 64:
        ctx.report("K0320", f"The product of `{a}` and `{b}` would have {width} bits, more than 64.", span)
        return ERROR
    return FixType(width, fraction, a.signed)


def _comparison(
    ctx: Context, op: str, lhs: Value, rhs: Value, frame: TensorType | bool | None, span: Span, op_span: Span,
) -> Value:
    kind = framed(frame, BOOL)

    def build() -> hir.Expr:
        args = (lhs.build(), rhs.build())
        element = resolve(scalar_part(lhs.type))
        if element is not ERROR and not is_scalar(element):
            ctx.report(
                "K0304", f"`{op}` compares numbers and bools, and these are {describe(element)}; compare "
                "their parts.", op_span,
            )
            return poison(span)
        return make_op(f"compare.{_COMPARE[op]}", kind, span, args)

    return Value(kind, span, build)


def _logical(ctx: Context, op: str, lhs: Value, rhs_expr: ast.Expr | None, span: Span) -> Value:
    rhs = ctx.expr(rhs_expr, span)
    if ctx.effects:
        for effect, place in ctx.effects:
            if span.start <= place.start < span.end:
                ctx.report(
                    "K0503", f"Both sides of `{op}` are always evaluated, so the effect `{effect}` cannot "
                    "stand in one; use `if`.", place,
                )
                break
    for side in (lhs, rhs):
        kind = shallow(side.type)
        if isinstance(kind, TensorType):
            ctx.report(
                "K0304", f"`{op}` takes single bools; `{op[0]}` works element by element.", side.span,
            )
            return broken(span)
        if not ctx.expect(side, BOOL, fix=partial(_as_condition, ctx, op, side)):
            return broken(span)

    def build() -> hir.Expr:
        a, b = lhs.build(), rhs.build()
        if is_poison(a) or is_poison(b):
            return poison(span)
        return hir.Logical(BOOL, span, "and" if op == "&&" else "or", a, b)

    return Value(BOOL, span, build)


def _as_condition(ctx: Context, op: str, side: Value) -> Fix | None:
    """Of an integer beside `&&`."""
    found = compared_with_zero(ctx, side.span) if isinstance(shallow(side.type), IntType) else None
    if found is None:
        return None
    return Fix(f"compare with zero; `{op[0]}` works on bits", found.span, found.replacement)


def shift(ctx: Context, name: str, value: Value, amount: Value, span: Span, op_span: Span) -> Value:
    """A shift or rotate: the amount is of any unsigned type, u32 for a literal."""
    frame = common_frame(ctx, [value, amount])
    if frame is False:
        return broken(span)
    # One value by many amounts: the operation wants its value in the result's shape.
    spreads = isinstance(frame, TensorType) and not isinstance(shallow(value.type), TensorType)
    kind = framed(frame, scalar_part(value.type))
    by = scalar_part(amount.type)
    if not _amount(ctx, amount, by):
        return broken(span)
    rotates = name in ("bits.rotl", "bits.rotr")

    def build() -> hir.Expr:
        args = (value.build(), amount.build())
        element = resolve(scalar_part(value.type))
        if element is ERROR or not _amount_is_unsigned(ctx, resolve(by), amount):
            return poison(span)
        if isinstance(element, IntType) or (isinstance(element, FixType) and not rotates):
            if spreads and not is_poison(args[0]):
                args = (hir.TensorFill(resolve(kind), value.span, args[0]), args[1])
            return make_op(name, kind, span, args)
        shown = "Rotating" if rotates else "Shifting"
        ctx.report("K0304", f"{shown} is not defined for {describe(element)}.", op_span)
        return poison(span)

    return Value(kind, span, build)


def _amount(ctx: Context, amount: Value, by: Type) -> bool:
    """Give an undecided amount the type u32: a bare literal at once, others when nothing else does."""
    literal = amount.literal
    if literal is not None and literal.is_int:
        if literal.negative and literal.int_value:
            ctx.report("K0322", "The amount of a shift cannot be negative.", amount.span)
            return False
        return ctx.expect(amount, U32)

    def attempt() -> bool:
        return not isinstance(shallow(by), Unknown)

    def insist() -> None:
        unify(by, U32)

    ctx.oblige(attempt, insist)
    return True


def _amount_is_unsigned(ctx: Context, by: Type, amount: Value) -> bool:
    if isinstance(by, IntType) and not by.signed:
        return True
    if by is not ERROR:
        fix = None
        if isinstance(by, IntType):
            unsigned = IntType(by.width_bits, False)
            fix = Fix(f"give it an unsigned type; `as {unsigned}` {loss(unsigned, by)}")
        ctx.report(
            "K0322", f"The amount of a shift has an unsigned type, and this is {describe(by)}.", amount.span,
            fix=fix,
        )
    return False


@rule(ast.Unary)
def _unary(ctx: Context, expr: ast.Unary) -> Value:
    value = ctx.expr(expr.operand, expr.span)
    token = expr.op_token
    op_span = token.span if token else expr.span
    return (
        negate(ctx, value, expr.span, op_span) if expr.op == "-" else _complement(value, ctx, expr, op_span)
    )


def negate(ctx: Context, value: Value, span: Span, op_span: Span) -> Value:
    """Unary minus; an error on unsigned types."""
    if shallow(value.type) is ERROR:
        return broken(span)

    def build() -> hir.Expr:
        arg = value.build()
        element = resolve(scalar_part(value.type))
        if isinstance(element, (IntType, FixType)) and not element.signed:
            ctx.report("K0304", f"`-` is not defined for `{element}`, which has no negative values.", op_span)
            return poison(span)
        prefix = family(ctx, element, "`-`", op_span)
        return poison(span) if prefix is None else make_op(f"{prefix}.neg", arg.type, span, (arg,))

    return Value(value.type, span, build)


def _complement(value: Value, ctx: Context, expr: ast.Unary, op_span: Span) -> Value:
    if shallow(value.type) is ERROR:
        return broken(expr.span)

    def build() -> hir.Expr:
        arg = value.build()
        element = resolve(scalar_part(value.type))
        if element is not ERROR and not isinstance(element, (IntType, BoolType)):
            ctx.report("K0304", f"`!` works on integers and bools, and this is {describe(element)}.", op_span)
            return poison(expr.span)
        return make_op("bits.not", arg.type, expr.span, (arg,))

    return Value(value.type, expr.span, build)


@rule(ast.Cast)
def _cast(ctx: Context, expr: ast.Cast) -> Value:
    target = resolve_type(ctx, expr.type)
    operand = expr.operand
    bare: ast.Expr | None = operand
    while isinstance(bare, ast.ParenExpr):
        bare = bare.inner
    if isinstance(bare, ast.Literal) and bare.suffix is None and _takes(bare, target):
        return number(ctx, bare, target, expr.span)
    value = ctx.expr(operand, expr.span)
    source = shallow(value.type)
    if has_error(target) or source is ERROR:
        return broken(expr.span)
    if isinstance(target, TensorType):
        if not isinstance(source, TensorType) or (source.shape, source.space) != (target.shape, target.space):
            return ctx.fail(
                "K0312", f"`as` keeps shape and space, so {describe(source)} cannot become `{target}`.",
                expr.span,
            )
        target = target.element
    return convert(ctx, value, target, expr.span)


def _takes(literal: ast.Literal, target: Type) -> bool:
    """Whether a literal directly under `as` is of the target type itself."""
    if literal.is_int:
        return isinstance(target, (IntType, FloatType, FixType))
    return literal.is_float and isinstance(target, (FloatType, FixType))


def convert(ctx: Context, value: Value, target: Type, span: Span) -> Value:
    """`value as target`, element by element; the same type needs no operation."""
    source = shallow(value.type)
    kind = TensorType(target, source.shape, source.space) if isinstance(source, TensorType) else target

    def build() -> hir.Expr:
        arg = value.build()
        element = resolve(scalar_part(value.type))
        if element is ERROR or is_poison(arg):
            return poison(span)
        if element == target:
            return arg
        if convertible(element, target):
            return make_op("convert.cast", kind, span, (arg,), {"type": target})
        _no_conversion(ctx, element, target, value.span, span)
        return poison(span)

    return Value(kind, span, build)


def _no_conversion(ctx: Context, element: Type, target: Type, operand: Span, span: Span) -> None:
    hint, fix = ".", None
    text = ctx.file.text(operand)
    if isinstance(target, BoolType) and isinstance(element, IntType):
        hint = f"; write `{text} != 0`."
        fix = compared_with_zero(ctx, operand, span)
    elif isinstance(element, BoolType) and is_scalar(target):
        hint = "; convert to an integer first: `as u1`."
    ctx.report("K0312", f"{describe(element)} does not convert to {describe(target)}{hint}", span, fix=fix)


__all__ = ["binary", "convert", "negate", "shape_text", "shift"]
