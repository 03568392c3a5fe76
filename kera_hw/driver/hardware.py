"""The hardware path as one function a step: export -> flat design -> cells -> plan -> Verilog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from kera_hw.driver.lowering import Lowering
from kera_hw.driver.mapping import Mappings, Variant
from kera_hw.driver.options import LATENCY, TargetOptions
from kera_hw.driver.plan_file import KEY, SavedPlan, no_circuit
from kera_hw.driver.remembered import Decision, digest_of, key_of, recall, remember
from kera_hw.driver.search import Choice, Circuit, Task, choose
from kera_hw.driver.session import identity, single_export_graph
from kera_hw.graph import Export, Graph, signature
from kera_hw.graph.nesting import check_nesting
from kera_hw.interp import flatten_value
from kera_hw.loops.program import For, While
from kera_hw.rtl.emit.naming import module_name, module_refusal
from kera_hw.rtl.emit.portplan import netlist_ports, shell_cost
from kera_hw.rtl.emit.ports import Interface, Pace, PortPlan
from kera_hw.rtl.emit.rounds import Rounds
from kera_hw.rtl.lower import FlatDesign
from kera_hw.rtl.lower.design import FlatLeaf
from kera_hw.rtl.machine.counts import RoundCounter
from kera_hw.rtl.machine.rounds import Region
from kera_hw.rtl.toolchain.process import ToolError
from kera_hw.schedule.explain import Refusal, spell_path
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.resource_model import has_valid
from kera_hw.schedule.objective import merit
from kera_hw.schedule.plan import Plan, Resources
from kera_hw.schedule.verifier import verify_plan
from kera_hw.support import Diagnostic, KeraError, Severity, SourceFile, deep_recursion

if TYPE_CHECKING:
    from kera_hw.rtl.emit.verilog import Emitted, Emitter, Style

# What a design is planned for when nobody asks: comfortably within reach of ordinary logic on each family.
DEFAULT_CLOCK_MHZ = {"ecp5": 150.0, "ice40": 50.0}
# Without a clock asked for, a design that cannot make the default gets the next slower one that works.
_SLOWDOWN = 0.8
_SLOWEST_MHZ = 5.0

Progress = Callable[[str], None]
PLANNING_STEPS = 4


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
        return None if region is None else rounds_of(region)

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
            *_general(self.flat, self.plan), *self.choice.best.diagnostics,
        )  # fmt: skip

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
        core, shell = self.plan.estimate, shell_cost(self.ports)
        return replace(core, lut=core.lut + shell.lut, ff=core.ff + shell.ff)

    @property
    def style(self) -> Style:
        """Whose cells the Verilog is made of."""
        return "ecp5" if self.device.family == "ecp5" else "generic"

    @property
    def emitter(self) -> Emitter:
        return "amaranth" if self.options.emitter == "amaranth" else "text"

    @cached_property
    def emitted(self) -> Emitted:
        """The Verilog. Raises KeraError for more port bits than it can have (K0615), or a tool's failure."""
        from kera_hw.rtl.emit.verilog import emit_verilog  # Amaranth: a refusal need not wait for it

        check_port_bits(self, self.emitter)
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
            "top": self.emitted.name,
            **identity(self.program, self.export),
            "target": f"fpga:{self.device.name}",
            "interface": self.plan.interface,
            "emitter": self.emitted.emitter,
            "clock_mhz": round(self.clock_mhz, 3),
            "latency_cycles": _span_json((least.latency_cycles, pace.latency_cycles)),
            "item_cycles": _span_json((least.item_cycles, pace.item_cycles)),
            "initiation_interval": _span_json((least.initiation_interval, pace.initiation_interval)),
            "regions": [] if self.rounds is None else [self._region_json(self.rounds)],
            "reset_cycles": self.plan.reset_cycles,
            "register_bits": self.plan.register_bits,
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

    def _region_json(self, rounds: Rounds) -> dict[str, Any]:
        """The loop that stays one, a line of the plan."""
        region = self.mappings.region
        assert region is not None
        place = region.loop.place
        return {
            "loop": None if place is None else f"{place.path}:{place.line}",
            "rounds": _span_json((rounds.least, rounds.count)),
            "latency_cycles": self.plan.latency_cycles,
            "initiation_interval": self.plan.initiation_interval,
        }

    @property
    def saved(self) -> SavedPlan:
        """What leads to this design again without a search."""
        options = replace(self.options, plan=None)
        return SavedPlan(self.export.name, self.graph.fingerprint, options, self.scale, _decision(self))


def recurrence_text(netlist: Netlist, plan: Plan) -> str | None:
    """The loop of operations that set the initiation interval, in words; None where nothing did."""
    if plan.recurrence is None:
        return None
    states = ", ".join(f"`{name}`" for name in plan.recurrence.states)
    way = spell_path(netlist, plan.recurrence.cells)
    return f"The next value of {states} takes {plan.recurrence.stages} cycles: {way}."


