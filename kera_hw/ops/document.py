"""The reference page of operations, printed from the registry: ``python -m kera_hw.ops.document``."""
from __future__ import annotations

from kera_hw.ops.registry import FAMILIES
from kera_hw.ops.spec import Expansion, OpSpec

_TITLES = {
    "core": "Parameters and constants",
    "integer": "Integers",
    "fixed": "Fixed point",
    "floating": "Floating point",
    "compare": "Comparisons",
    "convert": "Conversions",
    "bits": "Bits",
    "tensor": "Tensors",
    "reduce": "Reductions",
    "control": "Control",
    "memory": "Memory spaces",
    "neural": "Neural composites",
    "effect": "Effects",
}

_INTRODUCTION = """\
# Operations

Generated from the operation registry by `python -m kera_hw.ops.document`; edit the tables, not this page.

Every operation has one meaning on every target. W is the width of an integer or format in bits. Where
*elementwise* is noted, operands are scalars or tensors of one shape, and a scalar goes with every element.
What each target computes, and on which types, stands on [a page of its own](coverage.md).
"""


def reference_page() -> str:
    """The whole page as markdown, ending in one newline."""
    parts = [_INTRODUCTION]
    for family, table in FAMILIES.items():
        parts.append(f"## {_TITLES[family]}\n")
        parts.append("| operation | attributes | meaning | traits |\n|---|---|---|---|")
        parts += [_row(spec) for spec in table]
        parts.append("")
    return "\n".join(parts).rstrip("\n") + "\n"


def _row(spec: OpSpec) -> str:
    attrs = ", ".join(f"`{name}`" for name in spec.attrs) or "–"
    traits = ", ".join(sorted(trait.value for trait in spec.traits)) or "–"
    doc = spec.doc.replace("|", "\\|")
    if spec.expansion:
        doc += f" Expands: {_expansion_text(spec.expansion)}"
    return f"| `{spec.name}` | {attrs} | {doc} | {traits} |"


def _expansion_text(rule: Expansion) -> str:
    """What a rule says of itself, as one line."""
    return " ".join((rule.__doc__ or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    print(reference_page(), end="")
