"""Programs too large for one pipeline as a process: regions that run in turn, on memories they share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Literal

from kera_hw.driver.clocks import clocks_of
from kera_hw.driver.design import DEFAULT_CLOCK_MHZ, SLOWDOWN, SLOWEST_MHZ, decision_of
from kera_hw.driver.lowering import Lowering
from kera_hw.driver.mapping import Mappings, Variant
from kera_hw.driver.options import TargetOptions, exceeds
from kera_hw.driver.pace import interval_text
from kera_hw.driver.process_design import ProcessDesign, RegionCircuit
from kera_hw.driver.remembered import digest_of, key_of, recall, remember
from kera_hw.driver.search import Choice, Circuit, Task, choose_once
from kera_hw.driver.spreading import FULL, TRIES, Outlook
from kera_hw.graph import Export, Graph
from kera_hw.loops.program import Load
from kera_hw.loops.transforms.plan import program_hash
from kera_hw.loops.transforms.planner import planned
from kera_hw.rtl.machine.nests import NoProcess, Regions, nests_of, touched
from kera_hw.rtl.machine.spread import Spread, spread
from kera_hw.rtl.machine.staged import staged
from kera_hw.rtl.machine.wired import wired
from kera_hw.schedule.explain import Refusal
from kera_hw.schedule.fpga.delay_model import DelayModel, stretch
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.verifier import verify_plan
from kera_hw.support import Diagnostic, KeraError
from kera_hw.types import bit_width

_RARE = 8
"""Times that a region's rounds are fewer than all, to be planned in one way alone."""

_AS_FORESEEN = 0.9
"""The share of an item's cycles that a forecast may fall short of."""
_LESS = 0.8
"""Times the LUTs of a choice that did not do, for the next one."""


def plan_process(
    program: Graph, export: Export, options: TargetOptions, lowering: Lowering, scale: float,
    name_notes: tuple[Diagnostic, ...], progress: Callable[[str], None],
) -> ProcessDesign:
    """The export as a process. Raises KeraError (K06xx) where it is none, or not as was asked."""
    if options.interface == "none" or options.latency is not None or options.emitter != "text":
        raise KeraError([Diagnostic("K0610", f"`{export.name}` as a process has channels.")])
    regions = regions_of(lowering)
    _check(regions, export)
    _refuse_memories(regions, export, lowering.device)

    def made(
        spread_out: Spread, clock_mhz: float | None = None, plainly: bool = False
    ) -> ProcessDesign:
        return process_design(
            program, export, options, lowering, spread_out, scale, name_notes, progress, clock_mhz, plainly
        )

    other = _written_out(lowering, options, export, scale, made)
    if other is not None and other.keeps_to(options) and _is_slower(regions, other):
        return other
    try:
        alone = made(Spread((), regions))
        if other is None or _rank(alone) <= _rank(other):
            found = _in_stages(alone, _side_by_side(alone, made), made)
        else:
            found = other
    except KeraError:
        if other is None or not other.keeps_to(options):
            raise
        found = other
    if options.interval is not None and found.pace.initiation_interval > options.interval:
        raise KeraError([too_often(export, found.pace.initiation_interval, options.interval)])
    return found


def too_often(export: Export, takes: int, asked: int) -> Refusal:
    """K0603 for a design whose loops stay loops and take longer than was asked."""
    message = (
        f"{interval_text(asked).capitalize()} is too often: with its loops as loops, `{export.name}` takes "
        f"{takes:,} cycles an item."
    )
    return Refusal("K0603", message, least=takes)


def _written_out(
    lowering: Lowering, options: TargetOptions, export: Export, scale: float,
    made: Callable[..., ProcessDesign],
) -> ProcessDesign | None:
    """The process whose long loops alone are loops, and its small arrays registers; None where there is none.

    A round of such a loop is bound by what it hands on to the next, not by memories: at a clock at which that
    takes a cycle it may take less time, and fewer registers, than several cycles at a faster one. The clock
    is that of the fewest sites x time, or the fastest that keeps to the interval asked for, judged by plain
    circuits; at that clock alone better ones are searched for.
    """
    if lowering.compact is None or lowering.written_out:
        return None  # with one loop alone it is no process but a loop around a pipeline
    try:
        regions = nests_of(lowering.compact.program, rests=True)
        _check(regions, export)
        _refuse_memories(regions, export, lowering.device)
        spread_out = spread(regions, {})
    except (NoProcess, KeraError):
        return None

    def at(clock_mhz: float, plainly: bool = False) -> ProcessDesign | None:
        try:
            return made(spread_out, clock_mhz, plainly)
        except KeraError:
            return None

    clocks = clocks_of(options, lowering.device)
    if len(clocks) == 1:
        best = at(clocks[0])
    else:
        key = key_of(program_hash(regions.program), options, scale, "written out")
        best = None if key is None else _as_remembered(key, at)
        if best is None:
            best = _at_best_of(clocks, at)
            if key is not None and best is not None:
                remember(key, decision_of(best))
    return None if best is None else replace(best, written_out=lowering.compact)


