"""Programs too large for one pipeline as a process: regions that run in turn, on memories they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, prod
from typing import TYPE_CHECKING, Any

from kera_hw.driver.design import DEFAULT_CLOCK_MHZ, SLOWDOWN, SLOWEST_MHZ, HardwareDesign
from kera_hw.driver.lowering import Lowering
from kera_hw.driver.mapping import Mappings, Variant
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.search import Choice, Circuit, Task, choose
from kera_hw.graph import Export, Graph
from kera_hw.loops.program import Load
from kera_hw.loops.transforms.planner import planned
from kera_hw.rtl.emit.control_cost import process_cost
from kera_hw.rtl.emit.layout import Layout, control_of, free_running
from kera_hw.rtl.emit.naming import inner_name, module_name
from kera_hw.rtl.emit.portplan import addressed, axi_lite_cost, value_of
from kera_hw.rtl.emit.ports import Pace, PortPlan, Value, plan_ports
from kera_hw.rtl.lower.design import FlatLeaf
from kera_hw.rtl.lower.ports import bus_widths, parameter_buses, place_leaves, result_buses
from kera_hw.rtl.machine.nest_round import RegionDesign, exchange_bus
from kera_hw.rtl.machine.nests import NoProcess, Regions, nests_of, touched
from kera_hw.rtl.toolchain.process import ToolError
from kera_hw.schedule.explain import Refusal
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.units import ReadPort, Storage, WritePort
from kera_hw.schedule.objective import prices
from kera_hw.schedule.plan import Plan, Resources
from kera_hw.schedule.planner import over_capacity
from kera_hw.schedule.verifier import verify_plan
from kera_hw.support import Diagnostic, KeraError, Severity
from kera_hw.types import bit_width

if TYPE_CHECKING:
    from kera_hw.rtl.emit.process import ProcessPlan
    from kera_hw.rtl.emit.storages import StorageParameters
    from kera_hw.rtl.emit.verilog import Emitted

_TOKEN_BITS = 4
"""Registers of a place that stages wait for, and of who counts copies."""
_RARE = 8
"""Times that a region's rounds are fewer than all, to be planned in one way alone."""


@dataclass(frozen=True)
class Part:
    """A region, mapped and scheduled."""

    region: RegionDesign
    mappings: Mappings
    choice: Choice

    @property
    def netlist(self) -> Netlist:
        return self.choice.best.netlist

    @property
    def plan(self) -> Plan:
        return self.choice.best.plan


