"""Structured control: calls are written in place, loops carry scalars in variables and tensors in buffers."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from kera_hw.graph.node import Node, Ref, Region
from kera_hw.loops.program import Affine, Operand, Var, of_var
from kera_hw.lower.emitter import literal
from kera_hw.lower.region import Lowering, Rule, shared
from kera_hw.lower.views import Value, View
from kera_hw.ops.intervals import type_interval
from kera_hw.types import BoolType, TensorType, Type, is_scalar


def _region(node: Node, name: str = "region") -> Region:
    return cast(Region, node.attr(name))


def _int(node: Node, name: str) -> int:
    return cast(int, node.attr(name))


class State:
    """Carried values: scalars go round in variables, tensors stay in buffers that the body overwrites."""

    def __init__(self, lower: Lowering, args: Sequence[Value], carried: int) -> None:
        initial = args[:carried]
        self.lower = lower
        self.tensors = [
            lower.owned(value, [*args[:k], *args[k + 1 :]]) if isinstance(value, View) else None
            for k, value in enumerate(initial)
        ]
        self.scalars = [value for value in initial if not isinstance(value, View)]

    def inside(self, variables: Sequence[Operand]) -> list[Value]:
        """What the body sees, with the scalars' variables filled in."""
        scalars = iter(variables)
        return [next(scalars) if tensor is None else tensor for tensor in self.tensors]

    def take(self, results: Sequence[Value]) -> list[Operand]:
        """Put the body's tensors back into the buffers; its scalars."""
        return settle(self.lower, self.tensors, results)


def settle(lower: Lowering, targets: Sequence[View | None], results: Sequence[Value]) -> list[Operand]:
    """Put tensors into the buffers that they belong in, all at once; the scalars among the results.

    A result that lies in a buffer of another, or in its own but elsewhere, is put aside before that is
    overwritten.
    """
    own = {target.buffer.name for target in targets if target is not None}
    moves: list[tuple[View, View]] = []
    for target, result in zip(targets, results):
        if target is not None:
            assert isinstance(result, View)
            if result.buffer == target.buffer and result.is_whole:
                continue
            if result.buffer.name in own:
                result = lower.copy(result)
            moves.append((target, result))
    for target, result in moves:
        lower.copy_into(target, result)
    return [result for result in results if not isinstance(result, View)]


