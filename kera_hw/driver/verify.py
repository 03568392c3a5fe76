"""Comparing targets bit for bit, and finding the smallest input on which they differ."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from kera_hw.driver.observing import Observed, observe
from kera_hw.driver.options import SIMULATORS, VECTOR_SEED, VECTORS, Executor, TargetOptions, check_choice
from kera_hw.driver.pace import cycles_text
from kera_hw.driver.reference import MANY_ITEMS, SwiftReference
from kera_hw.driver.sampling import draw_items
from kera_hw.driver.session import identity
from kera_hw.driver.shrink import Mismatch, first_difference, minimise
from kera_hw.driver.simulations import REPLAYED_ITEMS, IcarusExecutor, NetlistExecutor
from kera_hw.driver.targets import make_executor
from kera_hw.driver.waves import check_wave, has_wave, trace_comparison
from kera_hw.graph import Export, Graph, probes_of
from kera_hw.support import Diagnostic, KeraError, Severity, SourceFile
from kera_hw.types import bit_width

Verdict = Literal["reference", "equal", "different", "failed", "refused"]
_WORDS: Mapping[Verdict, str] = {
    "reference": "reference", "equal": "equal, 0 differing bits", "different": "DIFFERS",
    "failed": "FAILED", "refused": "not compared",
}
# A circuit that departs from its plan, and a tool that breaks off, are the target's fault and not the call's.
_TARGETS_FAULTS = frozenset({"K0910", "K0924", "K0951", "K0952"})


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one target; ``faults`` say why it failed or was not compared."""

    target: str
    verdict: Verdict
    facts: str = ""
    faults: tuple[Diagnostic, ...] = ()

    @property
    def words(self) -> str:
        said = "; ".join(f"{item.code}: {item.message}" for item in self.faults)
        return said or self.facts

    def to_json(self) -> dict[str, Any]:
        reasons = [item.to_json() for item in self.faults]
        return {"target": self.target, "verdict": self.verdict, "facts": self.facts, "reasons": reasons}


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """``fingerprint`` names the graph compared, ``program_fingerprint`` the program it is from.

    ``rows`` has every target asked for, ``targets`` those that were compared.
    """

    fingerprint: str
    program_fingerprint: str
    function: str
    targets: tuple[str, ...]
    items: int
    bits_per_target: int
    plans: Mapping[str, Mapping[str, Any]]
    mismatches: tuple[Mismatch, ...]
    rows: tuple[Row, ...] = ()
    observed: Observed = Observed()
    diagnostics: tuple[Diagnostic, ...] = ()

    def __repr__(self) -> str:
        verdict = "equal" if self.equal else "DIFFERENT"
        return f"<VerifyReport {self.function}: {verdict} on {', '.join(self.targets)}, {self.items} items>"

    @property
    def equal(self) -> bool:
        return not any(row.verdict in ("different", "failed") for row in self.rows)

    @property
    def fine(self) -> bool:
        """Whether the targets are equal, none that was named is missing, and no assertion failed."""
        return self.equal and not any(item.is_error for item in self.diagnostics)

    def text(self) -> str:
        """For people: a table of the targets, then the first difference of each."""
        lines = [
            f"{self.function}: {self.items} items, {self.bits_per_target} bits each target",
            f"  {self.fingerprint}",
        ]
        name_width = max(len(row.target) for row in self.rows)
        word_width = max(len(_WORDS[row.verdict]) for row in self.rows)
        for row in self.rows:
            verdict = _WORDS[row.verdict].ljust(word_width)
            lines.append(f"  {row.target.ljust(name_width)}  {verdict}  {row.words}".rstrip())
        lines += ["  " + item.text() for item in self.mismatches]
        return "\n".join([*lines, *self.observed.cover_lines()])

    def to_json(self) -> dict[str, Any]:
        return {
            "equal": self.equal,
            "fingerprint": self.fingerprint,
            "program_fingerprint": self.program_fingerprint,
            "function": self.function,
            "targets": self.targets,
            "items": self.items,
            "bits_compared": self.bits_per_target,
            "results": [row.to_json() for row in self.rows],
            "plans": {name: dict(plan) for name, plan in self.plans.items()},
            "mismatches": [item.to_json() for item in self.mismatches],
            **self.observed.to_json(),
        }


