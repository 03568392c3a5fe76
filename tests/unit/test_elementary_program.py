"""Programs as data: another executor gives the same bits, and the constants are what the script derives."""
from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kera_hw.numerics.elementary import FUNCTIONS, program
from kera_hw.numerics.elementary.program import Real, Sort, Trace, TraceStep, bits_real, real_bits, trace
from kera_hw.numerics.elementary.run import BLOCK, Runner
from kera_hw.types import F32, F64, FloatType

ROOT = Path(__file__).parents[2]
MASK = (1 << 64) - 1


def divide(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def step_value(step: TraceStep, x: list[float | int | bool], whole: Trace) -> float | int | bool:
    """One step on Python numbers, whose floats are IEEE binary64 too."""
    match step.verb, x:
        case "real", _:
            return bits_real(step.parameter)
        case "word", _:
            return step.parameter
        case "add", [a, b]:
            return a + b
        case "sub", [a, b]:
            return a - b
        case "mul", [a, b]:
            return a * b
        case "div", [a, b]:
            return divide(a, b)
        case "lt" | "ult", [a, b]:
            return a < b
        case "le", [a, b]:
            return a <= b
        case "eq" | "ieq", [a, b]:
            return a == b
        case "iadd", [a, b]:
            return a + b & MASK
        case "isub", [a, b]:
            return a - b & MASK
        case "imul", [a, b]:
            return a * b & MASK
        case "and" | "both", [a, b]:
            return int(a) & int(b)
        case "or" | "either", [a, b]:
            return int(a) | int(b)
        case "xor", [a, b]:
            return int(a) ^ int(b)
        case "shl", [a]:
            return int(a) << step.parameter & MASK
        case "shr", [a]:
            return int(a) >> step.parameter
        case "sar", [a]:
            return signed(int(a)) >> step.parameter & MASK
        case "shift_left", [a, b]:
            return int(a) << int(b) & MASK
        case "shift_right", [a, b]:
            return int(a) >> int(b)
        case "select", [flag, a, b]:
            return a if flag else b
        case "to_bits", [a]:
            return real_bits(a)
        case "from_bits", [a]:
            return bits_real(int(a))
        case "lookup", [a]:
            table = whole.tables[step.parameter]
            entry = table.entries[int(a)]
            return bits_real(entry) if table.sort is Sort.REAL else entry
        case verb, _:
            raise AssertionError(verb)


def interpret(whole: Trace, argument: float) -> float:
    values: list[float | int | bool] = []
    for step in whole.steps:
        operands = [values[a] for a in step.arguments]
        values.append(argument if step.verb == "argument" else step_value(step, operands, whole))
    return float(values[whole.result])


@pytest.mark.parametrize("kind", [F32, F64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_scalar_interpreter_gives_the_same_bits(name: str, kind: FloatType) -> None:
    random = np.random.default_rng(11)
    inputs = np.concatenate([
        random.normal(0, 5, 60), random.uniform(-120, 120, 40), random.uniform(-1e30, 1e30, 20),
        np.array([0.0, -0.0, math.inf, -math.inf, 1.0, -1.0, 0.5, 2.0**-149, -(2.0**-149)]),
    ]).astype(np.float32).astype(np.float64)
    whole = program(name, kind)
    for x, y in zip(inputs.tolist(), Runner(whole)(inputs).tolist()):
        z = interpret(whole, x)
        assert real_bits(y) == real_bits(z) or (math.isnan(y) and math.isnan(z)), (name, x, y, z)


@pytest.mark.parametrize("kind", [F32, F64], ids=str)
def test_programs_use_no_operation_that_a_target_could_lack(kind: FloatType) -> None:
    verbs = {step.verb for name in FUNCTIONS for step in program(name, kind).steps}
    rounded = {"add", "sub", "mul", "div"}
    exact = {
        "argument", "real", "word", "lt", "le", "eq", "ult", "ieq", "iadd", "isub", "imul",
        "and", "or", "xor", "shl", "shr", "sar", "shift_left", "both", "either", "select",
        "to_bits", "from_bits", "lookup",
    }
    assert verbs <= rounded | exact


def test_tracing_shares_equal_steps_and_drops_unused_ones() -> None:
    def algorithm(x: Real) -> Real:
        _ = x / 3.0
        return (x + 1.0) * (x + 1.0)

    assert [step.verb for step in trace(algorithm).steps] == ["argument", "real", "add", "mul"]


def test_blocks_join_without_a_seam() -> None:
    inputs = np.linspace(-3, 3, 2 * BLOCK + 5)
    run = Runner(program("tanh", F32))
    assert np.array_equal(run(inputs), np.concatenate([run(inputs[:7]), run(inputs[7:])]))


def test_the_constants_are_what_the_script_derives() -> None:
    script = ROOT / "tools/derive_elementary.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr
