"""Element-wise operations: scalars and tensors of one shape, and the operation families by element type."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import TRANSFERS, Context, Value, is_poison, poison
from kera_hw.frontend.sema.typing.fixes import for_operands
from kera_hw.frontend.sema.typing.unify import ERROR, describe, resolve, scalar_part, shallow, unify
from kera_hw.support import Fix, Span
from kera_hw.types import BoolType, FixType, FloatType, IntType, TensorType, Type


def common_frame(ctx: Context, values: Sequence[Value]) -> TensorType | bool | None:
    """The tensor whose shape and space the result has, None when all are scalars, False when reported."""
    frame: TensorType | None = None
    first: Value | None = None
    for value in values:
        kind = shallow(value.type)
        if kind is ERROR:
            return False
        if not isinstance(kind, TensorType):
            continue
        if frame is None or first is None:
            frame, first = kind, value
        elif not _agree(ctx, frame, first, kind, value):
            return False
    return frame


def _agree(ctx: Context, frame: TensorType, first: Value, kind: TensorType, value: Value) -> bool:
    if kind.space != frame.space:
        move = TRANSFERS[frame.space]
        ctx.report(
            "K0403", f"These operands are in different memory spaces, {frame.space} and {kind.space}; "
            f"`{move}` moves this one.", value.span,
            labels=[(first.span, f"this one is in {frame.space} memory")],
            fix=Fix(f"move it with `{move}`", value.span, f"{move}({ctx.file.text(value.span)})"),
        )
        return False
    if kind.shape == frame.shape:
        return True
    ctx.report(
        "K0311",
        f"The shapes {shape_text(frame.shape)} and {shape_text(kind.shape)} do not agree.",
        value.span,
        labels=[(first.span, f"this has the shape {shape_text(frame.shape)}")],
    )
    return False


def shape_text(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def framed(frame: TensorType | bool | None, element: Type) -> Type:
    """The result type: the element in the frame's shape and space."""
    if frame is False or shallow(element) is ERROR:
        return ERROR
    return TensorType(element, frame.shape, frame.space) if isinstance(frame, TensorType) else element


def same_elements(ctx: Context, values: Sequence[Value], op: str = "", kept: bool = False) -> Type:
    """Make the element types of all values one, and give it; a report names the first that differs. ``op`` is
    the operator, if it is one, and ``kept`` says that the first value is the target of an assignment."""
    first = values[0]
    element = scalar_part(first.type)
    for value in values[1:]:
        other = scalar_part(value.type)
        if not unify(element, other):
            report_element(ctx, value, values, op, kept)
            return ERROR
    return shallow(element)


def report_element(
    ctx: Context, value: Value, values: Sequence[Value], op: str = "", kept: bool = False,
) -> None:
    """K0302 for one operand whose elements differ from the first one's."""
    first = scalar_part(values[0].type)
    stand_in = Value(scalar_part(value.type), value.span, value.build)
    because = [(values[0].span, f"this is {describe(first)}")]
    message = ""
    if op and not kept:
        both = f"{describe(first)} and {describe(stand_in.type)}"
        message = f"`{op}` needs operands of one type, and these are {both}."
    ctx.expect(
        stand_in, first, because, fix=lambda: for_operands(ctx, values, op, kept), message=message,
    )


def family(
    ctx: Context, element: Type, what: str, span: Span, allowed: str = "integer fixed floating"
) -> str | None:
    """The operation family of an element type: "integer", "fixed" or "floating".

    Reports K0304 for others; ``what`` begins the message ("`+`").
    """
    found = resolve(element)
    if found is ERROR:
        return None
    name = family_name(found)
    if name is not None and name in allowed.split():
        return name
    ctx.report("K0304", f"{what} is not defined for {describe(found)}.", span)
    return None


def family_name(kind: Type) -> str | None:
    for cls, name in ((IntType, "integer"), (FixType, "fixed"), (FloatType, "floating"), (BoolType, "bool")):
        if isinstance(kind, cls):
            return name
    return None


def make_op(
    name: str, kind: Type, span: Span, args: Sequence[hir.Expr], attrs: Mapping[str, Any] | None = None,
) -> hir.Expr:
    """The operation, or poison when an operand is."""
    kind = resolve(kind)
    if any(is_poison(arg) for arg in args):
        return poison(span)
    return hir.Op(kind, span, name, tuple(args), dict(attrs or {}))
