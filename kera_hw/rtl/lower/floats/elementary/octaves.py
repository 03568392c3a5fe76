"""tanh and erf on f32: a polynomial for every few values of the leading bits.

Each octave of |x| is cut into equal segments, so many that a polynomial of degree 5 is good to 2^-55 and that
the offset inside one, which is exact, fits a multiplier. The polynomial gives f(x) over a power of two near
it, so that small results are as precise as large ones. erf is linear in x below 2^-27: there all octaves
share the lowest one's segments. tanh x is x below 2^-12, to the nearest float.
"""
from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.elementary import erf_data, tanh_data
from kera_hw.rtl.lower.floats.elementary.logarithm import normalised
from kera_hw.rtl.lower.floats.elementary.nearest import round_positive
from kera_hw.rtl.lower.floats.elementary.polynomial import evaluate
from kera_hw.rtl.lower.floats.fields import Fields, Format
from kera_hw.rtl.lower.floats.wires import Wires
from kera_hw.types import FloatType

_CUT_BITS = 4


@dataclass(frozen=True, slots=True)
class Place:
    """Where an argument lies: its octave's row, its segment, and the offset in it."""

    octave: Ref
    segment: Ref
    offset: Ref


def locate(wires: Wires, data: ModuleType, exponent: Ref, fraction: Ref) -> Place:
    """The segment of an exponent field and fraction; below the first octave, as if in it.

    ``data.FIRST`` is the exponent field of the first octave; ``data.SEGMENTS`` and ``data.CUTS`` give every
    octave's first segment and the logarithm of their number.
    """
    below = wires.is_below(exponent, wires.integer(data.FIRST))
    above = wires.fit(wires.difference(exponent, wires.integer(data.FIRST)), None)
    octave = wires.choose(below, wires.integer(0), above)
    last = len(data.SEGMENTS) - 1
    octave = wires.fit(octave, (0, (1 << last.bit_length()) - 1))  # further octaves are somebody else's
    packed = wires.lookup(octave, [
        first << _CUT_BITS | cuts for first, cuts in zip(data.SEGMENTS, data.CUTS)
    ])
    cuts = wires.fit(wires.piece(packed, _CUT_BITS - 1, 0), (0, max(data.CUTS)))
    moved = wires.raised_by(fraction, cuts)
    count = len(data.TABLE[0])
    first = wires.lowered(packed, _CUT_BITS)
    segment = wires.fit(wires.sum_of(first, wires.piece(moved, 22 + max(data.CUTS), 23)), (0, count - 1))
    return Place(octave, segment, wires.piece(moved, 22, 23 - data.OFFSET_BITS))


def lower_tanh(builder: Builder, kind: FloatType, word: Ref) -> Ref:
    """tanh, correctly rounded."""
    wires, form = Wires(builder), Format(kind)
    fields = Fields(wires, form, word)
    magnitude = _octaves(wires, tanh_data, fields.exponent, fields.fraction)
    own = wires.is_below(fields.exponent, wires.integer(tanh_data.FIRST))
    magnitude = wires.choose(own, fields.magnitude, magnitude)
    return _finish(wires, form, fields, tanh_data, magnitude)


def lower_erf(builder: Builder, kind: FloatType, word: Ref) -> Ref:
    """erf, correctly rounded."""
    wires, form = Wires(builder), Format(kind)
    fields = Fields(wires, form, word)
    exponent, fraction = normalised(wires, fields)
    magnitude = _octaves(wires, erf_data, exponent, fraction)
    magnitude = wires.choose(fields.is_zero, wires.integer(0), magnitude)
    return _finish(wires, form, fields, erf_data, magnitude)


def _octaves(wires: Wires, data: ModuleType, exponent: Ref, fraction: Ref) -> Ref:
    place = locate(wires, data, exponent, fraction)
    value = evaluate(wires, data.TABLE, place.segment, place.offset, data.OFFSET_BITS)
    value = wires.fit(value, (1 << data.POINT, (4 << data.POINT) - 1))
    scale = wires.lookup(place.octave, data.SCALES)
    low, high = wires.range(exponent)
    last = data.FIRST + len(data.SEGMENTS) - 1
    field = wires.sum_of(wires.fit(exponent, (low, min(high, last))), scale)
    return round_positive(wires, value, data.POINT, wires.fit(field, (low - 1, 127)))


def _finish(
    wires: Wires, form: Format, fields: Fields, data: ModuleType, magnitude: Ref,
) -> Ref:
    """The word: 1 past the last octave, NaN for NaN, the argument's sign."""
    last = data.FIRST + len(data.SEGMENTS) - 1
    past = wires.is_below(wires.integer(last), fields.exponent)
    one = wires.const(form.bias << form.fraction_bits, form.width - 1)
    result = wires.select(past, one, wires.resize(magnitude, form.width - 1))
    result = wires.select(fields.is_nan, wires.const(form.nan, form.width - 1), result)
    return wires.cat(wires.unless(fields.sign, fields.is_nan), result)
