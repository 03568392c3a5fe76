"""Canonical NaN, made where bits can be seen and nowhere before.

Units accept any NaN and give the canonical one, so a value needs canonicalising only where it leaves the
design, becomes an integer, or is kept, and only when no unit has made it.
"""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.fields import unpack
from kera_hw.types import FloatType

_MOST_SELECTS = 4096


def mark(builder: Builder, kind: FloatType, ref: Ref) -> Ref:
    """Note that a value holds no NaN but the canonical one."""
    builder.canonical.add((ref, kind))
    return ref


def is_canonical(builder: Builder, kind: FloatType, ref: Ref) -> bool:
    """Whether a value is known to hold no other NaN: made by a unit, constant, or selected from such."""
    pending, seen = [ref], {ref}
    while pending:
        item = pending.pop()
        if (item, kind) in builder.canonical or _is_good_constant(builder, kind, item):
            continue
        if item.node.opcode != "control.select" or len(seen) > _MOST_SELECTS:
            return False
        for choice in item.node.inputs[1:]:
            if choice not in seen:
                seen.add(choice)
                pending.append(choice)
    return True


def _is_good_constant(builder: Builder, kind: FloatType, ref: Ref) -> bool:
    value = builder.value(ref)
    if value is None:
        return False
    infinity = ((1 << kind.exponent_bits) - 1) << kind.fraction_bits
    magnitude = value & ((1 << (kind.width_bits - 1)) - 1)
    return magnitude <= infinity or value == kind.canonical_nan


def canonical(builder: Builder, kind: FloatType, ref: Ref) -> Ref:
    """The value with every NaN made the canonical one."""
    if is_canonical(builder, kind, ref):
        return ref
    fields = unpack(builder, kind, ref)
    wires = fields.wires
    one = wires.const(kind.canonical_nan, kind.width_bits)
    return mark(builder, kind, wires.select(fields.is_nan, one, ref))
