"""The hardware path as one function a step: export -> flat design -> cells -> plan -> Verilog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kera_hw.driver.clocks import clocks_of
from kera_hw.driver.design import (
    DEFAULT_CLOCK_MHZ,
    SLOWDOWN,
    SLOWEST_MHZ,
    HardwareDesign,
    Progress,
    decision_of,
)
from kera_hw.driver.lowering import Lowering
from kera_hw.driver.mapping import Mappings
from kera_hw.driver.options import LATENCY, TargetOptions, exceeds
from kera_hw.driver.plan_file import SavedPlan, no_circuit
from kera_hw.driver.process import plan_process, too_often
from kera_hw.driver.raster import plan_raster
from kera_hw.driver.remembered import Decision, digest_of, key_of, recall, remember
from kera_hw.driver.search import Choice, Circuit, Task, choose
from kera_hw.driver.session import single_export_graph
from kera_hw.driver.units import check_units
from kera_hw.graph import Export, Graph
from kera_hw.graph.nesting import check_nesting
from kera_hw.loops.program import While
from kera_hw.rtl.emit.naming import module_name, module_refusal
from kera_hw.rtl.lower import FlatDesign
from kera_hw.rtl.lower.builder import width_of
from kera_hw.rtl.lower.division import patience
from kera_hw.schedule.explain import Refusal
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.objective import merit
from kera_hw.schedule.verifier import verify_plan
from kera_hw.support import Diagnostic, KeraError, Severity, SourceFile, deep_recursion

PLANNING_STEPS = 4


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
    found = _fitting(graph, export, options, lowering, scale, name_notes, progress)
    check_units(export, options, found.rounds)
    found.check_ports()
    return found


def _fitting(
    program: Graph, export: Export, options: TargetOptions, lowering: Lowering, scale: float,
    name_notes: tuple[Diagnostic, ...], progress: Progress,
) -> HardwareDesign:
    """One pipeline; stencils in step or a process where none fits, or where those keep to ``--ii`` and are
    smaller.
    """
    def process() -> HardwareDesign:
        if unable is not None:
            raise unable
        return plan_looped(program, export, options, lowering, scale, name_notes, progress)

    other: HardwareDesign | None = None
    unable: KeraError | None = None
    if options.interval is not None and options.plan is None:
        try:
            other = process()
        except KeraError as fault:
            unable = fault
        keeps_to = other is not None and exceeds(other.estimate, options) is None and lowering.parts is None
        if other is not None and keeps_to and _is_out_of_sight(lowering, options.interval, other):
            return other
    try:
        found = _planned(program, export, options, lowering, scale, name_notes, progress)
    except KeraError as refusal:
        if not _TOO_LARGE & {item.code for item in refusal.diagnostics}:
            raise
        try:
            return other or process()
        except KeraError as why:
            first, *rest = refusal.diagnostics
            reason = why.diagnostics[0]
            if reason.code == "K0603":
                told = f"In one pipeline: {first.message}"
                placed = replace(reason, file=first.file, span=first.span, notes=(*reason.notes, told))
                raise KeraError([placed]) from None
            told = f"As a process: {reason.message}"
            raise KeraError([replace(first, notes=(*first.notes, told)), *rest]) from None
    over = exceeds(found.estimate, options)
    too_large = over is not None or any(item.code == "K0604" for item in found.diagnostics)
    alone = found.keeps_loops and lowering.parts is not None and lowering.parts.is_innermost
    if options.interval is not None and lowering.written_out:
        alone = False  # a process may be smaller
    if options.plan is not None or (alone and over is None):
        return found
    if options.interval is None and not too_large:
        return found
    try:
        other = other or process()
    except KeraError:
        if over is not None:
            raise KeraError([Diagnostic("K0604", f"`{export.name}` needs {over}.")]) from None
        return found
    return other if over is not None else min(found, other, key=lambda design: design.area)


def plan_looped(
    program: Graph, export: Export, options: TargetOptions, lowering: Lowering, scale: float,
    name_notes: tuple[Diagnostic, ...], progress: Progress,
) -> HardwareDesign:
    """Stencils in step, or a process.

    Raises KeraError, which of an interval too short says the least of either (K0603).
    """
    def stencils(asked: TargetOptions) -> HardwareDesign | None:
        return plan_raster(program, export, asked, lowering, scale, name_notes, progress)

    found = stencils(options)
    if found is not None:
        return found
    try:
        return plan_process(program, export, options, lowering, scale, name_notes, progress)
    except KeraError as fault:
        refusal = fault.diagnostics[0]
        if options.interval is None or not isinstance(refusal, Refusal) or refusal.code != "K0603":
            raise
        free = stencils(replace(options, interval=None))
        if free is None or free.core_paces[1][1] >= refusal.least:
            raise
        raise KeraError([too_often(export, free.core_paces[1][1], options.interval)]) from None


_TOO_LARGE = frozenset({"K0604", "K0610", "K0611", "K0615"})
"""Why there may be no single pipeline."""


def design_again(design: HardwareDesign, scale: float, progress: Progress = lambda _: None) -> HardwareDesign:
    """The design planned for slower wires, from what it was lowered and mapped to. Raises KeraError."""
    again = _fitting(
        design.program, design.export, design.options, design.lowering, scale, design.name_notes, progress
    )
    return _written(again, progress)


def _written(design: HardwareDesign, progress: Progress) -> HardwareDesign:
    progress("writing Verilog")
    assert design.emitted
    return design


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
        best = task.decided(known)
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
            remember(key, decision_of(found))
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


def _formed(
    lowering: Lowering, planned: Callable[[Mappings, TargetOptions], HardwareDesign], options: TargetOptions
) -> HardwareDesign:
    """The design with its loop unrolled or kept: kept where it is one that ends by a condition, where it is
    too large otherwise, and where it is the cheaper one at the interval asked for.
    """
    if lowering.parts is None or options.latency is not None:
        return _choose(lowering.mappings, planned, options)
    (_, kept), = lowering.parts.before

    def rolled_at(clock_mhz: float | None, interval: int | None) -> HardwareDesign:
        return _choose(
            lambda interval: lowering.mappings(interval, rolled=True), planned,
            replace(options, interval=interval, clock_mhz=clock_mhz), may_wait=True,
        )

    def rolled() -> HardwareDesign:
        found = _rolled(lowering, options, rolled_at)
        if options.interval is not None and found.core_paces[1][1] > options.interval:
            raise KeraError([too_often(found.export, found.core_paces[1][1], options.interval)])
        return found

    if isinstance(kept.loop, While):
        try:
            return rolled()
        except KeraError:
            return _choose(lowering.mappings, planned, options)
    found: HardwareDesign | None = None
    if options.interval is not None:
        try:
            found = rolled()
        except KeraError:
            found = None
        if found is not None and _is_out_of_sight(lowering, options.interval, found):
            return found
    try:
        flat = _choose(lowering.mappings, planned, options)
    except KeraError as refusal:
        try:
            return found or rolled()
        except KeraError:
            raise refusal from None
    if found is None:
        return flat
    return min((flat, found), key=lambda item: merit(item.plan, item.device, options.interval))


def _is_out_of_sight(lowering: Lowering, interval: int, found: HardwareDesign) -> bool:
    """Whether the program unrolled has no circuit, or one that is sure to be far larger than a design."""
    try:
        return _dwarfs(lowering.mappings(interval).flat, found)
    except KeraError:
        return True


def _dwarfs(flat: FlatDesign, found: HardwareDesign) -> bool:
    """Whether the sums of a flat design, which share nothing, are far more than all of another design."""
    widths = 0
    for node in flat.region.nodes():
        if node.opcode in ("integer.mul", "integer.mul_wide", "control.loop"):
            return False  # these may take turns
        constant = any(ref.node.opcode == "core.constant" for ref in node.inputs)
        if node.opcode in ("integer.add", "integer.sub") and not constant:
            widths += width_of(node.types[0])
    return widths > _FAR_MORE * found.area


_FAR_MORE = 2
"""Times the sites of one design that carry cells of another are, for its other cells not to matter."""


def _rolled(
    lowering: Lowering, options: TargetOptions,
    at: Callable[[float | None, int | None], HardwareDesign],
) -> HardwareDesign:
    """The design with its loop kept: rounds as close as can be, or as far apart as the interval lets them be.

    Where short loops are written out a round is bound by what it hands to the next: at a clock at which that
    takes a cycle it may take less time, and fewer registers, than several cycles at a faster one. So slower
    clocks are tried where none is asked for. Raises KeraError where there is no design.
    """
    found: list[HardwareDesign] = []
    faults: list[KeraError] = []

    def tried(clock_mhz: float | None, interval: int | None) -> None:
        try:
            found.append(at(clock_mhz, interval))
        except KeraError as refusal:
            faults.append(refusal)

    for clock_mhz in clocks_of(options, lowering.device) if lowering.written_out else [options.clock_mhz]:
        tried(clock_mhz, None)
        if found and found[-1].plan.initiation_interval == 1:
            break
    own = None if options.interval is None else options.interval // lowering.most_rounds
    if own:
        best = min(found, key=lambda item: _rolled_rank(item, options), default=None)
        tried(options.clock_mhz if best is None else best.clock_mhz, own)
    if not found:
        raise faults[0]
    return min(found, key=lambda item: _rolled_rank(item, options))


def _rolled_rank(design: HardwareDesign, options: TargetOptions) -> tuple[bool, bool, float]:
    """What keeps to what was asked first; then sites, times an item's time where no interval is asked."""
    interval, over = design.core_paces[1][1], exceeds(design.estimate, options) is not None
    if options.interval is None:
        return False, over, design.area * interval / design.clock_mhz
    return interval > options.interval, over, design.area