def _as_remembered(key: str, at: Callable[[float], ProcessDesign | None]) -> ProcessDesign | None:
    """The process at the clock that was best before, if its main region is still the same."""
    known = recall(key)
    found = None if known is None else at(known.clock_mhz)
    same = found is not None and known is not None and digest_of(found.netlist, found.plan) == known.plan
    return found if same else None


def _at_best_of(clocks: list[float], at: Callable[..., ProcessDesign | None]) -> ProcessDesign | None:
    """The process at the clock, from the fastest on, at which a plain one ranks first."""
    best: ProcessDesign | None = None
    for clock_mhz in clocks:
        found = at(clock_mhz, plainly=True)
        if found is None:
            continue
        if best is None or _rank(found) < _rank(best):
            best = found
        if all(part.plan.initiation_interval == 1 for part in found.parts):
            break  # a slower one takes as many cycles
    return None if best is None else at(best.clock_mhz)


def _is_slower(regions: Regions, other: ProcessDesign) -> bool:
    """Whether a process of these regions is out of sight of another one, by its rounds alone."""
    nests = enumerate(regions.nests)
    rounds = sum(nest.rounds * prod(g.loop.count for g in regions.around(k)) for k, nest in nests)
    if other.options.interval is not None:
        return rounds > other.options.interval >= other.pace.initiation_interval
    clock_mhz = other.options.clock_mhz or DEFAULT_CLOCK_MHZ[other.device.family]
    return rounds / clock_mhz > _SMALLER * other.pace.initiation_interval / other.clock_mhz


_SMALLER = 4
"""Times that a process with its arrays in memories may be smaller than one with registers."""


def _rank(design: ProcessDesign) -> tuple[bool, bool, float]:
    """The order of processes: what keeps to what was asked before what does not, then sites x time.

    With an interval asked for sites alone count.
    """
    options = design.options
    late = options.interval is not None and design.pace.initiation_interval > options.interval
    return late, not design.keeps_to(options), design.area * (1 if options.interval else design.seconds)


def _side_by_side(
    alone: ProcessDesign, made: Callable[[Spread], ProcessDesign]
) -> ProcessDesign:
    """The process with as many rounds at once as make an item the shortest, within what was asked.

    With an interval asked for, the cheapest that keeps to it.
    """
    options = alone.options
    assert alone.regions is not None
    if options.interval is not None and alone.pace.initiation_interval <= options.interval:
        return alone
    best, outlooks = alone, alone.search().outlooks()
    taken: list[Outlook] = []
    limit = inf
    for outlook in outlooks:
        sooner = outlook.shortens(best.pace.initiation_interval)
        if len(taken) == TRIES or (best.steps and (options.interval is not None or not sooner)):
            break
        if outlook.lut >= limit or not sooner:
            continue
        taken.append(outlook)
        try:
            other = made(spread(alone.regions, outlook.factors))
        except (KeraError, NoProcess):
            other = None
        if other is None or not other.keeps_to(options):
            limit = outlook.lut * _LESS
        elif outlook.shortens(int(other.pace.initiation_interval * _AS_FORESEEN)):
            continue  # a recurrence of many sums takes cycles that others do not
        elif other.seconds < best.seconds or not best.keeps_to(options):
            best = replace(other, outlooks=tuple(taken))
    over = exceeds(best.estimate, options)
    if over is not None:
        raise KeraError([Diagnostic("K0604", f"`{alone.export.name}` needs {over}.")])
    return best


def _in_stages(
    alone: ProcessDesign, best: ProcessDesign, made: Callable[[Spread], ProcessDesign]
) -> ProcessDesign:
    """With rounds of outer loops as stages that overlap, where that is the best within what was asked."""
    options = alone.options
    assert alone.regions is not None
    if options.interval is not None and alone.pace.initiation_interval <= options.interval:
        return best
    found = staged(alone.regions)
    if found is None:
        return best
    times = len(found.regions.nests) / len(alone.regions.nests)  # regions are about as large as they were
    if alone.estimate.lut * times > FULL * alone.device.lut:
        return best
    try:
        other = made(found)
    except (KeraError, NoProcess):
        return best
    if not other.keeps_to(options):
        return best
    if options.interval is None:
        return other if other.seconds < best.seconds else best

    def cost(design: ProcessDesign) -> tuple[bool, float]:
        return design.pace.initiation_interval > (options.interval or 0), design.area

    return min(best, other, key=cost)


