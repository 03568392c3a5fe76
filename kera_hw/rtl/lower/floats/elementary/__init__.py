"""Elementary functions as graphs of integer operations, correctly rounded."""
from __future__ import annotations

from collections.abc import Callable

from kera_hw.graph.node import Ref
from kera_hw.numerics.elementary import FUNCTIONS
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.elementary.exponential import lower_exp, lower_exp2
from kera_hw.rtl.lower.floats.elementary.logarithm import lower_log, lower_log2
from kera_hw.rtl.lower.floats.elementary.narrow import lower_narrow
from kera_hw.rtl.lower.floats.elementary.octaves import lower_erf, lower_tanh
from kera_hw.rtl.lower.floats.elementary.sigmoid import lower_sigmoid, lower_silu
from kera_hw.rtl.lower.floats.units import Unit
from kera_hw.types import BF16, F16, F32, FloatType

Lowering = Callable[[Builder, FloatType, Ref], Ref]

FUNCTIONS_F32: dict[str, Lowering] = {
    "exp": lower_exp,
    "exp2": lower_exp2,
    "log": lower_log,
    "log2": lower_log2,
    "tanh": lower_tanh,
    "erf": lower_erf,
    "sigmoid": lower_sigmoid,
    "silu": lower_silu,
}


def lower(name: str) -> Lowering:
    """The lowering of a function on every format that ``UNITS`` lists for it."""

    def lowering(builder: Builder, kind: FloatType, word: Ref) -> Ref:
        if kind == F32:
            return FUNCTIONS_F32[name](builder, kind, word)
        return lower_narrow(name, builder, kind, word)

    return lowering


def _formats(name: str) -> frozenset[FloatType]:
    return frozenset({F16, BF16, F32} if name in FUNCTIONS_F32 else {F16, BF16})


UNITS: dict[str, Unit] = {f"floating.{name}": Unit(lower(name), _formats(name)) for name in FUNCTIONS}
