"""Typing rules of the tensor family: shapes in, shapes out."""
from __future__ import annotations

from math import prod

from kera_hw.ops.rules import (
    Types,
    check_axis,
    check_count,
    check_leaf,
    check_least,
    check_same,
    fail,
    int_element,
    tensor_of,
    tensor_or_scalar,
    title,
)
from kera_hw.ops.spec import Attrs
from kera_hw.types import IntType, TensorType, Type, element_type, shape_of


def _check_positions(op: str, tensor: TensorType, positions: Types) -> None:
    """One scalar integer for each axis."""
    rank = len(tensor.shape)
    if len(positions) != rank:
        fail(f"{title(op)} takes {rank} indices for {tensor}, but got {len(positions)}.")
    for kind in positions:
        if not isinstance(kind, IntType):
            fail(f"{title(op)} takes integers as indices, but got {kind}.")


def _check_element(op: str, tensor: TensorType, value: Type) -> None:
    if value != tensor.element:
        fail(f"{title(op)} takes a value of type {tensor.element} for {tensor}, but got {value}.")


def _check_space(op: str, first: TensorType, second: Type) -> None:
    if isinstance(second, TensorType) and second.space != first.space:
        fail(f"{title(op)} takes tensors in one memory space, but got {first} and {second}.")


def _with_shape(tensor: TensorType, shape: tuple[int, ...]) -> Types:
    return (TensorType(tensor.element, shape, tensor.space),)


def infer_index(types: Types, attrs: Attrs) -> Types:
    op = "tensor.index"
    check_least(op, types, 1)
    tensor = tensor_of(op, types[0])
    _check_positions(op, tensor, types[1:])
    return (tensor.element,)


def infer_slice(types: Types, attrs: Attrs) -> Types:
    op = "tensor.slice"
    check_least(op, types, 1)
    tensor, sizes = tensor_of(op, types[0]), attrs["sizes"]
    _check_positions(op, tensor, types[1:])
    _check_window(op, tensor, sizes)
    return _with_shape(tensor, sizes)


def _check_window(op: str, tensor: TensorType, sizes: tuple[int, ...]) -> None:
    if len(sizes) != len(tensor.shape):
        fail(f"{title(op)} takes a window of {len(tensor.shape)} axes for {tensor}, but got {len(sizes)}.")
    for size, extent in zip(sizes, tensor.shape):
        if not 0 <= size <= extent:
            fail(f"{title(op)} takes {size} elements of an axis of {extent} of {tensor}.")


def infer_update(types: Types, attrs: Attrs) -> Types:
    op = "tensor.update"
    check_least(op, types, 2)
    tensor = tensor_of(op, types[0])
    _check_element(op, tensor, types[1])
    _check_positions(op, tensor, types[2:])
    return (tensor,)


def infer_update_slice(types: Types, attrs: Attrs) -> Types:
    op = "tensor.update_slice"
    check_least(op, types, 2)
    tensor, patch = tensor_of(op, types[0]), tensor_of(op, types[1])
    _check_element(op, tensor, patch.element)
    _check_space(op, tensor, patch)
    _check_window(op, tensor, patch.shape)
    _check_positions(op, tensor, types[2:])
    return (tensor,)


def _check_shape(op: str, shape: tuple[int, ...]) -> None:
    if not shape or any(extent < 0 for extent in shape):
        fail(f"{title(op)} takes a shape of one or more extents of at least 0, but got {list(shape)}.")


def infer_reshape(types: Types, attrs: Attrs) -> Types:
    op = "tensor.reshape"
    check_count(op, types, 1)
    tensor, shape = tensor_of(op, types[0]), attrs["shape"]
    _check_shape(op, shape)
    if prod(shape) != tensor.size:
        fail(f"{title(op)} keeps the number of elements, but {tensor} has {tensor.size}, not {prod(shape)}.")
    return _with_shape(tensor, shape)


