"""Numbers of two unsigned words, the upper and the lower one."""
from __future__ import annotations

from kera_hw.legal.emitter import NativeEmitter
from kera_hw.legal.native import unsigned
from kera_hw.loops.program import Operand

WORD = unsigned(64)
_HALF = 0xFFFF_FFFF

Wide = tuple[Operand, Operand]


def product(emit: NativeEmitter, a: Operand, b: Operand) -> Wide:
    """The product of two words from the four of their halves."""
    a_low, a_high = emit.both(a, _HALF), emit.shr(a, 32)
    b_low, b_high = emit.both(b, _HALF), emit.shr(b, 32)
    # (2^32 - 1)^2 + 2 (2^32 - 1) is a word still: neither sum overflows.
    middle = emit.add(emit.mul(a_high, b_low), emit.shr(emit.mul(a_low, b_low), 32))
    other = emit.add(emit.mul(a_low, b_high), emit.both(middle, _HALF))
    high = emit.add(emit.mul(a_high, b_high), emit.add(emit.shr(middle, 32), emit.shr(other, 32)))
    return high, emit.mul(a, b)
