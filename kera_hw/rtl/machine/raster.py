"""A program of stencils as stages that run in step: every tensor's elements, an element a round.

Rounds walk through a space of as many axes as the tensors have, row after row. A *node* is what a tensor
holds after one of the nests that write it: element ``e`` along an axis is there in round
``step * e + shift``. A stage that reads other nodes at constant places relative to its own finds each a
constant number of rounds back, so that no tensor is ever there as a whole: what is between is a window of
registers and whole rows. Shifts are the least along every axis for which nothing is read before it is made.

A tensor written several times (filled first, then its inside computed) is a chain of nodes: each has its own
elements in its box, those of the node before elsewhere. A stage may read what it wrote itself in earlier
rounds.

The schedule is affine with one dimension a loop, as in Feautrier, "Some efficient solutions to the affine
scheduling problem" (1992), with the coefficients given by the accesses; rows between stages are the line
buffers of Darkroom (Hegarty et al., "Darkroom: compiling high-level image processing code into hardware
pipelines", 2014).
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from kera_hw.loops.program import (
    Alloc,
    Block,
    Buffer,
    For,
    Load,
    LoopProgram,
    Operand,
    Statement,
    Store,
    Var,
    statements,
)
from kera_hw.rtl.machine.parts import operation_count
from kera_hw.types import bit_width

MOST_STEPS = 4096
"""Statements of a stage's round, loops inside unrolled."""
MOST_BEFORE = 1024
"""Elements of a tensor up to which it may be computed before all stages, and lies in registers."""
MOST_SPARE = 1.5
"""Rounds for each element of the largest tensor at the ports beyond which shapes do not belong together."""


class NoRaster(Exception):
    """Why a program is none of stencils, as a whole sentence. Stays in the package."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One store with all that leads to it: ``body`` runs for every element of a box.

    By axis: the counter (None where the store names one place), how often it counts, and how far the element
    lies beyond it. ``ordered``: whether rounds come in the order of the nest.
    """

    target: str
    counters: tuple[Var | None, ...]
    counts: tuple[int, ...]
    offsets: tuple[int, ...]
    body: tuple[Statement, ...]
    value: Operand
    ordered: bool
    loop: For
    still: tuple[Var, ...] = ()
    """Counters of loops of a single round that the store does not name."""


@dataclass(frozen=True, slots=True)
class Stencils:
    """The stages in order, the tensors that pass through them by name, and code that runs before."""

    program: LoopProgram
    before: tuple[Statement, ...]
    stages: tuple[Stage, ...]
    streamed: Mapping[str, Buffer]

    @property
    def rank(self) -> int:
        """Axes of the rounds' space."""
        return max(len(kept_axes(buffer)) for buffer in self.streamed.values())

    def inputs(self) -> list[Buffer]:
        """Tensors that come in beats."""
        return [buffer for buffer in self.streamed.values() if buffer.kind == "param"]

    def outputs(self) -> list[Buffer]:
        """Tensors that leave in beats."""
        return [buffer for buffer in self.streamed.values() if buffer.kind == "result"]


def kept_axes(buffer: Buffer) -> list[int]:
    """The axes of more than one element; others are always at 0."""
    return [axis for axis, extent in enumerate(buffer.shape) if extent != 1]


def extents(buffer: Buffer, rank: int) -> tuple[int, ...]:
    """Elements along each axis of the rounds' space."""
    own = [buffer.shape[axis] for axis in kept_axes(buffer)]
    return (*own, *[1] * (rank - len(own)))