def call(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    return lower.region(_region(node), args)


def loop(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    carried, count = _int(node, "carried"), _int(node, "count")
    if not count:
        return args[:carried]
    state, captures = State(lower, args, carried), shared(args[carried:])
    with lower.emit.loop(count, state.scalars) as round_:
        index = _counted(lower, node, round_.index)
        round_.next = state.take(lower.region(_region(node), [index, *state.inside(round_.inner), *captures]))
    return state.inside(round_.results)


def _counted(lower: Lowering, node: Node, var: Var) -> Operand:
    """What the source counts with: start + k * step."""
    kind = cast(Type, node.attr("index_type"))
    exact = of_var(var) * _int(node, "step") + _int(node, "start")
    return lower.emit.cast(lower.emit.of_affine(exact), kind)


def while_(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    carried, most = _int(node, "carried"), _int(node, "max")
    if not most:
        return args[:carried]
    state, captures = State(lower, args, carried), shared(args[carried:])
    with lower.emit.loop_while(most, state.scalars) as round_:
        values = state.inside(round_.inner)
        with round_.condition() as going:
            going.append(cast(Operand, lower.region(_region(node, "cond"), shared([*values, *captures]))[0]))
        round_.next = state.take(lower.region(_region(node, "body"), [*values, *captures]))
    return state.inside(round_.results)


def branch(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    """By a bool, or by number as a chain of comparisons; tensors go into buffers that both sides write.

    Where a side gives back a tensor from before the branch, changed or not, the result lies in that tensor's
    buffer, so that a side which changes nothing does nothing.
    """
    regions = cast("tuple[Region, ...]", node.attr("regions"))
    captures, emit = shared(args[1:]), lower.emit
    selector = cast(Operand, args[0])
    targets: list[View | None] = []
    for k, kind in enumerate(node.types):
        adopted = _adopted(lower, regions, k, args[1:], captures) if isinstance(kind, TensorType) else None
        targets.append(adopted or (lower.new(kind) if isinstance(kind, TensorType) else None))
    scalars = [kind for kind in node.types if is_scalar(kind)]

    def arm(number: int) -> list[Operand]:
        return settle(lower, targets, lower.region(regions[number], captures))

    def chosen(number: int) -> list[Operand]:
        """The arm of this number or a later one."""
        if number == len(regions) - 1:
            return arm(number)
        if isinstance(selector.type, BoolType):
            return emit.branch(selector, scalars, lambda: arm(1), lambda: arm(0))
        limit = type_interval(selector.type)
        assert limit is not None
        if number > limit.high:
            return arm(number)
        here = emit.op("compare.eq", selector, literal(selector.type, number))
        return emit.branch(here, scalars, lambda: arm(number), lambda: chosen(number + 1))

    values = iter(chosen(0))
    return [next(values) if target is None else target for target in targets]


def _adopted(
    lower: Lowering, regions: Sequence[Region], result: int, given: Sequence[Value], captures: list[Value]
) -> View | None:
    """The buffer of the tensor that a result goes back to, for the sides to overwrite; or a copy of it.

    A copy is worth while if all sides go back to it: each would make one of its own.
    """
    sources = [_source(region, region.results[result]) for region in regions]
    for source, count in Counter(item for item in sources if item is not None).most_common():
        value = given[source]
        if not isinstance(value, View) or captures[source] != replace(value, owned=False):
            continue  # another result lies in it
        others = [*given[:source], *given[source + 1 :]]
        if not lower.obstacle(value, others) or count == len(regions):
            captures[source] = adopted = lower.owned(value, others)
            return adopted
    return None


def _source(region: Region, ref: Ref) -> int | None:
    """The parameter of which a result is an update; None where it is made of more than one tensor."""
    while True:
        node = ref.node
        match node.opcode:
            case "core.param":
                return _int(node, "index")
            case "tensor.update" | "tensor.update_slice" | "tensor.shift_in" | "memory.transfer":
                ref = node.inputs[0]
            case "control.loop" | "control.while" | "control.scan" if ref.index < _int(node, "carried"):
                ref = node.inputs[ref.index]
            case "control.call":
                inner = _region(node)
                place = _source(inner, inner.results[ref.index])
                if place is None:
                    return None
                ref = node.inputs[place]
            case "control.branch":
                inner = cast("tuple[Region, ...]", node.attr("regions"))
                places = {_source(part, part.results[ref.index]) for part in inner}
                if len(places) != 1 or None in places:
                    return None
                (place,) = places
                ref = node.inputs[1 + cast(int, place)]
            case _:
                return None


def map_(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    arity, region = _int(node, "arity"), _region(node)
    sources, captures = args[:arity], shared(args[arity:])
    targets = [lower.new(kind) for kind in node.types]
    shape = next(source.shape for source in sources if isinstance(source, View))
    with lower.emit.nest(shape) as variables:
        index = [of_var(var) for var in variables]
        elements: list[Value] = [lower.read(source, index) for source in sources]
        for target, result in zip(targets, lower.region(region, [*elements, *captures])):
            _put(lower, target, index, result)
    return list(targets)


def _put(lower: Lowering, target: View, index: Sequence[Affine], result: Value) -> None:
    """A body's result into its place of a tensor that has axes for ``index`` first."""
    for at in index:
        if isinstance(result, View) or len(target.shape) > 1:
            target = target.row(at)
            continue
        lower.write(target, [at], result)
        return
    assert isinstance(result, View)
    lower.copy_into(target, result)


def scan(lower: Lowering, node: Node, args: list[Value]) -> list[Value]:
    carried, items, length = (_int(node, name) for name in ("carried", "items", "length"))
    outs = [lower.new(kind) for kind in node.types[carried:]]
    if not length:
        return [*args[:carried], *outs]
    rows = [cast(View, arg) for arg in shared(args[carried : carried + items])]
    state, captures = State(lower, args, carried), shared(args[carried + items :])
    with lower.emit.loop(length, state.scalars) as round_:
        at = of_var(round_.index)
        taken: list[Value] = [
            row.row(at) if len(row.shape) > 1 else lower.read(row, [at]) for row in rows
        ]
        results = lower.region(_region(node), [*state.inside(round_.inner), *taken, *captures])
        for out, result in zip(outs, results[carried:]):
            _put(lower, out, [at], result)
        round_.next = state.take(results[:carried])
    return [*state.inside(round_.results), *outs]


RULES: dict[str, Rule] = {
    "control.call": call, "control.loop": loop, "control.while": while_, "control.branch": branch,
    "control.map": map_, "control.scan": scan,
}
