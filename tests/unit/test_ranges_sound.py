"""The ranges are sound: random expressions under random guards never leave the range they are given."""
from __future__ import annotations

import random

import numpy as np
import pytest

from kera_hw.frontend.sema.lowering.frame import Frame
from kera_hw.frontend.sema.lowering.whole import new_lowering
from kera_hw.frontend.sema.ranges.core import Prover
from kera_hw.frontend.sema.ranges.linear import known
from kera_hw.frontend.sema.ranges.proof import EXPR_RULES, STMT_RULES
from kera_hw.frontend.sema.ranges.refine import refine
from kera_hw.frontend.sema.ranges.state import State
from kera_hw.frontend.sema.tree import hir
from kera_hw.interp import run_region
from kera_hw.types import BOOL, IntType
from tests.unit.lower_builder import SPAN, cast, const, op, use, var

U4 = IntType(4, False)
I4 = IntType(4, True)
BINARY = [
    f"integer.{verb}" for verb in
    ("add", "sub", "mul", "div", "rem", "min", "max", "saturating_add", "saturating_sub", "saturating_mul")
] + [f"bits.{verb}" for verb in ("and", "or", "xor")]
UNARY = ["integer.neg", "integer.abs", "integer.sign", "bits.not"]
COMPARE = [f"compare.{verb}" for verb in ("lt", "le", "gt", "ge", "eq", "ne")]


class Generator:
    """Random expressions over two variables of a 4-bit type."""

    def __init__(self, seed: int, kind: IntType) -> None:
        self.random = random.Random(seed)
        self.kind = kind
        self.names = [var("x", kind), var("y", kind)]

    def expr(self, depth: int) -> hir.Expr:
        pick = self.random.choice
        if depth == 0 or self.random.random() < 0.15:
            constant = const(self.random.randint(self.kind.min, self.kind.max), self.kind)
            return pick([constant, use(self.names[0]), use(self.names[1])])
        a, b = self.expr(depth - 1), self.expr(depth - 1)
        shape = self.random.randrange(7)
        if shape == 0:
            amount = const(self.random.randrange(6), IntType(3, False))
            return op(pick(["bits.shl", "bits.shr"]), a, amount)
        if shape == 1 and self.kind.signed:
            return op(pick(UNARY), a)
        if shape == 2:
            wide = IntType(7, self.random.random() < 0.5)
            return cast(op(pick(BINARY[:7]), cast(a, wide), cast(b, wide)), self.kind)
        if shape == 3:
            return op("control.select", self.cond(1), a, b, kind=self.kind)
        return op(pick(BINARY), a, b)

    def cond(self, depth: int) -> hir.Expr:
        shape = self.random.randrange(3) if depth else 0
        if shape == 1:
            return hir.Logical(
                BOOL, SPAN, self.random.choice(["and", "or"]), self.cond(depth - 1), self.cond(depth - 1))
        if shape == 2:
            return op("bits.not", self.cond(depth - 1))
        return op(self.random.choice(COMPARE), self.expr(2), self.expr(1), kind=BOOL)


def evaluate(names: list[hir.Var], exprs: list[hir.Expr]) -> list[np.ndarray]:
    """Values of the expressions for all 256 pairs of inputs."""
    kind = names[0].type
    ctx = new_lowering()
    frame = Frame(ctx.store, [kind, kind])
    for position, name in enumerate(names):
        frame.bind(name, [ctx.store.param(position, kind)])
    region = frame.region([ctx.scalar(frame, expr) for expr in exprs])
    assert isinstance(kind, IntType)
    axis = np.arange(kind.min, kind.max + 1).astype(np.int8 if kind.signed else np.uint8)
    inputs = [np.repeat(axis, 16), np.tile(axis, 16)]
    return [np.asarray(value) for value in run_region(region, inputs, 256)]


@pytest.mark.parametrize("kind", [U4, I4])
def test_values_under_a_guard_stay_in_their_range(kind: IntType) -> None:
    narrowed = 0
    for seed in range(120):
        generator = Generator(seed, kind)
        guard, expr = generator.cond(2), generator.expr(3)
        truth = bool(seed % 2)
        prover, state = Prover(EXPR_RULES, STMT_RULES), State()
        for name in generator.names:
            state.values[name] = prover.store.of_type(kind)
        value = prover.scalar(state, expr) if seed % 3 else None  # before the guard says anything, or after
        refine(state, prover.scalar(state, guard), truth)
        interval = known(state, value or prover.scalar(state, expr)).interval
        values, reached = evaluate(generator.names, [expr, guard])
        hit = values[reached == truth]
        if hit.size:
            assert not state.dead, seed
            assert interval is not None
            low, high = int(hit.min()), int(hit.max())
            assert interval.low <= low and high <= interval.high, (seed, interval, low, high)
            narrowed += interval.high - interval.low < 15
    assert narrowed >= 10, narrowed  # the test would pass with ranges that say nothing
