"""Comparisons of scalars of one type, element by element."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kera_hw.numerics.arrays import Array
from kera_hw.ops.rules import SCALAR, first_float, fixed_result_rule, refuse_floats, spread
from kera_hw.ops.spec import EvalCall, OpSpec, Trait
from kera_hw.types import BOOL

C = Trait.COMMUTATIVE


def _row(verb: str, doc: str, function: Callable[[Array, Array], Array], *traits: Trait) -> OpSpec:
    name = f"compare.{verb}"

    def evaluate(call: EvalCall) -> Sequence[Array]:
        refuse_floats(name, call)
        a, b = spread(call.args)
        return (function(a, b),)

    return OpSpec(
        name, doc, fixed_result_rule(name, 2, SCALAR, BOOL), evaluate,
        frozenset({Trait.ELEMENTWISE, *traits}), unsupported=first_float,
    )


TABLE: tuple[OpSpec, ...] = (
    _row("eq", "Whether the operands are equal; NaN equals nothing.", np.equal, C),
    _row("ne", "Whether the operands differ; NaN differs from everything.", np.not_equal, C),
    _row("lt", "Whether the first operand is less; false is below true.", np.less),
    _row("le", "Whether the first operand is less or equal.", np.less_equal),
    _row("gt", "Whether the first operand is greater.", np.greater),
    _row("ge", "Whether the first operand is greater or equal.", np.greater_equal),
)
