"""Reductions along an axis, contractions and pooling; the order is part of a float reduction."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kera_hw.numerics import integers, orders, reductions
from kera_hw.numerics.arrays import Array
from kera_hw.ops import contracting
from kera_hw.ops.rules import (
    NUMBER,
    Kinds,
    Types,
    check_axis,
    check_count,
    check_kind,
    check_order,
    fail,
    raw_int,
    tensor_of,
    tensor_or_scalar,
    title,
)
from kera_hw.ops.spec import Attrs, EvalCall, InferRule, OpSpec
from kera_hw.types import U32, BoolType, FloatType, IntType, TensorType, Type, element_type


def _extent(op: str, tensor: TensorType, axis: int) -> int:
    if axis == -1:
        return tensor.size
    check_axis(op, tensor, axis)
    return tensor.shape[axis]


def _without_axis(tensor: TensorType, axis: int, element: Type) -> Type:
    shape = () if axis == -1 else (*tensor.shape[:axis], *tensor.shape[axis + 1:])
    return tensor_or_scalar(element, shape, tensor.space)


def _axis_rule(
    op: str, kinds: Kinds, result: Type | None = None, nonempty: bool = False, ordered: bool = False
) -> InferRule:
    def infer(types: Types, attrs: Attrs) -> Types:
        check_count(op, types, 1)
        tensor = tensor_of(op, types[0])
        element = check_kind(op, tensor, kinds)
        extent = _extent(op, tensor, attrs["axis"])
        if nonempty and extent == 0:
            fail(f"{title(op)} takes an axis that is not empty, but got {tensor}.")
        if ordered:
            check_order(op, element, attrs)
        return (_without_axis(tensor, attrs["axis"], result or element),)

    return infer


def _along(call: EvalCall) -> tuple[Array, int]:
    """The operand and its array axis; all axes merge into one for axis -1."""
    values, axis = call.args[0], call.attrs["axis"]
    if axis == -1 and values.ndim > 2:
        return values.reshape(values.shape[0], -1), 1
    return values, max(axis, 0) + 1


OnIntegers = Callable[[Array, int, IntType], Array]
OnFloats = Callable[[Array, int, FloatType], Array]
InOrder = Callable[[Array, int, str, FloatType], Array]


def _folding(
    verb: str, doc: str, function: OnIntegers, infer: InferRule, on_floats: OnFloats
) -> OpSpec:
    """A reduction that is the same in every order."""
    name = f"reduce.{verb}"

    def evaluate(call: EvalCall) -> Sequence[Array]:
        values, axis = _along(call)
        kind = element_type(call.arg_types[0])
        if isinstance(kind, FloatType):
            return (on_floats(values, axis, kind),)
        return (function(values, axis, raw_int(kind)),)

    return OpSpec(name, doc, infer, evaluate, attrs=("axis",))


def _ordered(verb: str, doc: str, function: OnIntegers, infer: InferRule, on_floats: InOrder) -> OpSpec:
    """A reduction whose order matters on floats."""
    name = f"reduce.{verb}"

    def evaluate(call: EvalCall) -> Sequence[Array]:
        values, axis = _along(call)
        kind = element_type(call.arg_types[0])
        if isinstance(kind, FloatType):
            return (on_floats(values, axis, call.attrs["order"], kind),)
        return (function(values, axis, raw_int(kind)),)

    return OpSpec(name, doc, infer, evaluate, attrs=("axis", "order"))


def _logical(verb: str, doc: str, function: Callable[..., Array]) -> OpSpec:
    name = f"reduce.{verb}"

    def evaluate(call: EvalCall) -> Sequence[Array]:
        values, axis = _along(call)
        return (function(values, axis=axis),)

    return OpSpec(name, doc, _axis_rule(name, (BoolType,)), evaluate, attrs=("axis",))


def _least(values: Array, axis: int, kind: IntType) -> Array:
    return np.minimum.reduce(values, axis=axis)


def _greatest(values: Array, axis: int, kind: IntType) -> Array:
    return np.maximum.reduce(values, axis=axis)


def _first_least(values: Array, axis: int, kind: IntType) -> Array:
    return np.argmin(values, axis=axis).astype(np.uint32)


def _first_greatest(values: Array, axis: int, kind: IntType) -> Array:
    return np.argmax(values, axis=axis).astype(np.uint32)


def check_countable(op: str, element: Type, count: int) -> None:
    """An integer mean divides by the count in the element type, which must hold it."""
    if isinstance(element, IntType) and count > element.max:
        fail(f"{title(op)} divides by {count}, which {element} does not hold; convert to a wider type first.")


def _infer_mean(types: Types, attrs: Attrs) -> Types:
    op = "reduce.mean"
    result = _axis_rule(op, (IntType, FloatType), ordered=True)(types, attrs)
    tensor = tensor_of(op, types[0])
    check_countable(op, tensor.element, _extent(op, tensor, attrs["axis"]))
    return result


def _mean(values: Array, axis: int, kind: IntType) -> Array:
    sums = reductions.total(values, axis, kind)
    return integers.div(sums, np.full_like(sums, values.shape[axis]), kind)


TABLE: tuple[OpSpec, ...] = (
    _ordered(
        "sum", "Sum modulo 2^W in the element type, or in the given order on floats; 0 where empty.",
        reductions.total, _axis_rule("reduce.sum", NUMBER, ordered=True), orders.total,
    ),
    _ordered(
        "prod", "Product modulo 2^W in the element type, or in the given order on floats; 1 where empty.",
        reductions.product, _axis_rule("reduce.prod", (IntType, FloatType), ordered=True), orders.product,
    ),
    _folding(
        "min", "The least element; on floats IEEE 754-2019 minimum.", _least,
        _axis_rule("reduce.min", NUMBER, nonempty=True), orders.least,
    ),
    _folding(
        "max", "The greatest element; on floats IEEE 754-2019 maximum.", _greatest,
        _axis_rule("reduce.max", NUMBER, nonempty=True), orders.greatest,
    ),
    _logical("any", "Whether any element is true; false where empty.", np.logical_or.reduce),
    _logical("all", "Whether all elements are true; true where empty.", np.logical_and.reduce),
    _folding(
        "argmin", "The first index of the least element, as u32; zeros tie, the first NaN wins.",
        _first_least, _axis_rule("reduce.argmin", NUMBER, U32, nonempty=True), orders.first_least,
    ),
    _folding(
        "argmax", "The first index of the greatest element, as u32; zeros tie, the first NaN wins.",
        _first_greatest, _axis_rule("reduce.argmax", NUMBER, U32, nonempty=True), orders.first_greatest,
    ),
    _ordered("mean", "Sum divided by the count in the element type.", _mean, _infer_mean, orders.mean),
    *contracting.TABLE,
)