def stencils_of(program: LoopProgram, small_bits: int) -> Stencils:
    """The stages of a program; tensors at the ports are streamed beyond ``small_bits``. Raises NoRaster."""
    if program.of_kind("state"):
        raise NoRaster(f"`{program.name}` keeps state.")
    buffers = {buffer.name: buffer for buffer in program.buffers}
    buffers |= {item.buffer.name: item.buffer for item in program.body.body if isinstance(item, Alloc)}
    streamed = {
        buffer.name for buffer in program.buffers
        if buffer.kind == "result" or
        (buffer.kind == "param" and buffer.shape and buffer.size * bit_width(buffer.element) > small_bits)
    }
    if not any(buffer.kind == "param" for buffer in map(buffers.__getitem__, streamed)):
        raise NoRaster(f"`{program.name}` takes no tensor in beats.")
    for name, buffer in buffers.items():  # the first of them is the reason, in every process
        if name not in streamed:
            continue
        if buffer.size * bit_width(buffer.element) <= small_bits:
            raise NoRaster(f"The result `{name}` is small.")
        if buffer.name.count(".") > 1:
            raise NoRaster(f"A tensor of structs at a port of `{program.name}`.")
    body = program.body.body
    while True:  # what is made of a streamed tensor is one
        more = {
            name for item in body if _names(item, Load) & streamed or _names(item, Store) & streamed
            for name in _names(item, Store) if name in buffers
        } - streamed
        more |= {
            name for item in body if (_names(item, Load) | _names(item, Store)) & streamed
            for name in _names(item, Load) - streamed
            if name in buffers and buffers[name].kind == "temp" and buffers[name].size > MOST_BEFORE
        }
        if not more:
            break
        streamed |= more
    before: list[Statement] = []
    stages: list[Stage] = []
    ordered = {name: buffer for name, buffer in buffers.items() if name in streamed}
    rank = max(len(kept_axes(buffer)) for buffer in ordered.values())
    for item in body:
        if isinstance(item, Alloc) and item.buffer.name in streamed:
            continue
        if not (_names(item, Load) | _names(item, Store)) & streamed:
            before.append(item)
        elif isinstance(item, For):
            stages += _Peel(ordered, rank).nest(item)
        else:
            raise NoRaster("A tensor is reached outside of loops.")
    if operation_count_of(before) > MOST_STEPS:
        raise NoRaster("Too much is computed before the first stage.")
    return Stencils(program, tuple(before), tuple(stages), ordered)


def operation_count_of(body: Sequence[Statement]) -> int:
    """Operations of statements, loops counted out."""
    return sum(
        operation_count(item) if isinstance(item, For) else 1 for item in body
    )


class _Peel:
    """Takes a nest apart into stages, one a store."""

    def __init__(self, streamed: Mapping[str, Buffer], rank: int) -> None:
        self._streamed, self._rank = streamed, rank

    def nest(self, loop: For) -> list[Stage]:
        found = list(self._stages(loop, (), ()))
        targets = [stage.target for stage in found]
        if len(targets) != len(set(targets)):
            raise NoRaster("One loop writes a tensor in two places.")
        if len(found) > 1:
            read = {name for stage in found for item in stage.body for name in _names(item, Load)}
            if read & set(targets):  # which of them a round sees would hang on the order of its statements
                raise NoRaster("A loop reads what it writes, and writes more than one tensor.")
        return found

    def _stages(
        self, loop: For, around: tuple[For, ...], before: tuple[Statement, ...]
    ) -> Iterator[Stage]:
        if loop.carried:
            raise NoRaster(f"The loop `{loop.var.name}` carries values from round to round.")
        loops, sofar, made = (*around, loop), before, 0
        for item in loop.body.body:
            stored = _names(item, Store) & self._streamed.keys()
            if not stored:
                sofar = (*sofar, item)
            elif isinstance(item, Store):
                yield self._stage(item, loops, sofar)
                made += 1
            elif isinstance(item, For):
                yield from self._stages(item, loops, sofar)
                made += 1
            else:
                raise NoRaster(f"`{min(stored)}` is written under a condition.")

    def _stage(self, store: Store, loops: tuple[For, ...], body: tuple[Statement, ...]) -> Stage:
        buffer = self._streamed[store.buffer]
        counts = {loop.var: loop.count for loop in loops}
        counters: list[Var | None] = []
        offsets: list[int] = []
        for axis in kept_axes(buffer):
            part = store.index[axis]
            if len(part.terms) > 1 or any(step != 1 or var not in counts for var, step in part.terms):
                raise NoRaster(f"`{store.buffer}` is not written an element after the other.")
            counters.append(part.terms[0][0] if part.terms else None)
            offsets.append(part.constant)
        used = [var for var in counters if var is not None]
        if len(used) != len(set(used)) or any(loop.count > 1 and loop.var not in used for loop in loops):
            raise NoRaster(f"`{store.buffer}` is not written once by each round.")
        if operation_count_of(body) > MOST_STEPS:
            raise NoRaster(f"A round that writes `{store.buffer}` is too large to be unrolled.")
        order = [var for var in (loop.var for loop in loops) if var in used]
        spare = self._rank - len(counters)
        counters, offsets = [*counters, *[None] * spare], [*offsets, *[0] * spare]
        return Stage(
            store.buffer, tuple(counters), tuple(1 if var is None else counts[var] for var in counters),
            tuple(offsets), body, store.value, order == used, loops[0],
            tuple(loop.var for loop in loops if loop.var not in used),
        )


