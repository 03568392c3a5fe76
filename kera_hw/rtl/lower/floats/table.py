"""Which operation is lowered by which unit. Modules of units export ``UNITS``; they are joined here.

A new unit is registered by adding its module's ``UNITS`` below: opcode to ``Unit``. What is absent, or does
not list a format, is refused with a diagnostic that names the operation and the type.
"""
from __future__ import annotations

from collections.abc import Mapping

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.design import LoweringError
from kera_hw.rtl.lower.floats import add, compare, divide, elementary, fma, integral, mul, signs, sqrt
from kera_hw.rtl.lower.floats.canonical import mark
from kera_hw.rtl.lower.floats.units import Unit
from kera_hw.support import Diagnostic
from kera_hw.types import FloatType

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


def refusal(opcode: str, kind: FloatType, why: str = "no unit computes it yet") -> LoweringError:
    """The error for an operation that hardware does not do on a format: it is never approximated."""
    return LoweringError(Diagnostic(
        "K0701",
        f"`{opcode}` on {kind} has no hardware: {why}.",
        notes=("Use another type or order, or run this function on another target.",),
    ))


def apply(builder: Builder, opcode: str, kind: FloatType, *operands: Ref) -> Ref:
    """One operation on scalars of a format, as bits. Raises LoweringError where no unit does it."""
    unit = UNITS.get(opcode)
    if unit is None or kind not in unit.formats:
        raise refusal(opcode, kind)
    result = unit.lower(builder, kind, *operands)
    return mark(builder, kind, result) if unit.canonical else result
