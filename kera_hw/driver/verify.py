"""Comparing targets bit for bit, and finding the smallest input on which they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kera_hw.driver.observing import Observed, observe
from kera_hw.driver.options import VECTOR_SEED, VECTORS, Executor, TargetOptions
from kera_hw.driver.sampling import map_leaves, random_value
from kera_hw.driver.session import identity
from kera_hw.driver.shrink import Mismatch, first_difference, minimise
from kera_hw.driver.targets import make_executor
from kera_hw.driver.values import read_inputs
from kera_hw.driver.waves import check_wave, has_wave, trace_comparison
from kera_hw.graph import Export, Graph, probes_of
from kera_hw.interp import flatten_value
from kera_hw.interp.values import item_count
from kera_hw.support import Diagnostic, KeraError, Severity, SourceFile
from kera_hw.types import bit_width, leaf_types


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """``fingerprint`` names the graph compared, ``program_fingerprint`` the program it is from."""

    fingerprint: str
    program_fingerprint: str
    function: str
    targets: tuple[str, ...]
    items: int
    bits_per_target: int
    plans: Mapping[str, Mapping[str, Any]]
    mismatches: tuple[Mismatch, ...]
    observed: Observed = Observed()
    diagnostics: tuple[Diagnostic, ...] = ()

    def __repr__(self) -> str:
        verdict = "equal" if self.equal else "DIFFERENT"
        return f"<VerifyReport {self.function}: {verdict} on {', '.join(self.targets)}, {self.items} items>"

    @property
    def equal(self) -> bool:
        return not self.mismatches

    @property
    def fine(self) -> bool:
        """Whether the targets are equal and no assertion failed."""
        return self.equal and not any(item.is_error for item in self.diagnostics)

    def text(self) -> str:
        """For people: what was compared, cycles and resources, the first difference of each target."""
        reference, *others = self.targets
        lines = [
            f"{self.function}: {self.items} items, {self.bits_per_target} bits each target",
            f"  {self.fingerprint}",
        ]
        for target in others:
            plan = self.plans[target]
            failed = next((m for m in self.mismatches if m.target == target), None)
            verdict = "DIFFERS" if failed else f"equal to {reference}, 0 differing bits"
            lines.append(f"  {target}: {verdict}{_facts(plan)}")
            if failed:
                lines.append("  " + failed.text())
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
            "plans": {name: dict(plan) for name, plan in self.plans.items()},
            "mismatches": [item.to_json() for item in self.mismatches],
            **self.observed.to_json(),
        }


def _facts(plan: Mapping[str, Any]) -> str:
    if "latency_cycles" not in plan:
        return ""
    estimate = plan.get("estimate", {})
    keys = [key for key in ("lut", "ff", "dsp", "bram") if key in estimate]
    cost = ", ".join(f"{estimate[key]} {key.upper()}" for key in keys)
    return (
        f"\n    latency {plan['latency_cycles']}, interval {plan['initiation_interval']} cycles, as predicted"
        f"\n    estimated {cost}"
    )


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
) -> VerifyReport:
    """Runs every target on the same items and compares all result bits with the first target's.

    ``wave`` takes the waveform of the smallest items that fail on a circuit; of those given where none fails,
    and of the first where none is given. Raises KeraError (K0908) where no target is a circuit.
    """
    vectors, seed = VECTORS.check(vectors), VECTOR_SEED.check(seed)
    executors = {name: make_executor(graph, export, name, options) for name in targets}
    if wave is not None:
        check_wave(wave)
        if not any(map(has_wave, executors.values())):
            message = "A waveform (`--wave`) needs a circuit among the targets, such as rtl."
            raise KeraError([Diagnostic("K0908", message)])
    inputs, batch = draw_items(export, vectors, seed, given)
    report = compare_executors(graph, export, executors, inputs, batch, progress)
    if wave is not None:
        progress("waveform")
        trace_comparison(executors, report.mismatches, inputs, batch, batch - vectors, wave)
    return _observed(report, graph, export, targets, options, inputs, batch, files or {})


def _observed(
    report: VerifyReport, graph: Graph, export: Export, targets: Sequence[str], options: TargetOptions,
    inputs: Mapping[str, Any], batch: int, files: Mapping[str, SourceFile],
) -> VerifyReport:
    """The report with what the first target observes, and what there is to say about that."""
    if not probes_of(export):
        return report
    reference = observe(graph, export, targets[0], options, inputs, batch)
    faults = [*reference.faults(export, inputs, files), *reference.never(export, files)]
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


def draw_items(export: Export, vectors: int, seed: int, given: Sequence[str]) -> tuple[dict[str, Any], int]:
    """The user's items, if any, then ``vectors`` random ones; and how many there are in all."""
    rng = np.random.default_rng(seed)
    inputs: dict[str, Any] = {name: random_value(kind, vectors, rng) for name, kind in export.params}
    return _append(export, inputs, read_inputs(export, given), vectors) if given else (inputs, vectors)


def compare_executors(
    graph: Graph,
    export: Export,
    executors: Mapping[str, Executor],
    inputs: Mapping[str, Any],
    batch: int,
    progress: Callable[[str], None] = lambda _: None,
) -> VerifyReport:
    """Compares executors by name; the first one says what is right."""
    reference, *others = executors
    progress(reference)
    expected = executors[reference].run(inputs, batch)
    mismatches: list[Mismatch] = []
    for name in others:
        progress(name)
        found = first_difference(export, expected, executors[name].run(inputs, batch), batch)
        if found is not None:
            mismatches.append(
                minimise(export, name, executors[reference], executors[name], inputs, batch, found)
            )
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
    )


def _append(
    export: Export, random: dict[str, Any], own: Mapping[str, Any], vectors: int
) -> tuple[dict[str, Any], int]:
    """The user's items first, then the random ones."""
    counts = {item_count(kind, own[name]) for name, kind in export.params if leaf_types(kind)}
    if len(counts) != 1 or None in counts:
        message = "Items of your own have the items along the leading axis of every input, as many in each."
        raise KeraError([Diagnostic("K0915", message)])
    count = counts.pop() or 0
    joined: dict[str, Any] = {}
    for name, kind in export.params:
        rows = iter(flatten_value(kind, own[name], count, name))
        joined[name] = map_leaves(random[name], lambda tail, rows=rows: np.concatenate([next(rows), tail]))
    return joined, count + vectors
