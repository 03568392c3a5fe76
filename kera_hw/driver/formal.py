"""`kera verify --formal`: proofs that an export's circuit equals its graph, for people and programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TIME_LIMIT_S, VECTOR_SEED, TargetOptions
from kera_hw.driver.sampling import from_bits
from kera_hw.driver.session import identity
from kera_hw.driver.shrink import Mismatch
from kera_hw.driver.targets import make_executor
from kera_hw.driver.verify import compare_executors
from kera_hw.graph import Export, Graph, without_probes
from kera_hw.interp import unflatten_value
from kera_hw.rtl.formal.cells import NotModelled
from kera_hw.rtl.formal.circuit import emitted_circuit
from kera_hw.rtl.formal.implementation import Clocked, Implementation, Lowered
from kera_hw.rtl.formal.proof import Counterexample, Verdict, check
from kera_hw.rtl.formal.reductions import NoMeaning
from kera_hw.rtl.formal.replay import scalars_of
from kera_hw.rtl.formal.solver import solver_version
from kera_hw.rtl.formal.terms import Terms
from kera_hw.rtl.toolchain.process import ToolError
from kera_hw.support import Diagnostic, KeraError, Severity
from kera_hw.types import (
    TensorType,
    Type,
    bit_width,
    element_type,
    flatten_type,
    leaf_types,
    shape_of,
)

STEPS = 6
"""Calls of ``progress`` for one export."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Proof:
    """One export: a verdict for each description of its circuit, and what was to be said about them.

    ``mismatches`` shows each refutation on its smallest known item, one a refuted level, in order.
    """

    function: str
    fingerprint: str
    program_fingerprint: str
    verdicts: tuple[Verdict, ...]
    mismatches: tuple[Mismatch, ...]
    diagnostics: tuple[Diagnostic, ...]

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{verdict.level} {verdict.outcome}" for verdict in self.verdicts)
        return f"<Proof of {self.function}: {verdicts or 'nothing to prove'}>"

    @property
    def refuted(self) -> bool:
        return any(verdict.outcome == "refuted" for verdict in self.verdicts)

    @property
    def proved(self) -> bool:
        """Whether every level was proved, and there was something to prove."""
        return bool(self.verdicts) and all(verdict.outcome == "proved" for verdict in self.verdicts)

    def text(self) -> str:
        """For people: each level with its verdict, its time and the planted fault."""
        lines = [f"{self.function}: for all inputs, by {solver_version()}", f"  {self.fingerprint}"]
        for verdict in self.verdicts:
            figures = f"{verdict.seconds:.1f} s{_cases(verdict)}"
            through = f" through the {verdict.through}" if verdict.through else ""
            lines.append(f"  {verdict.level}: {_VERDICTS[verdict.outcome]}{through} ({figures})")
            if verdict.fault is not None:
                lines.append(f"    planted fault refuted: {verdict.fault.text}")
        return "\n".join([*lines, *("  " + item.text() for item in self.mismatches)])

    def to_json(self) -> dict[str, Any]:
        return {
            "function": self.function,
            "fingerprint": self.fingerprint,
            "program_fingerprint": self.program_fingerprint,
            "proved": self.proved,
            "levels": [verdict_row(verdict) for verdict in self.verdicts],
            "mismatches": [item.to_json() for item in self.mismatches],
        }


def _cases(verdict: Verdict) -> str:
    return f", {verdict.cases} cases" if verdict.cases > 1 else ""


_VERDICTS = {
    "proved": "proved equal to the graph",
    "refuted": "DIFFERS from the graph",
    "unfinished": "not finished in the time limit",
    "unconfirmed": "not proved: no planted fault was refuted",
    "not modelled": "not proved: a cell has no model",
}


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    """A verdict as a plain JSON object."""
    fault = verdict.fault
    return {
        "level": verdict.level,
        "against": verdict.through or "source graph",
        "result": verdict.outcome,
        "seconds": round(verdict.seconds, 3),
        "cases": verdict.cases,
        "time_limit_s": verdict.limit_s,
        "solver": solver_version(),
        "planted_fault": None if fault is None else {
            "fault": fault.text, "trials": fault.trials, "refuted": True, "seconds": fault.seconds,
            "inputs": [hex(value) for value in fault.shown_by.inputs],
        },
        "note": verdict.note,
    }  # fmt: skip


