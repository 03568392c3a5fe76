"""Words: bit vectors read as integers, kept as narrow as their value needs."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kera_hw.rtl.techmap import truth
from kera_hw.rtl.techmap.net import Net, known, repeat
from kera_hw.schedule.fpga.bits import Bits, bits_width, concat, const_bits, slice_bits

Range = tuple[int, int]
"""The least and the greatest value; an ``Interval`` is one."""


@dataclass(frozen=True, slots=True)
class Word:
    """The integer that ``bits`` spell, two's complement when ``signed``."""

    bits: Bits
    signed: bool

    @property
    def width(self) -> int:
        return bits_width(self.bits)

    @property
    def range(self) -> Range:
        """All values the bits can spell."""
        value = known(self.bits)
        width = self.width
        if value is not None:
            if self.signed and value >> (width - 1) & 1:
                value -= 1 << width
            return (value, value)
        return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if self.signed else (0, (1 << width) - 1)

    @property
    def value(self) -> int | None:
        """The integer of a constant word."""
        low, high = self.range
        return low if low == high else None

    def extend(self, width: int) -> Bits:
        """The low ``width`` bits of the integer."""
        own = self.width
        if width <= own:
            return slice_bits(self.bits, 0, width)
        if not self.signed or own == 0:
            return concat((self.bits, const_bits(0, width - own)))
        return concat((self.bits, *(slice_bits(self.bits, own - 1, 1),) * (width - own)))

    def bit(self, index: int) -> Bits:
        """One bit of the integer, in its endless two's complement form."""
        own = self.width
        if index < own:
            return slice_bits(self.bits, index, 1)
        return slice_bits(self.bits, own - 1, 1) if self.signed and own else const_bits(0, 1)

    @property
    def sign(self) -> Bits:
        """The bit that says the integer is negative."""
        return slice_bits(self.bits, self.width - 1, 1) if self.signed else const_bits(0, 1)


def range_width(span: Range) -> tuple[int, bool]:
    """Bits that hold every value of a range, and whether they are signed."""
    low, high = span
    if low >= 0:
        return high.bit_length(), False
    return max((-low - 1).bit_length(), high.bit_length()) + 1, True


def trimmed(bits: Bits, signed: bool) -> Word:
    """The word without bits that only repeat its sign."""
    width = bits_width(bits)
    if signed and width:
        top = slice_bits(bits, width - 1, 1)
        while width > 1 and slice_bits(bits, width - 2, 1) == top:
            width -= 1
        bits = slice_bits(bits, 0, width)
        if top[0].cell is not None or top[0].low & 1:
            return Word(bits, True)
    while width and slice_bits(bits, width - 1, 1) == const_bits(0, 1):
        width -= 1
    return Word(slice_bits(bits, 0, width), False)


def narrowed(bits: Bits, signed: bool, span: Range) -> Word:
    """The word when its value is known to lie in ``span``."""
    width, needs_sign = range_width(span)
    if width < bits_width(bits) or (signed and not needs_sign):
        bits, signed = slice_bits(bits, 0, min(width, bits_width(bits))), needs_sign
    return trimmed(bits, signed)


def constant(value: int) -> Word:
    """A constant of any sign."""
    width, signed = range_width((value, value))
    return Word(const_bits(value, width), signed)


def joint_width(words: Sequence[Word]) -> int:
    """Bits that hold every one of the words, signed if any is."""
    signed = any(word.signed for word in words)
    return max(word.width + (signed and not word.signed) for word in words)


def choose(net: Net, condition: Bits, then: Word, otherwise: Word) -> Word:
    """``condition ? then : otherwise``."""
    width = joint_width((then, otherwise))
    bits = net.choose(condition, then.extend(width), otherwise.extend(width))
    return trimmed(bits, then.signed or otherwise.signed)


def add(net: Net, a: Word, b: Word, width: int | None = None) -> Word:
    """``a + b``; modulo 2^width when a width is given."""
    full, signed = _sum_width(a.range, b.range, 1)
    width = full if width is None else min(width, full)
    return trimmed(net.add(a.extend(width), b.extend(width), width), signed and width == full)


def subtract(net: Net, a: Word, b: Word, width: int | None = None) -> Word:
    """``a - b``; modulo 2^width when a width is given."""
    full, signed = _sum_width(a.range, b.range, -1)
    width = full if width is None else min(width, full)
    return trimmed(net.subtract(a.extend(width), b.extend(width), width), signed and width == full)


def _sum_width(a: Range, b: Range, sign: int) -> tuple[int, bool]:
    corners = [x + sign * y for x in a for y in b]
    return range_width((min(corners), max(corners)))


def less(net: Net, a: Word, b: Word) -> Bits:
    """Whether a < b: the sign of the exact difference."""
    (a_low, a_high), (b_low, b_high) = a.range, b.range
    if a_high < b_low or a_low >= b_high:
        return const_bits(int(a_high < b_low), 1)
    if b.value == 0:
        return a.sign
    if a.value == -1:
        return net.invert(b.sign)
    simple = _less_power(net, a, b)
    if simple is None:
        simple = _less_constant(net, a, b)
    if simple is not None:
        return simple
    width = joint_width((a, b)) + 1
    return slice_bits(net.subtract(a.extend(width), b.extend(width), width), width - 1, 1)


