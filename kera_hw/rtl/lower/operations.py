"""One scalar operation of a loop program in a flat region: floats by units, the rest as it is."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from kera_hw.graph.node import Ref
from kera_hw.ops.registry import FAMILIES
from kera_hw.ops.spec import AttrValue
from kera_hw.rtl.lower import scalars
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import lowering as floats
from kera_hw.rtl.lower.floats import table
from kera_hw.types import FloatType, Type

Attributes = Mapping[str, AttrValue]

SCALAR = frozenset(
    row.name for family in ("integer", "fixed", "compare", "bits", "convert") for row in FAMILIES[family]
)
"""Families that a flat region has: fixed point by its expansion, integers as they are."""

_MOVING = frozenset({"control.select"})
"""Floats go through these as bits."""


def float_type(kinds: Sequence[Type]) -> FloatType | None:
    """The first float format among types."""
    return next((kind for kind in kinds if isinstance(kind, FloatType)), None)


def lacks_unit(opcode: str, kinds: Sequence[Type]) -> bool:
    """Whether a function is computed by arithmetic that has a unit on other formats."""
    kind = float_type(kinds)
    return kind is not None and opcode in table.UNITS and not table.has_unit(opcode, kind)


def has_circuit(opcode: str, kinds: Sequence[Type]) -> bool:
    """Whether ``apply`` takes an operation on operands and results of these types."""
    if opcode in _MOVING or float_type(kinds) is None:
        return opcode in _MOVING or opcode in SCALAR
    return opcode in floats.HANDLERS and not lacks_unit(opcode, kinds)


def apply(
    builder: Builder, opcode: str, kinds: Sequence[Type], results: Sequence[Type], attrs: Attributes,
    args: Sequence[Ref],
) -> list[Ref]:
    """The results of an operation that has a circuit, floats as their bits."""
    kind = float_type([*kinds, *results])
    if opcode == "integer.add_carry":
        return builder.outputs(opcode, *args)
    if kind is None or opcode in _MOVING:
        return [scalars.apply(builder, opcode, *args, **attrs)]
    if opcode == "convert.cast":
        return [floats.converted(builder, kinds[0], cast(Type, attrs["type"]), args[0])]
    if opcode == "convert.bitcast":
        return [floats.bitcast(builder, kinds[0], cast(Type, attrs["type"]), args[0])]
    return [table.apply(builder, opcode, kind, *args)]