def design_hardware(
    graph: Graph,
    export: Export,
    options: TargetOptions,
    progress: Progress = lambda _: None,
    files: dict[str, SourceFile] | None = None,
    scale: float = 1.0,
    inner: bool = False,
) -> HardwareDesign:
    """Runs the hardware path; ``inner`` for a module inside another's.

    Raises KeraError (K06xx, K07xx, K095x) where the design cannot be made.
    """
    return _written(plan_hardware(graph, export, options, progress, files, scale, inner), progress)


@deep_recursion()
def plan_hardware(
    graph: Graph,
    export: Export,
    options: TargetOptions,
    progress: Progress = lambda _: None,
    files: dict[str, SourceFile] | None = None,
    scale: float = 1.0,
    inner: bool = False,
) -> HardwareDesign:
    """The hardware path without its last step. Raises KeraError where no plan can be made."""
    check_nesting(export)
    name_notes = () if inner else _check_name(export.name)
    progress("lowering")
    lowering = Lowering(graph, export, options, files or {})
    return _planned(graph, export, options, lowering, scale, name_notes, progress)


def design_again(design: HardwareDesign, scale: float, progress: Progress = lambda _: None) -> HardwareDesign:
    """The design planned for slower wires, from what it was lowered and mapped to. Raises KeraError."""
    again = _planned(
        design.program, design.export, design.options, design.lowering, scale, design.name_notes, progress
    )
    return _written(again, progress)


def _written(design: HardwareDesign, progress: Progress) -> HardwareDesign:
    progress("writing Verilog")
    assert design.emitted
    return design


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


def _planned(
    program: Graph, export: Export, options: TargetOptions, lowering: Lowering, scale: float,
    name_notes: tuple[Diagnostic, ...], progress: Progress,
) -> HardwareDesign:
    """The best design that was asked for, or the one of the plan given, checked."""
    given = options.plan
    if isinstance(given, SavedPlan):
        given.check(program, export)
        scale = given.scale
    free = replace(options, plan=None)

    def design(
        mappings: Mappings, interval: int | None, choice: Choice, clock_mhz: float
    ) -> HardwareDesign:
        return HardwareDesign(
            program, export, options, lowering, mappings, choice, clock_mhz, scale, name_notes, interval
        )  # fmt: skip

    def searched(mappings: Mappings, wanted: TargetOptions) -> HardwareDesign:
        choice, clock_mhz = _circuit(mappings, wanted, progress, lowering.files, scale)
        return design(mappings, wanted.interval, choice, clock_mhz)

    def replayed(saved: SavedPlan) -> HardwareDesign:
        made = recalled(saved.decision)
        if not isinstance(made, HardwareDesign):
            no_circuit(made)
        saved.check_made(made.netlist, made.plan)
        return made

    def recalled(known: Decision) -> HardwareDesign | Refusal | None:
        progress("mapping to cells")
        mappings = lowering.mappings(known.lowered_for, known.rolled)
        wanted = replace(free, interval=known.interval)
        task = Task(mappings, int(1e6 / known.clock_mhz), wanted, lowering.files, scale)
        best = task.planned_as(known.blocks, known.far, known.clock_ps, Variant(known.controls, known.finer))
        if not isinstance(best, Circuit):
            return best
        made = design(mappings, known.interval, Choice(best, known.against), known.clock_mhz)
        return made if known.note is None else made.noted(known.note)

    key = key_of(single_export_graph(program, export).fingerprint, options, scale)
    known = None if key is None else recall(key)
    found = replayed(given) if isinstance(given, SavedPlan) else None
    if known is not None:
        made = recalled(known)
        same = isinstance(made, HardwareDesign) and digest_of(made.netlist, made.plan) == known.plan
        found = made if isinstance(made, HardwareDesign) and same else None
    if found is None:
        found = _formed(lowering, searched, free)
        if key is not None:
            remember(key, _decision(found))
    if found.plan.latency_cycles > LATENCY.most:
        message = (
            f"`{export.name}` needs a pipeline of {found.plan.latency_cycles:,} cycles at "
            f"{found.clock_mhz:g} MHz, and none is longer than {LATENCY.most:,}."
        )
        raise KeraError([Diagnostic("K0604", message)])
    if found.ports.clashes:
        taken = found.ports.clashes[0]
        message = f"Two values of `{export.name}` would share the port {taken}."
        notes = ("Rename a parameter: a large tensor has ports named after it.",)
        raise KeraError([Diagnostic("K0612", message, notes=notes)])
    faults = verify_plan(found.netlist, found.plan, DelayModel(found.device, scale))
    if faults:
        raise AssertionError(f"the plan of {export.name} is unsound: {faults[0]}")
    return found


