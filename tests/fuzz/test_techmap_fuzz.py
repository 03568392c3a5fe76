"""Random scalar expression graphs, flattened and mapped, against the interpreter."""
from __future__ import annotations

import random

import pytest

from kera_hw.graph.node import Ref
from kera_hw.graph.store import Store
from kera_hw.types import BOOL, IntType
from tests.unit.hw_random import check

WIDTHS = [1, 3, 8, 13, 16, 31, 32, 64]
ARITHMETIC = ["integer.add", "integer.sub", "integer.add", "integer.sub", "integer.mul"]
LOGIC = ["bits.and", "bits.or", "bits.xor", "integer.min", "integer.max"]


class Grower:
    """Grows a random graph: values by type, each new one from earlier ones."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.store = Store()
        self.kinds = [IntType(self.rng.choice(WIDTHS), self.rng.random() < 0.5) for _ in range(3)]
        self.params = [self.rng.choice(self.kinds) for _ in range(4)] + [BOOL, BOOL]
        self.values = [self.store.param(i, kind) for i, kind in enumerate(self.params)]

    def of(self, kind: object) -> Ref:
        """A value of the type: an earlier one (recent ones more often), a constant or a cast."""
        fitting = [ref for ref in self.values if ref.type == kind]
        chance = self.rng.random()
        if isinstance(kind, IntType) and (chance < 0.15 or not fitting):
            if chance < 0.1 or kind.width_bits < 3:
                raw = self.rng.choice([0, 1, -1, 3, 5, 100, self.rng.getrandbits(64)])
                return self.store.constant(kind, kind.wrap(raw))
            source = self.rng.choice([ref for ref in self.values if isinstance(ref.type, IntType)])
            return self.store.op("convert.cast", source, type=kind)
        return self.rng.choice(fitting[-4:] if chance < 0.7 else fitting)

    def step(self) -> Ref:
        rng, op = self.rng, self.store.op
        kind = rng.choice(self.kinds)
        choice = rng.random()
        if choice < 0.45:
            return op(rng.choice(ARITHMETIC), self.of(kind), self.of(kind))
        if choice < 0.65:
            return op("control.select", self.of(BOOL), self.of(kind), self.of(kind))
        if choice < 0.75:
            logic = rng.choice(LOGIC)
            product = isinstance(kind, IntType) and not kind.signed and logic == "bits.xor"
            if product and rng.random() < 0.5:
                wide = op("bits.clmul", self.of(kind), self.of(kind))
                return op("convert.cast", wide, type=kind)
            return op(logic, self.of(kind), self.of(kind))
        if choice < 0.85:
            return op(rng.choice(["compare.lt", "compare.eq", "compare.ge"]), self.of(kind), self.of(kind))
        amount = self.store.constant(IntType(6, False), rng.randrange(min(40, kind.width_bits + 2)))
        if choice < 0.95:
            return op(rng.choice(["bits.shl", "bits.shr", "bits.rotl"]), self.of(kind), amount)
        return op(rng.choice(["integer.neg", "integer.abs", "bits.not", "bits.popcount"]), self.of(kind))

    def grow(self, count: int) -> list[Ref]:
        for _ in range(count):
            self.values.append(self.step())
        return self.rng.sample(self.values[len(self.params) :], 4) + [self.values[-1]]


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed: int) -> None:
    grower = Grower(seed)
    results = grower.grow(14)
    device = "ecp5-85k" if seed % 3 else "ice40-hx8k"
    check(grower.store, grower.params, results, count=24, seed=seed, device=device, clock_ps=2600 + seed * 50)


@pytest.mark.parametrize("seed", range(20))
def test_gated_sums(seed: int) -> None:
    rng = random.Random(seed)
    kind = IntType(rng.choice([4, 9, 16, 33]), rng.random() < 0.5)
    store = Store()
    x, y, z = (store.param(i, kind) for i in range(3))
    c = store.param(3, BOOL)
    amount = store.constant(IntType(4, False), rng.randrange(3))
    shifted = store.op("bits.shl", y, amount)
    k = store.constant(kind, kind.wrap(rng.getrandbits(8)))
    add, sub = "integer.add", "integer.sub"
    sides = [store.op(sub, x, shifted), store.op(add, x, shifted), x, store.op(add, x, z)]
    sides += [store.op(add, x, k), store.op(sub, store.op(add, x, z), k), store.op(sub, z, x)]
    sides.append(store.op("integer.neg", x))
    results = [store.op("control.select", c, rng.choice(sides), rng.choice(sides)) for _ in range(6)]
    results.append(store.op(add, results[0], store.op("control.select", c, *rng.sample(sides, 2))))
    for i, result in enumerate(results):  # alone, so that the branches have one use
        check(store, [kind, kind, kind, BOOL], [result], count=24, seed=i)


@pytest.mark.parametrize("seed", range(8))
def test_parity_networks(seed: int) -> None:
    rng = random.Random(seed)
    width = rng.choice([8, 16, 32, 64])
    kind = IntType(width, False)
    store = Store()
    x, y = store.param(0, kind), store.param(1, kind)
    for _ in range(rng.randrange(4, 9)):
        amount = store.constant(IntType(7, False), rng.randrange(1, width))
        moved = store.op(rng.choice(["bits.shl", "bits.shr", "bits.rotl"]), x, amount)
        bit = store.op("bits.test", x, index=rng.randrange(width))
        mask = store.constant(kind, rng.getrandbits(width))
        mask = store.op("control.select", bit, mask, store.constant(kind, 0))
        x = store.op("bits.xor", store.op("bits.xor", x, moved), store.op("bits.xor", y, mask))
    check(store, [kind, kind], [store.op("bits.not", x), store.op("integer.add", x, y)], count=24)
