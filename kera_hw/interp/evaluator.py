"""Evaluates regions on batches: nodes in topological order, each value dropped after its last use.

A value that is the same in every lane shows it by a zero batch stride; an operation on such values alone
is evaluated once, in a batch of one. The order of nodes and the place of every value are worked out once
for each region (``compile_region``) and kept.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from kera_hw.graph.node import Node, Ref, Region
from kera_hw.interp.memories import Memory, needs_of
from kera_hw.interp.rounds import MOST_ELEMENTS, Loop, Update, taken_apart
from kera_hw.ops.registry import OPS, evaluation
from kera_hw.ops.running import repeated
from kera_hw.ops.spec import Array, Attrs, EvalCall, EvaluateRule, RegionLike
from kera_hw.support import toposort
from kera_hw.types import Type, shape_of

CACHED_REGIONS = 4096
_LEAST_ROUNDS_AN_ITEM = 4
"""For each item of a batch, that make up for items that go one by one."""


class NodeStep(NamedTuple):
    """One node made ready: its rule, where operands are and results go, and what dies after it."""

    evaluate: EvaluateRule
    operands: tuple[int, ...]
    arg_types: tuple[Type, ...]
    types: tuple[Type, ...]
    attrs: Attrs
    first_out: int
    dying: tuple[int, ...]
    use: Use


class Use(Enum):
    """What a step does with memory that is updated in place."""

    NONE = "none"
    READ = "read"  # takes out a copy
    WRITE = "write"


def _step(
    node: Node, operands: tuple[int, ...], first_out: int, dying: tuple[int, ...], use: Use
) -> NodeStep:
    arg_types = tuple(ref.type for ref in node.inputs)
    evaluate = evaluation(node.opcode, arg_types, node.types)
    loop = taken_apart(node) if node.opcode == "control.loop" else None
    if loop is not None:
        evaluate = _AllRounds(loop, evaluate).evaluate
    return NodeStep(evaluate, operands, arg_types, node.types, dict(node.attrs), first_out, dying, use)


class Tape:
    """Some values of a region made ready for evaluation, with its constants at the batch size used last.

    ``given`` are the values it starts from, in the order of the arguments; without it the parameters.
    ``memories`` are those of them that may be updated in place (``find_memories``).
    """

    __slots__ = (
        "_constants", "_constants_batch", "_sources", "params", "results", "slots", "steps",
        "widest",
    )

    def __init__(
        self, results: Sequence[Ref], given: Sequence[Ref] | None = None, memories: Iterable[Memory] = ()
    ) -> None:
        outside = frozenset(given or ())
        uses = {node: Use.READ for memory in memories for node in memory.readers}
        uses.update({node: Use.WRITE for memory in memories for node in memory.writers})
        nodes = toposort(
            [ref.node for ref in results if ref not in outside], needs_of(outside, memories)
        )
        places: dict[Node, int] = {}
        self.slots = len(outside)
        for node in nodes:
            places[node] = self.slots
            self.slots += len(node.types)
        arguments = {ref: place for place, ref in enumerate(dict.fromkeys(given or ()))}

        def place_of(ref: Ref) -> int:
            return arguments[ref] if ref in arguments else places[ref.node] + ref.index

        self.results = tuple(place_of(ref) for ref in results)
        last_use: dict[int, Node] = {}
        for node in nodes:
            for ref in node.inputs:
                last_use[place_of(ref)] = node
        for slot in self.results:
            last_use.pop(slot, None)
        dying: dict[Node, list[int]] = {}
        for slot, node in last_use.items():
            dying.setdefault(node, []).append(slot)
        self.params: list[tuple[int, int]] = [(arguments[ref], k) for k, ref in enumerate(given or ())]
        self._sources: list[NodeStep] = []
        self.steps: list[NodeStep] = []
        for node in nodes:
            if node.opcode == "core.param":
                index = node.attr("index")
                assert isinstance(index, int) and given is None, "a parameter that is not given"
                self.params.append((places[node], index))
                continue
            operands = tuple(place_of(ref) for ref in node.inputs)
            step = _step(node, operands, places[node], tuple(dying.get(node, ())), uses.get(node, Use.NONE))
            (self._sources if node.opcode == "core.constant" else self.steps).append(step)
        kinds = [kind for node in nodes for kind in node.types]
        self.widest = max((prod(shape_of(kind)) for kind in kinds), default=0)  # elements of a value
        self._constants: list[tuple[int, Array]] = []
        self._constants_batch = -1

    def constants(self, context: Context) -> list[tuple[int, Array]]:
        """(place, value) of each constant in the context's batch."""
        if self._constants_batch != context.batch:
            self._constants = [
                (step.first_out, step.evaluate(EvalCall(context, (), (), step.types, step.attrs))[0])
                for step in self._sources
            ]
            self._constants_batch = context.batch
        return self._constants


@lru_cache(maxsize=CACHED_REGIONS)
def compile_region(region: Region) -> Tape:
    """The region's program; regions are compared by identity."""
    return Tape(region.results)


