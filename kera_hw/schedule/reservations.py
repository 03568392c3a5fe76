"""Units that several calls share: earliest stages in which no two of them are there at once.

Counted modulo the initiation interval, each call of a unit takes slots of its own. Which slots is no
difference constraint, so they are given in order of the calls' earliest stages, the next free one each, and
stages computed anew until nothing moves; then the calls of a unit are tied to each other: the solver moves
them together. This is the reservation table of Rau, "Iterative modulo scheduling", MICRO 1994.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kera_hw.schedule.asap import Constraints, Loop, earliest
from kera_hw.schedule.fpga.netlist import Netlist

_ROUNDS = 64


@dataclass(frozen=True, slots=True)
class Shared:
    """Calls of one unit, each of which has it for ``cycles``."""

    calls: tuple[int, ...]
    cycles: int


def shared_units(netlist: Netlist) -> tuple[Shared, ...]:
    """The units that take turns."""
    return tuple(
        Shared(users, unit.initiation_interval) for unit, users in netlist.calls() if len(users) > 1
    )


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
            first, *others = sorted(unit.calls, key=lambda call: (stage[call], call))
            places = _slots(unit, stage[first], [stage[call] for call in others], initiation_interval)
            for call, place in zip(others, places):
                moved |= place != stage[call]
                bounds.pop((call, first), None)
                bounds[first, call] = place - stage[first]
        return moved


def _slots(unit: Shared, first: int, wanted: Sequence[int], initiation_interval: int) -> list[int]:
    """Stages for all calls but the first, each the next from where it is wanted whose slots are free."""
    def slots(stage: int) -> set[int]:
        return {(stage + k) % initiation_interval for k in range(unit.cycles)}

    taken, places = slots(first), list[int]()
    for stage in wanted:
        free = (s for s in range(stage, stage + initiation_interval) if not slots(s) & taken)
        place = next(free, stage)
        taken |= slots(place)
        places.append(place)
    return places
