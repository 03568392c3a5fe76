"""Rounds of a nest side by side: which loops may be spread, and the program with so many rounds as one.

A loop's rounds go side by side where they do not touch what others write, or where all they share are values
that they join in an order that does not matter. Of loops with others inside, the inner ones become one
(``unroll_and_jam``); of the innermost, pieces are written out. Buffers are laid in cyclic banks where the
accesses of a round then fall in different ones, by exact arithmetic on their indices: every coefficient is a
multiple of the number of banks, and the constants have different remainders.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from math import gcd, prod

from kera_hw.graph.node import Origin
from kera_hw.loops.program import Affine, Block, Buffer, For, Load, Store, Var, statements
from kera_hw.loops.transforms.parallel import proved_parallel
from kera_hw.loops.transforms.plan import Step, apply_step
from kera_hw.loops.transforms.reason import Refused
from kera_hw.rtl.lower.joins import join_of
from kera_hw.rtl.machine.nests import NoProcess, Regions, nests_of

Path = tuple[int, ...]
"""Where a loop stands: its number among the loops of a block, from the outside in."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop that may be spread: the nest it is one of, its level there, where it stands, its rounds."""

    nest: int
    level: int
    path: Path
    count: int
    joins: bool
    place: Origin | None = field(default=None, compare=False)

    @property
    def factors(self) -> tuple[int, ...]:
        """Numbers of rounds that leave no rest."""
        return tuple(k for k in range(1, self.count + 1) if self.count % k == 0)


@dataclass(frozen=True, slots=True)
class Spread:
    """A program spread: the steps that led to it, and its regions."""

    steps: tuple[Step, ...]
    regions: Regions


def axes_of(regions: Regions) -> list[Axis]:
    """The loops that may be spread, nest by nest from the outside in."""
    found: list[Axis] = []
    where = dict(_paths(regions.program.body, ()))
    for number, nest in enumerate(regions.nests):
        for depth, level in enumerate(nest.levels):
            loop, innermost = level.loop, level.inside is None
            joins = innermost and join_of(loop) is not None
            path = where.get(loop.var.name)
            if path is None or loop.count < 2 or not (joins or _side_by_side(loop)):
                continue
            if innermost or sum(isinstance(item, For) for item in loop.body.body) == 1:
                found.append(Axis(number, depth, path, loop.count, joins, loop.place))
    return found


def spread(regions: Regions, factors: Mapping[Axis, int]) -> Spread:
    """The program with so many rounds of each loop side by side. Raises NoProcess where it is none then."""
    program, steps, side_by_side = regions.program, list[Step](), set[str]()

    def take(transform: str, *arguments: str | int, reason: str = "") -> None:
        nonlocal program
        step = Step(transform, arguments, reason)
        try:
            program = apply_step(program, step, claimed=False)
        except Refused as fault:
            raise NoProcess(str(fault)) from None
        steps.append(step)

    # A loop that is written out is none any more: what stands behind it has had its turn.
    inward = sorted(
        (item for item in factors.items() if item[1] > 1), key=lambda item: (-item[0].nest, item[0].level)
    )
    for axis, factor in inward:
        loop = _at(program.body, axis.path)
        innermost = not any(isinstance(item, For) for item in loop.body.body)
        why = f"{factor} rounds side by side"
        if not innermost:
            take("unroll_and_jam", loop.var.name, factor, reason=why)
            continue
        if factor < loop.count:
            take("tile", loop.var.name, factor, reason=why)
            (loop,) = (item for item in _at(program.body, axis.path).body.body if isinstance(item, For))
        if loop.carried:
            side_by_side.add(loop.var.name)  # the order of joining is up to the circuit
        else:
            take("unroll", loop.var.name, reason=why)
    found = nests_of(program, frozenset(side_by_side), regions.rests)
    for buffer in found.memories:
        for axis, count in enumerate(_banks(found, buffer)):
            if count > 1:
                take("bank", buffer.name, axis, count, "cyclic", reason="a round reaches each bank once")
    return Spread(tuple(steps), nests_of(program, frozenset(side_by_side), regions.rests))


# Where loops stand


def _paths(block: Block, outside: Path) -> Iterator[tuple[str, Path]]:
    for number, loop in enumerate(item for item in block.body if isinstance(item, For)):
        yield loop.var.name, (*outside, number)
        yield from _paths(loop.body, (*outside, number))


def _at(block: Block, path: Path) -> For:
    loop = [item for item in block.body if isinstance(item, For)][path[0]]
    return loop if len(path) == 1 else _at(loop.body, path[1:])


def _side_by_side(loop: For) -> bool:
    try:
        return proved_parallel(loop).parallel
    except Refused:
        return False


# Banks


@dataclass(frozen=True, slots=True)
class Reach:
    """Where an access of a round goes along an axis: the elements it may be, and what its index moves by."""

    constants: frozenset[int]
    step: int


def _banks(regions: Regions, buffer: Buffer) -> tuple[int, ...]:
    """For each axis of a memory, in how many banks it lies: as many as the accesses of a round ask for."""
    counts = {
        item.var: item.count for nest in regions.nests for item in statements(nest.body)
        if isinstance(item, For) and item.var.name in regions.side_by_side
    }
    found = [
        [
            [_reach(part, counts, counts) for part in item.index] for item in statements(nest.body)
            if isinstance(item, (Load, Store)) and item.buffer == buffer.name
        ] for nest in regions.nests
    ]
    return banks_of(found, buffer.shape)


