"""Elementary functions as graphs of integer operations, correctly rounded."""
from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from kera_hw.graph.node import Ref
from kera_hw.numerics.elementary import FUNCTIONS
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.units import Unit
from kera_hw.types import BF16, F16, F32, FloatType

Lowering = Callable[[Builder, FloatType, Ref], Ref]


def _in_module(module: str, function: str) -> Lowering:
    """A lowering of this package, its module loaded on first use: designs without such functions need not
    wait for the tables.
    """

    def lowering(builder: Builder, kind: FloatType, word: Ref) -> Ref:
        found: Lowering = getattr(import_module(f"{__name__}.{module}"), function)
        return found(builder, kind, word)

    return lowering


FUNCTIONS_F32: dict[str, Lowering] = {
    "exp": _in_module("exponential", "lower_exp"),
    "exp2": _in_module("exponential", "lower_exp2"),
    "log": _in_module("logarithm", "lower_log"),
    "log2": _in_module("logarithm", "lower_log2"),
    "tanh": _in_module("octaves", "lower_tanh"),
    "erf": _in_module("octaves", "lower_erf"),
    "sigmoid": _in_module("sigmoid", "lower_sigmoid"),
    "silu": _in_module("sigmoid", "lower_silu"),
}


def lower(name: str) -> Lowering:
    """The lowering of a function on every format that ``UNITS`` lists for it."""

    def lowering(builder: Builder, kind: FloatType, word: Ref) -> Ref:
        if kind == F32:
            return FUNCTIONS_F32[name](builder, kind, word)
        narrow = import_module(f"{__name__}.narrow")
        return narrow.lower_narrow(name, builder, kind, word)

    return lowering


def _formats(name: str) -> frozenset[FloatType]:
    return frozenset({F16, BF16, F32} if name in FUNCTIONS_F32 else {F16, BF16})


UNITS: dict[str, Unit] = {f"floating.{name}": Unit(lower(name), _formats(name)) for name in FUNCTIONS}