def prove_export(
    graph: Graph,
    export: Export,
    options: TargetOptions,
    limit_s: float,
    seed: int = 1,
    progress: Progress = lambda _: None,
) -> Proof:
    """Proves the lowered graph and the emitted Verilog of one export equal to its graph.

    Each level has ``limit_s`` seconds. Raises KeraError where there is no circuit (K06xx, K07xx), no theory
    for an operation (K0961), or where a tool fails.
    """
    limit_s, seed = TIME_LIMIT_S.check(limit_s), VECTOR_SEED.check(seed)
    progress("planning")
    options = replace(options, interface="none")
    design = design_hardware(graph, export, options)
    if design.keeps_loops:
        message = f"`{export.name}` cannot be proved: its loop stays a loop, of which no proof is made yet."
        note = "Export the loop's body to prove a round, or verify it by simulation."
        raise KeraError([Diagnostic("K0961", message, notes=(note,))])
    _refuse_memories(design)
    verdicts: list[Verdict] = []
    mismatches: list[Mismatch] = []
    diagnostics: list[Diagnostic] = []
    export, whole = without_probes(export), export
    try:
        reference: Implementation | None = None
        for implementation in design_levels(design, progress):
            verdict = _verdict(export, implementation, limit_s, seed, progress, reference)
            verdicts.append(verdict)
            reference = implementation if verdict.outcome == "proved" else reference
            diagnostics += _remarks(export, verdict)
            if verdict.counterexample is not None:
                mismatches.append(_shown(graph, export, options, verdict.level, verdict.counterexample))
    except NoMeaning as lack:
        raise KeraError([unprovable(f"`{export.name}`", lack)]) from None
    except ToolError as fault:
        raise KeraError([fault.diagnostic]) from None
    names = identity(graph, whole)
    return Proof(
        export.name, names["fingerprint"], names["program_fingerprint"],
        tuple(verdicts), tuple(mismatches), tuple(diagnostics),
    )  # fmt: skip


def _refuse_memories(design: HardwareDesign) -> None:
    """Raises KeraError (K0961) for state in memories, which proofs would have to hold word by word."""
    kept = [memory.name for memory in design.flat.memories]
    if kept:
        names = ", ".join(f"`{name}`" for name in kept)
        message = f"`{design.export.name}` cannot be proved: its state is kept in memories ({names})."
        notes = ("Compare on many items instead, without --formal, or prove it with fewer words.",)
        raise KeraError([Diagnostic("K0961", message, notes=notes, severity=Severity.WARNING)])


def _verdict(
    export: Export,
    implementation: Implementation,
    limit_s: float,
    seed: int,
    progress: Progress,
    reference: Implementation | None,
) -> Verdict:
    try:
        if isinstance(implementation, Clocked):
            _check_reset(export, implementation)
        return check(export, implementation, limit_s, seed, progress=progress, reference=reference)
    except NotModelled as lack:
        return Verdict(implementation.label, "not modelled", 0.0, limit_s, note=str(lack))


def design_levels(design: HardwareDesign, progress: Progress = lambda _: None) -> Iterator[Implementation]:
    """The descriptions of a design without handshake that can be held against its graph."""
    yield Lowered(design.flat)
    progress("reading the Verilog")
    circuit = emitted_circuit(design.emitted)
    clocked = Clocked(circuit, design.flat, design.netlist, design.plan, design.emitted)
    yield clocked


def _check_reset(export: Export, clocked: Clocked) -> None:
    """The first item meets the initial states: a matter of constants, so there is nothing to solve."""
    found = clocked.initial_states(Terms())
    wrong = [
        state.name
        for state, term in zip(clocked.flat.states, found)
        if term is not None and term.value != state.initial
    ]
    if wrong:
        raise AssertionError(f"the state `{wrong[0]}` of {export.name} does not begin as planned")


