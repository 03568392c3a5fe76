"""Runs a program on NumPy arrays, block by block so that every intermediate value stays in the cache."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kera_hw.numerics.arrays import Array
from kera_hw.numerics.elementary.program import Sort, Trace, TraceStep, bits_real
from kera_hw.numerics.host import ieee

BLOCK = 4096

_BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "ult": np.less, "ieq": np.equal,
    "iadd": np.add, "isub": np.subtract, "imul": np.multiply,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "shift_left": np.left_shift, "shift_right": np.right_shift,
    "both": np.logical_and, "either": np.logical_or, "select": np.where,
}
_SHIFTS: dict[str, Callable[..., Any]] = {"shl": np.left_shift, "shr": np.right_shift}
_DTYPES: dict[Sort, Any] = {Sort.REAL: np.float64, Sort.WORD: np.uint64}

_Action = Callable[[list[Any]], Any]


class Runner:
    """A program made ready to run: one callable a step, and the steps after which a value is dropped."""

    def __init__(self, program: Trace) -> None:
        self._result = program.result
        self._constants: list[Any] = [None] * len(program.steps)
        self._actions: list[tuple[int, _Action, tuple[int, ...]]] = []
        tables = [np.array(t.entries, np.uint64).view(_DTYPES[t.sort]) for t in program.tables]
        last_use = {a: index for index, step in enumerate(program.steps) for a in step.arguments}
        for index, step in enumerate(program.steps):
            if step.verb in ("real", "word"):
                self._constants[index] = _constant(step)
            elif step.verb != "argument":
                dead = tuple(
                    a for a in set(step.arguments)
                    if last_use[a] == index and a != program.result
                    and program.steps[a].verb not in ("real", "word")
                )
                self._actions.append((index, _action(step, tables), dead))

    @ieee
    def __call__(self, values: Array) -> Array:
        """The function at every element of a flat f64 array, as a new f64 array."""
        out = np.empty(values.shape, np.float64)
        for start in range(0, len(values), BLOCK):
            out[start : start + BLOCK] = self._block(values[start : start + BLOCK])
        return out

    def _block(self, values: Array) -> Any:
        slots = self._constants.copy()
        slots[0] = values
        for index, action, dead in self._actions:
            slots[index] = action(slots)
            for place in dead:
                slots[place] = None
        return slots[self._result]


def _constant(step: TraceStep) -> Any:
    if step.sort is Sort.REAL:
        return np.float64(bits_real(step.parameter))
    return np.uint64(step.parameter)


def _action(step: TraceStep, tables: list[Array]) -> _Action:
    """A callable from the values so far to this step's value."""
    verb = step.verb
    a = step.arguments[0]
    if verb in _BINARY:
        function = _BINARY[verb]
        if len(step.arguments) == 3:
            _, b, c = step.arguments
            return lambda slots: function(slots[a], slots[b], slots[c])
        _, b = step.arguments
        return lambda slots: function(slots[a], slots[b])
    if verb in _SHIFTS:
        shift, distance = _SHIFTS[verb], np.uint64(step.parameter)
        return lambda slots: shift(slots[a], distance)
    if verb == "sar":
        signed_distance = np.int64(step.parameter)
        return lambda slots: (slots[a].view(np.int64) >> signed_distance).view(np.uint64)
    if verb == "to_bits":
        return lambda slots: slots[a].view(np.uint64)
    if verb == "from_bits":
        return lambda slots: slots[a].view(np.float64)
    assert verb == "lookup", verb
    table = tables[step.parameter]
    return lambda slots: table.take(slots[a].view(np.int64))
