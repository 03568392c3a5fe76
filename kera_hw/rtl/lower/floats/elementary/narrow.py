"""Elementary functions on 16-bit formats: two tables and a line (``segments``), for any function."""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.elementary.exact import Exact
from kera_hw.rtl.lower.floats.elementary.segments import (
    BLOCK_BITS,
    EVEN,
    FRACTION_BITS,
    ODD,
    segments,
)
from kera_hw.rtl.lower.floats.fields import Fields, Format, Wires
from kera_hw.types import FloatType, IntType

_CUT_BITS = 3


def lower_narrow(name: str, builder: Builder, kind: FloatType, word: Ref) -> Ref:
    """A function of ``numerics.elementary`` on f16 or bf16, correctly rounded."""
    exact, wires, form = Exact(builder), Wires(builder), Format(kind)
    fields = Fields(wires, form, word)
    half = name in ODD | EVEN
    argument = fields.magnitude if half else word
    result = _line(exact, name, kind, argument)
    if name in ODD:
        magnitude = wires.low_bits(result, 15)
        sign = wires.differ(fields.sign, wires.bit(result, 15))
        result = wires.cat(wires.unless(sign, wires.equals(magnitude, form.nan)), magnitude)
    return wires.select(fields.is_nan, wires.const(form.nan, 16), result)


def _line(exact: Exact, name: str, kind: FloatType, argument: Ref) -> Ref:
    """The result's bits by the line of the argument's segment."""
    table, builder = segments(name, kind), exact.builder
    width = argument.type.width_bits if isinstance(argument.type, IntType) else 16
    block, place = exact.bits(argument, width - 1, BLOCK_BITS), exact.bits(argument, BLOCK_BITS - 1, 0)
    packed = exact.lookup(block, [
        first << _CUT_BITS + 1 | cuts << 1 | relative
        for first, cuts, relative in zip(table.first, table.cuts, table.relative)
    ])
    relative, cuts = exact.bits(packed, 0, 0), exact.bits(packed, _CUT_BITS, 1)
    first = exact.shr(packed, _CUT_BITS + 1)
    moved = exact.variable_shl(place, exact.fit(cuts, (0, BLOCK_BITS)))
    line = exact.add(first, exact.fit(exact.shr(moved, BLOCK_BITS), (0, (1 << BLOCK_BITS) - 1)))
    line = exact.fit(line, (0, len(table.whole) - 1))
    offset = exact.bits(moved, BLOCK_BITS - 1, 0)
    rest = exact.lookup(line, table.rest)
    slope, fraction = exact.shr(rest, FRACTION_BITS - 2), exact.bits(rest, FRACTION_BITS - 3, 0)
    risen = exact.shr(exact.add(exact.mul(slope, offset), exact.shl(fraction, 2)), FRACTION_BITS)
    kind16 = IntType(16, False)
    own = exact.select(exact.bit(relative, 0), argument, exact.const(0))
    terms = [builder.cast(term, kind16) for term in (exact.lookup(line, table.whole), risen, own)]
    return builder.op("integer.add", builder.op("integer.add", terms[0], terms[1]), terms[2])