class _AllRounds:
    """A loop whose rounds are lanes, an item of the batch after another; as it stands for few rounds."""

    def __init__(self, loop: Loop, by_rounds: EvaluateRule) -> None:
        self._loop, self._by_rounds = loop, by_rounds

    def evaluate(self, call: EvalCall) -> Sequence[Array]:
        loop, carried, batch = self._loop, len(self._loop.chains), call.context.batch
        if loop.count < _LEAST_ROUNDS_AN_ITEM * batch:
            return self._by_rounds(call)
        found = [np.array(np.broadcast_to(one, (batch, *one.shape[1:]))) for one in call.args[:carried]]
        piece = max(1, MOST_ELEMENTS // max(loop.size, 1))
        for item in range(batch):
            row = [one[:1] if one.shape[0] == 1 else one[item : item + 1] for one in call.args[carried:]]
            targets = [one[item].reshape(-1) for one in found]  # views
            for first in range(0, loop.count, piece):
                counters = loop.counters[first : first + piece]
                for target, (places, values) in zip(targets, _written(loop, counters, row)):
                    target[places.reshape(-1)] = values.reshape(-1)  # of equal places the last value stays
        return found


def _written(loop: Loop, counters: Array, captures: Sequence[Array]) -> list[tuple[Array, Array]]:
    """For each tensor carried, where rounds write and what, of shape (lanes, elements): a row is what rounds
    do in turn. ``captures`` have a row for each lane, or one for all."""
    lanes = len(counters)
    rows = [np.broadcast_to(one, (lanes, *one.shape[1:])) if one.shape[0] == 1 else one for one in captures]
    args = [counters, *(_NOTHING for _ in loop.chains), *rows]
    values = [
        np.broadcast_to(one, (lanes, *one.shape[1:])) for one in Context(lanes).execute(_tape_of(loop), args)
    ]
    inside: dict[Loop, list[tuple[Array, Array]]] = {}
    found: list[tuple[Array, Array]] = []
    for chain in loop.chains:
        parts: list[tuple[Array, Array]] = []
        for link in chain:
            if isinstance(link, Update):
                places = link.places([values[k] for k in link.starts], lanes)
                parts.append((places, values[link.value].reshape(lanes, -1)))
                continue
            inner = link.loop
            if inner not in inside:
                given = [repeated(values[k], inner.count, lanes * inner.count) for k in link.captures]
                made = _written(inner, np.tile(inner.counters, lanes), given)
                inside[inner] = [(a.reshape(lanes, -1), b.reshape(lanes, -1)) for a, b in made]
            parts.append(inside[inner][link.number])
        if len(parts) == 1:
            found += parts
        elif parts:
            found.append((np.hstack([one for one, _ in parts]), np.hstack([one for _, one in parts])))
        else:
            found.append((np.empty((lanes, 0), np.intp), np.empty((lanes, 0))))
    return found


@lru_cache(maxsize=CACHED_REGIONS)
def _tape_of(loop: Loop) -> Tape:
    return Tape(loop.needed)


class Context:
    """Evaluation at one batch size: what evaluate rules see."""

    __slots__ = ("_single", "batch")

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self._single: Context | None = self if batch == 1 else None

    def single(self) -> Context:
        """The context of a batch of one."""
        if self._single is None:
            self._single = Context(1)
        return self._single

    def run(self, region: RegionLike, args: Sequence[Array], batch: int | None = None) -> list[Array]:
        """The region's results on batch-first arguments; ``batch`` where it differs from the current."""
        assert isinstance(region, Region)
        context = self if batch is None or batch == self.batch else Context(batch)
        return context.execute(compile_region(region), args)

    def execute(self, program: Tape, args: Sequence[Array]) -> list[Array]:
        """The results of a compiled region."""
        values: list[Array] = [_NOTHING] * program.slots
        for slot, index in program.params:
            values[slot] = args[index]
        for slot, value in program.constants(self):
            values[slot] = value
        many = self.batch > 1
        for step in program.steps:
            evaluate, places, arg_types, types, attrs, place, dying, use = step
            operands = tuple([values[slot] for slot in places])
            if many and _same_in_all_lanes(operands):
                outs = self._once(step, operands)
            else:
                outs = evaluate(EvalCall(self, operands, arg_types, types, attrs, use is Use.WRITE))
            if use is Use.READ:
                outs = [out if out.base is None else out.copy() for out in outs]
            for out in outs:
                values[place] = out
                place += 1
            for slot in dying:
                values[slot] = _NOTHING
        return [values[slot] for slot in program.results]

    def _once(self, step: NodeStep, operands: tuple[Array, ...]) -> list[Array]:
        """A step whose operands are the same in every lane."""
        rows = tuple([operand[:1] for operand in operands])
        outs = step.evaluate(EvalCall(self.single(), rows, step.arg_types, step.types, step.attrs))
        return [np.broadcast_to(out, (self.batch, *out.shape[1:])) for out in outs]


_NOTHING: Array = np.empty(0, np.bool_)


def _same_in_all_lanes(operands: tuple[Array, ...]) -> bool:
    return all(operand.strides[0] == 0 for operand in operands)


def run_region(region: Region, args: Sequence[Array], batch: int) -> list[Array]:
    """The region's results on canonical batch-first arguments, ``batch >= 1`` lanes.

    Results may be read-only views.
    """
    return Context(batch).execute(compile_region(region), args)


def run_operation(
    opcode: str, args: Sequence[Array], arg_types: tuple[Type, ...], attrs: Attrs
) -> tuple[tuple[Type, ...], Sequence[Array]]:
    """The result types and results of one operation on canonical operands, each a batch of one."""
    types = OPS[opcode].infer(arg_types, attrs)
    call = EvalCall(Context(1), tuple(args), arg_types, types, attrs)
    return types, evaluation(opcode, arg_types, types)(call)
