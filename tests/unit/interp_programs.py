"""Hand-built graphs of real programs: SHA-256's compression, CRC-32 and a FIR stream."""
from __future__ import annotations

from math import isqrt

import numpy as np

from kera_hw.graph.node import Export, Ref, Region, StateVar
from kera_hw.graph.store import Store
from kera_hw.types import I32, U32, IntType, TensorType

HASH, BLOCK = TensorType(U32, (8,)), TensorType(U32, (16,))
U64, I16 = IntType(64, False), IntType(16, True)
TAPS = (-12, -28, -33, 0, 98, 256, 430, 545, 545, 430, 256, 98, 0, -33, -28, -12)


def _primes(count: int) -> list[int]:
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return found


def _cube_root(n: int) -> int:
    low, high = 0, 1 << (n.bit_length() // 3 + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**3 <= n else (low, middle - 1)
    return low


ROUND_CONSTANTS = [_cube_root(prime << 96) & 0xFFFF_FFFF for prime in _primes(64)]
INITIAL_HASH = [isqrt(prime << 64) & 0xFFFF_FFFF for prime in _primes(8)]


class _Words:
    """Short names for operations on 32-bit words."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def const(self, value: int) -> Ref:
        return self.store.constant(U32, value)

    def at(self, tensor: Ref, index: int | Ref) -> Ref:
        place = self.const(index) if isinstance(index, int) else index
        return self.store.op("tensor.index", tensor, place)

    def fold(self, op: str, *operands: Ref) -> Ref:
        total = operands[0]
        for operand in operands[1:]:
            total = self.store.op(op, total, operand)
        return total

    def add(self, *operands: Ref) -> Ref:
        return self.fold("integer.add", *operands)

    def xor(self, *operands: Ref) -> Ref:
        return self.fold("bits.xor", *operands)

    def both(self, a: Ref, b: Ref) -> Ref:
        return self.store.op("bits.and", a, b)

    def sigma(self, x: Ref, *turns: int, shift: int = 0) -> Ref:
        parts = [self.store.op("bits.rotr", x, self.const(turn)) for turn in turns]
        if shift:
            parts.append(self.store.op("bits.shr", x, self.const(shift)))
        return self.xor(*parts)


def sha256_compress() -> Region:
    """(hash [u32; 8], block [u32; 16]) -> hash, as one loop of 64 rounds."""
    store = Store()
    w = _Words(store)
    t, window, state = store.param(0, U32), store.param(1, BLOCK), store.param(2, HASH)
    word = w.at(window, 0)
    following = w.add(
        w.sigma(w.at(window, 14), 17, 19, shift=10), w.at(window, 9),
        w.sigma(w.at(window, 1), 7, 18, shift=3), word,
    )
    s = [w.at(state, index) for index in range(8)]
    choose = w.xor(w.both(s[4], s[5]), w.both(store.op("bits.not", s[4]), s[6]))
    majority = w.xor(w.both(s[0], s[1]), w.both(s[0], s[2]), w.both(s[1], s[2]))
    table = store.constant(TensorType(U32, (64,)), np.array(ROUND_CONSTANTS, np.uint32))
    t1 = w.add(s[7], w.sigma(s[4], 6, 11, 25), choose, w.at(table, t), word)
    t2 = w.add(w.sigma(s[0], 2, 13, 22), majority)
    after = store.op("tensor.stack", w.add(t1, t2), *s[:3], w.add(s[3], t1), *s[4:7])
    body = store.region((U32, BLOCK, HASH), (store.op("tensor.shift_in", window, following), after))
    before, block = store.param(0, HASH), store.param(1, BLOCK)
    attrs = {"carried": 2, "count": 64, "index_type": U32, "region": body, "start": 0, "step": 1}
    loop = store.node("control.loop", (block, before), attrs)
    return store.region((HASH, BLOCK), (store.op("integer.add", before, loop.out(1)),))


def crc32_word() -> Region:
    """(word u64) -> u32: the CRC of its eight bytes, least significant first."""
    store = Store()
    w = _Words(store)
    i, crc, word = store.param(0, U32), store.param(1, U32), store.param(2, U64)
    low = store.op("convert.cast", store.op("bits.shr", word, i), type=U32)
    bit = w.both(w.xor(low, crc), w.const(1))
    is_one = store.op("compare.eq", bit, w.const(1))
    mask = store.op("control.select", is_one, w.const(0xEDB8_8320), w.const(0))
    after = w.xor(store.op("bits.shr", crc, w.const(1)), mask)
    body = store.region((U32, U32, U64), (after,))
    attrs = {"carried": 1, "count": 64, "index_type": U32, "region": body, "start": 0, "step": 1}
    loop = store.node("control.loop", (w.const(0xFFFF_FFFF), store.param(0, U64)), attrs)
    return store.region((U64,), (store.op("bits.not", loop.out(0)),))


def fir_stream() -> Export:
    """A 16-tap filter as a stream export with one state tensor."""
    store = Store()
    line_type = TensorType(I16, (16,))
    x, line = store.param(0, I16), store.param(1, line_type)
    shifted = store.op("tensor.shift_in", line, x)
    product = store.op("integer.mul_wide", store.param(0, I16), store.param(1, I16))
    body = store.region((I16, I16), (product,))
    taps = store.constant(line_type, np.array(TAPS, np.int16))
    products = store.op("control.map", shifted, taps, arity=2, region=body)
    total = store.op("reduce.sum", products, axis=-1, order="")
    region = store.region((I16, line_type), (total, shifted))
    state = (StateVar("line", store.constant(line_type, 0)),)
    return Export("fir", "stream", (("x", I16),), I32, region, state)
