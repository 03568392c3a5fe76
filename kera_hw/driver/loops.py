"""Exports as loop programs: for people to read, planned, and by plans that were saved and edited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kera_hw.driver.files import read_bytes
from kera_hw.driver.session import optimise, single_export_graph
from kera_hw.graph import Export, Graph
from kera_hw.legal.legalise import legalise
from kera_hw.legal.native import CAPABILITIES, Native
from kera_hw.loops.printer import print_program
from kera_hw.loops.program import LoopProgram
from kera_hw.loops.transforms import parse_plan, print_plan, program_hash, replay
from kera_hw.loops.transforms.planner import Planned, planned
from kera_hw.lower.export import lower_with_updates
from kera_hw.support import Diagnostic, KeraError, SourceFile, deep_recursion


@deep_recursion()
def loop_texts(
    graph: Graph, fuse: bool, native: Native | None = None
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Each export's loop program below what is updated in place, and the steps taken when loops are joined.

    With ``native`` as it is for a machine that has the native set and these operations. Raises KeraError
    (K07xx) where an operation has no loops.
    """
    texts: dict[str, str] = {}
    steps: dict[str, list[str]] = {}
    for export in graph.exports:
        program, updates = lower_with_updates(export, graph.origins)
        if fuse:
            found = planned(program)
            program, steps[export.name] = found.after, list(map(str, found.steps))
        if native is not None:
            program = legalise(program, native)
        said = dict.fromkeys((*map(str, updates), *steps.get(export.name, [])))
        head = "".join(f"// {line}\n" for line in said)
        texts[export.name] = head + print_program(program)
    return texts, steps


def native_with(capabilities: Sequence[str]) -> Native:
    """What a machine has beside the native set, by names. Raises KeraError (K0905) for one that is none."""
    for name in capabilities:
        if name not in CAPABILITIES:
            message = f"`{name}` is no capability; there are {', '.join(CAPABILITIES)}."
            raise KeraError([Diagnostic("K0905", message)])
    return {row: domain for name in capabilities for row, domain in CAPABILITIES[name].items()}


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """An export's loops by a plan, and which tensors are updated in place."""

    planned: Planned
    updates: tuple[str, ...]

    @property
    def text(self) -> str:
        """The plan as it is saved."""
        return print_plan(self.planned.plan)

    @property
    def program(self) -> LoopProgram:
        return self.planned.after

    def headline(self) -> str:
        """What was saved, in a sentence."""
        before, after = self.planned.costs
        plan = self.planned.plan
        steps = f"{len(plan.steps)} {'step' if len(plan.steps) == 1 else 'steps'}"
        return (
            f"{plan.function}: {steps} (plan {plan.hash[:16]}); loops {before.loops} -> {after.loops}, "
            f"buffers {before.buffers} -> {after.buffers}; bytes held {before.held_bytes} -> "
            f"{after.held_bytes}, moved {before.moved_bytes} -> {after.moved_bytes}; rounds "
            f"{before.rounds} -> {after.rounds}, operations {before.operations} -> {after.operations}"
        )

    def explanation(self) -> list[tuple[str, str]]:
        """Each step and the fact behind it; then each update."""
        steps = [(str(step), step.reason or "as the plan says") for step in self.planned.steps]
        return [*steps, *(("", update) for update in self.updates)]

    def to_json(self) -> dict[str, object]:
        plan, (before, after) = self.planned.plan, self.planned.costs
        return {
            "function": plan.function, "plan": plan.hash, "program": plan.program,
            "planned_program": program_hash(self.program),
            "steps": [
                {"transform": step.transform, "arguments": list(step.arguments), "reason": step.reason}
                for step in plan.steps
            ],
            "updates": list(self.updates), "before": asdict(before), "after": asdict(after),
            "loops": print_program(self.program),
        }


@deep_recursion()
def plan_loops(graph: Graph, export: Export, given: Path | None = None) -> LoopPlan:
    """The loops of an export after the standard passes, by a plan that is made here or read from a file.

    Raises KeraError: K07xx where an operation has no loops, K0821 for a plan that cannot be used, K0901 where
    the file cannot be read.
    """
    shown = optimise(single_export_graph(graph, export))
    program, updates = lower_with_updates(shown.exports[0], shown.origins)
    said = tuple(dict.fromkeys(map(str, updates)))
    if given is None:
        return LoopPlan(planned(program), said)
    source = _read(given)
    plan = parse_plan(source.data.decode("utf-8", "replace"), source)
    after = replay(program, plan, source)
    return LoopPlan(Planned(program, after, plan.steps), said)


def _read(path: Path) -> SourceFile:
    data = read_bytes(path)
    if isinstance(data, Diagnostic):
        raise KeraError([data])
    return SourceFile(str(path), data)
