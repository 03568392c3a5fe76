"""A program as regions that run one after another: nests of loops that stay loops, and straight code.

A nest is a loop, or loops one inside another with code around the inner one: all of it is one pipeline, whose
rounds are those of the innermost loop. Straight code that touches no memory joins the region that follows it,
or that which it follows at the program's end; other straight code is a region of one round.
"""
from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kera_hw.loops.access_order import linear
from kera_hw.loops.contents import defined, indexing, used
from kera_hw.loops.program import (
    Affine,
    Alloc,
    Block,
    Buffer,
    For,
    Load,
    LoopProgram,
    Op,
    Statement,
    Store,
    Var,
    While,
    of_var,
    statements,
)
from kera_hw.rtl.lower import ports
from kera_hw.rtl.machine.parts import operation_count
from kera_hw.rtl.machine.tidy import tidied
from kera_hw.support import Diagnostic
from kera_hw.types import bit_width

MOST_UNROLLED = 64
"""Operations up to which a loop that touches no memory is unrolled; a controller costs as much."""


class NoProcess(Exception):
    """Why a program is not a sequence of such regions; carries the diagnostic. Stays in the package."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.diagnostic = Diagnostic("K0610", why)


@dataclass(frozen=True, slots=True)
class Level:
    """A loop of a nest; ``inside`` is where the next one stands in its body, None in the innermost."""

    loop: For
    inside: int | None
    rests: bool = False
    """Whether its last round is one more, in which what stands behind it works: of the innermost alone."""

    @property
    def rounds(self) -> int:
        return self.loop.count + self.rests


@dataclass(frozen=True, slots=True)
class Nest:
    """A region: code before, the loops from the outside in (none in straight code), code after."""

    before: tuple[Statement, ...]
    levels: tuple[Level, ...]
    after: tuple[Statement, ...] = ()

    @property
    def rounds(self) -> int:
        """Rounds of the innermost loop in all."""
        found = 1
        for level in self.levels:
            found *= level.rounds
        return found

    @property
    def rests(self) -> bool:
        """Whether the innermost loop has a round more than are counted."""
        return any(level.rests for level in self.levels)

    @property
    def body(self) -> Block:
        """All of its statements."""
        loops = (self.levels[0].loop,) if self.levels else ()
        return Block((*self.before, *loops, *self.after))


@dataclass(frozen=True, slots=True)
class Group:
    """Regions ``first`` to ``last`` run in turn for every round of a loop around them."""

    loop: For
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Regions:
    """The regions in order, the loops around several of them, and the buffers that are memories.

    ``side_by_side`` are loops within rounds, of which all rounds run at once.
    """

    program: LoopProgram
    nests: tuple[Nest, ...]
    groups: tuple[Group, ...]
    memories: tuple[Buffer, ...]
    side_by_side: frozenset[str] = frozenset()
    streams: tuple[tuple[Buffer, int], ...] = ()
    """Parameters that one region takes an element a round, as they come: no memory has them."""

    def without_streams(self) -> Regions:
        """With memories for everything large that comes in."""
        return replace(self, memories=(*self.memories, *(item for item, _ in self.streams)), streams=())

    @property
    def rests(self) -> bool:
        """Whether code behind loops has rounds of its own."""
        return any(nest.rests for nest in self.nests)

    def around(self, number: int) -> list[Group]:
        """The loops around a region."""
        return [group for group in self.groups if group.first <= number <= group.last]


def nests_of(
    program: LoopProgram, side_by_side: frozenset[str] = frozenset(), rests: bool = False
) -> Regions:
    """The regions of a program; loops ``side_by_side`` are unrolled in any case. Raises NoProcess.

    ``rests``: where code behind an innermost loop computes, it has a round of its own, if no memory is
    written in the loop.
    """
    program = tidied(program)
    memories = {buffer.name: buffer for buffer in _memories(program)}
    while True:
        split = _Split(memories, side_by_side)
        try:
            split.run(program.body.body)
            break
        except _MoreMemories as found:
            memories |= {buffer.name: buffer for buffer in found.buffers}
    nests = [_resting(nest, memories.keys()) for nest in split.nests] if rests else split.nests
    found = _streamed(Regions(
        program, tuple(nests), tuple(split.groups), tuple(memories.values()), side_by_side
    ))
    for buffer in program.of_kind("result"):
        users = [
            number for number, nest in enumerate(found.nests)
            if any(buffer.name in touched(nest, what) for what in (Load, Store))
        ]
        # Registers of a region hold it, which begin again whenever the region runs.
        if buffer.name not in memories and (len(users) > 1 or any(map(found.around, users))):
            raise NoProcess(f"A small result of `{program.name}` is written by several runs of regions.")
    return found


def _streamed(regions: Regions) -> Regions:
    """Parameters that are read once, whole and in order, by one region, are no memories; one of each region.

    Both orders are row-major, so that the channel itself is the FIFO: what is not taken yet has not come.
    """
    streams: dict[int, Buffer] = {}
    for buffer in regions.memories:
        readers = [k for k, nest in enumerate(regions.nests) if buffer.name in touched(nest, Load)]
        if buffer.kind != "param" or len(readers) != 1 or regions.around(readers[0]):
            continue
        nest = regions.nests[readers[0]]
        known = streams.get(readers[0])
        if _reads_in_order(nest, buffer) and (known is None or known.size < buffer.size):
            streams[readers[0]] = buffer
    names = {buffer.name for buffer in streams.values()}
    memories = tuple(buffer for buffer in regions.memories if buffer.name not in names)
    return replace(regions, memories=memories, streams=tuple((b, k) for k, b in streams.items()))


def _reads_in_order(nest: Nest, buffer: Buffer) -> bool:
    """Whether every round reads the element of its own number, and nothing else does."""
    loads = [item for item in statements(nest.body) if isinstance(item, Load) and item.buffer == buffer.name]
    if len(loads) != 1 or not nest.levels or nest.rests or nest.rounds != buffer.size:
        return False
    innermost = nest.levels[-1].loop.body.body
    place, number, step = linear(loads[0].index, buffer.shape), Affine(), 1
    for level in reversed(nest.levels):
        number, step = number + of_var(level.loop.var) * step, step * level.loop.count
    still = {level.loop.var: Affine() for level in nest.levels if level.loop.count == 1}
    rest = (place - number).replace(still)
    return any(item is loads[0] for item in innermost) and rest == Affine()


def _resting(nest: Nest, memories: Collection[str]) -> Nest:
    """The nest with a round for what stands behind its innermost loop, where that pays."""
    if not nest.levels:
        return nest
    *around, last = nest.levels
    behind = nest.after
    if around:
        inside = around[-1].inside
        assert inside is not None
        behind = around[-1].loop.body.body[inside + 1 :]
    writes = any(isinstance(item, Store) and item.buffer in memories for item in statements(last.loop.body))
    if writes or last.loop.count < 2 or not computes(behind):
        return nest
    return replace(nest, levels=(*around, replace(last, rests=True)))


def computes(body: Sequence[Statement]) -> bool:
    """Whether statements do more than hand values on."""
    return any(isinstance(item, Op) for item in statements(Block(tuple(body))))


def _memories(program: LoopProgram) -> Iterator[Buffer]:
    """Tensors at the ports that are too large for registers, and those between regions."""
    for buffer in program.buffers:
        if buffer.kind == "state":
            raise NoProcess(f"`{program.name}` keeps state.")
        large = buffer.size * bit_width(buffer.element) > ports.WIDEST_VALUE_BITS
        if buffer.kind in ("param", "result") and large:
            yield buffer
    for statement in program.body.body:
        if isinstance(statement, Alloc):
            yield statement.buffer


class _MoreMemories(Exception):
    """Buffers that lie between regions as well."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        super().__init__()
        self.buffers = buffers


