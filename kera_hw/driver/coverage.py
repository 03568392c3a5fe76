"""The tables of all targets by name, and what `kera explain` says of an operation or a target."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kera_hw.cpu_gpu.amdgcn.compile import TABLE as AMDGCN
from kera_hw.cpu_gpu.engine import TABLE as CPU
from kera_hw.cpu_gpu.ptx.compile import TABLE as PTX
from kera_hw.interp.table import TABLE as INTERP
from kera_hw.lower.export import TABLE as LOOPS
from kera_hw.ops.registry import OPS
from kera_hw.rtl.formal.graph import TABLE as FORMAL
from kera_hw.rtl.lower.flatten import TABLE as RTL
from kera_hw.target import TargetTable
from kera_hw.target.coverage import BOUND, Line, lines, taken
from kera_hw.wasm.compile import TABLE as WASM

TABLES: dict[str, TargetTable[Any]] = {
    table.name: table for table in (INTERP, LOOPS, RTL, FORMAL, CPU, WASM, PTX, AMDGCN)
}  # fmt: skip
"""A new target is one more row; what it says is held against the registry, and against what it does."""


def operation_text(name: str) -> str:
    """What ``kera explain OPERATION`` prints."""
    row = OPS[name]
    attrs = f"\nattributes: {', '.join(row.attrs)}" if row.attrs else ""
    said = "\n".join(f"  {target}: {_on(table, name)}" for target, table in TABLES.items())
    return f"{name}\non {taken(name)}{attrs}\n\n{row.doc}\n\n{said}"


def _on(table: TargetTable[Any], name: str) -> str:
    against = [
        f"refused {line.where()}: {line.reason.reason}. {line.reason.remedy}" for line in lines(table, name)
    ]
    return "; ".join(against) or "computed"


def operation_json(name: str) -> dict[str, object]:
    """What ``kera explain OPERATION --json`` prints."""
    row = OPS[name]
    return {
        "operation": name, "types": taken(name), "attributes": list(row.attrs), "meaning": row.doc,
        "refused": refused_json([name]),
    }  # fmt: skip


def refused_text(operations: Sequence[str]) -> str:
    """What ``kera explain BUILTIN`` adds: the targets that refuse what the built-in becomes."""
    rows = [
        f"{target} refuses {name} {line.where()}: {line.reason.reason}."
        for name in operations for target, table in TABLES.items() for line in lines(table, name)
    ]
    return "".join(["\n", *(f"\n{row}" for row in rows)]) if rows else ""


def refused_json(operations: Sequence[str]) -> dict[str, list[dict[str, object]]]:
    """The same by target."""
    return {
        target: [line.to_json() for name in operations for line in lines(table, name)]
        for target, table in TABLES.items()
    }


def target_text(name: str) -> str:
    """What ``kera explain TARGET`` prints: all that the target refuses, by reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in _refused(name):
        reasons = found.setdefault((line.reason.reason, line.reason.remedy), [])
        reasons.append(f"  {line.opcode} {line.where()}")
    if not found:
        return f"{name} computes every operation on every type."
    parts = ["\n".join([f"{reason}. {remedy}", *rows]) for (reason, remedy), rows in found.items()]
    return "\n\n".join([f"{name} computes every operation on every type, but for these:", *parts])


def target_json(name: str) -> dict[str, object]:
    """What ``kera explain TARGET --json`` prints."""
    return {"target": name, "refused": [line.to_json() for line in _refused(name)]}


def _refused(name: str) -> list[Line]:
    return [line for opcode in OPS if opcode not in BOUND for line in lines(TABLES[name], opcode)]
