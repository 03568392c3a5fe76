"""Population count, leading and trailing zeros, and variable shifts."""
from __future__ import annotations

from collections.abc import Callable

from kera_hw.rtl.techmap import truth, words
from kera_hw.rtl.techmap.net import Net, known
from kera_hw.rtl.techmap.words import Word, trimmed
from kera_hw.schedule.fpga.bits import Bits, bits_width, concat, const_bits, slice_bits


def popcount(net: Net, bits: Bits, wanted: int) -> Word:
    """The low ``wanted`` bits of how many are set: four bits to a count in one level, then adders."""
    flat = net.bits_of(bits)
    counts = [_count_group(net, flat[i : i + 4], wanted) for i in range(0, len(flat), 4)]
    if not counts:
        return words.constant(0)
    while len(counts) > 1:
        counts.sort(key=lambda w: (net.level(w.bits), w.width))
        counts = [words.add(net, counts[0], counts[1], wanted), *counts[2:]]
    return counts[0]


def _count_group(net: Net, group: list[Bits], wanted: int) -> Word:
    size = len(group)
    tables = [
        sum((i.bit_count() >> bit & 1) << i for i in range(1 << size))
        for bit in range(min(wanted, size.bit_length()))
    ]
    return trimmed(concat(net.logic(table, group, 1) for table in tables), False)


def leading_zeros(net: Net, bits: Bits) -> Word:
    """Zeros above the highest set bit; the width for zero."""
    width = bits_width(bits)
    size = 1 << max(0, width - 1).bit_length()
    padded = concat((const_bits(-1, size - width), bits))  # ones below stop the count at the width
    none, count = _leading(net, padded)
    if size != width:
        return trimmed(count, False)
    if width == 1:
        return trimmed(none, False)
    return trimmed(concat((net.logic(truth.AND_NOT, (count, none), bits_width(count)), none)), False)


def _leading(net: Net, bits: Bits) -> tuple[Bits, Bits]:
    """Whether no bit is set, and the count otherwise (all ones where none is)."""
    width = bits_width(bits)
    if width == 1:
        return net.invert(bits), ()
    half = width // 2
    none_high, count_high = _leading(net, slice_bits(bits, half, half))
    none_low, count_low = _leading(net, slice_bits(bits, 0, half))
    none = net.both(none_high, none_low)
    low = net.choose(none_high, count_low, count_high) if width > 2 else ()
    return none, concat((low, none_high))


def trailing_zeros(net: Net, bits: Bits) -> Word:
    """Zeros below the lowest set bit; the width for zero."""
    return leading_zeros(net, concat(reversed(net.bits_of(bits))))


Wiring = Callable[[Bits, int], Bits]


def stages(net: Net, bits: Bits, amount: Bits, move: Wiring) -> Bits:
    """Apply ``move`` by a variable amount: two amount bits a stage, the coarse moves first."""
    width = bits_width(bits)
    count = bits_width(amount)
    starts = list(range(count - count % 2 - 2, -1, -2))
    if count % 2:
        starts = [*starts, -1] if count == 1 else [s + 1 for s in starts] + [-1]
    for start in starts:
        if start < 0:
            bits = net.choose(slice_bits(amount, 0, 1), move(bits, 1), bits)
            continue
        select = slice_bits(amount, start, 2)
        choices = [bits if k == 0 else move(bits, k << start) for k in range(4)]
        bits = net.mux(select, choices, width)
    return bits


def shift(net: Net, value: Word, amount: Word, width: int, left: bool) -> Bits:
    """``value << amount`` or ``value >> amount`` in ``width`` bits; far amounts give the fill."""
    bits = value.extend(width)
    fill = const_bits(0, 1) if left or not value.signed else slice_bits(bits, width - 1, 1)

    def move(vector: Bits, count: int) -> Bits:
        count = min(count, width)
        padding = words.spread(fill, count) if count else ()
        if left:
            return concat((padding, slice_bits(vector, 0, width - count)))
        return concat((slice_bits(vector, count, width - count), padding))

    needed = (width - 1).bit_length()
    near = slice_bits(amount.bits, 0, min(needed, amount.width))
    result = stages(net, bits, near, move)
    if amount.width > needed:
        far = net.any(slice_bits(amount.bits, needed, amount.width - needed))
        result = net.choose(far, words.spread(fill, width), result)
    return result


def rotate(net: Net, value: Word, amount: Bits, width: int, left: bool) -> Bits:
    """Rotation by an amount below the width."""

    def move(vector: Bits, count: int) -> Bits:
        count %= width
        low = width - count if left else count
        return concat((slice_bits(vector, low, width - low), slice_bits(vector, 0, low)))

    bits = value.extend(width)
    fixed = known(amount)
    return move(bits, fixed) if fixed is not None else stages(net, bits, amount, move)
