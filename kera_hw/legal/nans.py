"""The one NaN, put where bits can be seen: in results and states, and where a float becomes its bits.

Everywhere else a NaN may be any: arithmetic gives a NaN for a NaN, comparisons and conversions do not ask
which, and a selection moves what it has.
"""
from __future__ import annotations

from kera_hw.legal.emitter import NativeEmitter
from kera_hw.loops.program import Literal, Operand
from kera_hw.types import FloatType


def canonical(emit: NativeEmitter, x: Operand) -> Operand:
    """The same value; the canonical NaN for any other."""
    kind = x.type
    assert isinstance(kind, FloatType)
    if isinstance(x, Literal):
        return x
    return emit.choose(emit.is_equal(x, x), x, Literal(kind, kind.canonical_nan))