def _decision(found: HardwareDesign) -> Decision:
    """What leads to this design without a search."""
    best = found.choice.best
    way, variant = best.way, best.variant
    return Decision(
        found.mappings.interval, found.rounds is not None, found.interval, found.clock_mhz,
        way.blocks, way.far, way.clock_ps,
        variant.controls, variant.finer, found.note, found.choice.against,
        digest_of(found.netlist, found.plan),
    )  # fmt: skip


def _check_name(function: str) -> tuple[Diagnostic, ...]:
    """Says so (K0616) where the top module is called otherwise. Raises KeraError (K0614) if it can't be."""
    refusal = module_refusal(function)
    if refusal is not None:
        message = f"The top module would be called `{function}`, which {refusal}."
        raise KeraError([Diagnostic("K0614", message, notes=("Rename the function.",))])
    name = module_name(function)
    if name == function:
        return ()
    message = f"The top module is called `{name}`: `{function}` is a word of Verilog, C++ or the tools."
    return (Diagnostic("K0616", message, severity=Severity.NOTE),)


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


def rounds_of(region: Region) -> Rounds:
    """What the controller of a region must know."""
    return Rounds("counted" if region.counted else "until", region.rounds, region.flags)


def _span_json(span: tuple[int, int]) -> int | dict[str, int]:
    """A number of cycles, or its least and its most."""
    least, most = span
    return most if least == most else {"min": least, "max": most}


def _formed(
    lowering: Lowering, planned: Callable[[Mappings, TargetOptions], HardwareDesign], options: TargetOptions
) -> HardwareDesign:
    """The design with its loop unrolled or kept: kept where it is one that ends by a condition, where it is
    too large otherwise, and where it is the cheaper one at the interval asked for.
    """
    if lowering.parts is None or options.latency is not None:
        return _choose(lowering.mappings, planned, options)
    (_, kept), = lowering.parts.before

    def rolled() -> HardwareDesign:
        own = None if options.interval is None else options.interval // _most_rounds(kept.loop)
        found = _choose(
            lambda interval: lowering.mappings(interval, rolled=True), planned,
            replace(options, interval=own or None),
        )
        if options.interval is not None and found.core_paces[1][1] > options.interval:
            message = (
                f"`{found.export.name}` keeps its loop as a loop, which takes {found.core_paces[1][1]:,} "
                f"cycles an item, not {options.interval:,}."
            )
            raise KeraError([Diagnostic("K0602", message)])
        return found

    if isinstance(kept.loop, While):
        try:
            return rolled()
        except KeraError:
            return _choose(lowering.mappings, planned, options)
    try:
        flat = _choose(lowering.mappings, planned, options)
    except KeraError as refusal:
        try:
            return rolled()
        except KeraError:
            raise refusal from None
    if options.interval is None:
        return flat
    try:
        found = rolled()
    except KeraError:
        return flat
    return min((flat, found), key=lambda item: merit(item.plan, item.device, options.interval))


def _most_rounds(loop: For | While) -> int:
    return loop.count if isinstance(loop, For) else loop.most + 1


def _choose(
    lowered: Callable[[int], Mappings], planned: Callable[[Mappings, TargetOptions], HardwareDesign],
    options: TargetOptions,
) -> HardwareDesign:
    """The design with loops kept where the interval allows them, they fit, and it is the smaller one.

    A loop that keeps an item for long may not fit a recurrence, a clock or a latency that a pipeline does.
    """
    mappings = lowered(options.interval or 1)
    if options.interval is not None:
        try:
            return planned(mappings, options)
        except KeraError as fault:
            if not _folds(mappings.flat):
                raise
            found = planned(lowered(1), options)
            return found.noted(
                f"Division and square root are pipelined, not folded: {fault.diagnostics[0].message}"
            )
    found = planned(mappings, options)
    interval = found.plan.initiation_interval
    mappings = lowered(interval) if interval > 1 else mappings
    if not _folds(mappings.flat):
        return found
    try:
        folded = planned(mappings, replace(options, interval=interval))
    except KeraError:
        return found
    better = folded.choice.best.merit < found.choice.best.merit
    return folded if better and folded.clock_mhz >= found.clock_mhz else found


def _folds(flat: FlatDesign) -> bool:
    """Whether a loop was kept."""
    return any(node.opcode == "control.loop" for node in flat.region.nodes())


def _circuit(
    mappings: Mappings, options: TargetOptions, progress: Progress, files: dict[str, SourceFile], scale: float
) -> tuple[Choice, float]:
    """The best circuit at the clock asked for (in MHz), or at the fastest default that works."""
    clock_mhz = DEFAULT_CLOCK_MHZ[mappings.device.family] if options.clock_mhz is None else options.clock_mhz
    while True:
        choice = choose(Task(mappings, int(1e6 / clock_mhz), options, files, scale), progress)
        if isinstance(choice, Choice):
            return choice, clock_mhz
        slower = clock_mhz * _SLOWDOWN
        if options.clock_mhz is not None or slower < _SLOWEST_MHZ or choice.code != "K0601":
            raise KeraError([choice])
        clock_mhz = slower
