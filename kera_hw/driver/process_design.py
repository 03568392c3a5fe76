"""A process as a design: its regions, mapped and scheduled, and what is told of them and made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from kera_hw.driver.design import HardwareDesign, written_out_json
from kera_hw.driver.mapping import Mappings
from kera_hw.driver.options import TargetOptions, exceeds
from kera_hw.driver.search import Choice
from kera_hw.driver.spreading import Outlook, Run, Search, lanes_of
from kera_hw.loops.program import Buffer
from kera_hw.loops.transforms.plan import Step
from kera_hw.rtl.emit.control_cost import process_cost
from kera_hw.rtl.emit.layout import Layout, control_of, free_running
from kera_hw.rtl.emit.naming import inner_name, module_name
from kera_hw.rtl.emit.portplan import addressed, axi_lite_cost, value_of
from kera_hw.rtl.emit.ports import Channel, Pace, PortPlan, plan_ports
from kera_hw.rtl.lower import ports as widths
from kera_hw.rtl.lower.design import FlatLeaf
from kera_hw.rtl.lower.ports import bus_widths, parameter_buses, place_leaves, result_buses
from kera_hw.rtl.lower.storage import memories_of
from kera_hw.rtl.machine.compact import Compact
from kera_hw.rtl.machine.nest_round import RegionDesign, exchange_bus
from kera_hw.rtl.machine.nests import Regions
from kera_hw.rtl.toolchain.process import ToolError
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.units import ReadPort, Storage, WritePort
from kera_hw.schedule.plan import Plan, Resources
from kera_hw.schedule.planner import over_capacity
from kera_hw.support import Diagnostic, KeraError, Severity

if TYPE_CHECKING:
    from kera_hw.driver.following import Following
    from kera_hw.rtl.emit.process import ProcessPlan, RegionPart, Repeat
    from kera_hw.rtl.emit.storages import StorageParameters
    from kera_hw.rtl.emit.verilog import Emitted

_TOKEN_BITS = 4
"""Registers of a place that stages wait for, and of who counts copies."""


@dataclass(frozen=True)
class RegionCircuit:
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
    parts: tuple[RegionCircuit, ...] = ()
    overlaps: bool = False
    """Whether stages work on different items at once."""
    followed: Following | None = None
    """What ``following`` found for the same regions."""
    steps: tuple[Step, ...] = ()
    outlooks: tuple[Outlook, ...] = ()
    written_out: Compact | None = None
    """How its program came to have its long loops alone as loops, where it has."""
    stretched: float = 1.0
    """How much longer than its regions' plans say its wires are, where no plan bears that."""

    @property
    def keeps_loops(self) -> bool:
        return True

    @property
    def seconds(self) -> float:
        """From item to item."""
        return self.pace.initiation_interval / (1e6 * self.clock_mhz)

    def keeps_to(self, options: TargetOptions) -> bool:
        """Whether it takes no more than may be used, nor than there is."""
        over = over_capacity(self.export.name, replace(self.plan, estimate=self.estimate), self.device)
        return not over and exceeds(self.estimate, options) is None

    def search(self) -> Search:
        """For rounds side by side, where this is the process with one at a time.

        Of several rounds at once none takes what it reads as it comes: all that is large is in memories.
        """
        assert self.regions is not None
        regions = self.regions.without_streams()
        runs: list[Run] = []
        for number, part in enumerate(self.parts):
            times = prod(group.loop.count for group in self.regions.around(number))
            plan = part.plan
            runs.append(Run(
                times, plan.latency_cycles, plan.initiation_interval, plan.estimate, len(part.netlist.cells)
            ))  # fmt: skip
        beats = [0, 0]
        channels: list[tuple[Buffer, bool]] = []
        for channel in self.ports.channels:
            goes_in, buffer = channel.direction == "input", self._buffer_of(channel, regions)
            if buffer is not None and channel.in_beats:
                channels.append((buffer, goes_in))
            else:
                beats[goes_in] = max(beats[goes_in], channel.beats)
        widest = 0 if self.interface == "axi-lite" else widths.WIDEST_VALUE_BITS
        return Search(
            regions, runs, channels, (beats[0], beats[1]), self.options, self.device, widest
        )  # fmt: skip

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
        """All ports; of what lies in memories, as many elements a beat as keep up, and as banks take."""
        buses = parameter_buses(self.export), result_buses(self.export)
        inputs, outputs = (
            [
                value_of(k, bus, width, kind)
                for k, ((bus, kind), (_, width)) in enumerate(zip(side, bus_widths(side), strict=True))
            ]
            for side in buses
        )  # fmt: skip
        plan = plan_ports(inputs, outputs, self.interface, "stream", 1, lanes=1)
        channels = tuple(
            replace(channel, lanes=self._lanes(channel)) if channel.in_beats else channel
            for channel in plan.channels
        )
        return addressed(replace(plan, channels=channels))

    def _lanes(self, channel: Channel) -> int:
        buffer, value = self._buffer_of(channel), channel.values[0]
        if buffer is None or self.interface == "axi-lite":
            return 1
        most = _banks_of(buffer).get(len(buffer.shape) - 1, 1)  # which are reached at once
        wide = widths.WIDEST_VALUE_BITS // value.element_bits
        return lanes_of(most, value.elements, min(wide, self.options.lanes or wide), self._run_cycles)

    @cached_property
    def _parts_alone(self) -> tuple[RegionPart, ...]:
        """The datapaths, each by itself."""
        from kera_hw.rtl.emit.process import RegionPart

        name = module_name(self.export.name)
        made: list[RegionPart] = []
        for number, part in enumerate(self.parts):
            control = free_running(control_of(part.netlist, part.plan, "stream"))
            made.append(RegionPart(
                inner_name(name, f"region{number}"), part.netlist, part.plan, control,
                tuple(level.loop.count for level in part.region.nest.levels),
                tuple(Layout(part.netlist, part.plan, control).storages), self._takes_of(part.region),
                rests=part.region.nest.rests,
            ))  # fmt: skip
        return tuple(made)

    @cached_property
    def following(self) -> Following:
        """When regions of an item start, and what memories between them need."""
        from kera_hw.driver.following import following

        assert self.regions is not None
        return self.followed or following(self._parts_alone, self.regions)

    @cached_property
    def _run_parts(self) -> tuple[RegionPart, ...]:
        after = self.following.after
        return tuple(replace(part, after=by) for part, by in zip(self._parts_alone, after, strict=True))

    @cached_property
    def _repeats(self) -> tuple[Repeat, ...]:
        from kera_hw.rtl.emit.process import Repeat

        assert self.regions is not None
        return tuple(
            Repeat(exchange_bus(group.loop.var), group.loop.count, group.first, group.last)
            for group in self.regions.groups
        )

    @cached_property
    def _run_cycles(self) -> int:
        from kera_hw.rtl.emit.process import run_cycles

        return run_cycles(self._run_parts, self._repeats)

    @cached_property
    def process(self) -> ProcessPlan:
        """What the controller is made from."""
        from kera_hw.rtl.emit.banked import Places, places_of
        from kera_hw.rtl.emit.process import ProcessPlan
        from kera_hw.rtl.emit.stages import overlap_of
        from kera_hw.rtl.emit.storages import folded, storage_parameters

        memories: dict[str, tuple[Storage, int]] = {}
        for part in self._run_parts:
            for place in part.storages:
                storage, reads = place.storage, max(1, len(place.reads))
                _, known = memories.get(storage.name, (storage, 1))
                memories[storage.name] = storage, max(known, reads)
        channels: dict[str, Places] = {}
        for channel in self.ports.channels:
            buffer = self._buffer_of(channel) if channel.in_beats else None
            if buffer is not None:
                places = places_of(buffer.name, buffer.shape, _banks_of(buffer), channel.lanes)
                if any(bank in memories for bank in places.banks):
                    channels[channel.name] = places
        given = {
            memory: storage_parameters(storage, reads, self.style)
            for memory, (storage, reads) in memories.items()
        }
        plan = ProcessPlan(self._run_parts, self._repeats, given, channels, self.ports)
        if self.overlaps:
            overlap = overlap_of(plan)
            firsts = {first for first, _ in overlap.stages} if overlap is not None else set[int]()
            regions = tuple(
                replace(region, after=None) if k in firsts else region  # starts by tokens
                for k, region in enumerate(plan.regions)
            )
            plan = replace(plan, regions=regions, overlap=overlap)
        for memory, words in self.following.words.items():
            if plan.overlap is None or memory not in plan.overlap.copies:
                given[memory] = folded(given[memory], words)
        return replace(plan, memories=given)

    def _takes_of(self, region: RegionDesign) -> tuple[str, str] | None:
        """The channel that a region takes elements of as it works, and the bus that they go on."""
        if region.stream is None:
            return None
        bus, buffer = region.stream
        return f"in_{buffer.name.removeprefix('in.')}", bus

    def _buffer_of(self, channel: Channel, regions: Regions | None = None) -> Buffer | None:
        """The buffer that a channel fills or empties, if it is one in memories (of these regions)."""
        regions = regions or self.regions
        assert regions is not None
        value = channel.values[0]
        if channel.direction == "input":
            name = f"in.{value.bus.removeprefix('in_')}"
        else:
            name = regions.program.of_kind("result")[value.position].name
        return next((buffer for buffer in regions.memories if buffer.name == name), None)

    @property
    def pace(self) -> Pace:
        from kera_hw.rtl.emit.stages import in_turn, pace_of

        process = self.process
        own = pace_of(process, process.overlap or in_turn(process))
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
        copies = Counter[str]()
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
            copies |= Counter(
                unit.storage.name for unit in part.netlist.units() if isinstance(unit, ReadPort)
            )
        lut, ff = lut + sum(own[0] for own in ports.values()), ff + sum(own[1] for own in ports.values())
        shared = {place.storage.name: place.storage for r in self.process.regions for place in r.storages}
        memories = self._memories_told()
        for name, storage in shared.items():
            told = memories[name]
            made = replace(storage, entries=told.entries)
            bram += made.blocks(device) * told.reads
            lut += made.copy_luts() * max(0, told.reads - copies[name])  # those that channels alone read
        control = process_cost(self.process)
        lut, ff = lut + control.lut, ff + control.ff
        overlap = self.process.overlap
        if overlap is not None:
            from kera_hw.rtl.emit.stages import relayed

            ff += sum(sum(taken.values()) for taken in relayed(self.process, overlap))
            tokens = _TOKEN_BITS * (len(self.ports.channels) + len(overlap.stages) + len(overlap.copies))
            lut, ff = lut + 2 * tokens, ff + tokens
            for channel in self.ports.outputs:
                memory = self.process.memory_of(channel.name)
                if memory is not None and memory in overlap.copies:
                    words = memories[memory].latency_cycles + 1
                    ff, lut = ff + words * channel.beat_bits, lut + 2 * channel.beat_bits + 4 * words
        if self.interface == "axi-lite":
            shell = axi_lite_cost(self.ports, device)
            lut, ff, bram = lut + round(shell.lut), ff + shell.ff, bram + shell.bram
        fmax_mhz = min(part.plan.estimate.fmax_mhz for part in self.parts) / self.stretched
        return Resources(lut, ff, dsp, bram, round(fmax_mhz, 1))

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
        interval = self.pace.initiation_interval
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
                "busy": round(runs * run.rounds * part.plan.initiation_interval / interval, 3),
            })
        return rows

    def _spans(self, items: int) -> list[tuple[int, list[tuple[int, int]]]]:
        """By region its stage, and for each of the first items when it starts and ends."""
        from kera_hw.rtl.emit.stages import followed, in_turn, stage_name, within_stage

        process = self.process
        overlap = process.overlap or in_turn(process)
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
        from kera_hw.rtl.emit.stages import followed, in_turn

        process = self.process
        overlap = process.overlap or in_turn(process)
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
        """The memories between regions and channels, banks of one together."""
        overlap, told = self.process.overlap, self._memories_told()
        assert self.regions is not None
        rows: list[dict[str, Any]] = []
        for buffer in self.regions.memories:
            names = [memory.name for memory in memories_of(buffer)]
            found = [told[name] for name in names if name in told]
            if found:
                rows.append({
                    "name": buffer.name, "banks": len(found), "words": found[0].entries,
                    "bits": found[0].width, "read_ports": max(given.reads for given in found),
                    "copies": 1 if overlap is None else overlap.copies.get(names[0], 1),
                })
        return rows

    def side_by_side_json(self) -> dict[str, Any] | None:
        """How many rounds go side by side, by which steps, and what was forecast; None where none do."""
        if not self.outlooks:
            return None
        loops = [
            {"loop": None if axis.place is None else f"{axis.place.path}:{axis.place.line}", "rounds": rounds}
            for axis, rounds in self.outlooks[-1].factors.items() if rounds > 1
        ]
        return {
            "loops": loops,
            "steps": [str(step) for step in self.steps],
            "forecast": self.outlooks[-1].to_json(),
            "before": [outlook.to_json() for outlook in self.outlooks[:-1]],
        }

    def written_out_json(self) -> dict[str, Any] | None:
        """Which steps wrote short loops out and made scalars of small arrays; None where none did."""
        return None if self.written_out is None else written_out_json(self.written_out)

    def check_ports(self) -> None:
        """Nothing to check: what is wide comes in beats."""

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


def _banks_of(buffer: Buffer) -> dict[int, int]:
    """Its banks by axis."""
    return {bank.axis: bank.count for bank in buffer.storage.banks}
