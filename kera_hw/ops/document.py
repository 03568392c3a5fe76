"""The reference page of operations, printed from the registry: ``python -m kera_hw.ops.document``."""
from __future__ import annotations

from kera_hw.ops.registry import FAMILIES
from kera_hw.ops.spec import Expansion, OpSpec
from kera_hw.types import BF16, F16, F32, F64, I32

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
*Evaluated* says on which of the types it takes the interpreter computes an operation; on the others it
refuses (K0701) instead of approximating.
"""


def reference_page() -> str:
    """The whole page as markdown, ending in one newline."""
    parts = [_INTRODUCTION]
    for family, table in FAMILIES.items():
        parts.append(f"## {_TITLES[family]}\n")
        parts.append("| operation | attributes | meaning | traits | evaluated |\n|---|---|---|---|---|")
        parts += [_row(spec) for spec in table]
        parts.append("")
    return "\n".join(parts).rstrip("\n") + "\n"


def _row(spec: OpSpec) -> str:
    attrs = ", ".join(f"`{name}`" for name in spec.attrs) or "–"
    traits = ", ".join(sorted(trait.value for trait in spec.traits)) or "–"
    doc = spec.doc.replace("|", "\\|")
    if spec.expansion:
        doc += f" Expands: {_expansion_text(spec.expansion)}"
    return f"| `{spec.name}` | {attrs} | {doc} | {traits} | {_reference(spec)} |"


def _expansion_text(rule: Expansion) -> str:
    """What a rule says of itself, as one line."""
    return " ".join((rule.__doc__ or "").split()).replace("|", "\\|")


def _reference(spec: OpSpec) -> str:
    """What the operation's own rule says of each float format."""
    rule = spec.unsupported
    if rule is None:
        return "on all"
    if rule((I32,), (I32,)) is not None:
        return "not yet"
    refused = [kind for kind in (F16, BF16, F32, F64) if rule((kind,), (kind,)) is not None]
    return f"not yet on {', '.join(map(str, refused))}" if refused else "on all"


if __name__ == "__main__":
    print(reference_page(), end="")
