"""a * b + c of f32 with one rounding, for which WebAssembly has no instruction.

An f64 holds the product exactly, since that has at most 48 digits. The sum, rounded to the 53 digits of f64
and then to f32, is what one rounding gives, but where the first rounding ends in the middle between two f32
and took something away. Those sums are known by their bits. For normal results, the last 29 of them are a one
and zeros. A result that is not normal is held for one in any case, but not 0: for that the sum would have to
be 2^-150 and to have taken away less than 2^-202, and no addend of f32 leaves such a sum of a product whose
digits reach so low, 48 at most.

*Hasty* code rounds twice and takes note of such sums; *exact* code rounds the sum to odd before it rounds to
f32 (``legal.rounding`` says why that is right). After hasty code it is asked whether a sum may be wrong. If
so, exact code does all lanes anew: of a loop that stores nothing, once after all its rounds. A sum of random
numbers is such a middle once in 2^29 times, one of numbers of few digits often.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kera_hw.legal.native import Signature
from kera_hw.types import F32
from kera_hw.wasm.code import Code
from kera_hw.wasm.module import ValueType
from kera_hw.wasm.scalars import Source
from kera_hw.wasm.vectors import Lanes, LaneSource

OPCODE = "floating.fma"
FUSED = Signature(OPCODE, (F32, F32, F32), F32)
_DROPPED = 29
"""Digits of an f64 that an f32 has not."""
_SHIFT = 32 - _DROPPED
_MIDDLE = 1 << 31
"""A one and zeros, when they are shifted to the top of 32 bits."""
_LEAST_NORMAL = 0x0080_0000
_LIMIT = 2 * _LEAST_NORMAL
"""A result's bits, twice, less one, are below it where the result is not normal and not 0, or the least
normal number, to which a sum that is less may have been rounded."""
EXACT_AT_ONCE = 15
"""Loops after one that had to be done again; a power of two less one."""
_LOW_HALVES = (*range(8), *range(16, 24))
_HIGH_HALF = (*range(8, 16), *range(8, 16))
_LOW_WORDS = (*range(4), *range(8, 12), *range(16, 20), *range(24, 28))
_ALL = (1 << 128) - 1


def _everywhere(word: int, width_bits: int = 32) -> int:
    return sum(word << k for k in range(0, 128, width_bits))


@dataclass(frozen=True, slots=True)
class Watch:
    """Locals with what hasty sums have come to: the least of their last digits, shifted to the top, and the
    least result, but 0."""

    code: Code
    digits: int
    least: int

    @staticmethod
    def begun(code: Code) -> Watch:
        found = Watch(code, code.new_local(ValueType.V128), code.new_local(ValueType.V128))
        code.op("v128.const", _everywhere(_MIDDLE - 1))
        code.set(found.digits)
        code.op("v128.const", _ALL)
        code.set(found.least)
        return found

    def ask(self) -> None:
        """Pushes whether a sum may be wrong. The locals are free after it."""
        code = self.code
        code.get(self.digits)
        code.op("v128.const", _everywhere(_MIDDLE))
        code.op("i32x4.eq")
        code.get(self.least)
        code.op("v128.const", _everywhere(_LIMIT))
        code.op("i32x4.lt_u")
        code.op("v128.or")
        code.op("v128.any_true")
        code.release(self.digits)
        code.release(self.least)


class _Operands:
    """Three operands as f64, two lanes at a time."""

    def __init__(self, code: Code, args: Sequence[LaneSource]) -> None:
        self.code = code
        self._uniform = [arg.uniform for arg in args]
        self._locals: list[int] = []
        for arg in args:
            arg.push()
            self._locals.append(code.new_local(ValueType.V128))
            code.set(self._locals[-1])

    def push(self, which: int, high: bool) -> None:
        self.code.get(self._locals[which])
        if high and not self._uniform[which]:
            self.code.get(self._locals[which])
            self.code.op("i8x16.shuffle", *_HIGH_HALF)
        self.code.op("f64x2.promote_low_f32x4")

    def product(self, high: bool) -> None:
        self.push(0, high)
        self.push(1, high)
        self.code.op("f64x2.mul")

    def release(self) -> None:
        for local in self._locals:
            self.code.release(local)


def _joined(code: Code, halves: Sequence[int]) -> None:
    """Pushes sums as f32, the low ones and, if there are, the high ones."""
    for half in halves:
        code.get(half)
        code.op("f32x4.demote_f64x2_zero")
    if len(halves) > 1:
        code.op("i8x16.shuffle", *_LOW_HALVES)


def hasty(at: Lanes, watch: Watch) -> None:
    """Pushes sums that are right if the watch says so at the end."""
    code, operands = at.code, _Operands(at.code, at.args)
    halves: list[int] = []
    for high in (False, True)[: max(1, at.count // 2)]:
        operands.product(high)
        operands.push(2, high)
        code.op("f64x2.add")
        halves.append(code.new_local(ValueType.V128))
        code.set(halves[-1])
    code.get(halves[0])
    code.get(halves[-1])
    code.op("i8x16.shuffle", *_LOW_WORDS)
    code.number(_SHIFT)
    code.op("i32x4.shl")
    code.get(watch.digits)
    code.op("i32x4.min_s")
    code.set(watch.digits)
    _joined(code, halves)
    found = code.new_local(ValueType.V128)
    code.set(found)
    code.get(found)
    code.get(found)
    code.op("i32x4.add")
    code.op("v128.const", _ALL)
    code.op("i32x4.add")
    code.get(watch.least)
    code.op("i32x4.min_u")
    code.set(watch.least)
    code.get(found)
    operands.release()
    for local in (*halves, found):
        code.release(local)


def exact(at: Lanes) -> None:
    """Pushes the sums."""
    code, operands = at.code, _Operands(at.code, at.args)
    halves: list[int] = []
    product, total, other = (code.new_local(ValueType.V128) for _ in range(3))
    for high in (False, True)[: max(1, at.count // 2)]:
        operands.product(high)
        code.set(product)
        code.get(product)
        operands.push(2, high)
        code.op("f64x2.add")
        code.set(total)
        code.get(total)
        code.get(product)
        code.op("f64x2.sub")
        code.set(other)
        code.get(product)
        code.get(total)
        code.get(other)
        code.op("f64x2.sub")
        code.op("f64x2.sub")
        operands.push(2, high)
        code.get(other)
        code.op("f64x2.sub")
        code.op("f64x2.add")
        # What the sum took away, with the sign that it has beside the sum's; a NaN is neither.
        code.get(total)
        code.op("f64x2.mul")
        code.set(other)
        code.get(total)
        code.get(other)
        code.op("v128.const", 0)
        code.op("f64x2.lt")
        code.set(product)
        code.get(product)
        code.op("i64x2.add")
        code.get(other)
        code.op("v128.const", 0)
        code.op("f64x2.gt")
        code.get(product)
        code.op("v128.or")
        code.op("v128.const", _everywhere(1, 64))
        code.op("v128.and")
        code.op("v128.or")
        halves.append(code.new_local(ValueType.V128))
        code.set(halves[-1])
    _joined(code, halves)
    operands.release()
    for local in (*halves, product, total, other):
        code.release(local)


def alone(at: Lanes) -> None:
    """Pushes the sums: of hasty code, or where need be of exact code."""
    code, found = at.code, at.code.new_local(ValueType.V128)
    watch = Watch.begun(code)
    hasty(at, watch)
    code.set(found)
    watch.ask()
    code.begin("if")
    exact(at)
    code.set(found)
    code.end()
    code.get(found)
    code.release(found)


def fused_scalar(code: Code, args: Sequence[Source], op: Signature) -> bool:
    """The same of one number."""
    assert op == FUSED
    product, addend, total, other = (code.new_local(ValueType.F64) for _ in range(4))
    found = code.new_local(ValueType.F32)
    for arg in args:
        arg.push()
        code.op("f64.promote_f32")
        if arg is args[1]:
            code.op("f64.mul")
            code.set(product)
    code.set(addend)
    code.get(product)
    code.get(addend)
    code.op("f64.add")
    code.set(total)
    code.get(total)
    code.op("f32.demote_f64")
    code.set(found)
    code.get(total)
    code.op("i64.reinterpret_f64")
    code.op("i64.const", 64 - _DROPPED)
    code.op("i64.shl")
    code.op("i64.const", 1 << 63)
    code.op("i64.eq")
    code.get(found)
    code.op("i32.reinterpret_f32")
    code.number(1)
    code.op("i32.shl")
    code.number(1)
    code.op("i32.sub")
    code.number(_LIMIT)
    code.op("i32.lt_u")
    code.op("i32.or")
    code.begin("if")
    code.get(total)
    code.get(product)
    code.op("f64.sub")
    code.set(other)
    code.get(product)
    code.get(total)
    code.get(other)
    code.op("f64.sub")
    code.op("f64.sub")
    code.get(addend)
    code.get(other)
    code.op("f64.sub")
    code.op("f64.add")
    code.get(total)
    code.op("f64.mul")
    code.set(other)
    code.get(total)
    code.op("i64.reinterpret_f64")
    for comparison in ("lt", "gt"):
        code.get(other)
        code.op("f64.const", 0)
        code.op(f"f64.{comparison}")
        code.op("i64.extend_i32_u")
        if comparison == "lt":
            code.op("i64.sub")
    code.get(other)
    code.op("f64.const", 0)
    code.op("f64.lt")
    code.op("i64.extend_i32_u")
    code.op("i64.or")
    code.op("i64.or")
    code.op("f64.reinterpret_i64")
    code.op("f32.demote_f64")
    code.set(found)
    code.end()
    code.get(found)
    for local in (product, addend, total, other, found):
        code.release(local)
    return False