def _names(statement: Statement, what: type[Load] | type[Store]) -> set[str]:
    return {item.buffer for item in statements(Block((statement,))) if isinstance(item, what)}


# When everything happens


@dataclass(frozen=True, slots=True)
class Access:
    """A read of a node: by axis, element ``factor * e + offset`` for a stage's own element ``e``.

    Where the stage has one element alone along an axis the factor is 0.
    """

    node: int
    factors: tuple[int, ...]
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A tensor after one of its stages, or as it comes in (``stage`` is None): when each element is there.

    ``box`` has by axis the first and the last element that the stage writes; ``older`` is the node that has
    the others.
    """

    buffer: Buffer
    stage: int | None
    older: int | None
    box: tuple[tuple[int, int], ...]
    extents: tuple[int, ...]
    steps: tuple[int, ...] = ()
    shifts: tuple[int, ...] = ()

    @property
    def spans(self) -> list[tuple[int, int]]:
        """By axis the first round and the last in which an element is there."""
        return [
            (shift, shift + step * (extent - 1))
            for extent, step, shift in zip(self.extents, self.steps, self.shifts)
        ]

    def rounds_of_box(self) -> list[tuple[int, int]]:
        """By axis the first round and the last of the stage's own elements."""
        return [
            (low * step + shift, high * step + shift)
            for (low, high), step, shift in zip(self.box, self.steps, self.shifts)
        ]


@dataclass(frozen=True, slots=True)
class Raster:
    """Stages with their rounds: ``counts`` of the loops that walk through these, from the outside in."""

    stencils: Stencils
    nodes: tuple[Node, ...]
    counts: tuple[int, ...]
    alone: frozenset[int] = frozenset()
    """Nodes that read no other: an element of theirs is computed anew wherever it is wanted."""

    @property
    def rounds(self) -> int:
        """Rounds of an item."""
        return prod(self.counts)

    def latest(self, name: str) -> int:
        """The node that a tensor is at last."""
        return max(k for k, node in enumerate(self.nodes) if node.buffer.name == name)

    def number(self, place: Sequence[int]) -> int:
        """Which round it is, from its place along the axes."""
        total = 0
        for count, part in zip(self.counts, place):
            total = total * count + part
        return total


def nodes_of(stencils: Stencils) -> list[Node]:
    """The nodes, each behind those that it may read; times are not known yet."""
    rank, found = stencils.rank, list[Node]()
    latest: dict[str, int] = {}
    for buffer in stencils.inputs():
        whole = extents(buffer, rank)
        latest[buffer.name] = len(found)
        found.append(Node(buffer, None, None, tuple((0, n - 1) for n in whole), whole))
    for number, stage in enumerate(stencils.stages):
        buffer = stencils.streamed[stage.target]
        whole = extents(buffer, rank)
        box = tuple((low, low + count - 1) for low, count in zip(stage.offsets, stage.counts))
        covers = all(low == 0 and high == n - 1 for (low, high), n in zip(box, whole))
        found.append(Node(buffer, number, None if covers else latest.get(buffer.name), box, whole))
        latest[buffer.name] = len(found) - 1
    return found


