"""What kind of result a quotient has, from what kinds its operands are."""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.floats.fields import Fields
from kera_hw.rtl.lower.floats.wires import Wires


def kind_flags(wires: Wires, fields: Fields) -> tuple[Ref, Ref, Ref]:
    """Whether the exponent field is 0, whether it is all ones, and whether the fraction is 0."""
    return fields.is_small, fields.is_top, wires.none(fields.fraction)


def quotient_kind(
    wires: Wires, x_small: Ref, x_top: Ref, x_plain: Ref, y_small: Ref, y_top: Ref, y_plain: Ref
) -> tuple[Ref, Ref, Ref]:
    """From ``kind_flags``: whether x / y is NaN; is NaN or infinite; is that or 0, whatever the exponents."""
    x_zero, y_zero = wires.both(x_small, x_plain), wires.both(y_small, y_plain)
    nan = wires.either(
        wires.unless(x_top, x_plain), wires.unless(y_top, y_plain),
        wires.both(x_zero, y_zero), wires.both(x_top, y_top),
    )
    infinite = wires.either(wires.either(x_top, y_zero), wires.unless(y_top, y_plain))
    return nan, infinite, wires.either(wires.either(x_top, y_top), wires.either(x_zero, y_zero))