def is_cheap_less(a: Word, b: Word) -> bool:
    """Whether a < b needs no subtraction: it is a sign, or whether upper bits are set."""
    if b.value == 0 or a.value == -1:
        return True
    if a.signed or b.signed:
        return False
    low, high = a.value, b.value
    return (high is not None and high & (high - 1) == 0) or (low is not None and low & (low + 1) == 0)


def _less_power(net: Net, a: Word, b: Word) -> Bits | None:
    """Unsigned comparison with a power of two: whether any upper bit is set."""
    if a.signed or b.signed:
        return None
    if b.value is not None and b.value & (b.value - 1) == 0:
        k = b.value.bit_length() - 1
        return net.invert(net.any(slice_bits(a.bits, k, a.width - k)))
    if a.value is not None and a.value & (a.value + 1) == 0:
        k = a.value.bit_length()
        return net.any(slice_bits(b.bits, k, b.width - k))
    return None


_FEW_BITS = 10
"""Bits up to which a comparison with a constant is a few LUTs rather than a carry chain."""


def _less_constant(net: Net, a: Word, b: Word) -> Bits | None:
    """Unsigned comparison of few bits with a constant, three bits a LUT from the lowest that matters."""
    if a.signed or b.signed:
        return None
    if b.value is not None:  # a < c
        return _below(net, a, b.value)
    if a.value is not None:  # c < b: not b < c + 1
        found = _below(net, b, a.value + 1)
        return None if found is None else net.invert(found)
    return None


def _below(net: Net, word: Word, limit: int) -> Bits | None:
    skip = (limit & -limit).bit_length() - 1
    count = word.width - skip
    if count > _FEW_BITS:
        return None
    if limit >> word.width:
        return const_bits(1, 1)
    bits = [word.bit(k) for k in range(skip, word.width)]
    limit >>= skip
    result: Bits = const_bits(0, 1)
    while bits:
        take = min(len(bits), 4 if known(result) is not None else 3)
        group, bits = bits[:take], bits[take:]
        piece, limit = limit & ((1 << take) - 1), limit >> take
        # Rows: the group's number, and above it whether the lower bits are below the limit's.
        table = sum(1 << row for row in range(1 << take) if row < piece)
        table |= sum(1 << row for row in range(1 << take) if row <= piece) << (1 << take)
        result = net.logic(table, [*group, result], 1)
    return result


def equal(net: Net, a: Word, b: Word, spans: Sequence[Range]) -> Bits:
    """Whether two words, each known to lie in its span, spell the same integer."""
    width = joint_width((a, b))
    told = range(width)
    for one, (low, high) in ((a, spans[1]), (b, spans[0])):
        if one.value is not None and low >= 0:
            told = _telling(one.value, width, low, high)
    return net.equal(concat(map(a.bit, told)), concat(map(b.bit, told)))


def _telling(value: int, width: int, low: int, high: int) -> Sequence[int]:
    """Bits in which any other integer from ``low`` to ``high`` differs from ``value``, one of them.

    A 0 beside which a 1 would be too large needs no look, nor need all 1s beside which a 0 is too small.
    """
    if not low <= value <= high:
        return range(width)
    bits = range(width)
    small = [k for k in bits if value >> k & 1 or value + (1 << k) <= high]
    large = [k for k in bits if not value >> k & 1 or value - (1 << k) >= low]
    return min(small, large, key=len)


def negate_if(net: Net, word: Word, condition: Bits, width: int) -> Bits:
    """``condition ? -word : word`` modulo 2^width, in one carry chain."""
    value = known(condition)
    bits = word.extend(width)
    if value == 0:
        return bits
    if value == 1:
        return net.subtract(const_bits(0, width), bits, width)
    flipped = net.logic(truth.XOR, (bits, condition), width)
    return net.add(const_bits(0, width), flipped, width, condition)


def magnitude(net: Net, word: Word) -> Word:
    """The absolute value, exact (one bit wider than the type for its least value)."""
    if not word.signed:
        return word
    low, high = word.range
    width = max(-low, high).bit_length()
    return trimmed(negate_if(net, word, word.sign, width), False)


def clamp(net: Net, word: Word, low: int, high: int) -> Word:
    """The nearest value in [low, high]."""
    own_low, own_high = word.range
    result = word
    if own_high > high:
        result = choose(net, less(net, constant(high), word), constant(high), result)
    if own_low < low:
        result = choose(net, less(net, word, constant(low)), constant(low), result)
    return narrowed(result.bits, result.signed, (max(low, own_low), min(high, own_high)))


def shifted(word: Word, amount: int) -> Word:
    """``word * 2^amount``."""
    return Word(concat((const_bits(0, amount), word.bits)), word.signed) if word.width else word


def spread(bit: Bits, width: int) -> Bits:
    """One bit repeated."""
    return repeat(bit, width)