def _facts(plan: Mapping[str, Any]) -> str:
    """The headline of a plan."""
    if "latency_cycles" in plan:
        latency, interval = cycles_text(plan["latency_cycles"]), cycles_text(plan["initiation_interval"])
        pace = f"latency {latency}, interval {interval} as predicted"
        if "simulator" in plan:
            return f"the first {REPLAYED_ITEMS} items again in Icarus, equal in every cycle"
        if "cells" in plan:
            return f"{plan['target']} after synthesis: {_costs(plan['cells'])}"
        return f"{plan['target']}: {pace}; estimated {_costs(plan['estimate'])}"
    if "code_bytes" in plan:
        return f"{plan['isa']}, {plan['code_bytes']:,} bytes of code"
    if "module_bytes" in plan:
        return f"a module of {plan['module_bytes']:,} bytes"
    if "runs_on" in plan:
        kernels = len(plan["kernels"])
        counted = f"{kernels} {'kernel' if kernels == 1 else 'kernels'}"
        where = "by our interpreter" if plan["runs_on"] == "interpreter" else f"on {plan['runs_on']}"
        return f"{plan['processor']}, {counted}, run {where}"
    return ""


def _costs(figures: Mapping[str, Any]) -> str:
    keys = ("lut", "ff", "dsp", "bram")
    return ", ".join(f"{figures[key]} {key.upper()}" for key in keys if figures[key]) or "no cells"


def verify_export(
    graph: Graph,
    export: Export,
    targets: Sequence[str],
    vectors: int,
    seed: int,
    given: Sequence[str],
    options: TargetOptions,
    progress: Callable[[str], None] = lambda _: None,
    wave: Path | None = None,
    files: Mapping[str, SourceFile] | None = None,
    passing: bool = False,
    netlist: bool = False,
    simulator: str = SIMULATORS[0],
) -> VerifyReport:
    """Runs every target on the same items and compares all result bits with the first target's.

    A target that refuses the function, or lacks a tool, is an error of the report; with ``passing`` it is
    passed over, as long as there is another one to compare. Where very many items are asked of ``interp`` as
    the reference, and ``cpu`` is not to be compared, that stands for it, held against it on a share of them.

    With ``netlist`` every circuit is simulated after synthesis as well; ``simulator`` icarus replays the
    beginning of each simulation there.

    ``wave`` takes the waveform of the smallest items that fail on a circuit; of those given where none fails,
    and of the first where none is given. Raises KeraError where the reference refuses, and (K0908) for a
    waveform where no target is a circuit.
    """
    vectors, seed = VECTORS.check(vectors), VECTOR_SEED.check(seed)
    simulator = check_choice("simulator (`--simulator`)", simulator, SIMULATORS)
    reference, *others = targets
    executors = {reference: make_executor(graph, export, reference, options)}
    refused: dict[str, tuple[Diagnostic, ...]] = {}

    def add(name: str, make: Callable[[], Executor]) -> None:
        try:
            executors[name] = make()
        except KeraError as refusal:
            refused[name] = tuple(refusal.diagnostics)

    order = [reference]
    for name in others:
        add(name, functools.partial(make_executor, graph, export, name, options))
        order.append(name)
        made = executors.get(name)
        for variant, make in () if made is None else _variants(name, made, netlist, simulator):
            add(variant, make)
            order.append(variant)
    if wave is not None:
        check_wave(wave)
        if not any(map(has_wave, executors.values())):
            message = "A waveform (`--wave`) needs a circuit among the targets, such as rtl."
            reasons = [item for faults in refused.values() for item in faults]
            raise KeraError([Diagnostic("K0908", message), *reasons])
    inputs, batch = draw_items(export, vectors, seed, given)
    if reference == "interp" and "cpu" not in others and batch >= MANY_ITEMS:
        executors[reference] = SwiftReference(graph, export, executors[reference])
    report = compare_executors(graph, export, executors, inputs, batch, progress)
    if wave is not None:
        progress("waveform")
        trace_comparison(executors, report.mismatches, inputs, batch, batch - vectors, wave)
    rows = {row.target: row for row in report.rows}
    rows |= {name: Row(name, "refused", faults=faults) for name, faults in refused.items()}
    report = replace(report, rows=tuple(rows[name] for name in order))
    severe = not passing or len(executors) == 1
    told = [item for row in report.rows for item in row.faults if row.verdict == "failed" or severe]
    report = replace(report, diagnostics=tuple(told))
    observing = [name for name in report.targets if name in targets]
    return _observed(report, graph, export, observing, options, inputs, batch, files or {})


