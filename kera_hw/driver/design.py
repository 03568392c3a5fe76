"""A design for hardware: every product of the way there, from the flat design to Verilog, and its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from kera_hw.driver.lowering import Lowering
from kera_hw.driver.mapping import Mappings
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.plan_file import KEY, SavedPlan
from kera_hw.driver.remembered import Decision
from kera_hw.driver.search import Choice
from kera_hw.driver.session import identity, single_export_graph
from kera_hw.graph import Export, Graph, signature
from kera_hw.interp import flatten_value
from kera_hw.loops.program import While
from kera_hw.rtl.emit.control_cost import rounds_cost, units_cost
from kera_hw.rtl.emit.naming import module_name
from kera_hw.rtl.emit.portplan import netlist_ports, shell_cost
from kera_hw.rtl.emit.ports import Interface, Pace, PortPlan
from kera_hw.rtl.emit.rounds import Rounds
from kera_hw.rtl.lower import FlatDesign
from kera_hw.rtl.lower.design import FlatLeaf
from kera_hw.rtl.machine.compact import Compact
from kera_hw.rtl.machine.counts import RoundCounter
from kera_hw.rtl.machine.rounds import RoundDesign
from kera_hw.rtl.toolchain.process import ToolError
from kera_hw.schedule.accesses import memories
from kera_hw.schedule.explain import spell_path
from kera_hw.schedule.fpga.delay_model import stall_mhz
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.resource_model import has_valid
from kera_hw.schedule.objective import area, fits
from kera_hw.schedule.plan import Plan, Resources
from kera_hw.schedule.planner import over_capacity
from kera_hw.support import Diagnostic, KeraError, Severity

if TYPE_CHECKING:
    from kera_hw.rtl.emit.verilog import Emitted, Emitter, Style

# What a design is planned for when nobody asks: comfortably within reach of ordinary logic on each family.
DEFAULT_CLOCK_MHZ = {"ecp5": 150.0, "ice40": 50.0}
# Without a clock asked for, a design that cannot make the default gets the next slower one that works.
SLOWDOWN = 0.8
SLOWEST_MHZ = 5.0

Progress = Callable[[str], None]


@dataclass(frozen=True)
class HardwareDesign:
    """Every product of the hardware path for one export, from the flat design to Verilog.

    ``program`` is the graph that ``export`` was taken from, ``options`` what was asked, ``clock_mhz`` the
    clock planned for and ``scale`` the stretch of wire delays assumed (1 unless a routed result asked for
    more). ``lowering`` serves for planning again. Verilog is written when somebody asks for it.
    """

    program: Graph
    export: Export
    options: TargetOptions
    lowering: Lowering
    mappings: Mappings
    choice: Choice
    clock_mhz: float
    scale: float
    name_notes: tuple[Diagnostic, ...] = ()
    interval: int | None = None  # that the schedule was asked for
    note: str | None = None

    def __repr__(self) -> str:
        return f"<HardwareDesign of {signature(self.export)}: {self.plan!r}>"

    @property
    def device(self) -> Device:
        return self.lowering.device

    @property
    def flat(self) -> FlatDesign:
        return self.mappings.flat

    @property
    def netlist(self) -> Netlist:
        return self.choice.best.netlist

    @property
    def plan(self) -> Plan:
        """The schedule; where a loop stays a loop, that of a round."""
        return self.choice.best.plan

    @property
    def keeps_loops(self) -> bool:
        """Whether a loop stays a loop."""
        return self.rounds is not None

    @property
    def area(self) -> float:
        """Sites, with blocks in their price; infinite where the device has less."""
        return area(self.estimate, self.device) if fits(self.estimate, self.device) else inf

    @property
    def in_buses(self) -> tuple[tuple[str, int], ...]:
        """The parameters' buses with their widths."""
        region = self.mappings.region
        return self.flat.in_buses[0 if region is None else len(region.flags) :]

    @property
    def register_bits(self) -> int:
        """Registers of the pipeline, those of states aside."""
        return self.plan.register_bits

    @property
    def leaves(self) -> tuple[tuple[FlatLeaf, ...], tuple[FlatLeaf, ...]]:
        """The scalars of the parameters' and of the results' ports."""
        region = self.mappings.region
        if region is None:
            return self.flat.inputs, self.flat.outputs
        return self.flat.inputs[len(region.flags) :], self.flat.outputs[1:]

    @property
    def rounds(self) -> Rounds | None:
        """How many rounds an item takes, where a loop stays a loop."""
        region = self.mappings.region
        return None if region is None else replace(rounds_of(region), units=self.options.units or 1)

    @property
    def core_paces(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Latency and interval of the circuit that takes whole items: the least and the most.

        They differ where a loop ends by a condition.
        """
        own, rounds = (self.plan.latency_cycles, self.plan.initiation_interval), self.rounds
        if rounds is None:
            return own, own
        least, most = (
            (rounds.latency_cycles(*own, count), rounds.initiation_interval(*own, count))
            for count in (rounds.least, rounds.count)
        )
        return least, most

    def round_counter(self) -> RoundCounter | None:
        """What counts the rounds of items from reset on, where each takes its own."""
        region = self.mappings.region
        if region is None or not isinstance(region.loop, While):
            return None
        return RoundCounter(region.program, region.loop)

    def latencies(
        self, inputs: Mapping[str, Any], batch: int, counter: RoundCounter | None = None
    ) -> NDArray[np.uint64] | None:
        """The latency of each item where they differ: of those ``counter`` counts next, or from reset."""
        counter = counter or self.round_counter()
        if counter is None:
            return None
        leaves = [leaf for name, kind in self.export.params
                  for leaf in flatten_value(kind, inputs[name], batch, name)]
        counts = counter.take(leaves, batch)
        least, interval = self.plan.latency_cycles, self.plan.initiation_interval
        return (least + interval * counts).astype(np.uint64)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Warnings and notes: another name of the module, ports that need a reset, a device too small."""
        return (
            *self.name_notes, *_strobes(self),
            *_general(self.flat, self.plan), *(self.choice.best.diagnostics or self._oversize),
        )  # fmt: skip

    @property
    def _oversize(self) -> list[Diagnostic]:
        """Says (K0604) that it is what the ports stand for that does not fit the device."""
        return over_capacity(self.export.name, replace(self.plan, estimate=self.estimate), self.device)

    @property
    def interface(self) -> Interface:
        return cast("Interface", self.options.interface)

    @cached_property
    def ports(self) -> PortPlan:
        """All ports, and how values travel on them."""
        return netlist_ports(
            self.netlist, self.plan, self.interface, self.export, self.options.lanes, self.rounds
        )

    @property
    def pace(self) -> Pace:
        """The pace at the ports, at the slowest; the plan has that of the pipeline inside."""
        return self.ports.pace(*self.core_paces[1])

    @property
    def least_pace(self) -> Pace:
        """The same of the items that take the fewest rounds."""
        return self.ports.pace(*self.core_paces[0])

    @property
    def estimate(self) -> Resources:
        """What the whole design should take: the pipeline, and what its ports stand for."""
        core, shell = self.plan.estimate, shell_cost(self.ports, self.device)
        lut, ff = core.lut + round(shell.lut), core.ff + shell.ff
        if self.rounds is not None:
            units, control = self.rounds.units, rounds_cost(self.rounds, self.plan.initiation_interval)
            turns = units_cost(units, sum(width for _, width in self.flat.out_buses[1:]))
            lut += (units - 1) * core.lut + units * control.lut + turns.lut
            ff += (units - 1) * core.ff + units * control.ff + turns.ff
            core = replace(core, dsp=units * core.dsp, bram=units * core.bram)
        fmax_mhz = core.fmax_mhz
        if self.interface != "none":
            fmax_mhz = min(fmax_mhz, stall_mhz(core.dsp, core.bram, self.device))
        return replace(core, lut=lut, ff=ff, bram=core.bram + shell.bram, fmax_mhz=fmax_mhz)

    @property
    def style(self) -> Style:
        """Whose cells the Verilog is made of."""
        return "ecp5" if self.device.family == "ecp5" else "generic"

    @property
    def emitter(self) -> Emitter:
        return "amaranth" if self.options.emitter == "amaranth" else "text"

    def check_ports(self) -> None:
        """Raises KeraError (K0615) for more port bits than the Verilog can have."""
        check_port_bits(self, self.emitter)

    @cached_property
    def emitted(self) -> Emitted:
        """The Verilog. Raises KeraError for more port bits than it can have (K0615), or a tool's failure."""
        from kera_hw.rtl.emit.verilog import emit_verilog  # Amaranth: a refusal need not wait for it

        self.check_ports()
        try:
            return emit_verilog(
                self.netlist, self.plan, self.interface, self.style, self.emitter, self.graph.fingerprint,
                self.export, self.options.lanes, self.rounds,
            )  # fmt: skip
        except ToolError as fault:
            raise KeraError([fault.diagnostic]) from None

    def with_verilog(self, verilog: str) -> HardwareDesign:
        """The same design with other text in its Verilog file: synthesised, or with a planted fault."""
        other = replace(self)
        other.__dict__["emitted"] = replace(self.emitted, verilog=verilog)
        return other

    def noted(self, note: str) -> HardwareDesign:
        """The same design with one more note in the plan."""
        best = self.choice.best
        changed = replace(best, plan=replace(best.plan, notes=(*best.plan.notes, note)))
        return replace(self, choice=Choice(changed, self.choice.against), note=note)

    @property
    def graph(self) -> Graph:
        """What was built: the graph of this export alone, whose fingerprint the files carry."""
        return single_export_graph(self.program, self.export)

    def plan_json(self) -> dict[str, Any]:
        """What `plan.json` holds before place and route: the headline figures, without the schedule."""
        estimate, least, pace = self.estimate, self.least_pace, self.pace
        return {
            "function": self.export.name,
            "top": module_name(self.export.name),
            **identity(self.program, self.export),
            "target": f"fpga:{self.device.name}",
            "interface": self.plan.interface,
            "emitter": self.emitter,
            "clock_mhz": round(self.clock_mhz, 3),
            "latency_cycles": _span_json((least.latency_cycles, pace.latency_cycles)),
            "item_cycles": _span_json((least.item_cycles, pace.item_cycles)),
            "initiation_interval": _span_json((least.initiation_interval, pace.initiation_interval)),
            "regions": self.regions_json(),
            "side_by_side": self.side_by_side_json(),
            "written_out": self.written_out_json(),
            "memories": self.memories_json(),
            "delay_lines": [{"bits": line.width, "cycles": line.stages} for line in self.plan.delay_lines],
            "timeline": self.timeline_json(),
            "reset_cycles": self.plan.reset_cycles,
            "register_bits": self.register_bits,
            "estimate": {
                "lut": estimate.lut,
                "ff": estimate.ff,
                "dsp": estimate.dsp,
                "bram": estimate.bram,
                "fmax_mhz": round(estimate.fmax_mhz, 1),
            },
            "choice": self.choice.to_json(self.device),
            "recurrence": recurrence_text(self.netlist, self.plan),
            "notes": [*self.netlist.notes, *self.plan.notes],
            KEY: self.saved.to_json(),
        }

    def timeline_json(self) -> list[dict[str, Any]]:
        """What works when, of processes: by channel and region the first cycle and the last of each item."""
        return []

    def memories_json(self) -> list[dict[str, Any]]:
        """The memories, with what they are made of: those of the state."""
        return [
            {
                "name": storage.name, "words": storage.entries, "bits": storage.word_bits,
                "read_ports": storage.read_ports, "style": storage.style,
                "blocks": storage.read_ports * storage.blocks(self.device),
                "hands_over": storage.forwards, "distance": storage.distance,
            }
            for storage, _ in memories(self.netlist)
        ]  # fmt: skip

    def side_by_side_json(self) -> dict[str, Any] | None:
        """Which rounds of loops go side by side, where loops stay loops and any do."""
        return None

    def written_out_json(self) -> dict[str, Any] | None:
        """Which steps wrote short loops out and made scalars of small arrays; None where none did."""
        lowering = self.lowering
        rolled = self.mappings.region is not None and lowering.written_out
        return written_out_json(lowering.compact) if rolled and lowering.compact is not None else None

    def regions_json(self) -> list[dict[str, Any]]:
        """The loop that stays one, a line of the plan."""
        region, rounds = self.mappings.region, self.rounds
        if region is None or rounds is None:
            return []
        place = region.loop.place
        return [{
            "loop": None if place is None else f"{place.path}:{place.line}",
            "rounds": _span_json((rounds.least, rounds.count)),
            "latency_cycles": self.plan.latency_cycles,
            "initiation_interval": self.plan.initiation_interval,
            **self._units_json(rounds),
        }]

    def _units_json(self, rounds: Rounds) -> dict[str, Any]:
        """How many units take items in turn, where there are several, and what one takes an item."""
        if rounds.units == 1:
            return {}
        alone, own = replace(rounds, units=1), (self.plan.latency_cycles, self.plan.initiation_interval)
        least, most = (alone.initiation_interval(*own, count) for count in (rounds.least, rounds.count))
        return {"units": rounds.units, "interval_of_one": _span_json((least, most))}

    @property
    def saved(self) -> SavedPlan:
        """What leads to this design again without a search."""
        options = replace(self.options, plan=None)
        return SavedPlan(self.export.name, self.graph.fingerprint, options, self.scale, decision_of(self))


def recurrence_text(netlist: Netlist, plan: Plan) -> str | None:
    """The loop of operations that set the initiation interval, in words; None where nothing did."""
    if plan.recurrence is None:
        return None
    states = ", ".join(f"`{name}`" for name in plan.recurrence.states)
    way = spell_path(netlist, plan.recurrence.cells)
    return f"The next value of {states} takes {plan.recurrence.stages} cycles: {way}."


def check_port_bits(design: HardwareDesign, emitter: Emitter) -> None:
    """Raises KeraError (K0615) for more port bits than the emitter can write."""
    from kera_hw.rtl.emit.verilog import MOST_DATA_BITS, port_bits_to_spare

    spare = port_bits_to_spare(design.netlist, design.plan, design.interface, emitter)
    if spare < 0:
        message = (
            f"The parameters or results of `{design.export.name}` have {MOST_DATA_BITS - spare} bits; with "
            f"`--interface {design.interface} --emitter {emitter}` there can be {MOST_DATA_BITS} of each."
        )
        raise KeraError([Diagnostic("K0615", message)])


def decision_of(found: HardwareDesign) -> Decision:
    """What leads to this design without a search."""
    return found.choice.decision(
        found.mappings.interval, found.interval, found.clock_mhz, found.rounds is not None, found.note
    )


def _strobes(design: HardwareDesign) -> list[Diagnostic]:
    """Says (K0617) that an interface without a handshake has valid bits and a reset nevertheless, and why."""
    netlist, plan = design.netlist, design.plan
    if plan.interface != "none" or not has_valid(netlist, plan.interface, plan.initiation_interval):
        return []
    least, interval = (design.core_paces[0][1], design.core_paces[1][1])
    keeps = has_valid(netlist, plan.interface, 1)
    why = "keeps state" if keeps else f"takes an item every {interval} cycles"
    if design.rounds is not None:
        why = "keeps its loop as a loop"
    often = "may be high in every cycle" if interval == 1 else f"may be high once in {interval} cycles"
    if least < interval:
        often = "may be high once out_valid was"
    message = (
        f"`{design.export.name}` {why}, so without a handshake it has rst, in_valid and out_valid besides."
    )
    notes = (f"in_valid {often}" + ("." if interval == 1 else "; an item that comes earlier is ignored."),)
    return [Diagnostic("K0617", message, severity=Severity.NOTE, notes=notes)]


def _general(flat: FlatDesign, plan: Plan) -> list[Diagnostic]:
    """Says (K0618) of every function without a circuit of its own about what it takes."""
    sites = max(plan.estimate.lut, plan.estimate.ff)
    found: list[Diagnostic] = []
    for what, share in flat.general.items():
        message = (
            f"{what} has no circuit of its own and is computed by arithmetic of f64: "
            f"about {round(sites * share, -3):,.0f} of the {sites:,} sites of `{flat.name}` are for it."
        )
        found.append(Diagnostic("K0618", message, severity=Severity.NOTE))
    return found


def written_out_json(form: Compact) -> dict[str, Any]:
    """The steps that led to a program in which long loops alone are loops."""
    return {"steps": [str(step) for step in form.steps], "in_registers": list(form.scalars)}


def rounds_of(region: RoundDesign) -> Rounds:
    """What the controller of a region must know."""
    return Rounds("counted" if region.counted else "until", region.rounds, region.flags, region.rests)


def _span_json(span: tuple[int, int]) -> int | dict[str, int]:
    """A number of cycles, or its least and its most."""
    least, most = span
    return most if least == most else {"min": least, "max": most}