@dataclass(frozen=True)
class ProcessDesign(HardwareDesign):
    """A design of several regions; as a design of one it is the region that costs the most."""

    regions: Regions | None = None
    parts: tuple[Part, ...] = ()
    overlaps: bool = False
    """Whether stages work on different items at once."""

    @property
    def keeps_loops(self) -> bool:
        return True

    @property
    def leaves(self) -> tuple[tuple[FlatLeaf, ...], tuple[FlatLeaf, ...]]:
        return (
            tuple(place_leaves(parameter_buses(self.export))), tuple(place_leaves(result_buses(self.export))),
        )  # fmt: skip

    @property
    def in_buses(self) -> tuple[tuple[str, int], ...]:
        return bus_widths(parameter_buses(self.export))

    @cached_property
    def ports(self) -> PortPlan:
        """All ports; what lies in a memory comes and goes an element a beat."""
        buses = parameter_buses(self.export), result_buses(self.export)
        inputs, outputs = (
            [
                value_of(k, bus, width, kind)
                for k, ((bus, kind), (_, width)) in enumerate(zip(side, bus_widths(side), strict=True))
            ]
            for side in buses
        )  # fmt: skip
        return addressed(plan_ports(inputs, outputs, self.interface, "stream", 1, lanes=1))

    @cached_property
    def process(self) -> ProcessPlan:
        """What the controller is made from."""
        from kera_hw.rtl.emit.process import ProcessPlan, RegionPart, Repeat
        from kera_hw.rtl.emit.stages import overlap_of
        from kera_hw.rtl.emit.storages import storage_parameters

        name = module_name(self.export.name)
        made: list[RegionPart] = []
        memories: dict[str, tuple[Storage, int]] = {}
        for number, part in enumerate(self.parts):
            control = free_running(control_of(part.netlist, part.plan, "stream"))
            places = tuple(Layout(part.netlist, part.plan, control).storages)
            for place in places:
                storage, reads = place.storage, max(1, len(place.reads))
                _, known = memories.get(storage.name, (storage, 1))
                memories[storage.name] = storage, max(known, reads)
            made.append(RegionPart(
                inner_name(name, f"region{number}"), part.netlist, part.plan, control,
                tuple(level.loop.count for level in part.region.nest.levels), places,
            ))  # fmt: skip
        channels = {
            channel.name: found for channel in self.ports.channels if channel.in_beats
            if (found := self._memory_of(channel.values[0], channel.direction)) in memories
        }
        given = {
            memory: storage_parameters(storage, reads, self.style)
            for memory, (storage, reads) in memories.items()
        }
        assert self.regions is not None
        repeats = tuple(
            Repeat(exchange_bus(group.loop.var), group.loop.count, group.first, group.last)
            for group in self.regions.groups
        )
        plan = ProcessPlan(tuple(made), repeats, given, channels, self.ports)
        return replace(plan, overlap=overlap_of(plan)) if self.overlaps else plan

    def _memory_of(self, value: Value, direction: str) -> str:
        """The buffer that a channel fills or empties."""
        if direction == "input":
            return f"in.{value.bus.removeprefix('in_')}"
        assert self.regions is not None
        return self.regions.program.of_kind("result")[value.position].name

    @property
    def pace(self) -> Pace:
        from kera_hw.rtl.emit.stages import pace_of

        process = self.process
        own = process.pace() if process.overlap is None else pace_of(process, process.overlap)
        return self.ports.software_pace(own) if self.interface == "axi-lite" else own

    @property
    def least_pace(self) -> Pace:
        return self.pace

    @property
    def core_paces(self) -> tuple[tuple[int, int], tuple[int, int]]:
        own = self.pace.latency_cycles, self.pace.initiation_interval
        return own, own

    @property
    def estimate(self) -> Resources:
        """All regions, the memories they share, controllers and counters."""
        device = self.device
        lut = ff = dsp = bram = 0
        ports: dict[str, tuple[int, int]] = {}  # what a memory takes itself, where most of its ports are used
        for part in self.parts:
            found = part.plan.estimate
            lut, ff, dsp, bram = lut + found.lut, ff + found.ff, dsp + found.dsp, bram + found.bram
            here: dict[str, tuple[int, int]] = {}
            for unit in part.netlist.units():
                if isinstance(unit, (ReadPort, WritePort)):
                    name, own = unit.storage.name, (round(unit.luts(device)), unit.flip_flops())
                    bram -= unit.brams(device)
                    lut, ff = lut - own[0], ff - own[1]
                    known = here.get(name, (0, 0))
                    here[name] = known[0] + own[0], known[1] + own[1]
            for name, own in here.items():
                ports[name] = max(own, ports.get(name, own))
        lut, ff = lut + sum(own[0] for own in ports.values()), ff + sum(own[1] for own in ports.values())
        shared = {place.storage.name: place.storage for r in self.process.regions for place in r.storages}
        memories = self._memories_told()
        for name, storage in shared.items():
            told = memories[name]
            bram += replace(storage, entries=told.entries).blocks(device) * told.reads
        control = process_cost(self.process)
        lut, ff = lut + control.lut, ff + control.ff
        overlap = self.process.overlap
        if overlap is not None:
            from kera_hw.rtl.emit.stages import relayed

            ff += sum(sum(taken.values()) for taken in relayed(self.process, overlap))
            tokens = _TOKEN_BITS * (len(self.ports.channels) + len(overlap.stages) + len(overlap.copies))
            lut, ff = lut + 2 * tokens, ff + tokens
            for channel in self.ports.outputs:
                memory = self.process.channels.get(channel.name)
                if memory is not None and memory in overlap.copies:
                    words = memories[memory].latency_cycles + 1
                    ff, lut = ff + words * channel.beat_bits, lut + 2 * channel.beat_bits + 4 * words
        if self.interface == "axi-lite":
            shell = axi_lite_cost(self.ports, device)
            lut, ff, bram = lut + round(shell.lut), ff + shell.ff, bram + shell.bram
        return Resources(lut, ff, dsp, bram, min(part.plan.estimate.fmax_mhz for part in self.parts))

    def _memories_told(self) -> Mapping[str, StorageParameters]:
        """What memories are, with all their copies."""
        from kera_hw.rtl.emit.overlap import memories_told

        process = self.process
        return process.memories if process.overlap is None else memories_told(process, process.overlap)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        over = over_capacity(self.export.name, replace(self.plan, estimate=self.estimate), self.device)
        return (*self.name_notes, *(replace(item, severity=Severity.WARNING) for item in over))

    @property
    def register_bits(self) -> int:
        return sum(part.plan.register_bits for part in self.parts)

    def regions_json(self) -> list[dict[str, Any]]:
        """Every region, in order, and when it runs."""
        rows: list[dict[str, Any]] = []
        assert self.regions is not None
        spans = self._spans(1)
        for number, (part, run) in enumerate(zip(self.parts, self.process.regions)):
            levels, runs = part.region.nest.levels, 1
            (stage, ((start, _),)) = spans[number]
            for group in self.regions.around(number):
                runs *= group.loop.count
            place = next((level.loop.place for level in levels if level.loop.place is not None), None)
            rows.append({
                "loop": None if place is None else f"{place.path}:{place.line}",
                "rounds": run.rounds,
                "latency_cycles": part.plan.latency_cycles,
                "initiation_interval": part.plan.initiation_interval,
                "stage": stage,
                "starts_at": start,
                "runs": runs,
                "cycles": run.cycles,
            })
        return rows

    def _spans(self, items: int) -> list[tuple[int, list[tuple[int, int]]]]:
        """By region its stage, and for each of the first items when it starts and ends."""
        from kera_hw.rtl.emit.process import Overlap
        from kera_hw.rtl.emit.stages import followed, stage_name, within_stage

        process = self.process
        overlap = process.overlap or Overlap(((0, len(process.regions) - 1),), {})
        times = followed(process, overlap, items)
        found: list[tuple[int, list[tuple[int, int]]]] = []
        for number in range(len(process.regions)):
            stage = next(k for k, (first, last) in enumerate(overlap.stages) if first <= number <= last)
            begin, end = within_stage(process, overlap.stages[stage], number)
            starts = times.starts[stage_name(stage)]
            found.append((stage, [(start + begin + 1, start + end) for start in starts]))
        return found

    def timeline_json(self) -> list[dict[str, Any]]:
        """Channels and regions, for the items that it takes to see that all is in its stride."""
        from kera_hw.rtl.emit.process import Overlap
        from kera_hw.rtl.emit.stages import followed

        process = self.process
        overlap = process.overlap or Overlap(((0, len(process.regions) - 1),), {})
        items = len(overlap.stages) + 2
        times, rows = followed(process, overlap, items), list[dict[str, Any]]()
        for channel in self.ports.inputs:
            spans = zip(times.starts[channel.name], times.ends[channel.name])
            rows.append({"name": channel.name, "spans": [list(span) for span in spans]})
        for (_, spans), row in zip(self._spans(items), self.regions_json()):
            rows.append({"name": row["loop"] or "straight code", "spans": [list(span) for span in spans]})
        for channel in self.ports.outputs:
            spans = zip(times.starts[channel.name], times.ends[channel.name])
            rows.append({"name": channel.name, "spans": [list(span) for span in spans]})
        return rows

    def memories_json(self) -> list[dict[str, Any]]:
        """The memories between regions and channels."""
        overlap = self.process.overlap
        return [
            {"name": name, "words": given.entries, "bits": given.width, "read_ports": given.reads,
             "copies": 1 if overlap is None else overlap.copies.get(name, 1)}
            for name, given in self._memories_told().items()
        ]

    @cached_property
    def emitted(self) -> Emitted:
        from kera_hw.rtl.emit.verilog import emit_process

        try:
            return emit_process(
                self.process, module_name(self.export.name), self.style, self.graph.fingerprint, self.export,
                self.pace, self.clock_mhz, self.device.name,
            )  # fmt: skip
        except ToolError as fault:
            raise KeraError([fault.diagnostic]) from None


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
    device, clock_mhz = lowering.device, options.clock_mhz or DEFAULT_CLOCK_MHZ[lowering.device.family]
    free = replace(options, interval=None, interface="stream", plan=None)
    while True:
        try:
            parts = tuple(_parts(lowering, regions, free, clock_mhz, scale, progress))
            break
        except KeraError as fault:
            slower = clock_mhz * SLOWDOWN
            codes = {item.code for item in fault.diagnostics}
            if options.clock_mhz is not None or slower < SLOWEST_MHZ or codes != {"K0601"}:
                raise
            clock_mhz = slower
    for part in parts:
        faults = verify_plan(part.netlist, part.plan, DelayModel(device, scale))
        if faults:
            raise AssertionError(f"the plan of {export.name} is unsound: {faults[0]}")
    if not parts:
        raise KeraError([Diagnostic("K0610", f"`{export.name}` has no loop that could stay one.")])
    most = max(parts, key=lambda part: part.plan.estimate.lut + part.plan.estimate.ff)
    found = ProcessDesign(
        program, export, options, lowering, most.mappings, most.choice, clock_mhz, scale, name_notes,
        regions=regions, parts=parts,
    )  # fmt: skip
    large = [channel for channel in found.ports.channels if channel.in_beats]
    if options.interface == "axi-lite" and any(channel.words > channel.beats for channel in large):
        message = f"`{export.name}` as a process takes an element in every cycle, and software has words."
        raise KeraError([Diagnostic("K0610", message)])
    _same_memories(found)
    found = _quicker(found, options)
    if options.interval is not None and found.pace.initiation_interval > options.interval:
        message = f"`{export.name}` as a process takes {found.pace.initiation_interval:,} cycles an item."
        raise KeraError([Diagnostic("K0602", message)])
    return found


