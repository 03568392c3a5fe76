"""Which operation is lowered by which unit. Modules of units export ``UNITS``; they are joined here.

A new unit is registered by adding its module's ``UNITS`` below: opcode to ``Unit``. On a format that a unit
does not list, its operation is lowered by its expansion: the general circuit.
"""
from __future__ import annotations

from collections.abc import Mapping

from kera_hw.graph.laws.floats import MINUS_ZERO
from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import add, compare, divide, elementary, fma, integral, mul, signs, sqrt
from kera_hw.rtl.lower.floats.canonical import mark
from kera_hw.rtl.lower.floats.units import Unit
from kera_hw.types import FloatType, Type

NOUN = "hardware"

UNITS: Mapping[str, Unit] = {
    "floating.add": Unit(add.lower_add),
    "floating.sub": Unit(add.lower_sub),
    "floating.mul": Unit(mul.lower_mul),
    "floating.div": Unit(divide.lower_div),
    "floating.recip": Unit(divide.lower_recip),
    "floating.fma": Unit(fma.lower_fma),
    "floating.sqrt": Unit(sqrt.lower_sqrt),
    "floating.rsqrt": Unit(sqrt.lower_rsqrt),
    "floating.neg": Unit(signs.lower_neg, canonical=False),
    "floating.abs": Unit(signs.lower_abs, canonical=False),
    "floating.copysign": Unit(signs.lower_copysign, canonical=False),
    "floating.relu": Unit(signs.lower_relu, canonical=False),
    "floating.sign": Unit(signs.lower_sign),
    "floating.is_nan": Unit(signs.lower_is_nan),
    "floating.is_finite": Unit(signs.lower_is_finite),
    **compare.UNITS,
    **integral.UNITS,
    **elementary.UNITS,
}


def has_unit(opcode: str, kind: Type) -> bool:
    """Whether a unit computes the operation on a format; elsewhere its expansion does."""
    return opcode in UNITS and kind in UNITS[opcode].formats


def apply(builder: Builder, opcode: str, kind: FloatType, *operands: Ref) -> Ref:
    """One operation on scalars of a format, as bits, by its unit."""
    assert has_unit(opcode, kind), f"no unit computes {opcode} on {kind}"
    if opcode == "floating.add":
        for kept, other in (operands, operands[::-1]):
            if builder.value(other) == MINUS_ZERO.of(kind):  # as padding of windows
                return kept
    unit = UNITS[opcode]
    result = unit.lower(builder, kind, *operands)
    return mark(builder, kind, result) if unit.canonical else result
