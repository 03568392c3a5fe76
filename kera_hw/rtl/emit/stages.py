"""Stages of a process that work on different items at once, and when each starts: tokens on places.

Regions in a row are a stage; stages form a line. What lies in a memory between stages is there in as many
copies as stages hold it at once, so that one fills a copy while the next works on another. A loader of a
channel comes before the stages that read it, a sender behind those that write what it sends.

Who starts when is a marked graph: a stage starts when every place before it has a token, takes one of each,
and gives one to every place behind it when it ends. A place from a stage to the one that needs its work
begins empty; a place back to whoever fills a memory begins with a token a copy. Every circle has a token, so
nothing ever waits for itself, and the pace is that of the slowest circle. (Commoner, Holt, Even, Pnueli,
"Marked directed graphs", 1971; as max-plus recurrences: Baccelli, Cohen, Olsder, Quadrat, 1992.)
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kera_hw.rtl.emit.ports import Channel, Pace
from kera_hw.rtl.emit.process import Overlap, ProcessPlan
from kera_hw.schedule.fpga.bits import bits_width

_ITEMS_BEYOND = 6
"""Items that are followed beyond as many as there are stages, to see that their pace has settled."""


@dataclass(frozen=True, slots=True)
class Place:
    """Tokens from one node to another: at the end of ``source``, or with ``early`` when that starts.

    Nodes are channels by name and stages as ``stage0``. An early token for a stage is there in its own cycle,
    another in the next one.
    """

    source: str
    target: str
    tokens: int
    early: bool = False


@dataclass(frozen=True, slots=True)
class Times:
    """By node the first cycles and the last of its items."""

    starts: Mapping[str, list[int]]
    ends: Mapping[str, list[int]]


def stage_name(number: int) -> str:
    """A stage as a node."""
    return f"stage{number}"


def in_turn(process: ProcessPlan) -> Overlap:
    """All regions as one stage, which an item leaves before the next is begun."""
    return Overlap(((0, len(process.regions) - 1),), {}, in_turn=True)


def overlap_of(process: ProcessPlan) -> Overlap | None:
    """Stages as short as the longest region allows; None where items cannot overlap at an even pace.

    None as well where a channel fills or empties several banks: their copies are not counted yet.
    """
    if any(len(places.banks) > 1 for places in process.channels.values()):
        return None
    ranges = _balanced(process, _apart(process))
    users = users_of(process, ranges)
    copies: dict[str, int] = {}
    for memory, stages in users.items():
        span = stages[-1] - stages[0] + 1 + (memory in process.served)
        if span > 1:
            copies[memory] = span
    if not copies:
        return None
    found = Overlap(tuple(ranges), copies)
    prompt = frozenset(k for k in range(len(ranges)) if _prompt(process, found, k))
    # A copy more for the rounds that are still on their way when the next item begins.
    more = {
        memory: count + bool(prompt.intersection(users[memory])) for memory, count in copies.items()
    }
    found = Overlap(tuple(ranges), more, prompt=prompt)
    times = followed(process, found, len(ranges) + _ITEMS_BEYOND)
    gaps = {
        two - one for channel in process.ports.outputs
        for one, two in zip(times.ends[channel.name], times.ends[channel.name][1:])
    }
    return found if len(gaps) == 1 else None


def _prompt(process: ProcessPlan, overlap: Overlap, number: int) -> bool:
    """Whether a stage may begin an item when all rounds of the one before have begun: see Overlap.

    It is a region that runs once, with nothing in registers for others or of others. It alone drives its
    ports of memories, which have copies, and a port's accesses in a round are less than a round apart, so
    that all of an item are before those of the next.
    """
    first, last = overlap.stages[number]
    region = process.regions[first]
    if first != last or any(one.first == first for one in process.repeats):
        return False
    if len(region.netlist.outputs) > 1 or relayed(process, overlap)[number]:
        return False
    stage, interval = region.plan.stage, region.plan.initiation_interval
    for place in region.storages:
        if place.storage.name not in overlap.copies:
            return False
        for calls in (place.writes, *place.reads):
            stages = [stage[call] for call in calls]
            if stages and max(stages) - min(stages) >= interval:
                return False
    registers = {
        value.bus for channel in process.ports.inputs if not channel.in_beats for value in channel.values
    }
    return registers.isdisjoint(bus for bus, _ in region.netlist.inputs)


def users_of(process: ProcessPlan, ranges: Sequence[tuple[int, int]]) -> dict[str, list[int]]:
    """By memory the stages that reach it, in order."""
    found: dict[str, list[int]] = {}
    for number, (first, last) in enumerate(ranges):
        names = {place.storage.name for region in process.regions[first : last + 1]
                 for place in region.storages}
        for name in sorted(names):
            found.setdefault(name, []).append(number)
    return found


def _apart(process: ProcessPlan) -> list[tuple[int, int]]:
    """The most stages: regions around which a loop stands are one, and so are all that write one memory."""
    count = len(process.regions)
    joined = [(repeat.first, repeat.last) for repeat in process.repeats]
    writers: dict[str, list[int]] = {}
    for number, region in enumerate(process.regions):
        for place in region.storages:
            if place.writes:
                writers.setdefault(place.storage.name, []).append(number)
    joined += [(numbers[0], numbers[-1]) for numbers in writers.values()]
    found: list[tuple[int, int]] = []
    for number in range(count):
        last = max([number, *(high for low, high in joined if low <= number <= high)])
        if found and number <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((number, last))
    return found


def _balanced(process: ProcessPlan, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Neighbours as one stage where that is no longer than the longest, or than a channel takes."""
    lengths = [_cycles(process, *item) for item in ranges]
    most = max([*lengths, *(channel.beats for channel in process.ports.channels)])
    found: list[tuple[tuple[int, int], int]] = []
    for (first, last), length in zip(ranges, lengths):
        if found and found[-1][1] + length <= most:
            (begin, _), before = found[-1]
            found[-1] = (begin, last), before + length
        else:
            found.append(((first, last), length))
    return [item for item, _ in found]


