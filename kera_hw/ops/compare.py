"""Comparisons of scalars of one type, element by element; on floats they are quiet, and -0 equals +0."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kera_hw.numerics import floats
from kera_hw.numerics.arrays import Array
from kera_hw.ops.rules import SCALAR, fixed_result_rule, spread
from kera_hw.ops.spec import EvalCall, OpSpec, Trait
from kera_hw.types import BOOL, FloatType, element_type

C = Trait.COMMUTATIVE


def _row(verb: str, doc: str, function: Callable[[Array, Array], Array], *traits: Trait) -> OpSpec:
    name = f"compare.{verb}"

    def evaluate(call: EvalCall) -> Sequence[Array]:
        a, b = spread(call.args)
        kind = element_type(call.arg_types[0])
        if isinstance(kind, FloatType):
            a, b = floats.comparable(a, kind), floats.comparable(b, kind)
        return (function(a, b),)

    return OpSpec(
        name, doc, fixed_result_rule(name, 2, SCALAR, BOOL), evaluate,
        frozenset({Trait.ELEMENTWISE, *traits}),
    )


TABLE: tuple[OpSpec, ...] = (
    _row("eq", "Whether the operands are equal; NaN equals nothing.", np.equal, C),
    _row("ne", "Whether the operands differ; NaN differs from everything.", np.not_equal, C),
    _row("lt", "Whether the first operand is less; false is below true.", np.less),
    _row("le", "Whether the first operand is less or equal.", np.less_equal),
    _row("gt", "Whether the first operand is greater.", np.greater),
    _row("ge", "Whether the first operand is greater or equal.", np.greater_equal),
)