def infer_permute(types: Types, attrs: Attrs) -> Types:
    op = "tensor.permute"
    check_count(op, types, 1)
    tensor = tensor_of(op, types[0])
    axes: tuple[int, ...] = attrs["axes"]
    if sorted(axes) != list(range(len(tensor.shape))):
        fail(f"{title(op)} takes each axis of {tensor} once, but got {list(axes)}.")
    return _with_shape(tensor, tuple(tensor.shape[axis] for axis in axes))


def infer_broadcast(types: Types, attrs: Attrs) -> Types:
    op = "tensor.broadcast"
    check_count(op, types, 1)
    check_leaf(op, types[0])
    source, shape = shape_of(types[0]), attrs["shape"]
    _check_shape(op, shape)
    fits = len(source) <= len(shape) and all(
        extent in (1, wanted) for extent, wanted in zip(reversed(source), reversed(shape))
    )
    if not fits:
        fail(f"{title(op)} cannot stretch {types[0]} to the shape {list(shape)}.")
    space = types[0].space if isinstance(types[0], TensorType) else "host"
    return (TensorType(element_type(types[0]), shape, space),)


def infer_concat(types: Types, attrs: Attrs) -> Types:
    op = "tensor.concat"
    check_least(op, types, 1)
    first = tensor_of(op, types[0])
    axis: int = attrs["axis"]
    check_axis(op, first, axis)
    total = 0
    for kind in types:
        tensor = tensor_of(op, kind)
        _check_element(op, first, tensor.element)
        _check_space(op, first, tensor)
        if len(tensor.shape) != len(first.shape) or any(
            a != b for k, (a, b) in enumerate(zip(tensor.shape, first.shape)) if k != axis
        ):
            fail(f"{title(op)} takes tensors that agree off axis {axis}, but got {first} and {tensor}.")
        total += tensor.shape[axis]
    return _with_shape(first, (*first.shape[:axis], total, *first.shape[axis + 1:]))


def infer_pad(types: Types, attrs: Attrs) -> Types:
    op = "tensor.pad"
    check_count(op, types, 2)
    tensor, low, high = tensor_of(op, types[0]), attrs["low"], attrs["high"]
    _check_element(op, tensor, types[1])
    rank = len(tensor.shape)
    if len(low) != rank or len(high) != rank or any(count < 0 for count in (*low, *high)):
        fail(f"{title(op)} takes {rank} counts of at least 0 on either side for {tensor}.")
    return _with_shape(tensor, tuple(lo + extent + hi for lo, extent, hi in zip(low, tensor.shape, high)))


def infer_reverse(types: Types, attrs: Attrs) -> Types:
    op = "tensor.reverse"
    check_count(op, types, 1)
    tensor = tensor_of(op, types[0])
    check_axis(op, tensor, attrs["axis"])
    return (tensor,)


def infer_gather(types: Types, attrs: Attrs) -> Types:
    op = "tensor.gather"
    check_count(op, types, 2)
    tensor, indices = tensor_of(op, types[0]), tensor_of(op, types[1])
    int_element(op, indices)
    _check_space(op, tensor, indices)
    return _with_shape(tensor, indices.shape + tensor.shape[1:])


def infer_stack(types: Types, attrs: Attrs) -> Types:
    op = "tensor.stack"
    check_least(op, types, 1)
    first = check_leaf(op, types[0])
    for kind in types[1:]:
        check_same(op, first, kind)
    space = first.space if isinstance(first, TensorType) else "host"
    return (TensorType.tensor(first, (len(types),), space),)


def infer_shift_in(types: Types, attrs: Attrs) -> Types:
    op = "tensor.shift_in"
    check_count(op, types, 2)
    tensor = tensor_of(op, types[0])
    row = tensor_or_scalar(tensor.element, tensor.shape[1:], tensor.space)
    if types[1] != row:
        fail(f"{title(op)} appends a value of type {row} to {tensor}, but got {types[1]}.")
    return (tensor,)
