"""The elementary functions as operations of the registry, for targets without a form of their own.

``numerics.elementary`` keeps every function as a straight-line program over f64, 64-bit words and flags.
Here each step becomes one operation: a target that has f64, u64 and tables of constants has all functions,
with the bits of the reference. Every NaN is the canonical one on the way, where the reference keeps what the
host makes. That is no luxury: `exp` adds to the bits of what may be a NaN, and not every NaN stays one.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kera_hw.numerics import elementary
from kera_hw.numerics.elementary.program import Sort, Trace, TraceStep
from kera_hw.ops.spec import Attrs, Expansion, V, Writer
from kera_hw.types import F64, FloatType, IntType, TensorType, Type

WORD = IntType(64, False)
_SIGNED = IntType(64, True)
_DISTANCE = IntType(6, False)
_TYPES: dict[Sort, Type] = {Sort.REAL: F64, Sort.WORD: WORD}

_PLAIN: dict[str, str] = {
    "add": "floating.add", "sub": "floating.sub", "mul": "floating.mul", "div": "floating.div",
    "fma": "floating.fma",
    "lt": "compare.lt", "le": "compare.le", "eq": "compare.eq", "ult": "compare.lt", "ieq": "compare.eq",
    "iadd": "integer.add", "isub": "integer.sub", "imul": "integer.mul",
    "and": "bits.and", "or": "bits.or", "xor": "bits.xor", "both": "bits.and", "either": "bits.or",
    "select": "control.select",
}
"""Verbs that are one operation on the values as they are."""


def _constant(to: Writer[V], sort: Sort, bits: Sequence[int]) -> V:
    """A scalar, or a table of several entries."""
    values = np.array(bits, np.uint64)
    kind = _TYPES[sort]
    if sort is Sort.REAL:
        values = values.view(np.float64)
    if len(bits) == 1:
        return to.constant(kind, values[0])
    return to.constant(TensorType(kind, (len(bits),)), values)


def _shift(to: Writer[V], opcode: str, value: V, distance: int) -> V:
    return to.op(opcode, value, to.constant(_DISTANCE, np.array(distance, np.uint8)))


def write_step(to: Writer[V], step: TraceStep, args: list[V], program: Trace) -> V:
    """One step, whose arguments are written already."""
    match step.verb:
        case "real" | "word":
            return _constant(to, step.sort, [step.parameter])
        case "shl":
            return _shift(to, "bits.shl", args[0], step.parameter)
        case "shr":
            return _shift(to, "bits.shr", args[0], step.parameter)
        case "sar":
            signed = to.op("convert.bitcast", args[0], type=_SIGNED)
            return to.op("convert.bitcast", _shift(to, "bits.shr", signed, step.parameter), type=WORD)
        case "shift_left" | "shift_right":
            # The distance is below 64: said by its type, no target asks what lies beyond.
            distance = to.op("convert.cast", args[1], type=_DISTANCE)
            return to.op("bits.shl" if step.verb == "shift_left" else "bits.shr", args[0], distance)
        case "to_bits":
            return to.op("convert.bitcast", args[0], type=WORD)
        case "from_bits":
            return to.op("convert.bitcast", args[0], type=F64)
        case "lookup":
            table = program.tables[step.parameter]
            return to.op("tensor.index", _constant(to, table.sort, table.entries), args[0])
        case verb:
            return to.op(_PLAIN[verb], *args)


def write(to: Writer[V], program: Trace, argument: V) -> V:
    """The program's result for an f64."""
    values: list[V] = []
    for step in program.steps:
        if step.verb == "argument":
            values.append(argument)
        else:
            values.append(write_step(to, step, [values[a] for a in step.arguments], program))
    return values[program.result]


def _written(name: str, to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    (x,) = args
    kind = x.type
    assert isinstance(kind, FloatType), "the functions are written out for scalars"
    program = elementary.program(name, kind)
    if kind == F64:
        return (write(to, program, x),)
    return (to.op("convert.cast", write(to, program, to.op("convert.cast", x, type=F64)), type=kind),)


def _function(name: str) -> Expansion:
    def rule(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
        """The fixed program over f64 and 64-bit words, with tables."""
        return _written(name, to, args, attrs)

    return rule


EXPANSIONS: Mapping[str, Expansion] = {
    f"floating.{name}": _function(name) for name in elementary.FUNCTIONS
}
