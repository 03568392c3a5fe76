"""A target's table held against the registry: every operation on every type is lowered or refused.

What a table says is read off the least programs of each operation (``minimal``), so that predicates over
types need no list beside them.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kera_hw.graph.expand import Expander
from kera_hw.graph.node import Node
from kera_hw.ops.registry import OPS
from kera_hw.target.minimal import TYPES, Minimal, minimal_programs
from kera_hw.target.table import GAP, Refusal, TargetTable
from kera_hw.types import BoolType, FixType, FloatType, IntType, Type

Table = TargetTable[Any]

BOUND = frozenset({"core.param"})
"""Given by whoever calls the region: no target computes it."""


@lru_cache(maxsize=4096)
def programs_on(opcode: str, kind: Type) -> tuple[Minimal, ...]:
    """Every variant of an operation on a type; none where it does not take it."""
    return tuple(minimal_programs(opcode, kind))


def variants(opcode: str) -> dict[Type, list[Node]]:
    """Every variant of an operation by the types that it takes."""
    found: dict[Type, list[Node]] = {}
    for kind in TYPES:
        for program in programs_on(opcode, kind):
            found.setdefault(program.kind, []).append(program.node)
    return found


@dataclass(frozen=True, slots=True)
class Answer:
    """What a target says of an operation on one type: the reasons against some or all of its variants."""

    kind: Type
    reasons: tuple[Refusal, ...]
    whole: bool
    """Whether a reason stands against each variant."""


def answers(table: Table, opcode: str) -> Iterator[Answer]:
    """By type."""
    expander = Expander()
    for kind, nodes in variants(opcode).items():
        rows = [table.refusal(node, expander) for node in nodes]
        reasons = tuple(dict.fromkeys(row for row in rows if row is not None))
        yield Answer(kind, reasons, None not in rows)


def gaps(table: Table) -> list[str]:
    """Where a table is no partition of the registry, in words that name the operation."""
    found = [f"{name} is no operation" for name in {**table.lowerings, **table.refused} if name not in OPS]
    for opcode in OPS:
        if opcode in BOUND:
            continue
        said = list(answers(table, opcode))
        open_ = [item.kind for item in said if GAP in item.reasons]
        if open_:
            found.append(f"{opcode} on {_names(open_)} is neither lowered nor refused")
        if opcode in table.lowerings and all(item.whole for item in said):
            found.append(f"{opcode} is lowered and refused on every type")
        held = {row for item in said for row in item.reasons}
        idle = [row.reason for row in table.refused.get(opcode, ()) if row not in held]
        found += [f"{opcode} is refused for a reason that never holds: {reason}" for reason in idle]
    return [f"{table.name}: {text}" for text in found]


# For people

_NOUNS: dict[type[Type], str] = {
    BoolType: "bool", IntType: "integers", FixType: "fixed point", FloatType: "floats",
}


def _names(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types))


def taken(opcode: str) -> str:
    """The kinds of types that an operation takes, as prose."""
    kinds = variants(opcode)
    return ", ".join(noun for kind, noun in _NOUNS.items() if any(isinstance(item, kind) for item in kinds))


@dataclass(frozen=True, slots=True)
class Line:
    """One reason of a target against an operation, and the types on which it holds, in part or wholly."""

    opcode: str
    reason: Refusal
    types: tuple[Type, ...]
    whole: bool
    """Whether on each of these types nothing is left."""

    def where(self) -> str:
        """On which types the operation is refused, in prose."""
        if len(self.types) == len(variants(self.opcode)):
            types = "on every type"
        else:
            types = f"on {_names(self.types)}"
        return types if self.whole else f"in some forms {types}"

    def to_json(self) -> dict[str, object]:
        return {
            "operation": self.opcode, "types": list(map(str, self.types)), "wholly": self.whole,
            "reason": self.reason.reason, "remedy": self.reason.remedy,
        }


def lines(table: Table, opcode: str) -> list[Line]:
    """All that a target has against an operation."""
    if opcode in table.lowerings and opcode not in table.refused:
        return []
    found: dict[tuple[Refusal, bool], list[Type]] = {}
    for item in answers(table, opcode):
        for row in item.reasons:
            found.setdefault((row, item.whole), []).append(item.kind)
    return [Line(opcode, row, tuple(types), whole) for (row, whole), types in found.items()]


def page(tables: Mapping[str, Table]) -> str:
    """The table of operations and targets, and the reasons below it."""
    notes: dict[tuple[str, str, str], int] = {}

    def cell(table: Table, opcode: str) -> str:
        against = lines(table, opcode)
        if not against:
            return "all"
        parts: list[str] = []
        for line in against:
            key = (table.name, line.reason.reason, line.reason.remedy)
            number = notes.setdefault(key, len(notes) + 1)
            parts.append(f"refused {line.where()} ({number})")
        return "; ".join(parts)

    rows = [
        f"| `{opcode}` | {taken(opcode)} | " + " | ".join(cell(t, opcode) for t in tables.values()) + " |"
        for opcode in OPS if opcode not in BOUND
    ]
    head = f"| operation | types | {' | '.join(tables)} |\n|---|---|{'---|' * len(tables)}"
    said = [f"{k}. `{name}`: {reason}. {remedy}" for (name, reason, remedy), k in notes.items()]
    return "\n".join([head, *rows, "", "## Reasons", "", *said]) + "\n"
