"""Units that several calls share: earliest stages in which no two of them are there at once.

Counted modulo the initiation interval, each call of a unit takes slots of its own. Which slots is no
difference constraint, so they are given in order of the calls' earliest stages, the next free one each, and
stages computed anew until nothing moves; then the calls of a unit are tied to each other: the solver moves
them together. This is the reservation table of Rau, "Iterative modulo scheduling", MICRO 1994.

Items may follow each other at any distance from the interval up, not at its multiples alone. So all calls of
a unit are within one interval: then a unit has one item at a time, and no two items can meet there.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kera_hw.schedule.accesses import Order
from kera_hw.schedule.asap import Constraints, Loop, earliest
from kera_hw.schedule.fpga.bits import Bits
from kera_hw.schedule.fpga.cells import Call, Cell
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.units import Operator, Port

_ROUNDS = 64


@dataclass(frozen=True, slots=True)
class Shared:
    """Calls of one unit, with the cycles for which each has it."""

    calls: tuple[int, ...]
    cycles: tuple[int, ...]


def shared_units(netlist: Netlist) -> tuple[Shared, ...]:
    """The units that take turns. Calls that follow each other, cycle by cycle, are one, its first."""
    behind = _successors(netlist)
    inner = set(behind.values())
    found: list[Shared] = []
    for unit, users in netlist.calls():
        if len(users) < 2:
            continue
        cycles = {user: unit.initiation_interval for user in users if user not in inner}
        for user in cycles:
            following = behind.get(user)
            while following is not None:
                cycles[user] += 1
                following = behind.get(following)
        found.append(Shared(tuple(cycles), tuple(cycles.values())))
    return tuple(shared for shared in found if len(shared.calls) > 1)


def _successors(netlist: Netlist) -> dict[int, int]:
    """Calls of an operator that work a cycle after another one of its calls, by that: links of a chain."""
    found: dict[int, int] = {}
    for index, cell in enumerate(netlist.cells):
        for before in _chained(cell):
            found[before] = index
            one, other = (next(_givers(netlist.cells[k].operands()[0])) for k in (before, index))
            found[one] = other
    return found


def _chained(cell: Cell) -> Iterator[int]:
    """The call of the same operator whose result this call takes as it appears."""
    if isinstance(cell, Call) and isinstance(cell.unit, Operator) and cell.unit.immediate:
        yield from _givers(cell.arguments[1])


def _givers(bits: Bits) -> Iterator[int]:
    return iter(dict.fromkeys(s.cell for s in bits if s.cell is not None))


def immediate_ties(netlist: Netlist) -> Iterator[tuple[int, int, int]]:
    """(giver, call, stages): a call that takes what a giver shows as it appears works so much later."""
    for index, cell in enumerate(netlist.cells):
        if isinstance(cell, Call) and isinstance(cell.unit, Operator) and cell.unit.immediate:
            for giver in (giver for bits in cell.arguments for giver in _givers(bits)):
                yield giver, index, netlist.cells[giver].inner_stages()


def with_units(constraints: Constraints, netlist: Netlist) -> Constraints:
    """The constraints with those of units: what works at once, and calls within one interval."""
    # The last first: what moves a chain's end moves all before it in one sweep.
    ties = [(call, giver, -stages) for giver, call, stages in immediate_ties(netlist)][::-1]
    loops = (*constraints.loops, *_within_intervals(netlist))
    return replace(constraints, ties=(*constraints.ties, *ties), loops=loops)


def _within_intervals(netlist: Netlist) -> Iterator[Order]:
    """All calls of a shared unit within one interval, so that whenever items come it has one at a time."""
    ports = {user for unit, users in netlist.calls() if isinstance(unit, Port) for user in users}
    for unit in shared_units(netlist):
        if unit.calls[0] in ports:
            continue
        for one, cycles in zip(unit.calls, unit.cycles):
            yield from (Order(one, other, cycles, 1) for other in unit.calls if other != one)


@dataclass(frozen=True, slots=True)
class Reserved:
    """Constraints, and the units whose calls take turns."""

    constraints: Constraints
    shared: tuple[Shared, ...]

    def earliest(self, initiation_interval: int) -> tuple[list[int] | Loop, Constraints]:
        """Earliest stages, and the constraints that they and all later ones keep; or a loop that forbids any.

        A loop over no items: slots were looked for in vain.
        """
        found = earliest(self.constraints, initiation_interval)
        if isinstance(found, Loop) or not self.shared:
            return found, self.constraints
        bounds: dict[tuple[int, int], int] = {}
        for _ in range(_ROUNDS):
            if not self._bump(found, bounds, initiation_interval):
                ties = [tie for (u, v), c in bounds.items() for tie in ((u, v, c), (v, u, -c))]
                return self._held(ties, initiation_interval)
            found, _ = self._held([(u, v, c) for (u, v), c in bounds.items()], initiation_interval)
            if isinstance(found, Loop):
                break
        return Loop((), 0, 0), self.constraints

    def _held(
        self, ties: Sequence[tuple[int, int, int]], initiation_interval: int
    ) -> tuple[list[int] | Loop, Constraints]:
        held = replace(self.constraints, ties=(*self.constraints.ties, *ties))
        found = earliest(held, initiation_interval)
        return (Loop((), 0, 0) if isinstance(found, Loop) else found), held

    def _bump(
        self, stage: Sequence[int], bounds: dict[tuple[int, int], int], initiation_interval: int
    ) -> bool:
        """Bounds between the calls of each unit that keep them apart; whether any has to move for them."""
        moved = False
        for unit in self.shared:
            cycles = dict(zip(unit.calls, unit.cycles))
            first, *others = sorted(unit.calls, key=lambda call: (stage[call], call))
            places = _slots(
                cycles[first], stage[first], [(stage[call], cycles[call]) for call in others],
                initiation_interval,
            )
            for call, place in zip(others, places):
                moved |= place != stage[call]
                bounds.pop((call, first), None)
                bounds[first, call] = place - stage[first]
        return moved


def _slots(
    cycles: int, first: int, wanted: Sequence[tuple[int, int]], initiation_interval: int
) -> list[int]:
    """Stages for all calls but the first, each the next from where it is wanted whose slots are free."""
    def slots(stage: int, count: int) -> set[int]:
        return {(stage + k) % initiation_interval for k in range(count)}

    taken, places = slots(first, cycles), list[int]()
    for stage, count in wanted:
        free = (s for s in range(stage, stage + initiation_interval) if not slots(s, count) & taken)
        place = next(free, stage)
        taken |= slots(place, count)
        places.append(place)
    return places