def _cycles(process: ProcessPlan, first: int, last: int) -> int:
    """From a stage's start to its end."""
    inside = [one for one in process.repeats if first <= one.first and one.last <= last]
    return process.cycles_of(first, last, inside)


def places_of(process: ProcessPlan, overlap: Overlap) -> list[Place]:
    """All places: between neighbours, and between whoever fills and empties a memory."""
    ranges, users = overlap.stages, users_of(process, overlap.stages)
    most, found = len(ranges) - 1, list[Place]()
    taken_over = relayed(process, overlap)
    for number in range(most):
        here, behind = stage_name(number), stage_name(number + 1)
        found.append(Place(here, behind, 0))
        if taken_over[number + 1]:  # what a stage leaves in registers is taken when the next one starts
            found.append(Place(behind, here, 1, early=True))
    for channel in process.ports.channels:
        if channel.name in process.taken:
            continue
        name, memory = channel.name, process.memory_of(channel.name)
        alone = [0 if channel.direction == "input" else most]
        stages = alone if memory is None else users.get(memory, alone)
        first, last = stage_name(stages[0]), stage_name(stages[-1])
        copies = 1 if memory is None else overlap.copies.get(memory, 1)
        if channel.direction == "output":
            found += [Place(last, name, 0), Place(name, first, copies)]
        elif channel.in_beats:
            found += [Place(name, first, 0), Place(last, name, copies)]
        else:  # a register, handed on when the first stage starts, or held until the only one ends
            found += [Place(name, first, 0), Place(first, name, 1, early=overlap.relays)]
    served = process.served
    for memory, stages in users.items():
        if memory not in served and len(stages) > 1:
            found.append(Place(stage_name(stages[-1]), stage_name(stages[0]), overlap.copies[memory]))
    return found


