"""Row builders for arithmetic on raw integers: what the integer and fixed-point tables share."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from kera_hw.numerics.arrays import Array
from kera_hw.ops.rules import Kinds, raw_int, same_type_rule, spread
from kera_hw.ops.spec import EvalCall, OpSpec, Trait
from kera_hw.types import IntType

Unary = Callable[[Array, IntType], Array]
Binary = Callable[[Array, Array, IntType], Array]


def unary_row(name: str, kinds: Kinds, doc: str, function: Unary, *traits: Trait) -> OpSpec:
    """An element-wise operation of one operand that keeps its type."""

    def evaluate(call: EvalCall) -> Sequence[Array]:
        return (function(call.args[0], raw_int(call.arg_types[0])),)

    return OpSpec(
        name, doc, same_type_rule(name, 1, kinds), evaluate, frozenset({Trait.ELEMENTWISE, *traits})
    )


def binary_row(name: str, kinds: Kinds, doc: str, function: Binary, *traits: Trait) -> OpSpec:
    """An element-wise operation of two operands of one type that keeps it."""

    def evaluate(call: EvalCall) -> Sequence[Array]:
        a, b = spread(call.args)
        return (function(a, b, raw_int(call.arg_types[0])),)

    return OpSpec(
        name, doc, same_type_rule(name, 2, kinds), evaluate, frozenset({Trait.ELEMENTWISE, *traits})
    )