class _Split:
    def __init__(self, memories: Mapping[str, Buffer], side_by_side: frozenset[str]) -> None:
        self._memories = memories
        self._side_by_side = side_by_side
        self._before: list[Statement] = []
        self.nests: list[Nest] = []
        self.groups: list[Group] = []

    def run(self, body: Sequence[Statement]) -> None:
        for statement in body:
            if isinstance(statement, Alloc) and statement.buffer.name in self._memories:
                continue
            if isinstance(statement, For) and self._keeps(statement):
                self._close_touching()
                self._loop(statement)
                continue
            if any(isinstance(item, (For, While)) and self._keeps(item) for item in _within(statement)):
                raise NoProcess("A loop that stays one stands in a branch.")
            if self._touches(statement) and not all(map(self._touches, self._before)):
                self._before.append(statement)
                self._close_touching()
                continue
            self._before.append(statement)
        if any(map(self._touches, self._before)) or not self.nests:
            self._close_touching()
        elif self._before:
            last = self.nests[-1]
            self.nests[-1] = Nest(last.before, last.levels, (*last.after, *self._before))
            self._before = []

    def _loop(self, loop: For) -> None:
        """A nest, or where loops stand beside each other inside, regions that run in turn for every round."""
        if self._is_nest(loop):
            self.nests.append(Nest(tuple(self._before), tuple(self._levels(loop))))
            self._before = []
            return
        # What it carries lies in memories of a word: its regions are apart.
        carried = [Buffer(f"carried.{item.inner.name}", item.inner.type, ()) for item in loop.carried]
        own = [*carried, *(item.buffer for item in loop.body.body if isinstance(item, Alloc))]
        if any(buffer.name not in self._memories for buffer in own):
            raise _MoreMemories(own)
        for item, buffer in zip(loop.carried, carried):
            self._before.append(Store(buffer.name, (), item.initial))
        if self._before:
            self.nests.append(Nest(tuple(self._before), ()))
            self._before = []
        first = len(self.nests)
        begin = (Load(item.inner, buffer.name, ()) for item, buffer in zip(loop.carried, carried))
        end = (Store(buffer.name, (), value) for buffer, value in zip(carried, loop.body.yields))
        self.run((*begin, *loop.body.body, *end))
        self.groups.append(Group(loop, first, len(self.nests) - 1))
        for item, buffer in zip(loop.carried, carried):
            self._before.append(Load(item.outer, buffer.name, ()))

    def _is_nest(self, loop: For) -> bool:
        kept = self._kept(loop)
        if not kept:
            return True
        inner = loop.body.body[kept[0]]
        return len(kept) == 1 and isinstance(inner, For) and self._is_nest(inner)

    def _kept(self, loop: For) -> list[int]:
        """Where in a loop's body others stay loops."""
        return [k for k, item in enumerate(loop.body.body) if any(
            isinstance(one, (For, While)) and self._keeps(one) for one in _within(item)
        )]

    def _close_touching(self) -> None:
        """Straight code that reaches memories is a region of its own."""
        if any(map(self._touches, self._before)):
            self.nests.append(Nest(tuple(self._before), ()))
            self._before = []

    def _touches(self, statement: Statement) -> bool:
        return any(
            isinstance(item, (Load, Store)) and item.buffer in self._memories for item in _within(statement)
        )

    def _keeps(self, loop: For | While) -> bool:
        if isinstance(loop, While):
            return operation_count(loop) > MOST_UNROLLED
        if loop.var.name in self._side_by_side:
            return False
        if loop.count <= 1:  # stays for one inside that does
            return any(isinstance(one, (For, While)) and self._keeps(one) for one in _inside(loop))
        return operation_count(loop) > MOST_UNROLLED or self._touches(loop)

    def _levels(self, loop: For) -> Iterator[Level]:
        kept = self._kept(loop)
        if not kept:
            yield Level(loop, None)
            return
        inner = loop.body.body[kept[0]]
        assert isinstance(inner, For), "a nest has loops alone"
        yield Level(loop, kept[0])
        yield from self._levels(inner)


def _within(statement: Statement) -> Iterator[Statement]:
    return statements(Block((statement,)))


def _inside(loop: For) -> Iterator[Statement]:
    return statements(loop.body)


def used_outside(nests: Sequence[Nest], number: int) -> list[Var]:
    """Scalars that a region gives to later ones."""
    own = set(defined(nests[number].body))
    later: set[Var] = set()
    for nest in nests[number + 1 :]:
        later |= used(nest.body) | indexing(nest.body)
    return sorted((var for var in later if var.name in own), key=lambda var: var.name)


def used_inside(nest: Nest) -> list[Var]:
    """Scalars that a region takes from earlier ones."""
    own = set(defined(nest.body))
    found = used(nest.body) | indexing(nest.body)
    return sorted((var for var in found if var.name not in own), key=lambda var: var.name)


def touched(nest: Nest, what: type[Load] | type[Store]) -> set[str]:
    """The buffers that a region loads from, or stores to."""
    return {item.buffer for item in statements(nest.body) if isinstance(item, what)}
