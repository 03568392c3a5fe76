"""Enables and resets of state registers, in place of logic that chooses the old or the initial value.

The logic is mapped both ways, with and without; a group of flip-flops gets a control where that saves LUTs.
A control of few flip-flops is left out: it takes their whole slice, or tile, from others (the device's
``least_controlled``).
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from kera_hw.graph.node import Origin, join_origins
from kera_hw.ops.intervals import Interval
from kera_hw.rtl.lower.design import FlatState
from kera_hw.rtl.techmap import truth
from kera_hw.rtl.techmap.area import Area
from kera_hw.rtl.techmap.conditions import Conditions
from kera_hw.rtl.techmap.cover import Coverer
from kera_hw.rtl.techmap.finish import Finisher
from kera_hw.rtl.techmap.given import facts_of, given
from kera_hw.rtl.techmap.holding import NEVER, Piece, Search
from kera_hw.rtl.techmap.items import Moves, Present, Restart
from kera_hw.rtl.techmap.net import Net
from kera_hw.rtl.techmap.options import Controls
from kera_hw.schedule.fpga.bits import Bits, bits_width, concat, const_bits, slice_bits
from kera_hw.schedule.fpga.cells import Cell, WriteControl
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.netlist import StateControl, StateReg, control_readers

Way = Literal["held", "cleared", "held, then cleared", "cleared, then held"]
"""Which controls are looked for, and what is taken out of the next value first."""
_WAYS: tuple[Way, ...] = ("held, then cleared", "cleared, then held", "held", "cleared")
_WITHOUT_RESETS: tuple[Way, ...] = ("held",)
_RESET = 0b11111000  # operand 2, or operands 0 and 1


@dataclass(frozen=True, slots=True)
class Group:
    """Bits [low, low + width) of a state: signals of their enable and reset, if any, and their next value."""

    low: int
    width: int
    enable: Bits
    reset: Bits
    data: Bits


@dataclass(frozen=True, slots=True)
class Controlled:
    """How a state register is written: the next value of all bits, and the groups that have a control."""

    data: Bits
    groups: tuple[Group, ...] = ()

    def vectors(self) -> Iterator[Bits]:
        """All that is needed to write it."""
        yield self.data
        for group in self.groups:
            yield from (group.enable, group.reset)


@dataclass(frozen=True, slots=True)
class _Run:
    """Bits of a state that keep their value where ``held`` is set, and start anew where ``cleared`` is.

    ``data`` is what they take else; ``uncleared``, where that is known, what they take without a reset.
    """

    state: int
    low: int
    width: int
    held: Bits
    cleared: Bits
    data: Bits
    uncleared: Bits | None = None


def with_controls(
    net: Net, coverer: Coverer, others: Sequence[Bits], states: Sequence[FlatState], nexts: Sequence[Bits],
    held: Sequence[Interval | None], device: Device, how: Controls,
) -> list[Controlled]:
    """The states' next values as they are best written; ``others`` are all other vectors that are needed.

    ``held``: what each state is known to hold.
    """
    plain = [Controlled(bits) for bits in nexts]
    if how == "none":
        return plain
    finder = _Finder(net, states, nexts, Conditions(net, held), device, how)
    ways = [finder.groups(way) for way in (_WAYS if how != "enables" else _WITHOUT_RESETS)]
    if not any(group for found in ways for group in found):
        return plain
    before = _area(net, coverer, [*others, *nexts], device)
    best: list[tuple[int, Controlled]] = [(0, one) for one in plain]
    for found in ways:
        vectors = [bits for one in found for bits in one.vectors()]
        after = _area(net, coverer, [*others, *vectors], device)
        for state, one in enumerate(found):
            kept = [group for group in _together(one.groups) if _gain(before, after, nexts[state], group) > 0]
            gain = sum(_gain(before, after, nexts[state], group) for group in kept)
            if gain > best[state][0]:
                best[state] = gain, _written(nexts[state], [group for groups in kept for group in groups])
    chosen = [one for _, one in best]
    total = _area(net, coverer, [*others, *(bits for one in chosen for bits in one.vectors())], device)
    return chosen if total.luts < before.luts else plain


def place_controls(finisher: Finisher, written: Controlled, name: str) -> tuple[StateControl, ...]:
    """The controls of a state in the netlist, with a pin for each signal."""
    count: Counter[Bits] = Counter()
    for group in written.groups:
        count[group.enable] += group.width
        count[group.reset] += group.width
    pins: dict[Bits, int] = {}

    def pin(signal: Bits, reset: bool) -> int | None:
        if signal and signal not in pins:
            label = f"{name}_{'reset' if reset else 'enable'}"
            pins[signal] = finisher.pin(signal, count[signal], label, reset)
        return pins.get(signal)

    return tuple(
        StateControl(group.low, group.width, pin(group.enable, False), pin(group.reset, True))
        for group in written.groups
    )


def led_by_readers(cells: Sequence[Cell], states: Sequence[StateReg]) -> Iterator[Cell]:
    """The cells, what the control says being about the first state whose pins it reaches.

    It was made for the first with such a condition, which may have ended up without a control.
    """
    readers = control_readers(cells)
    led: dict[int, int] = {}
    for number, state in enumerate(states):
        for control in (control for pin in state.pins() for control in readers.get(pin, ())):
            led.setdefault(control, number)
    for index, cell in enumerate(cells):
        yield replace(cell, state=led.get(index, cell.state)) if isinstance(cell, WriteControl) else cell


def _area(net: Net, coverer: Coverer, vectors: Sequence[Bits], device: Device) -> Area:
    """The net covered for these vectors, all of them in use."""
    area = Area(net, coverer.cover(vectors), device)
    for bits in vectors:
        area.use(bits)
    return area


def _together(groups: Sequence[Group]) -> list[tuple[Group, ...]]:
    """Groups with the same signals, which are worth their logic only together."""
    found: dict[tuple[Bits, Bits], list[Group]] = {}
    for group in groups:
        found.setdefault((group.enable, group.reset), []).append(group)
    return [tuple(members) for members in found.values()]


def _gain(before: Area, after: Area, plain: Bits, groups: Sequence[Group]) -> int:
    """LUTs saved by the controls of these groups of a state."""
    old = [slice_bits(plain, group.low, group.width) for group in groups]
    new = [bits for group in groups for bits in (group.data, group.enable, group.reset)]
    return _own(before, old) - _own(after, new)


def _own(area: Area, vectors: Sequence[Bits]) -> int:
    """LUTs that nothing but these vectors needs."""
    with_them = area.luts
    for bits in vectors:
        area.drop(bits)
    without = area.luts
    for bits in vectors:
        area.use(bits)
    return with_them - without


def _written(plain: Bits, groups: Sequence[Group]) -> Controlled:
    """A state with these groups' controls, and its other bits as they are."""
    ordered = sorted(groups, key=lambda group: group.low)
    parts: list[Bits] = []
    low = 0
    for group in ordered:
        parts += [slice_bits(plain, low, group.low - low), group.data]
        low = group.low + group.width
    parts.append(slice_bits(plain, low, bits_width(plain) - low))
    return Controlled(concat(parts), tuple(ordered))


