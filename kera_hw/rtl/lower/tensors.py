"""Tensor operations as wiring: every element is one scalar, a dynamic position a tree of selects."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from kera_hw.graph.node import Node, Ref
from kera_hw.interp import run_region
from kera_hw.ops.spec import Array
from kera_hw.rtl.lower.builder import Builder, carrier
from kera_hw.rtl.lower.values import Tensor, Value, elementwise, items_of
from kera_hw.types import BOOL, element_type, shape_of

Handler = Callable[[Builder, Node, list[Value]], list[Value]]


def _tensor(value: Value) -> Tensor:
    assert isinstance(value, Tensor)
    return value


def _scalar(value: Value) -> Ref:
    assert isinstance(value, Ref)
    return value


def _ints(node: Node, name: str) -> tuple[int, ...]:
    return cast("tuple[int, ...]", node.attr(name))


def _zero(builder: Builder, node: Node) -> Ref:
    return builder.const(carrier(element_type(node.types[0])), 0)


def _known(builder: Builder, indices: Sequence[Value], most: Sequence[int]) -> list[int | None]:
    """The indices that are constant, each held within 0 to ``most``; None for the others."""
    values = [builder.value(_scalar(index)) for index in indices]
    return [None if value is None else min(max(value, 0), last) for value, last in zip(values, most)]


def _pick_axis(builder: Builder, source: Tensor, positions: Array, starts: Sequence[Value]) -> Tensor:
    """Gather: ``positions`` has one leading axis per start, outermost first. Only what is not constant costs
    anything."""
    if not starts:
        return source.take(positions)
    (at,) = _known(builder, starts[:1], (len(positions) - 1,))
    if at is not None:
        return _pick_axis(builder, source, positions[at], starts[1:])
    choices = [_pick_axis(builder, source, row, starts[1:]) for row in positions]
    index = _scalar(starts[0])
    items = tuple(builder.pick(index, column) for column in zip(*(choice.items for choice in choices)))
    return Tensor(choices[0].shape, items)


def index(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    source = _tensor(args[0])
    if not source.items:
        return [_zero(builder, node)]
    known = _known(builder, args[1:], [extent - 1 for extent in source.shape])
    if None not in known:
        return [source.items[_flat(source.shape, cast("list[int]", known))]]
    return [_pick_axis(builder, source, source.indices(), args[1:]).items[0]]


def _flat(shape: Sequence[int], indices: Sequence[int]) -> int:
    """The row-major position of an element."""
    position = 0
    for extent, at in zip(shape, indices):
        position = position * extent + at
    return position


def _window(shape: Sequence[int], starts: Sequence[int], sizes: Sequence[int]) -> Array:
    """Positions of the elements of a window, in its shape; no more work than it has elements."""
    found, stride = np.zeros((1,) * len(shape), dtype=np.int64), 1
    for axis in reversed(range(len(shape))):
        along = (starts[axis] + np.arange(sizes[axis])) * stride
        found = found + along.reshape([-1 if k == axis else 1 for k in range(len(shape))])
        stride *= shape[axis]
    return found


def slice_(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    source, sizes = _tensor(args[0]), shape_of(node.types[0])
    if 0 in sizes:
        return [Tensor(sizes, ())]
    known = _known(builder, args[1:], [n - size for n, size in zip(source.shape, sizes)])
    if None not in known:
        return [source.take(_window(source.shape, cast("list[int]", known), sizes))]
    windows = np.lib.stride_tricks.sliding_window_view(source.indices(), sizes)
    return [_pick_axis(builder, source, windows, args[1:])]


def _one_hot(builder: Builder, indices: Sequence[Value], shape: tuple[int, ...]) -> list[Ref]:
    """One condition per element: whether the clamped indices name it."""
    conditions = [builder.const(BOOL, 1)]
    for value, extent in zip(indices, shape):
        index_ref = _scalar(value)
        low, high = builder.range(index_ref)
        row: list[Ref] = []
        for k in range(extent):
            if extent == 1:
                hit = builder.const(BOOL, 1)
            elif k == 0 and low < 0:
                hit = builder.op("compare.le", index_ref, builder.const(index_ref.type, 0))
            elif k == extent - 1 and high > k:
                hit = builder.op("compare.ge", index_ref, builder.const(index_ref.type, k))
            elif low <= k <= high:
                hit = builder.op("compare.eq", index_ref, builder.const(index_ref.type, k))
            else:
                hit = builder.const(BOOL, int(k == 0 and high < 0))
            row.append(hit)
        conditions = [builder.op("bits.and", outer, hit) for outer in conditions for hit in row]
    return conditions


def update(builder: Builder, _node: Node, args: list[Value]) -> list[Value]:
    source, value = _tensor(args[0]), _scalar(args[1])
    known = _known(builder, args[2:], [extent - 1 for extent in source.shape])
    if None not in known and source.items:
        at = _flat(source.shape, cast("list[int]", known))
        return [Tensor(source.shape, (*source.items[:at], value, *source.items[at + 1 :]))]
    conditions = _one_hot(builder, args[2:], source.shape)
    items = tuple(builder.select(hit, value, old) for hit, old in zip(conditions, source.items))
    return [Tensor(source.shape, items)]


def update_slice(builder: Builder, _node: Node, args: list[Value]) -> list[Value]:
    source, patch = _tensor(args[0]), _tensor(args[1])
    if not patch.items:
        return [source]
    starts = tuple(n - p + 1 for n, p in zip(source.shape, patch.shape))
    known = _known(builder, args[2:], [extent - 1 for extent in starts])
    items = list(source.items)
    if None not in known:
        window = _window(source.shape, cast("list[int]", known), patch.shape)
        for position, value in zip(window.ravel().tolist(), patch.items):
            items[position] = value
        return [Tensor(source.shape, tuple(items))]
    conditions = _one_hot(builder, args[2:], starts)
    windows = np.lib.stride_tricks.sliding_window_view(source.indices(), patch.shape)
    windows = windows.reshape(-1, len(patch.items))
    for hit, window in zip(conditions, windows):
        for position, value in zip(window, patch.items):
            items[int(position)] = builder.select(hit, value, items[int(position)])
    return [Tensor(source.shape, tuple(items))]


def reshape(_b: Builder, node: Node, args: list[Value]) -> list[Value]:
    return [Tensor(shape_of(node.types[0]), _tensor(args[0]).items)]


def permute(_b: Builder, node: Node, args: list[Value]) -> list[Value]:
    source = _tensor(args[0])
    return [source.take(source.indices().transpose(_ints(node, "axes")))]


def broadcast(_b: Builder, node: Node, args: list[Value]) -> list[Value]:
    shape = shape_of(node.types[0])
    if isinstance(args[0], Ref):
        count = int(np.prod(shape, dtype=np.int64))
        return [Tensor(shape, (args[0],) * count)]
    source = _tensor(args[0])
    return [source.take(np.broadcast_to(source.indices(), shape))]


def concat(_b: Builder, node: Node, args: list[Value]) -> list[Value]:
    items: list[Ref] = []
    parts: list[Array] = []
    for arg in args:
        source = _tensor(arg)
        parts.append(source.indices() + len(items))
        items.extend(source.items)
    joined = Tensor((len(items),), tuple(items))
    return [joined.take(np.concatenate(parts, axis=cast(int, node.attr("axis"))))]


def pad(_b: Builder, node: Node, args: list[Value]) -> list[Value]:
    source, fill = _tensor(args[0]), _scalar(args[1])
    widths = list(zip(_ints(node, "low"), _ints(node, "high")))
    positions = np.pad(source.indices(), widths, constant_values=len(source.items))
    return [Tensor(source.shape, (*source.items, fill)).take(positions)]


def reverse(_b: Builder, node: Node, args: list[Value]) -> list[Value]:
    source = _tensor(args[0])
    return [source.take(np.flip(source.indices(), cast(int, node.attr("axis"))))]


def gather(builder: Builder, node: Node, args: list[Value]) -> list[Value]:
    source, chosen = _tensor(args[0]), _tensor(args[1])
    shape = shape_of(node.types[0])
    if not source.items:
        zero = _zero(builder, node)
        return [Tensor(shape, (zero,) * int(np.prod(shape, dtype=np.int64)))]
    items: list[Ref] = []
    for item in chosen.items:
        items.extend(_pick_axis(builder, source, source.indices(), [item]).items)
    return [Tensor(shape, tuple(items))]


def iota(builder: Builder, node: Node, _args: list[Value]) -> list[Value]:
    """What the reference says: integers and formats wrap, floats round."""
    store = builder.store
    (counts,) = run_region(store.region((), [node.out()]), [], 1)
    constant = store.constant(node.types[0], np.asarray(counts)[0])
    return [Tensor(shape_of(node.types[0]), tuple(builder.constants(constant)))]


def stack(_b: Builder, node: Node, args: list[Value]) -> list[Value]:
    items = [ref for arg in args for ref in items_of(arg)]
    return [Tensor(shape_of(node.types[0]), tuple(items))]


def shift_in(_b: Builder, _node: Node, args: list[Value]) -> list[Value]:
    source = _tensor(args[0])
    added = items_of(args[1])
    return [Tensor(source.shape, (source.items + added)[len(added) :])]


def transfer(_b: Builder, _node: Node, args: list[Value]) -> list[Value]:
    return args


def select(builder: Builder, _node: Node, args: list[Value]) -> list[Value]:
    return [elementwise(builder.select, args)]


HANDLERS: dict[str, Handler] = {
    "tensor.index": index,
    "tensor.slice": slice_,
    "tensor.update": update,
    "tensor.update_slice": update_slice,
    "tensor.reshape": reshape,
    "tensor.permute": permute,
    "tensor.broadcast": broadcast,
    "tensor.concat": concat,
    "tensor.pad": pad,
    "tensor.reverse": reverse,
    "tensor.gather": gather,
    "tensor.iota": iota,
    "tensor.stack": stack,
    "tensor.shift_in": shift_in,
    "memory.transfer": transfer,
    "control.select": select,
}
