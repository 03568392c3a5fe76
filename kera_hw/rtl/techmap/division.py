"""Division and remainder as an array of conditional additions, one quotient bit a row.

The rows are non-restoring: each adds or subtracts the divisor by the sign of the row before, in one carry
chain. Early rows are as narrow as the dividend bits they have seen: where a divisor bit above that width is
set, the row's divisor is masked to zero and its quotient bit is 0. The top bit of a row is kept inverted,
which makes it the quotient bit and the next row's subtract control without an inverter.

Ercegovac and Lang, "Digital Arithmetic", 2004, chapter 5.
"""
from __future__ import annotations

from kera_hw.rtl.techmap import truth, words
from kera_hw.rtl.techmap.net import Net, known
from kera_hw.rtl.techmap.words import Word, trimmed
from kera_hw.schedule.fpga.bits import Bits, bits_width, concat, const_bits, slice_bits

_MASKED_XOR = sum(1 << i for i in range(8) if ((i & i >> 2) ^ i >> 1) & 1)
"""(b & d) ^ c over operands b, c, d: the divisor, masked by d, complemented by c."""
_MASKED_NEGATE = sum(1 << i for i in range(8) if ((i & i >> 1) ^ i >> 2) & 1)
"""(q & m) ^ s: a masked digit, complemented by s."""


def divide(net: Net, a: Word, b: Word, kind_width: int, want_remainder: bool) -> Word:
    """Quotient (toward zero; all ones for divisor 0) or remainder (the dividend's sign) of exact words."""
    top, bottom = words.magnitude(net, a), words.magnitude(net, b)
    if want_remainder:
        remainder = _remainder(net, top.bits, bottom.bits)
        width = bits_width(remainder) + 1
        return trimmed(words.negate_if(net, Word(remainder, False), a.sign, width), a.signed)
    digits, flags, fill = _digits(net, top.bits, bottom.bits)
    if not (a.signed or b.signed):
        quotient = net.both(digits, flags) if digits else ()
        more = kind_width - bits_width(quotient)
        return trimmed(concat((quotient, words.spread(fill, more))), False)
    negative = net.differ(a.sign, b.sign)
    if fill != const_bits(0, 1):
        negative = net.both(negative, net.invert(fill))
    more = max(0, kind_width - bits_width(digits))
    digits = slice_bits(concat((digits, words.spread(fill, more))), 0, kind_width)
    flags = slice_bits(concat((flags, const_bits(-1, more))), 0, kind_width)
    zero = const_bits(0, kind_width)
    return Word(net.fused(zero, _MASKED_NEGATE, (digits, flags, negative), kind_width, negative), True)


def _remainder(net: Net, a: Bits, b: Bits) -> Bits:
    """The remainder of unsigned vectors: the last row's, made positive."""
    zero = _is_zero(net, b)
    rows = _rows(net, a, b)
    if not rows or zero == const_bits(1, 1):
        return a
    low, positive, divisor = rows[-1]
    size, count = bits_width(divisor), bits_width(a)
    rest = net.fused(slice_bits(low, 0, size), truth.AND_NOT, (divisor, positive), size, ())
    if size == count or zero == const_bits(0, 1):
        return rest
    return net.choose(zero, a, concat((rest, const_bits(0, count - size))))


def _digits(net: Net, a: Bits, b: Bits) -> tuple[Bits, Bits, Bits]:
    """Raw quotient digits, the masks they stand under, and the bit above them (1 for divisor 0)."""
    rows = _rows(net, a, b)
    flags = _upper_zero(net, b, bits_width(a))
    zero = _is_zero(net, b)
    digits = concat(row[1] for row in reversed(rows))
    if bits_width(b) < bits_width(a):  # rows narrower than the dividend overflow when nothing is taken away
        digits = net.either(digits, zero)
    return digits, concat(reversed(flags)), zero


def _is_zero(net: Net, b: Bits) -> Bits:
    value = known(b)
    return const_bits(int(value == 0), 1) if value is not None else net.invert(net.any(b))


def _upper_zero(net: Net, divisor: Bits, count: int) -> list[Bits]:
    """Per row i, whether the divisor's bits above i are all zero."""
    width = bits_width(divisor)
    flags = [const_bits(1, 1)] * count
    first = min(count, width) - 1
    done = const_bits(1, 1)
    pending = [slice_bits(divisor, k, 1) for k in range(first + 1, width)]
    for i in range(first, -1, -1):
        if i < first:
            pending.append(slice_bits(divisor, i + 1, 1))
        flags[i] = net.reduce("and", [done, *(net.invert(bit) for bit in pending)])
        if len(pending) >= 3:
            done, pending = flags[i], []
    return flags


def _rows(net: Net, a: Bits, b: Bits) -> list[tuple[Bits, Bits, Bits]]:
    """Per row: partial remainder without its sign, the inverted sign, and the divisor bits it used."""
    count, full = bits_width(a), bits_width(b)
    flags = _upper_zero(net, b, count)
    rows: list[tuple[Bits, Bits, Bits]] = []
    low: Bits = ()
    positive = const_bits(1, 1)
    for i in range(count):
        size = min(i + 1, full)
        growing = size == i + 1
        divisor = slice_bits(b, 0, size)
        shifted = concat((slice_bits(a, count - 1 - i, 1), low))
        # Growing rows take the inverted sign on top and so give it; full ones invert by a constant.
        left = concat((shifted, positive)) if growing else shifted
        right = concat((divisor, const_bits(int(not growing), 1)))
        total = net.fused(left, _MASKED_XOR, (right, positive, flags[i]), size + 1, positive)
        low, positive = slice_bits(total, 0, size), slice_bits(total, size, 1)
        rows.append((low, positive, net.both(divisor, flags[i])))
    return rows
