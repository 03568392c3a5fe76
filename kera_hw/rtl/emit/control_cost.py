"""What the control around datapaths takes, before synthesis: controllers of loops, of regions, of channels.

Figures follow the circuits that ``process`` and ``round_shell`` describe; what synthesis makes of their
conditions was read off routed programs (``bench route``).
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kera_hw.rtl.emit.rounds import Rounds

if TYPE_CHECKING:  # what a process is written with takes long to import
    from kera_hw.rtl.emit.process import ProcessPlan, RegionPart, Repeat

_REGION_LUTS, _CHANNEL_LUTS, _SEND_LUTS, _ITEM_LUTS, _UNTIL_LUTS, _COUNTED_LUTS = 5, 4, 7, 3, 20, 8


@dataclass(frozen=True, slots=True)
class ControlCost:
    """LUTs and flip-flops."""

    lut: int
    ff: int

    def __add__(self, other: ControlCost) -> ControlCost:
        return ControlCost(self.lut + other.lut, self.ff + other.ff)


def counter_cost(count: int) -> ControlCost:
    """A counter that begins again, with the comparison that foretells its end."""
    if count <= 1:
        return ControlCost(0, 0)
    bits = (count - 1).bit_length()
    return ControlCost(bits + bits % 2 + -(-bits // 3) + 3, bits)


def rounds_cost(rounds: Rounds, interval: int) -> ControlCost:
    """The controller of a loop, the valid bits of its pipeline and a bit for each aside."""
    flags = 2  # of the item that is under way, and of its last round
    counter = counter_cost(rounds.count + (rounds.kind == "until"))
    if rounds.kind == "counted":
        return counter + ControlCost(_COUNTED_LUTS, flags)
    pause = 1 if interval > 1 else 0
    return counter + ControlCost(_UNTIL_LUTS, flags + pause)


def units_cost(units: int, outputs: int) -> ControlCost:
    """What gives items to units in turn, and chooses among as many results of so many bits."""
    if units < 2:
        return ControlCost(0, 0)
    turn = counter_cost(units)
    chosen = -(-2 * (units - 1) * (outputs + 2) // 3)
    return turn + turn + ControlCost(2 * units + chosen, 0)


def process_cost(plan: ProcessPlan) -> ControlCost:
    """All of a process but its datapaths and memories: controllers, channels, ports that take turns."""
    total = ControlCost(_ITEM_LUTS, 1)
    for region in plan.regions:
        total += _region(region)
    for repeat in plan.repeats:
        total += _repeat(repeat)
    for channel in plan.ports.channels:
        total += counter_cost(channel.beats if channel.in_beats else 1)
        if channel.direction == "output":
            places = plan.channels.get(channel.name)
            shown = 0 if places is None else 1 + 2 * plan.reading(channel.name)
            total += ControlCost(_SEND_LUTS if shown else 1, 1 + shown)
            if places is not None:
                # A choice among so many words takes two LUTs for three of them.
                groups = len(places.banks) // places.lanes
                total += ControlCost(2 * (groups - 1) * channel.beat_bits // 3, 0)
                there = [plan.memories[bank] for bank in places.banks if bank in plan.memories]
                late = plan.reading(channel.name)  # words that come sooner are kept
                total += ControlCost(0, sum((late - one.latency_cycles) * one.width for one in there))
        else:
            kept = 0 if channel.in_beats else sum(value.width for value in channel.values)
            banks = plan.channels[channel.name].banks if channel.name in plan.channels else ()
            total += ControlCost(_CHANNEL_LUTS + len(banks) * (len(banks) > 1), 1 + kept)
    return total + ControlCost(_turns(plan), 0)


def _region(region: RegionPart) -> ControlCost:
    """Starts, ends and counts of a region, and what it gives to others."""
    kept = sum(
        segment.width for out in region.netlist.outputs if out.bus != "done" for segment in out.bits
    )
    interval = region.plan.initiation_interval
    total = ControlCost(_REGION_LUTS + 2 * (interval > 1), 2 + (region.rounds > 1) + (interval > 1) + kept)
    for count in region.counts:
        total += counter_cost(count) + ControlCost(0, 2 * (count > 1))
    if region.after is not None:
        total += counter_cost(region.after + 1)
    return total


def _repeat(repeat: Repeat) -> ControlCost:
    return counter_cost(repeat.count) + ControlCost(2, 1)


def _turns(plan: ProcessPlan) -> int:
    """LUTs that choose whose address and word a memory's port takes."""
    total = 0
    for name, given in plan.memories.items():
        writers = readers = 0
        for region in plan.regions:
            for place in region.storages:
                if place.storage.name == name:
                    writers, readers = writers + bool(place.writes), readers + bool(place.reads)
        for channel in plan.ports.channels:
            if channel.name in plan.channels and name in plan.channels[channel.name].banks:
                writers += channel.direction == "input"
                readers += channel.direction == "output"
        total += _chosen(writers) * (given.address_bits + given.width)
        total += _chosen(readers) * given.address_bits * given.reads
    return total


def _chosen(drivers: int) -> int:
    """LUTs for a bit that one of so many drives: two and their turns a LUT, four LUTs joined by another."""
    if drivers < 2:
        return 0
    level = total = -(-drivers // 2)
    while level > 1:
        level = -(-level // 4)
        total += level
    return total