def _reach(part: Affine, side_by_side: Mapping[Var, int], whole: Mapping[Var, int]) -> Reach:
    """Of an index where so many rounds of loops go side by side; of those in ``whole`` all do."""
    constants, step = {part.constant}, 0
    for var, by in part.terms:
        rounds = side_by_side.get(var, 1)
        constants = {at + by * k for at in constants for k in range(rounds)}
        step = gcd(step, 0 if whole.get(var) == rounds else by * rounds)
    return Reach(frozenset(constants), step)


def banks_of(nests: Sequence[Sequence[Sequence[Reach]]], shape: Sequence[int]) -> tuple[int, ...]:
    """For each axis the fewest banks among which different elements of a round are apart; 1 where none are.

    ``nests``: for each the accesses of a round, for each of these its reach along every axis. A nest that
    moves through banks in another way than the one that asks for them chooses among them, which by a power of
    two is a matter of wires.
    """
    found: list[int] = []
    for axis, extent in enumerate(shape):
        own = [_count([access[axis] for access in accesses], extent) for accesses in nests if accesses]
        most = max(own, default=1)
        fits = all(access[axis].step % most == 0 for accesses in nests for access in accesses)
        found.append(most if fits or most & (most - 1) == 0 else 1)
    return tuple(found)


def _count(reaches: Sequence[Reach], extent: int) -> int:
    banks = gcd(reduce(gcd, (reach.step for reach in reaches), 0), extent)
    constants = frozenset[int]().union(*(reach.constants for reach in reaches))
    apart = len({at % banks for at in constants})
    return next(
        k for k in range(1, banks + 1) if banks % k == 0 and len({at % k for at in constants}) == apart
    )


class Forecast:
    """What memories look like when loops are spread, without the program that makes; each found once."""

    def __init__(self, regions: Regions, axes: Sequence[Axis]) -> None:
        self._vars = {
            axis: regions.nests[axis.nest].levels[axis.level].loop.var for axis in axes
        }
        self._accesses: dict[str, list[tuple[int, bool, tuple[Affine, ...]]]] = {}
        for number, nest in enumerate(regions.nests):
            for item in statements(nest.body):
                if isinstance(item, (Load, Store)):
                    access = number, isinstance(item, Store), item.index
                    self._accesses.setdefault(item.buffer, []).append(access)
        self._needs = {
            name: {var for *_, index in found for part in index for var, _ in part.terms}
            for name, found in self._accesses.items()
        }
        self._known: dict[tuple[str, tuple[int, ...]], Lies] = {}

    def lies(self, buffer: Buffer, factors: Mapping[Axis, int]) -> Lies:
        """How a memory lies where so many rounds of loops go side by side."""
        needs = self._needs.get(buffer.name, set())
        mine = [axis for axis, var in self._vars.items() if var in needs]
        key = buffer.name, tuple(factors.get(axis, 1) for axis in mine)
        if key not in self._known:
            rounds = {self._vars[axis]: factors.get(axis, 1) for axis in mine}
            whole = {self._vars[axis]: axis.count for axis in mine}
            self._known[key] = self._find(buffer, rounds, whole)
        return self._known[key]

    def _find(self, buffer: Buffer, rounds: Mapping[Var, int], whole: Mapping[Var, int]) -> Lies:
        nests: dict[int, dict[bool, list[list[Reach]]]] = {}
        for number, stores, index in self._accesses.get(buffer.name, []):
            reaches = [_reach(part, rounds, whole) for part in index]
            nests.setdefault(number, {False: [], True: []})[stores].append(reaches)
        counts = banks_of([both[False] + both[True] for both in nests.values()], buffer.shape)
        loads, stores = (
            max((_busiest(both[what], counts) for both in nests.values()), default=1)
            for what in (False, True)
        )
        return Lies(counts, max(1, loads), max(1, stores))


@dataclass(frozen=True, slots=True)
class Lies:
    """How a memory lies: its banks along each axis, and how often a round reads and writes the busiest."""

    banks: tuple[int, ...]
    loads: int
    stores: int


_MOST_ACCESSES = 4096


def _busiest(accesses: Sequence[Sequence[Reach]], counts: Sequence[int]) -> int:
    """Elements of a round in one bank, at the most."""
    seen: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    total = sum(prod(len(reach.constants) for reach in access) for access in accesses)
    if total > _MOST_ACCESSES:
        return total
    anywhere = 0
    for number, access in enumerate(accesses):
        if any(reach.step % count for reach, count in zip(access, counts)):
            anywhere += prod(len(reach.constants) for reach in access)
            continue
        tag = hash(tuple(reach.step for reach in access))  # other terms, other elements
        for place in product(*(reach.constants for reach in access)):
            bank = tuple(at % count for at, count in zip(place, counts))
            seen.setdefault(bank, set()).add((*place, tag if tag else number))
    return anywhere + max(map(len, seen.values()), default=0)
