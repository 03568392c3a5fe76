"""Products: DSP tiles with registers inside, or rows of masked addends where there are none."""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.rtl.techmap import truth
from kera_hw.rtl.techmap.items import Product
from kera_hw.rtl.techmap.net import Net
from kera_hw.rtl.techmap.words import Word, range_width, trimmed
from kera_hw.schedule.fpga.bits import slice_bits

Term = tuple[Word, int]
"""A word and the power of two it is weighted by."""


@dataclass(frozen=True, slots=True)
class DspKind:
    """A device's multiplier: operand widths in bits (signed or not) and the pipeline registers inside."""

    a_bits: int
    b_bits: int
    latency_cycles: int
    signed_only: bool = False


SMALL_BITS = 3
"""A product with an operand this narrow is cheaper as rows of logic."""


def multiply_terms(net: Net, a: Word, b: Word, width: int, dsp: DspKind | None) -> list[Term]:
    """Addends whose sum is ``a * b`` modulo 2^width."""
    a, b = (trimmed(slice_bits(w.bits, 0, width), w.signed and w.width <= width) for w in (a, b))
    if a.width == 0 or b.width == 0:
        return []
    if a.width < b.width:
        a, b = b, a
    if dsp is None or b.width <= SMALL_BITS:
        return _rows(net, a, b, width)
    return _tiles(net, a, b, width, dsp)


def _rows(net: Net, a: Word, b: Word, width: int) -> list[Term]:
    """One masked copy of ``a`` per bit of ``b``; the sign bit's row has a negative weight."""
    terms: list[Term] = []
    for i in range(b.width):
        bit = b.bit(i)
        row = trimmed(net.logic(truth.AND, (a.bits, bit), a.width), a.signed)
        negative = b.signed and i == b.width - 1
        if i < width:
            terms.append((row, -(1 << i) if negative else 1 << i))
    return terms


def _pieces(word: Word, size: int, signed_only: bool) -> list[Term]:
    """The word in pieces of ``size`` bits: lower ones unsigned, the top one with the sign."""
    capacity = size - (not word.signed and signed_only)
    if word.width <= capacity:
        return [(word, 0)]
    step = size - 1 if signed_only else size
    pieces: list[Term] = []
    low = 0
    while word.width - low > (size if word.signed else capacity):
        pieces.append((trimmed(slice_bits(word.bits, low, step), False), low))
        low += step
    pieces.append((trimmed(slice_bits(word.bits, low, word.width - low), word.signed), low))
    return pieces


def _tiles(net: Net, a: Word, b: Word, width: int, dsp: DspKind) -> list[Term]:
    terms: list[Term] = []
    for piece_a, low_a in _pieces(a, dsp.a_bits, dsp.signed_only):
        for piece_b, low_b in _pieces(b, dsp.b_bits, dsp.signed_only):
            low = low_a + low_b
            if low < width and piece_a.width and piece_b.width:
                terms.append((multiply(net, piece_a, piece_b, width - low, dsp), 1 << low))
    return terms


def multiply(net: Net, a: Word, b: Word, width: int, dsp: DspKind) -> Word:
    """``a * b`` modulo 2^width in one multiplier that holds both."""
    if min(a.width, b.width) == 1:
        bit, other = (a, b) if a.width == 1 else (b, a)
        if not bit.signed:
            return trimmed(net.logic(truth.AND, (other.bits, bit.bits), other.width), other.signed)
    corners = [x * y for x in a.range for y in b.range]
    full, signed = range_width((min(corners), max(corners)))
    size = min(full, width)
    product = Product(size, (a.bits, b.bits), a.signed, b.signed, dsp.latency_cycles)
    return Word(net.bits(product), signed and size == full)