def _variants(
    name: str, executor: Executor, netlist: bool, simulator: str
) -> Iterator[tuple[str, Callable[[], Executor]]]:
    """Other simulations of a target's circuit, if it is one, by name."""
    if not has_wave(executor):
        return
    gates = functools.cache(lambda: NetlistExecutor(executor))  # which asks for synthesis, once
    if netlist:
        yield f"{name}:netlist", gates
    if simulator == "icarus":
        yield f"{name}:icarus", lambda: IcarusExecutor(executor)
        if netlist:
            yield f"{name}:netlist:icarus", lambda: IcarusExecutor(gates())


def _observed(
    report: VerifyReport, graph: Graph, export: Export, targets: Sequence[str], options: TargetOptions,
    inputs: Mapping[str, Any], batch: int, files: Mapping[str, SourceFile],
) -> VerifyReport:
    """The report with what the first target observes, and what there is to say about that."""
    if not probes_of(export):
        return report
    reference = observe(graph, export, targets[0], options, inputs, batch)
    faults = [*report.diagnostics, *reference.faults(export, inputs, files), *reference.never(export, files)]
    for name in targets[1:]:
        try:
            found = observe(graph, export, name, options, inputs, batch)
        except KeraError as refusal:  # the results have a circuit, what is observed beside them may have none
            faults += [replace(item, severity=Severity.WARNING) for item in refusal.diagnostics]
            continue
        if found != reference:
            message = f"What `{export.name}` asserts, covers or prints on {name} differs from {targets[0]}."
            notes = reference.differences(found, targets[0], name)
            faults.append(Diagnostic("K0923", message, notes=notes))
    return replace(report, observed=reference, diagnostics=tuple(faults))


def compare_executors(
    graph: Graph,
    export: Export,
    executors: Mapping[str, Executor],
    inputs: Mapping[str, Any],
    batch: int,
    progress: Callable[[str], None] = lambda _: None,
) -> VerifyReport:
    """Compares executors by name; the first one says what is right.

    Raises KeraError for items that do not fit, and for what goes wrong with the reference.
    """
    reference, *others = executors
    progress(reference)
    expected = executors[reference].run(inputs, batch)
    mismatches: list[Mismatch] = []
    rows = [Row(reference, "reference", _reference_facts(executors[reference]))]
    for name in others:
        progress(name)
        executor = executors[name]
        try:
            found = first_difference(export, expected, executor.run(inputs, batch), batch)
            if found is not None:
                mismatches.append(
                    minimise(export, name, executors[reference], executor, inputs, batch, found)
                )
        except KeraError as fault:
            if not any(item.code in _TARGETS_FAULTS for item in fault.diagnostics):
                raise
            rows.append(Row(name, "failed", faults=tuple(fault.diagnostics)))
            continue
        rows.append(Row(name, "equal" if found is None else "different", _facts(executor.plan)))
    names = identity(graph, export)
    return VerifyReport(
        names["fingerprint"],
        names["program_fingerprint"],
        export.name,
        tuple(executors),
        batch,
        batch * bit_width(export.result),
        {name: executor.plan for name, executor in executors.items()},
        tuple(mismatches),
        tuple(rows),
    )


def _reference_facts(executor: Executor) -> str:
    return executor.checked if isinstance(executor, SwiftReference) else _facts(executor.plan)