def process_design(
    program: Graph, export: Export, options: TargetOptions, lowering: Lowering, spread_out: Spread,
    scale: float, name_notes: tuple[Diagnostic, ...], progress: Callable[[str], None],
    clock_mhz: float | None = None, plainly: bool = False,
) -> ProcessDesign:
    """A process of these regions, at the clock asked for, or the given one, or the fastest default.

    ``plainly``: a draft, to see how large and fast it would be: without a search for the best circuits of
    the regions, its plans not checked. Raises KeraError (K06xx) where there is none.
    """

    def at(stretched: float) -> ProcessDesign:
        return _process_design(
            program, export, options, lowering, spread_out, scale, stretched, name_notes, progress, clock_mhz,
            plainly,
        )  # fmt: skip

    found = at(1.0)
    far = stretch(found.estimate.dsp, found.estimate.bram, lowering.device)
    if plainly or far == 1:
        return found
    try:
        return at(far)
    except KeraError:  # what a stage cannot do without makes it as much slower
        return replace(found, stretched=far)


def _process_design(
    program: Graph, export: Export, options: TargetOptions, lowering: Lowering, spread_out: Spread,
    scale: float, stretched: float, name_notes: tuple[Diagnostic, ...], progress: Callable[[str], None],
    clock_mhz: float | None, plainly: bool,
) -> ProcessDesign:
    """The same for wires that the process's blocks make so much longer; its memories are then far as well."""
    regions = spread_out.regions
    if options.interface == "axi-lite":  # software brings all beats before it counts cycles
        regions = regions.without_streams()
    device, fixed = lowering.device, options.clock_mhz is not None or clock_mhz is not None
    clock_mhz = options.clock_mhz or clock_mhz or DEFAULT_CLOCK_MHZ[device.family]
    free = replace(options, interval=None, interface="stream", plan=None)
    while True:
        try:
            parts = tuple(_parts(
                lowering, regions, free, clock_mhz, Wires(scale, stretched),
                plainly or bool(spread_out.steps), progress,
            ))
            break
        except KeraError as fault:
            slower = clock_mhz * SLOWDOWN
            codes = {item.code for item in fault.diagnostics}
            if fixed or slower < SLOWEST_MHZ or codes != {"K0601"}:
                raise
            clock_mhz = slower
    for part in () if plainly else parts:
        faults = verify_plan(part.netlist, part.plan, DelayModel(device, scale * stretched))
        if faults:
            raise AssertionError(f"the plan of {export.name} is unsound: {faults[0]}")
    if not parts:
        raise KeraError([Diagnostic("K0610", f"`{export.name}` has no loop that could stay one.")])
    most = max(parts, key=lambda part: part.plan.estimate.lut + part.plan.estimate.ff)
    found = ProcessDesign(
        program, export, options, lowering, most.mappings, most.choice, clock_mhz, scale, name_notes,
        regions=regions, parts=parts, steps=spread_out.steps,
    )  # fmt: skip
    found = replace(found, followed=found.following)
    large = [channel for channel in found.ports.channels if channel.in_beats]
    if options.interface == "axi-lite" and any(channel.words > channel.beats for channel in large):
        message = f"`{export.name}` as a process takes an element in every cycle, and software has words."
        raise KeraError([Diagnostic("K0610", message)])
    _same_memories(found)
    if not any(buffer.storage.banks for buffer in regions.memories):
        found = _quicker(found, options)
    return found


def _quicker(found: ProcessDesign, options: TargetOptions) -> ProcessDesign:
    """With stages that overlap, where that makes more of its sites or is what the interval takes."""
    other = replace(found, overlaps=True)
    if options.interface == "axi-lite" or other.process.overlap is None:
        return found

    def cost(design: ProcessDesign) -> tuple[bool, float]:
        late = options.interval is not None and design.pace.initiation_interval > options.interval
        return late, design.area * (design.pace.initiation_interval if options.interval is None else 1)

    return min(found, other, key=cost)


def regions_of(lowering: Lowering) -> Regions:
    """The regions of the export, its loops joined where that leaves nests. Raises KeraError (K06xx)."""
    try:
        return nests_of(planned(wired(lowering.program)).after)
    except NoProcess:
        try:
            return nests_of(lowering.program)
        except NoProcess as fault:
            raise KeraError([fault.diagnostic]) from None


Effort = Literal["least", "little", "all"]
"""One plain circuit or none, one or else the best of a search, the best of a search."""


@dataclass(frozen=True, slots=True)
class Wires:
    """How much longer wires are than foreseen: as routing has shown, and by the blocks of a process."""

    scale: float
    stretched: float


