"""`kera verify --formal` on assertions and cover points: what holds for all inputs, what can be reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from kera_hw.driver.formal import patterns_value, unprovable
from kera_hw.driver.options import TIME_LIMIT_S
from kera_hw.driver.values import flatten_named, show_array
from kera_hw.graph import Export, Graph, Origin
from kera_hw.rtl.formal.assertions import Decided, decide_probes
from kera_hw.rtl.formal.reductions import NoMeaning
from kera_hw.rtl.formal.solver import solver_version
from kera_hw.support import Diagnostic, KeraError, Severity, SourceFile

_MOST_ITEMS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Check:
    """One assertion or cover point with its verdict."""

    export: Export
    decided: Decided
    origin: Origin | None

    @property
    def kind(self) -> str:
        return self.decided.node.opcode.removeprefix("effect.")

    @property
    def label(self) -> str:
        return cast(str, self.decided.node.attr("label"))

    @property
    def name(self) -> str:
        where = f"line {self.origin.line}" if self.origin is not None else "an unknown line"
        return f"`{self.label}` ({where})" if self.label else where

    def text(self) -> str:
        found = self.decided
        stream = bool(self.export.state)
        first = f"the first {found.items} items from reset"
        said = {
            "proved": f"proved, {first} and by induction over {found.induction}" if stream else "proved",
            "bounded": f"holds for {first}; not proved for all",
            "refuted": f"REFUTED by item {found.items - 1} from reset" if stream else "REFUTED",
            "reached": f"reached by item {found.items - 1} from reset" if stream else "reached",
            "unreachable": "cannot be reached",
            "unreached": f"not reached by {first}; nothing is known beyond",
            "unfinished": "not decided in the time limit",
            "unconfirmed": "not decided: the interpreter does not confirm the solver",
        }[found.outcome]
        return f"  {self.kind} {self.name}: {said} ({found.seconds:.1f} s)"

    def values(self) -> list[Mapping[str, Any]]:
        """The items that show the verdict, by parameter; each leaf has an axis of one item."""
        return [patterns_value(self.export, item) for item in self.decided.inputs]

    def diagnostic(self, files: Mapping[str, SourceFile]) -> Diagnostic | None:
        """What there is to say beside the text, if anything."""
        file = files.get(self.origin.path) if self.origin is not None else None
        place = (file, self.origin.span if self.origin is not None and file is not None else None)
        outcome = self.decided.outcome
        if outcome == "refuted":
            what = f"The assertion {self.name} of `{self.export.name}` can fail"
            items = len(self.decided.inputs)
            message = f"{what}, for item {items - 1} from reset." if self.export.state else f"{what}."
            return Diagnostic("K0921", message, *place, notes=tuple(self._item_notes()))
        if outcome == "unreachable":
            message = f"No item can reach the point {self.name} of `{self.export.name}`."
            return Diagnostic("K0922", message, *place, severity=Severity.WARNING)
        if outcome in ("unfinished", "unconfirmed", "bounded"):
            message = f"The {self.kind} {self.name} of `{self.export.name}` is not proved for all inputs."
            notes = ("Allow more with --time-limit, or assert before it what the state keeps to.",)
            return Diagnostic("K0960", message, *place, notes=notes, severity=Severity.WARNING)
        return None

    def _item_notes(self) -> list[str]:
        notes: list[str] = []
        values = self.values()
        for number, item in enumerate(values[-_MOST_ITEMS_SHOWN:], len(values[:-_MOST_ITEMS_SHOWN])):
            shown = ", ".join(f"{name} = {show_array(leaf[0])}" for name, leaf in flatten_named(item))
            notes.append(f"item {number}: {shown}" if self.export.state else shown)
        return notes

    def to_json(self) -> dict[str, Any]:
        found = self.decided
        return {
            "kind": self.kind,
            "label": self.label,
            "line": self.origin.line if self.origin is not None else None,
            "result": found.outcome,
            "items": found.items,
            "induction": found.induction,
            "seconds": round(found.seconds, 3),
            "inputs": [dict(flatten_named(item)) for item in self.values()],
        }


@dataclass(frozen=True, slots=True)
class Checks:
    """The assertions and cover points of one export."""

    export: Export
    checks: tuple[Check, ...]

    @property
    def refuted(self) -> bool:
        return any(check.decided.outcome == "refuted" for check in self.checks)

    @property
    def proved(self) -> bool:
        """Whether every assertion was proved."""
        return all(check.decided.outcome == "proved" for check in self.checks if check.kind == "assert")

    def text(self) -> str:
        lines = [f"{self.export.name}: assertions and cover points, by {solver_version()}"]
        return "\n".join([*lines, *(check.text() for check in self.checks)])

    def to_json(self) -> dict[str, Any]:
        return {
            "function": self.export.name, "proved": self.proved,
            "checks": [check.to_json() for check in self.checks],
        }  # fmt: skip


def prove_checks(graph: Graph, export: Export, limit_s: float) -> Checks:
    """Decides every assertion and cover point of an export. Raises KeraError (K0961) without a theory."""
    limit_s = TIME_LIMIT_S.check(limit_s)
    try:
        found = decide_probes(export, limit_s)
    except NoMeaning as lack:
        raise KeraError([unprovable(f"An assertion of `{export.name}`", lack)]) from None
    return Checks(export, tuple(Check(export, item, graph.origins.get(item.node)) for item in found))
