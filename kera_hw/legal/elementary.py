"""Elementary functions on processors: the programs that are made for them (``numerics.elementary``).

A NaN is put right at the end, so that on the way none has to be the canonical one.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from kera_hw.legal.native import FUSED_MULTIPLY_ADD
from kera_hw.legal.values import Call, Table, Value
from kera_hw.legal.writer import Rule, Writer
from kera_hw.loops.program import Literal
from kera_hw.lower.emitter import bits_of
from kera_hw.numerics import elementary
from kera_hw.numerics.elementary.program import Trace, TraceStep
from kera_hw.ops.expansions.elementary import WORD, write_step
from kera_hw.types import F32, F64, FloatType

_NEW_NANS = frozenset({"log", "log2", "sin", "cos"})
"""Functions that give a NaN for some numbers, and any NaN for a NaN."""


def function(to: Writer, call: Call) -> Sequence[Value]:
    kind = call.type
    assert isinstance(kind, FloatType)
    if kind == F64:
        return to.expanded(call)
    (x,) = call.args
    verb = call.opcode.partition(".")[2]
    found = to.op("convert.cast", _written(to, verb, x), type=kind)
    if verb in _NEW_NANS:
        return (found,)
    nan = Literal(kind, kind.canonical_nan)
    if kind != F32:
        return (to.op("control.select", to.op("floating.is_nan", x), to.literal(nan), found),)
    operand = to.loose(x)
    number = to.emit.is_equal(operand, operand)
    return (replace(found, operand=to.emit.choose(number, to.loose(found), nan), settled=True),)


class _Program:
    """A program that is being written for an argument that is no NaN.

    What only limits the argument is done in f32, of which vectors hold twice as many, where limits are f32.
    """

    def __init__(self, to: Writer, program: Trace, argument: Value) -> None:
        self._to = to
        self._program = program
        self._values: list[Value | Table | None] = [None] * len(program.steps)  # of f64, words, flags
        self._short: dict[int, Value] = {}  # of f32
        for k, step in enumerate(program.steps):
            self._step(k, step, argument)

    def result(self) -> Value:
        found = self._value(self._program.result)
        assert isinstance(found, Value)
        return found

    def _step(self, k: int, step: TraceStep, argument: Value) -> None:
        to = self._to
        if step.verb == "argument":
            if argument.type == F32:
                self._short[k] = argument
            else:
                self._values[k] = to.op("convert.cast", argument, type=F64)
        elif step.verb in _LIMITING and self._short.keys() & step.arguments:
            args = [self._narrowed(a) for a in step.arguments]
            if None not in args:
                opcode = "compare.lt" if step.verb == "lt" else "control.select"
                self._short[k] = to.op(opcode, *(arg for arg in args if arg is not None))
        if k in self._short or self._values[k] is not None:
            return
        args = [self._value(a) for a in step.arguments]
        if step.verb == "to_bits":
            (x,) = args
            assert isinstance(x, Value)
            self._values[k] = Value(WORD, to.emit.bits(to.loose(x)), None, True)
        else:
            self._values[k] = write_step(to, step, args, self._program)

    def _narrowed(self, k: int) -> Value | None:
        """A step's value in f32, if it is one."""
        step = self._program.steps[k]
        if step.verb == "real":
            exact = np.array(step.parameter, np.uint64).view(np.float64)
            short = exact.astype(np.float32)
            return self._to.literal(Literal(F32, bits_of(F32, short))) if short == exact else None
        return self._short.get(k)

    def _value(self, k: int) -> Value | Table:
        found = self._values[k]
        if found is None:
            found = self._short[k]
            if found.type == F32:
                found = self._to.op("convert.cast", found, type=F64)
            self._values[k] = found
        return found


_LIMITING = ("lt", "select")


def _written(to: Writer, name: str, argument: Value) -> Value:
    """The program's result, an f64."""
    fused = FUSED_MULTIPLY_ADD.keys() <= to.emit.native.keys()
    return _Program(to, elementary.machine_program(name, fused), argument).result()


RULES: Mapping[str, Rule] = {f"floating.{name}": function for name in elementary.FUNCTIONS}