def followed(process: ProcessPlan, overlap: Overlap, items: int) -> Times:
    """The cycles of the first items, nothing stalling; all that can begin does so in cycle 0."""
    places = places_of(process, overlap)
    takes: dict[str, int] = {
        stage_name(number): _cycles(process, *item) for number, item in enumerate(overlap.stages)
    }
    taken = process.taken
    inputs = [channel.name for channel in process.ports.inputs if channel.name not in taken]
    outputs = [channel.name for channel in process.ports.outputs]
    for channel in process.ports.channels:
        takes[channel.name] = channel.beats - 1
        if overlap.in_turn and channel.direction == "output":
            takes[channel.name] += process.reading(channel.name)
    order = [*inputs, *map(stage_name, range(len(overlap.stages))), *outputs]
    starts: dict[str, list[int]] = {name: [] for name in order}
    ends: dict[str, list[int]] = {name: [] for name in order}
    stages = {stage_name(number) for number in range(len(overlap.stages))}
    holds = {name: takes[name] + 1 for name in order}
    for number in overlap.prompt:
        region = process.regions[overlap.stages[number][0]]
        holds[stage_name(number)] = region.rounds * region.plan.initiation_interval
    for item in range(items):
        for name in order:
            begin = starts[name][-1] + holds[name] if item else 0
            for place in places:
                if place.target == name and item >= place.tokens:
                    events = starts if place.early else ends
                    late = not (place.early and name in stages)
                    begin = max(begin, events[place.source][item - place.tokens] + late)
            starts[name].append(begin)
            ends[name].append(begin + takes[name])
    for channel in process.ports.outputs:
        if not overlap.in_turn:  # the last is on its way when the next item begins
            ends[channel.name] = [end + process.reading(channel.name) for end in ends[channel.name]]
    for channel in process.ports.inputs:
        if channel.name in taken:  # as its region works
            number = taken[channel.name]
            stage = next(k for k, (low, high) in enumerate(overlap.stages) if low <= number <= high)
            begin, _ = within_stage(process, overlap.stages[stage], number)
            pace = process.regions[number].plan.initiation_interval
            starts[channel.name] = [start + begin + 1 for start in starts[stage_name(stage)]]
            ends[channel.name] = [start + (channel.beats - 1) * pace for start in starts[channel.name]]
    return Times(starts, ends)


def relayed(process: ProcessPlan, overlap: Overlap) -> list[dict[str, int]]:
    """By stage the scalars that it takes over when it starts, with their widths."""
    if not overlap.relays:
        return [{} for _ in overlap.stages]
    there = {value.bus: value.width for channel in process.ports.inputs if not channel.in_beats
             for value in channel.values}
    found: list[dict[str, int]] = []
    for first, last in overlap.stages:
        needed = {bus for region in process.regions[first:] for bus, _ in region.netlist.inputs}
        needed |= {value.bus for channel in process.ports.outputs if not channel.in_beats
                   for value in channel.values}
        found.append({bus: width for bus, width in there.items() if bus in needed})
        for region in process.regions[first : last + 1]:
            there |= {out.bus: bits_width(out.bits) for out in region.netlist.outputs if out.bus != "done"}
    return found


def within_stage(process: ProcessPlan, stage: tuple[int, int], number: int) -> tuple[int, int]:
    """From a stage's start to the cycle before a region's first start, and to the end of its last run."""
    first, last = stage
    inside = [one for one in process.repeats if first <= one.first and one.last <= last]
    before = [one for one in inside if one.last < number]
    begin = process.cycles_of(first, number, before) - process.regions[number].cycles
    around = [one for one in inside if one.first <= number <= one.last]
    if not around:
        return begin, begin + process.regions[number].cycles
    outer = max(around, key=lambda one: one.last - one.first)
    end = process.cycles_of(first, outer.last, [one for one in inside if one.last <= outer.last])
    return begin, end


def pace_of(process: ProcessPlan, overlap: Overlap) -> Pace:
    """Cycles of an item, nothing stalling."""
    times = followed(process, overlap, len(overlap.stages) + _ITEMS_BEYOND)
    outputs: Sequence[Channel] = process.ports.outputs
    ends = times.ends[outputs[0].name]
    begins = min(times.starts[channel.name][0] for channel in process.ports.inputs)
    return Pace(
        min(times.starts[channel.name][0] + process.reading(channel.name) for channel in outputs) - begins,
        max(times.ends[channel.name][0] for channel in outputs) - begins,
        ends[-1] - ends[-2],
    )
