"""Elementary functions on machines with fma: the program that is made for them (``numerics.elementary``).

A NaN is put right at the end, so that on the way none has to be the canonical one.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kera_hw.legal.native import FUSED_MULTIPLY_ADD
from kera_hw.legal.values import Call, Table, Value
from kera_hw.legal.writer import Rule, Writer
from kera_hw.loops.program import Literal
from kera_hw.numerics import elementary
from kera_hw.ops.expansions.elementary import WORD, write_step
from kera_hw.types import F32, F64, FloatType

_NEW_NANS = frozenset({"log", "log2", "sin", "cos"})
"""Functions that give a NaN for some numbers, and any NaN for a NaN."""


def function(to: Writer, call: Call) -> Sequence[Value]:
    kind = call.type
    assert isinstance(kind, FloatType)
    if kind == F64 or not FUSED_MULTIPLY_ADD.keys() <= to.emit.native.keys():
        return to.expanded(call)
    (x,) = call.args
    verb = call.opcode.partition(".")[2]
    found = to.op("convert.cast", _written(to, verb, to.op("convert.cast", x, type=F64)), type=kind)
    if verb in _NEW_NANS:
        return (found,)
    nan = Literal(kind, kind.canonical_nan)
    if kind != F32:
        return (to.op("control.select", to.op("floating.is_nan", x), to.literal(nan), found),)
    operand = to.loose(x)
    number = to.emit.is_equal(operand, operand)
    return (replace(found, operand=to.emit.choose(number, to.loose(found), nan), settled=True),)


def _written(to: Writer, name: str, argument: Value) -> Value:
    """The program's result for an f64 that is no NaN."""
    program = elementary.fused_program(name)
    values: list[Value | Table] = []
    for step in program.steps:
        args = [values[a] for a in step.arguments]
        if step.verb == "argument":
            values.append(argument)
        elif step.verb == "to_bits":
            (x,) = args
            assert isinstance(x, Value)
            values.append(Value(WORD, to.emit.bits(to.loose(x)), None, True))
        else:
            values.append(write_step(to, step, args, program))
    found = values[program.result]
    assert isinstance(found, Value)
    return found


RULES: Mapping[str, Rule] = {f"floating.{name}": function for name in elementary.FUNCTIONS}