def _choose(
    lowered: Callable[[int], Mappings], planned: Callable[[Mappings, TargetOptions], HardwareDesign],
    options: TargetOptions, may_wait: bool = False,
) -> HardwareDesign:
    """The design with loops kept where the interval allows them, they fit, and it is the better one.

    A loop that keeps an item for long may not fit a recurrence, a clock or a latency that a pipeline does.
    Where an item already takes several cycles it may wait for longer loops (``may_wait``), if that costs
    less by the measure of area times time.
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
    if interval == 1:
        return found
    waits = {interval, max(interval, patience(mappings.flat.region))} if may_wait else {interval}
    for wait in sorted(waits):
        patient = lowered(wait)
        if not _folds(patient.flat):
            continue
        try:
            folded = _planned_at(wait, patient, planned, options)
        except KeraError:
            continue
        if (may_wait or folded.clock_mhz >= found.clock_mhz) and _timed_merit(folded) < _timed_merit(found):
            found = folded
    return found


def _planned_at(
    interval: int, mappings: Mappings, planned: Callable[[Mappings, TargetOptions], HardwareDesign],
    options: TargetOptions,
) -> HardwareDesign:
    """Planned at the interval, or at the least that its recurrences allow with such loops in them."""
    try:
        return planned(mappings, replace(options, interval=interval))
    except KeraError as fault:
        refusal = fault.diagnostics[0]
        if not isinstance(refusal, Refusal) or refusal.code != "K0603":
            raise
        return planned(mappings, replace(options, interval=refusal.least))


def _timed_merit(design: HardwareDesign) -> tuple[bool, float, float]:
    """The order of designs whose clocks may differ: cycles count by their length."""
    exceeds, cost, latency = design.choice.best.merit
    return exceeds, cost / design.clock_mhz, latency / design.clock_mhz


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
        slower = clock_mhz * SLOWDOWN
        if options.clock_mhz is not None or slower < SLOWEST_MHZ or choice.code != "K0601":
            raise KeraError([choice])
        clock_mhz = slower
