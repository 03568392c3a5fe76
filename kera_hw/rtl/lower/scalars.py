"""Operations on scalars that are no floats: integers as they are, fixed point by its expansion."""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import AttrValue
from kera_hw.rtl.lower.builder import Builder
from kera_hw.types import FixType

_MOVING = frozenset({"convert.bitcast", "control.select"})
"""Fixed point goes through these as it is."""


def apply(builder: Builder, opcode: str, *items: Ref, **attrs: AttrValue) -> Ref:
    """The result of an operation that has one. A flat region computes with integers and bools alone."""
    rule = OPS[opcode].expansion
    fixed = isinstance(attrs.get("type"), FixType) or any(isinstance(item.type, FixType) for item in items)
    if not fixed or rule is None or opcode in _MOVING:
        return builder.op(opcode, *items, **attrs)
    results: list[Ref] | None = rule(builder, items, attrs)  # type: ignore[assignment]
    assert results is not None, f"{opcode} is written out for fixed point"
    return results[0]


def raw_of(builder: Builder, ref: Ref) -> Ref:
    """The raw integer of a fixed-point value; anything else itself."""
    kind = ref.type
    return builder.op("convert.bitcast", ref, type=kind.raw) if isinstance(kind, FixType) else ref


def of_raw(builder: Builder, ref: Ref, kind: FixType) -> Ref:
    """The fixed-point value that a raw integer stands for."""
    return builder.op("convert.bitcast", ref, type=kind)