def _parts(
    lowering: Lowering, regions: Regions, options: TargetOptions, clock_mhz: float, wires: Wires,
    plainly: bool, progress: Callable[[str], None],
) -> list[RegionCircuit]:
    designs = lowering.region_designs(regions, 1)
    runs = [
        nest.rounds * prod(group.loop.count for group in regions.around(number))
        for number, nest in enumerate(regions.nests)
    ]
    found: dict[int, RegionCircuit] = {}
    left = options.dsp  # what works the most has the first choice
    for number in sorted(range(len(designs)), key=lambda number: -runs[number]):
        wanted = replace(options, dsp=left)
        # What hardly adds to the time of an item is not worth a search.
        rare = options.dsp is None and _RARE * runs[number] < sum(runs)
        # Rounds side by side are as many as there are blocks for: no product need be in logic.
        effort = "least" if plainly else "little" if rare else "all"
        found[number] = _part(lowering, regions, number, wanted, clock_mhz, wires, effort, progress)
        left = None if left is None else left - found[number].plan.estimate.dsp
    return [found[number] for number in range(len(designs))]


def _part(
    lowering: Lowering, regions: Regions, number: int, options: TargetOptions, clock_mhz: float,
    wires: Wires, effort: Effort, progress: Callable[[str], None],
) -> RegionCircuit:
    scale = wires.scale * wires.stretched

    def searched(mappings: Mappings, wanted: TargetOptions) -> RegionCircuit:
        region = lowering.region_designs(regions, mappings.interval)[number]
        task = Task(mappings, int(1e6 / clock_mhz), wanted, lowering.files, scale)
        if effort != "all":
            best = task.planned_as(None, None, task.clock_ps, Variant("none"))
            if isinstance(best, Circuit) and exceeds(best.plan.estimate, wanted) is None:
                return RegionCircuit(region, mappings, Choice(best, ()))
            if effort == "least" and isinstance(best, Refusal):
                raise KeraError([best])
        key = key_of(program_hash(regions.program), wanted, scale, number, mappings.interval, clock_mhz)
        choice = choose_once(task, key, clock_mhz, progress)
        if isinstance(choice, Refusal):
            raise KeraError([choice])
        return RegionCircuit(region, mappings, choice)

    def lowered(interval: int) -> Mappings:
        flat = lowering.region_designs(regions, interval)[number].flat
        far = wires.stretched > 1
        if far:
            flat = replace(flat, memories=tuple(replace(memory, far=True) for memory in flat.memories))
        return Mappings(flat, lowering.device, interval, alone=False, far=far)

    part = searched(lowered(1), options)
    interval = part.plan.initiation_interval
    if interval > 1:  # long enough, perhaps, for units that take their time
        slow = lowered(interval)
        if slow.flat.region is not part.mappings.flat.region:
            try:
                other = searched(slow, replace(options, interval=interval))
                part = min(part, other, key=lambda item: item.choice.best.merit)
            except KeraError:
                pass
    return part


def _refuse_memories(regions: Regions, export: Export, device: Device) -> None:
    """Raises KeraError (K0604) for words that would fill more block RAM than there is, one copy of each."""
    large = [
        (buffer, buffer.size * bit_width(buffer.element)) for buffer in regions.memories if buffer.size > 64
    ]
    bits, have = sum(size for _, size in large), device.bram * device.area.bram_bits
    if bits > have:
        most, size = max(large, key=lambda item: item[1])
        message = (
            f"`{export.name}` keeps {bits:,} bits in memories between its loops, {size:,} of them in "
            f"`{most.name}`, and the block RAMs of {device.name} hold {have:,}."
        )
        note = "Stream over the rows of a picture, which a `stream` keeps in line buffers as state."
        raise KeraError([Diagnostic("K0604", message, notes=(note,))])


def _check(regions: Regions, export: Export) -> None:
    """Raises KeraError for what a process cannot have between its regions."""
    memories = {buffer.name for buffer in regions.memories}
    for buffer in regions.memories:
        if buffer.kind in ("param", "result") and buffer.name.count(".") > 1:
            raise KeraError([Diagnostic("K0610", f"A tensor of structs at a port of `{export.name}`.")])
    for buffer in regions.program.buffers:
        stored = sum(buffer.name in touched(nest, Load) for nest in regions.nests)
        if buffer.kind == "result" and buffer.name not in memories and stored:
            raise KeraError([Diagnostic("K0610", f"A result of `{export.name}` is read again.")])


def _same_memories(found: ProcessDesign) -> None:
    """Raises KeraError where two regions would have one memory in different ways."""
    seen: dict[str, tuple[object, ...]] = {}
    for region in found.process.regions:
        for place in region.storages:
            s = place.storage
            how = (s.entries, s.word_bits, s.style, s.read_latency_cycles, s.transparent)
            if seen.setdefault(s.name, how) != how:
                message = f"Regions of `{found.export.name}` want the memory `{s.name}` in different ways."
                raise KeraError([Diagnostic("K0610", message)])
