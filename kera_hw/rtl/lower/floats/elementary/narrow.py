"""Elementary functions on 16-bit formats: two tables and a line (``segments``), for any function."""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.elementary.segments import (
    BLOCK_BITS,
    EVEN,
    FRACTION_BITS,
    ODD,
    segments,
)
from kera_hw.rtl.lower.floats.fields import Fields, Format
from kera_hw.rtl.lower.floats.wires import Wires
from kera_hw.types import FloatType, IntType

_CUT_BITS = 3


def lower_narrow(name: str, builder: Builder, kind: FloatType, word: Ref) -> Ref:
    """A function of ``numerics.elementary`` on f16 or bf16, correctly rounded."""
    wires, form = Wires(builder), Format(kind)
    fields = Fields(wires, form, word)
    half = name in ODD | EVEN
    argument = fields.magnitude if half else word
    result = _line(wires, name, kind, argument)
    if name in ODD:
        magnitude = wires.low_bits(result, 15)
        sign = wires.differ(fields.sign, wires.bit(result, 15))
        result = wires.cat(wires.unless(sign, wires.equals(magnitude, form.nan)), magnitude)
    return wires.select(fields.is_nan, wires.const(form.nan, 16), result)


def _line(wires: Wires, name: str, kind: FloatType, argument: Ref) -> Ref:
    """The result's bits by the line of the argument's segment."""
    table, builder = segments(name, kind), wires.builder
    width = argument.type.width_bits if isinstance(argument.type, IntType) else 16
    block, place = wires.piece(argument, width - 1, BLOCK_BITS), wires.piece(argument, BLOCK_BITS - 1, 0)
    packed = wires.lookup(block, [
        first << _CUT_BITS + 1 | cuts << 1 | relative
        for first, cuts, relative in zip(table.first, table.cuts, table.relative)
    ])
    relative, cuts = wires.piece(packed, 0, 0), wires.piece(packed, _CUT_BITS, 1)
    first = wires.lowered(packed, _CUT_BITS + 1)
    moved = wires.raised_by(place, wires.fit(cuts, (0, BLOCK_BITS)))
    line = wires.sum_of(first, wires.fit(wires.lowered(moved, BLOCK_BITS), (0, (1 << BLOCK_BITS) - 1)))
    line = wires.fit(line, (0, len(table.whole) - 1))
    offset = wires.piece(moved, BLOCK_BITS - 1, 0)
    rest = wires.lookup(line, table.rest)
    slope, fraction = wires.lowered(rest, FRACTION_BITS - 2), wires.piece(rest, FRACTION_BITS - 3, 0)
    risen = wires.lowered(wires.sum_of(wires.times(slope, offset), wires.raised(fraction, 2)), FRACTION_BITS)
    kind16 = IntType(16, False)
    own = wires.choose(wires.digit(relative, 0), argument, wires.integer(0))
    terms = [builder.cast(term, kind16) for term in (wires.lookup(line, table.whole), risen, own)]
    return builder.op("integer.add", builder.op("integer.add", terms[0], terms[1]), terms[2])
