"""One scalar operation of a loop program in a flat region: floats by units, the rest as it is."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from kera_hw.graph.node import Ref
from kera_hw.ops.registry import FAMILIES
from kera_hw.ops.spec import AttrValue
from kera_hw.rtl.lower import scalars
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import lowering as floats
from kera_hw.rtl.lower.floats import table
from kera_hw.types import FixType, FloatType, Type

Attributes = Mapping[str, AttrValue]
Circuit = Callable[[Sequence[Ref]], list[Ref]]
"""The results of an operation from its operands."""

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


def circuit_of(
    builder: Builder, opcode: str, kinds: Sequence[Type], results: Sequence[Type], attrs: Attributes
) -> Circuit | None:
    """How an operation on operands and results of these types is made, floats as their bits; None where its
    expansion is."""
    kind = float_type([*kinds, *results])
    if kind is None or opcode in _MOVING:
        return _plain(builder, opcode, [*kinds, *results], attrs)
    if opcode == "convert.cast":
        return lambda args: [floats.converted(builder, kinds[0], cast(Type, attrs["type"]), args[0])]
    if opcode == "convert.bitcast":
        return lambda args: [floats.bitcast(builder, kinds[0], cast(Type, attrs["type"]), args[0])]
    if opcode not in table.UNITS or lacks_unit(opcode, [kind]):
        return None
    return lambda args: [table.apply(builder, opcode, kind, *args)]


def _plain(
    builder: Builder, opcode: str, kinds: Sequence[Type], attrs: Attributes
) -> Circuit | None:
    """Operations on integers, bools and fixed point, and those that move any scalar."""
    if opcode == "integer.add_carry":
        return lambda args: builder.outputs(opcode, *args)
    if opcode not in SCALAR and opcode not in _MOVING:
        return None
    if any(isinstance(kind, FixType) for kind in kinds):
        return lambda args: [scalars.apply(builder, opcode, *args, **attrs)]
    return lambda args: [builder.op(opcode, *args, **attrs)]