def scheduled(stencils: Stencils, nodes: Sequence[Node], reads: Sequence[Sequence[Access]]) -> Raster:
    """The rounds of all nodes, from what each reads. Raises NoRaster where there are none such."""
    rank = stencils.rank
    steps = _steps(stencils, nodes, reads)
    made: list[Node] = []
    for number, bare in enumerate(nodes):
        node = replace(bare, steps=steps[bare.buffer.name], shifts=(0,) * rank)
        shifts = [0] * rank if node.older is None else list(made[node.older].shifts)
        for access in reads[number]:
            if access.node != number:
                due = _due(access, node, made[access.node])
                shifts = [max(pair) for pair in zip(shifts, due)]
        node = replace(node, shifts=tuple(shifts))
        for access in reads[number]:
            if access.node == number and not _is_before(back_of(access, node, node)):
                raise NoRaster(f"A round that writes `{node.buffer.name}` reads what it writes later.")
        made.append(node)
    made = _late_inputs(made, reads)
    counts = tuple(1 + max(node.spans[axis][1] for node in made) for axis in range(rank))
    alone = frozenset(
        k for k, node in enumerate(made) if node.stage is not None and not reads[k] and node.older is None
    )
    found = Raster(stencils, tuple(made), counts, alone)
    largest = max(node.buffer.size for node in made if node.buffer.kind in ("param", "result"))
    if found.rounds > MOST_SPARE * largest + 64:
        raise NoRaster("The tensors at the ports do not run in step.")
    return found


def back_of(access: Access, reader: Node, read: Node) -> tuple[int, ...]:
    """How many rounds along each axis lie between an element and its reader."""
    return tuple(late - due for late, due in zip(reader.shifts, _due(access, reader, read)))


def _due(access: Access, reader: Node, read: Node) -> list[int]:
    """By axis the least shift of a reader."""
    found: list[int] = []
    for axis, (factor, offset) in enumerate(zip(access.factors, access.offsets)):
        place = offset * read.steps[axis] + read.shifts[axis]
        found.append(place if factor else place - reader.box[axis][0] * reader.steps[axis])
    return found


def _is_before(back: Sequence[int]) -> bool:
    return all(part >= 0 for part in back) and any(back)


def _steps(
    stencils: Stencils, nodes: Sequence[Node], reads: Sequence[Sequence[Access]]
) -> dict[str, tuple[int, ...]]:
    """By tensor and axis how many rounds lie between its elements: 1 for tensors that come in."""
    rank = stencils.rank
    known: dict[str, list[int]] = {buffer.name: [1] * rank for buffer in stencils.inputs()}
    sure = {(name, axis) for name in known for axis in range(rank)}
    while True:
        before = len(sure)
        for node, accesses in zip(nodes, reads):
            name = node.buffer.name
            for access in accesses:
                source = nodes[access.node].buffer.name
                for axis, factor in enumerate(access.factors):
                    if not factor or (source, axis) not in sure:
                        continue
                    step = factor * known[source][axis]
                    if (name, axis) not in sure:
                        sure.add((name, axis))
                        known.setdefault(name, [1] * rank)[axis] = step
                    elif known[name][axis] != step:
                        raise NoRaster(f"Elements of `{name}` are wanted at two paces.")
        if len(sure) == before:
            break
    found = {node.buffer.name: tuple(known.get(node.buffer.name, [1] * rank)) for node in nodes}
    if any(step < 1 or step & (step - 1) for steps in found.values() for step in steps):
        raise NoRaster("A tensor is read at every so many-th element, which is no power of two.")
    return found


def _late_inputs(nodes: Sequence[Node], reads: Sequence[Sequence[Access]]) -> list[Node]:
    """Tensors that are wanted later come in later, so that less is kept; the first of them at once."""
    found = list(nodes)
    inputs = [k for k, node in enumerate(nodes) if node.stage is None]
    spare: dict[int, tuple[int, ...]] = {}
    for k in inputs:
        backs = [
            back_of(access, nodes[reader], nodes[k])
            for reader, accesses in enumerate(reads) for access in accesses if access.node == k
        ]
        if backs:
            spare[k] = tuple(map(min, zip(*backs)))
    if all(any(spare.get(k, (0,))) for k in inputs):
        spare.pop(inputs[0], None)
    for k, parts in spare.items():
        found[k] = replace(found[k], shifts=tuple(a + b for a, b in zip(found[k].shifts, parts)))
    return found