def _quicker(found: ProcessDesign, options: TargetOptions) -> ProcessDesign:
    """With stages that overlap, where that makes more of its sites or is what the interval takes."""
    other = replace(found, overlaps=True)
    if options.interface == "axi-lite" or other.process.overlap is None:
        return found

    def cost(design: ProcessDesign) -> tuple[bool, float]:
        late = options.interval is not None and design.pace.initiation_interval > options.interval
        return late, sites(design) * (design.pace.initiation_interval if options.interval is None else 1)

    return min(found, other, key=cost)


def regions_of(lowering: Lowering) -> Regions:
    """The regions of the export, its loops joined where that leaves nests. Raises KeraError (K06xx)."""
    try:
        return nests_of(planned(lowering.program).after)
    except NoProcess:
        try:
            return nests_of(lowering.program)
        except NoProcess as fault:
            raise KeraError([fault.diagnostic]) from None


def _parts(
    lowering: Lowering, regions: Regions, options: TargetOptions, clock_mhz: float, scale: float,
    progress: Callable[[str], None],
) -> Iterator[Part]:
    designs = lowering.region_designs(regions, 1)
    runs = [
        nest.rounds * prod(group.loop.count for group in regions.around(number))
        for number, nest in enumerate(regions.nests)
    ]
    for number, region in enumerate(designs):
        # What hardly adds to the time of an item is not worth a search.
        rare = options.dsp is None and _RARE * runs[number] < sum(runs)

        def searched(
            mappings: Mappings, wanted: TargetOptions, region: RegionDesign = region, minor: bool = rare
        ) -> Part:
            task = Task(mappings, int(1e6 / clock_mhz), wanted, lowering.files, scale)
            if minor:
                best = task.planned_as(None, None, task.clock_ps, Variant("none"))
                if isinstance(best, Circuit):
                    return Part(region, mappings, Choice(best, ()))
            choice = choose(task, progress)
            if isinstance(choice, Refusal):
                raise KeraError([choice])
            return Part(region, mappings, choice)

        def lowered(interval: int, number: int = number) -> Mappings:
            flat = lowering.region_designs(regions, interval)[number].flat
            return Mappings(flat, lowering.device, interval)

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
        yield part


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


def sites(design: HardwareDesign) -> float:
    """What a design takes, blocks in their price."""
    estimate, price = design.estimate, prices(design.device)
    fits = estimate.lut <= design.device.lut and estimate.bram <= design.device.bram
    whole = max(estimate.lut, estimate.ff) + price.dsp * estimate.dsp + price.bram * estimate.bram
    return whole if fits else inf
