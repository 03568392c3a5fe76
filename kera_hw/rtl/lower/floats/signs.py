"""Operations on signs, and tests of a value's class. None needs more than the bits it looks at."""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.canonical import is_canonical
from kera_hw.rtl.lower.floats.fields import Fields, unpack
from kera_hw.types import FloatType


def _with_sign(x: Fields, sign: Ref) -> Ref:
    return x.wires.cat(sign, x.magnitude)


def lower_neg(builder: Builder, kind: FloatType, a: Ref) -> Ref:
    """The sign turned (that of a NaN too: it is no NaN to be seen)."""
    x = unpack(builder, kind, a)
    return _with_sign(x, x.wires.invert(x.sign))


def lower_abs(builder: Builder, kind: FloatType, a: Ref) -> Ref:
    """The sign cleared."""
    x = unpack(builder, kind, a)
    return _with_sign(x, x.wires.flag(False))


def meant_sign(builder: Builder, kind: FloatType, value: Ref) -> Ref:
    """The sign of the value meant: the canonical NaN has none."""
    x = unpack(builder, kind, value)
    if is_canonical(builder, kind, value):
        return x.sign
    return x.wires.unless(x.sign, x.is_nan)


def lower_copysign(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    """The magnitude of ``a`` with the sign of ``b``; a NaN keeps no sign."""
    x = unpack(builder, kind, a)
    return _with_sign(x, meant_sign(builder, kind, b))


def lower_sign(builder: Builder, kind: FloatType, a: Ref) -> Ref:
    """-1, a zero kept, 1, or NaN."""
    x = unpack(builder, kind, a)
    wires, form = x.wires, x.form
    one = wires.const(form.bias << form.fraction_bits, form.width - 1)
    magnitude = wires.select(x.is_zero, wires.const(0, form.width - 1), one)
    magnitude = wires.select(x.is_nan, wires.const(form.nan, form.width - 1), magnitude)
    return wires.cat(wires.unless(x.sign, x.is_nan), magnitude)


def lower_relu(builder: Builder, kind: FloatType, a: Ref) -> Ref:
    """The greater of the value and +0; NaN stays."""
    x = unpack(builder, kind, a)
    wires = x.wires
    return wires.select(wires.unless(x.sign, x.is_nan), wires.const(0, x.form.width), a)


def lower_is_nan(builder: Builder, kind: FloatType, a: Ref) -> Ref:
    return unpack(builder, kind, a).is_nan


def lower_is_finite(builder: Builder, kind: FloatType, a: Ref) -> Ref:
    x = unpack(builder, kind, a)
    return x.wires.invert(x.is_top)
