"""Elementary functions as graphs of integer operations, correctly rounded."""
from __future__ import annotations

from collections.abc import Callable

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.elementary.exponential import lower_exp, lower_exp2
from kera_hw.rtl.lower.floats.elementary.logarithm import lower_log, lower_log2
from kera_hw.types import FloatType

Lowering = Callable[[Builder, FloatType, Ref], Ref]

FUNCTIONS_F32: dict[str, Lowering] = {
    "exp": lower_exp,
    "exp2": lower_exp2,
    "log": lower_log,
    "log2": lower_log2,
}