def _merged(runs: Iterable[_Run]) -> list[_Run]:
    """Neighbouring runs with the same conditions as one."""
    found: list[_Run] = []
    for run in runs:
        last = found[-1] if found else None
        place = (run.state, run.low, run.held, run.cleared)
        if last is not None and (last.state, last.low + last.width, last.held, last.cleared) == place:
            data = concat([last.data, run.data])
            found[-1] = replace(last, width=last.width + run.width, data=data)
        else:
            found.append(run)
    return found


class _Finder:
    """Looks for conditions in the next values of all states, and makes their signals."""

    def __init__(
        self, net: Net, states: Sequence[FlatState], nexts: Sequence[Bits], conditions: Conditions,
        device: Device, how: Controls,
    ) -> None:
        self.net, self.states, self.nexts, self.device, self.how = net, states, nexts, device, how
        self._conditions = conditions
        self._values = [Search(net, const_bits(value, 1)) for value in (0, 1)]

    def groups(self, way: Way) -> list[Controlled]:
        """Every state with all the controls of enough flip-flops."""
        runs = [run for state in range(len(self.states)) for run in self._runs(state, way)]
        size: Counter[tuple[str, Bits]] = Counter()
        leader: dict[tuple[str, Bits], int] = {}
        for run in runs:
            for condition in (("held", run.held), ("cleared", run.cleared)):
                size[condition] += run.width
                leader.setdefault(condition, run.state)
        least = self.device.area.least_controlled
        found: list[list[Group]] = [[] for _ in self.states]
        for run in _merged(self._enough(runs, size, least)):
            leaders = [
                run.state if self.how == "own" else leader[condition]
                for condition in (("held", run.held), ("cleared", run.cleared))
            ]
            found[run.state].append(self._group(run, *leaders))
        return [_written(plain, groups) for plain, groups in zip(self.nexts, found)]

    def _enough(self, runs: Iterable[_Run], size: Counter[tuple[str, Bits]], least: int) -> Iterator[_Run]:
        """The runs with a control, those of too few flip-flops left out."""
        for run in runs:
            if run.cleared != NEVER and size["cleared", run.cleared] < least:
                if run.uncleared is None:
                    continue
                run = replace(run, cleared=NEVER, data=run.uncleared)
            few = run.held != NEVER and size["held", run.held] < least
            if not few and (run.held, run.cleared) != (NEVER, NEVER):
                yield run

    def _runs(self, state: int, way: Way) -> Iterator[_Run]:
        """Runs of a state's bits, and what each takes, made for where it is taken."""
        for run in self._cut(state, way):
            kept = facts_of(self.net, run.held, 0)
            uncleared = None if run.uncleared is None else given(self.net, run.uncleared, kept)
            data = given(self.net, run.data, {**kept, **facts_of(self.net, run.cleared, 0)})
            held, cleared = map(self._conditions.sooner, (run.held, run.cleared))
            yield replace(run, held=held, cleared=cleared, data=data, uncleared=uncleared)

    def _cut(self, state: int, way: Way) -> Iterator[_Run]:
        """A state's next value cut where its conditions change."""
        self.net.origin = self._giving(state)
        width, plain = self.states[state].width_bits, self.nexts[state]
        hold = Search(self.net, self.net.bits(Present(width, (), state)))
        low = 0
        if way in ("held", "held, then cleared"):
            for held in hold.pieces(plain):
                parts = [Piece(held.width, NEVER, held.rest)]
                if way == "held, then cleared":
                    parts = self._cleared(state, held.rest, low)
                place = 0
                for part in parts:
                    cleared = self.net.logic(truth.AND_NOT, (part.when, held.when), 1)
                    uncleared = slice_bits(held.rest, place, part.width)
                    yield _Run(state, low + place, part.width, held.when, cleared, part.rest, uncleared)
                    place += part.width
                low += held.width
        else:
            for cleared in self._cleared(state, plain, 0):
                parts = [Piece(cleared.width, NEVER, cleared.rest)]
                for held in hold.pieces(cleared.rest, low) if way == "cleared, then held" else parts:
                    yield _Run(state, low, held.width, held.when, cleared.when, held.rest)
                    low += held.width

    def _giving(self, state: int) -> Origin | None:
        """What gives a state its next value."""
        cells = dict.fromkeys(s.cell for s in self.nexts[state] if s.cell is not None)
        return join_origins(self.net.origins[cell] for cell in cells) or self.states[state].origin

    def _cleared(self, state: int, bits: Bits, low: int) -> Iterable[Piece]:
        """Where bits from ``low`` are the initial ones; a reset can do no more than bring those back."""
        initial, place = self.states[state].initial >> low, 0
        for value, ones in groupby(initial >> i & 1 for i in range(bits_width(bits))):
            count = len(list(ones))
            yield from self._values[value].pieces(slice_bits(bits, place, count))
            place += count

    def _group(self, run: _Run, enabling: int, resetting: int) -> Group:
        """A run of bits with its signals, which work in the stages that write the two states."""
        enable = reset = ()
        if run.held != NEVER:
            self.net.origin = self._origin(run.held)
            moves = self.net.bits(Moves(1, (), enabling))
            enable = self.net.logic(truth.AND_NOT, (moves, run.held), 1)
        if run.cleared != NEVER:
            self.net.origin = self._origin(run.cleared)
            moves, restart = (self.net.bits(kind(1, (), resetting)) for kind in (Moves, Restart))
            reset = self.net.logic(_RESET, (moves, run.cleared, restart), 1)
        return Group(run.low, run.width, enable, reset, run.data)

    def _origin(self, condition: Bits) -> Origin | None:
        (segment,) = condition
        return None if segment.cell is None else self.net.origins[segment.cell]
