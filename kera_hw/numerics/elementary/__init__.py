"""Elementary functions: correctly rounded on f16, bf16 and f32, a published algorithm on f64."""
from __future__ import annotations

from functools import cache
from importlib import import_module

import numpy as np

from kera_hw.numerics import rounding
from kera_hw.numerics.arrays import Array
from kera_hw.numerics.elementary.program import Trace, trace
from kera_hw.numerics.elementary.run import Runner
from kera_hw.numerics.host import check_host, ieee
from kera_hw.types import FloatType

FUNCTIONS: tuple[str, ...] = (
    "exp", "exp2", "log", "log2", "sin", "cos", "tanh", "sigmoid", "erf", "gelu", "silu",
)


@cache
def program(name: str, kind: FloatType) -> Trace:
    """The f64 program behind a function of ``FUNCTIONS``: one for f16, bf16 and f32, another for f64.

    The former's result is yet to be rounded to the format.
    """
    # Loaded on first use: programs without such functions need not wait for the tables.
    module = import_module(f"{__name__}.{'wide' if kind.name == 'f64' else 'narrow'}")
    return trace(module.ALGORITHMS[name])


@cache
def machine_program(name: str, fused: bool) -> Trace:
    """The f64 program for f16, bf16 and f32 on processors, with fma or without: the same results, sooner.

    What it gives for a NaN has no meaning.
    """
    module = import_module(f"{__name__}.{'fused' if fused else 'balanced'}")
    return module.program(name)


@cache
def _runner(name: str, kind: FloatType) -> Runner:
    return Runner(program(name, kind))


@ieee
def evaluate(name: str, values: Array, kind: FloatType) -> Array:
    """A function of ``FUNCTIONS`` at every element of an array of the format's dtype; NaNs are canonical.

    Raises KeraError (K0703) where the host's arithmetic is not IEEE 754's.
    """
    check_host()
    arguments = rounding.widen(np.ascontiguousarray(values).reshape(-1), kind)
    return rounding.narrow(_runner(name, kind)(arguments), kind).reshape(values.shape)