def _remarks(export: Export, verdict: Verdict) -> list[Diagnostic]:
    where = f"the {verdict.level} of `{export.name}`"
    if verdict.outcome == "unfinished":
        message = f"The proof for {where} did not end within {verdict.limit_s:g} s."
        notes = ("Allow more with --time-limit, or export a smaller piece.",)
        return [Diagnostic("K0960", message, notes=notes, severity=Severity.WARNING)]
    if verdict.outcome == "unconfirmed":
        message = f"The solver found no difference in {where}, but neither did it find a planted fault."
        return [Diagnostic("K0962", message, notes=(verdict.note,), severity=Severity.WARNING)]
    if verdict.outcome == "not modelled":
        message = f"There is no model of a cell in {where}: {verdict.note}."
        return [Diagnostic("K0961", message, severity=Severity.WARNING)]
    return []


def unprovable(what: str, lack: NoMeaning) -> Diagnostic:
    """A warning that something cannot be proved because of what it uses."""
    message = f"{what} cannot be proved: {lack.diagnostic.message}"
    return replace(lack.diagnostic, message=message, severity=Severity.WARNING)


# Refutations, shown as values


def _shown(
    graph: Graph, export: Export, options: TargetOptions, level: str, found: Counterexample
) -> Mismatch:
    """The refutation as `verify` shows it: of a fn the smallest item that simulation shows to differ.

    Otherwise the solver's own item, as for a stream: an item with the state it meets.
    """
    inputs = patterns_value(export, found.inputs)
    if export.kind == "fn":
        simulated = _simulated(graph, export, options, inputs)
        if simulated is not None:
            return replace(simulated, target=level)
    patterns = iter(found.states)
    states = {f"state {var.name}": _value(var.initial.type, patterns) for var in export.state}
    place = found.first
    width = bit_width(scalars_of(list(export.region.result_types))[place])
    leaf, element = _place(export, place)
    expected, actual = (f"0b{bits[place]:0{width}b}" for bits in (found.expected, found.actual))
    return Mismatch(level, 0, leaf, element, {**inputs, **states}, expected, actual)


def _simulated(
    graph: Graph, export: Export, options: TargetOptions, inputs: Mapping[str, Any]
) -> Mismatch | None:
    """The difference between interpreter and simulated Verilog on one item; None where none is to be seen."""
    try:
        executors = {name: make_executor(graph, export, name, options) for name in ("interp", "rtl")}
        report = compare_executors(graph, export, executors, inputs, 1)
    except KeraError:
        return None
    return report.mismatches[0] if report.mismatches else None


def _place(export: Export, number: int) -> tuple[str, tuple[int, ...]]:
    """The name and position of the scalar with this number among results and next states."""
    names = [(".".join(leaf.path) or "result", leaf.type) for leaf in flatten_type(export.result)]
    names += [(f"state {var.name}", var.initial.type) for var in export.state]
    for name, kind in names:
        size = kind.size if isinstance(kind, TensorType) else 1
        if number < size:
            shape = shape_of(kind)
            return name, tuple(int(i) for i in np.unravel_index(number, shape)) if shape else ()
        number -= size
    raise AssertionError("there is no such result")


def patterns_value(export: Export, inputs: Sequence[int]) -> dict[str, Any]:
    """An item's parameters by name, as a batch of one, from the patterns of their scalars."""
    patterns = iter(inputs)
    return {name: _value(kind, patterns) for name, kind in export.params}


def _value(kind: Type, patterns: Iterator[int]) -> Any:
    """A value of one item, as a batch of one, from its scalars' patterns."""
    leaves: list[Any] = []
    for leaf in leaf_types(kind):
        shape, element = shape_of(leaf), element_type(leaf)
        size = int(np.prod(shape, dtype=np.int64))
        bits = np.array([next(patterns) for _ in range(size)], np.uint64)
        leaves.append(from_bits(element, bits).reshape(1, *shape))
    return unflatten_value(kind, leaves)
