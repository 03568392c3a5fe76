"""Products of polynomials over GF(2): an AND for each pair of bits, an XOR for each column.

Two ANDs of a column and their XOR take one LUT, ``(a & b) ^ (c & d)``; the columns are then one parity
network, which is built together with whatever XORs stand around it (``linearise``). Against a constant the
ANDs vanish, and what is left is the network of a linear map.

Karatsuba's three products of halves would take an eighth less of 32 bits, in three cycles at 200 MHz where
this takes one.
"""
from __future__ import annotations

from kera_hw.rtl.techmap.net import Net, known
from kera_hw.rtl.techmap.words import Word
from kera_hw.schedule.fpga.bits import Bits, concat

_TWO_PRODUCTS = sum(1 << i for i in range(16) if (i & i >> 1 ^ i >> 2 & i >> 3) & 1)
"""The table of ``a & b ^ c & d``."""


def multiply(net: Net, a: Word, b: Word, width: int) -> Bits:
    """The low ``width`` bits of the carry-less product of two unsigned words."""
    return concat(_column(net, a, b, place) for place in range(min(width, a.width + b.width)))


def _column(net: Net, a: Word, b: Word, place: int) -> Bits:
    """The coefficient of x^place: pairs of bits whose places add up to it."""
    pairs = [
        (a.bit(place - k), b.bit(k)) for k in range(max(0, place - a.width + 1), min(b.width, place + 1))
    ]
    products = [pair for pair in pairs if 0 not in map(known, pair)]
    single = [net.both(*products.pop())] if len(products) % 2 else []
    twos = [
        net.logic(_TWO_PRODUCTS, (*first, *second), 1)
        for first, second in zip(products[::2], products[1::2])
    ]
    return net.reduce("xor", [*twos, *single])
