"""Data movement: other views of the same buffer where that is possible, loops that copy elsewhere."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import cast

import numpy as np

from kera_hw.graph.node import Node
from kera_hw.loops.evaluator import Lanes
from kera_hw.loops.program import Affine, Operand, of_var
from kera_hw.lower.emitter import literal, storage_bytes
from kera_hw.lower.region import Lowering, Rule
from kera_hw.lower.views import Value, View, whole
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import EvalCall
from kera_hw.types import element_type, shape_of


def _view(value: Value) -> View:
    assert isinstance(value, View)
    return value


def _ints(node: Node, name: str) -> tuple[int, ...]:
    return cast("tuple[int, ...]", node.attr(name))


def _positions(lower: Lowering, indices: Sequence[Value], lasts: Sequence[int]) -> list[Affine]:
    return [lower.emit.clamped(cast(Operand, index), last) for index, last in zip(indices, lasts)]


def index(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    source = _view(args[0])
    if not source.size:
        return [literal(node.types[0], 0)]
    places = _positions(lower, args[1:], [extent - 1 for extent in source.shape])
    return [lower.read(source, places)]


def slice_(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    source, sizes = _view(args[0]), _ints(node, "sizes")
    if 0 in sizes:
        return [lower.new(node.types[0])]
    lasts = [extent - size for extent, size in zip(source.shape, sizes)]
    return [source.window(_positions(lower, args[1:], lasts), sizes)]


def update(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    """In place where the old value is dead."""
    source = _view(args[0])
    if not source.size:
        return [source]
    target = lower.owned(source)
    places = _positions(lower, args[2:], [extent - 1 for extent in source.shape])
    lower.write(target, places, cast(Operand, args[1]))
    return [target]


def update_slice(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    source, patch = _view(args[0]), _view(args[1])
    if not patch.size:
        return [source]
    target = lower.owned(source, [patch])
    lasts = [extent - size for extent, size in zip(source.shape, patch.shape)]
    window = target.window(_positions(lower, args[2:], lasts), patch.shape)
    lower.copy_into(window, patch)
    return [target]


def reshape(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    """Loops over the common refinement of both shapes; by division where they have none."""
    source, shape = _view(args[0]), shape_of(node.types[0])
    if shape == source.shape:
        return [source]
    target = lower.new(node.types[0])
    parts = _refinement(source.shape, shape)
    if parts is None:
        _reshape_by_division(lower, source, target)
    else:
        with lower.emit.nest(parts) as variables:
            steps = [of_var(var) for var in variables]
            value = lower.read(source, _grouped(steps, parts, source.shape))
            lower.write(target, _grouped(steps, parts, shape), value)
    return [target]


def _refinement(first: tuple[int, ...], second: tuple[int, ...]) -> list[int] | None:
    """Extents whose products, taken in order, make up both shapes; None where there are none."""
    if 0 in first:
        return [0]
    bounds = sorted({prod(shape[k:]) for shape in (first, second) for k in range(len(shape))} | {1})
    if any(high % low for low, high in pairwise(bounds)):
        return None
    return [high // low for low, high in pairwise(bounds)][::-1]


def _grouped(steps: Sequence[Affine], parts: Sequence[int], shape: tuple[int, ...]) -> list[Affine]:
    """Indices into ``shape`` from those into its refinement."""
    if 0 in shape:
        return [Affine() for _ in shape]
    found: list[Affine] = []
    place = len(parts)
    for extent in reversed(shape):
        total, weight = Affine(), 1
        while weight < extent:
            place -= 1
            total, weight = total + steps[place] * weight, weight * parts[place]
        found.append(total)
    return found[::-1]


def _reshape_by_division(lower: Lowering, source: View, target: View) -> None:
    emit = lower.emit
    with emit.nest(target.shape) as variables:
        where = [of_var(var) for var in variables]
        linear = Affine()
        for at, extent in zip(where, target.shape):
            linear = linear * extent + at
        left = emit.of_affine(linear)
        places: list[Affine] = []
        for extent in reversed(source.shape):
            places.append(emit.affine(emit.op("integer.rem", left, emit.count(extent))))
            left = emit.op("integer.div", left, emit.count(extent))
        lower.write(target, where, lower.read(source, places[::-1]))


def permute(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    return [_view(args[0]).permuted(_ints(node, "axes"))]


def broadcast(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    source = args[0]
    if isinstance(source, View):
        return [source.broadcast(shape_of(node.types[0]))]
    return [lower.fill(node.types[0], lambda _: source)]


def concat(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    axis = cast(int, node.attr("axis"))
    target, start = lower.new(node.types[0]), 0
    for arg in args:
        part = _view(arg)
        starts = [Affine(start if k == axis else 0) for k in range(len(part.shape))]
        lower.copy_into(target.window(starts, part.shape), part)
        start += part.shape[axis]
    return [target]


def pad(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    source, fill = _view(args[0]), cast(Operand, args[1])
    target = lower.fill(node.types[0], lambda _: fill)
    low = [Affine(count) for count in _ints(node, "low")]
    lower.copy_into(target.window(low, source.shape), source)
    return [target]


def reverse(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    source = _view(args[0])
    return [source.reversed(cast(int, node.attr("axis"))) if source.size else source]


def gather(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    source, chosen = _view(args[0]), _view(args[1])
    if not source.shape[0]:
        zero = literal(source.element, 0)
        return [lower.fill(node.types[0], lambda _: zero)]
    rank = len(chosen.shape)

    def element(index: list[Affine]) -> Operand:
        place = lower.emit.clamped(lower.read(chosen, index[:rank]), source.shape[0] - 1)
        return lower.read(source, [place, *index[rank:]])

    return [lower.fill(node.types[0], element)]


def iota(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    """A constant: what the reference says."""
    (kind,) = node.types
    call = EvalCall(Lanes(1), (), (), node.types, dict(node.attrs))
    values = OPS[node.opcode].evaluate(call)[0][0]
    element = element_type(kind)
    return [whole(lower.emit.constant(element, shape_of(kind), storage_bytes(element, np.asarray(values))))]


def stack(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    target = lower.new(node.types[0])
    for k, arg in enumerate(args):
        if isinstance(arg, View):
            lower.copy_into(target.row(Affine(k)), arg)
        else:
            lower.write(target, [Affine(k)], arg)
    return [target]


def shift_in(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    """Forward in place where the old value is dead: each element is read before it is overwritten."""
    source, added = _view(args[0]), args[1]
    if not source.shape[0]:
        return [source]
    rest = (source.shape[0] - 1, *source.shape[1:])
    if lower.overwrites(source, [added]):
        target = source
    else:
        target = lower.new(node.types[0])
    moved = source.window([Affine(1), *(Affine() for _ in rest[1:])], rest)
    into = target.window([Affine() for _ in rest], rest)
    with lower.emit.nest(rest, parallel=target is not source) as variables:
        index = [of_var(var) for var in variables]
        lower.write(into, index, lower.read(moved, index))
    last = target.row(Affine(rest[0])) if len(rest) > 1 else None
    if last is None:
        lower.write(target, [Affine(rest[0])], cast(Operand, added))
    else:
        lower.copy_into(last, _view(added))
    return [target]


def transfer(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    return args


RULES: dict[str, Rule] = {
    "tensor.index": index, "tensor.slice": slice_, "tensor.update": update,
    "tensor.update_slice": update_slice, "tensor.reshape": reshape, "tensor.permute": permute,
    "tensor.broadcast": broadcast, "tensor.concat": concat, "tensor.pad": pad, "tensor.reverse": reverse,
    "tensor.gather": gather, "tensor.iota": iota, "tensor.stack": stack, "tensor.shift_in": shift_in,
    "memory.transfer": transfer,
}
