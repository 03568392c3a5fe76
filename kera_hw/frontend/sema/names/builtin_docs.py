"""What each built-in and method takes, gives and means: the rows of docs/reference/builtins.md.

Names and parameters are those of ``builtin_names``, which the checker uses; what is said of them stands in
``builtin_docs.toml``. A test runs every example and looks for the operations in its graph.
"""
from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files

from kera_hw.frontend.sema.names.builtins import BUILTINS, METHODS


@dataclass(frozen=True, slots=True)
class Described:
    """``example`` equals ``value``; without ``value`` it is a program that type-checks.

    ``operations`` are the rows of the registry that it becomes, one or another by the operands' type.
    """

    group: str
    types: str
    meaning: str
    example: str
    value: str = ""
    operations: tuple[str, ...] = ()


def _load() -> dict[str, Described]:
    text = files("kera_hw.frontend.sema.names").joinpath("builtin_docs.toml").read_text(encoding="utf-8")
    return {
        name: Described(**(row | {"operations": tuple(row.get("operations", ()))}))
        for name, row in tomllib.loads(text).items()
    }


DESCRIBED = _load()
_METHOD_FORMS = {
    "bits": "x.bits(hi, lo)", "bit": "x.bit(i)", "at": "a.at(i, ..., else: v)",
    "clamped": "a.clamped(i, ...)", "step": "f.step(x, ...)",
}


def signature(name: str) -> str:
    """As it is called: ``sum(x, axis?, order?)``, ``reshape::<..>(a)``, ``x.bits(hi, lo)``."""
    if name in METHODS:
        return _METHOD_FORMS[name]
    row = BUILTINS[name]
    names = [f"{part}?" if place >= row.required else part for place, part in enumerate(row.names)]
    if row.repeated:
        names[-1] = f"{row.names[-1]}..."
    return f"{name}{'::<..>' if row.turbofish else ''}({', '.join(names)})"


def to_json(name: str) -> dict[str, object]:
    """What ``kera explain NAME --json`` prints."""
    row = DESCRIBED[name]
    return {
        "name": name, "signature": signature(name), "types": row.types, "meaning": row.meaning,
        "operations": list(row.operations), "example": row.example, "value": row.value or None,
    }  # fmt: skip


def to_text(name: str) -> str:
    """What ``kera explain NAME`` prints."""
    row = DESCRIBED[name]
    shown = f"{row.example}  // {row.value}" if row.value else row.example
    graph = f"\n\nIn the graph: {', '.join(row.operations)}" if row.operations else ""
    return f"{signature(name)}\n{row.types}\n\n{row.meaning}\n\n    {shown}{graph}"


def page() -> str:
    """The reference page's tables, one for each group, as markdown."""
    lines: list[str] = []
    for group in dict.fromkeys(row.group for row in DESCRIBED.values()):
        lines += [f"## {group}", "", "| called as | types | meaning | example | in the graph |"]
        lines.append("|---|---|---|---|---|")
        for name, row in DESCRIBED.items():
            if row.group == group:
                value = f" is `{row.value}`" if row.value else ""
                graph = ", ".join(f"`{op}`" for op in row.operations) or "–"
                cells = (f"`{signature(name)}`", row.types, row.meaning, f"`{row.example}`{value}", graph)
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"
