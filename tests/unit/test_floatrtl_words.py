"""Numbers of several words against Python's integers, run by the interpreter."""
from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from kera_hw.graph.node import Ref
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import shifts, words
from kera_hw.rtl.lower.floats.words import Wide
from kera_hw.types import BOOL, IntType, Type, numpy_dtype

WIDTHS = (5, 24, 52, 64, 65, 110, 130)
COUNT = 60
U8 = IntType(8, False)


def samples(width: int, rng: random.Random) -> list[int]:
    """Numbers of all lengths, and the corners."""
    full = (1 << width) - 1
    corners = [0, 1, full, full - 1, 1 << (width - 1), full >> 1]
    rest = [rng.getrandbits(width) >> rng.randrange(width) for _ in range(COUNT - len(corners) - 6)]
    return [*corners, *(full ^ (1 << rng.randrange(width)) for _ in range(6)), *rest]


class Bench:
    """One region over numbers and small words; results compared one by one."""

    def __init__(self) -> None:
        self.builder = Builder(Store())
        self.kinds: list[Type] = []
        self.args: list[np.ndarray] = []
        self.results: list[tuple[tuple[Ref, ...], list[int]]] = []

    def word(self, kind: Type, values: list[int]) -> Ref:
        self.kinds.append(kind)
        self.args.append(np.array(values, dtype=object).astype(numpy_dtype(kind)))
        return self.builder.store.param(len(self.kinds) - 1, kind)

    def number(self, width: int, values: list[int]) -> Wide:
        limbs: list[Ref] = []
        for low in range(0, width, 37):
            size = min(37, width - low)
            kind = IntType(size, False)
            limbs.append(self.word(kind, [value >> low & ((1 << size) - 1) for value in values]))
        return words.extract(self.builder, Wide(tuple(limbs)), width - 1, 0)

    def expect(self, got: Wide | Ref, want: list[int]) -> None:
        limbs = got.limbs if isinstance(got, Wide) else (got,)
        if isinstance(got, Wide):
            assert all(value >> got.width_bits == 0 for value in want)
        self.results.append((limbs, want))

    def run(self) -> None:
        refs = [ref for limbs, _ in self.results for ref in limbs]
        region = self.builder.store.region(self.kinds, refs)
        got = iter(run_region(region, self.args, batch=COUNT))
        for place, (limbs, want) in enumerate(self.results):
            total, low = [0] * COUNT, 0
            for limb in limbs:
                column = next(got)
                total = [t | int(v) << low for t, v in zip(total, column)]
                low += getattr(limb.type, "width_bits", 1)
            assert total == want, f"result {place}"


@pytest.mark.parametrize("width", WIDTHS)
def test_sums_and_products(width: int) -> None:
    rng = random.Random(width)
    bench, mask = Bench(), (1 << width) - 1
    xs, ys = samples(width, rng), samples(width, rng)
    rng.shuffle(ys)
    ys[:4] = xs[:4]
    flags = [rng.randrange(2) for _ in range(COUNT)]
    a, b, c = bench.number(width, xs), bench.number(width, ys), bench.word(BOOL, flags)
    build = bench.builder
    rows = list(zip(xs, ys, flags))
    bench.expect(words.add(build, a, b), [x + y & mask for x, y, _ in rows])
    bench.expect(words.add(build, a, b, c), [x + y + f & mask for x, y, f in rows])
    bench.expect(words.increment(build, a, c), [x + f & mask for x, _, f in rows])
    bench.expect(words.subtract(build, a, b), [x - y & mask for x, y, _ in rows])
    bench.expect(words.add_or_subtract(build, a, b, c), [(x - y if f else x + y) & mask for x, y, f in rows])
    bench.expect(words.any_set(build, a), [int(x != 0) for x in xs])
    bench.expect(words.select(build, c, a, b), [x if f else y for x, y, f in rows])
    bench.expect(words.bitwise(build, "bits.and", a, b), [x & y for x, y, _ in rows])
    bench.expect(words.bitwise(build, "bits.not", a), [x ^ mask for x in xs])
    bench.expect(words.multiply(build, a, b), [x * y for x, y, _ in rows])
    bench.run()


@pytest.mark.parametrize("width", WIDTHS)
def test_products_of_unequal_widths(width: int) -> None:
    rng = random.Random(width)
    bench = Bench()
    xs, ys = samples(width, rng), samples(24, rng)
    bench.expect(
        words.multiply(bench.builder, bench.number(width, xs), bench.number(24, ys)),
        [x * y for x, y in zip(xs, ys)],
    )
    bench.run()


@pytest.mark.parametrize("width", WIDTHS)
def test_shifts_and_counts(width: int) -> None:
    rng = random.Random(width)
    bench = Bench()
    xs = samples(width, rng)
    by = [rng.choice([0, 1, width - 1, width, width + 1, 255, rng.randrange(256)]) & 255 for _ in xs]
    a, amount = bench.number(width, xs), bench.word(U8, by)
    build = bench.builder
    bench.expect(shifts.leading_zeros(build, a), [width - x.bit_length() for x in xs])
    moved, lost = shifts.shift_right_sticky(build, a, amount)
    bench.expect(moved, [x >> n for x, n in zip(xs, by)])
    bench.expect(lost, [int(x & ((1 << n) - 1) != 0) for x, n in zip(xs, by)])
    bench.run()


@pytest.mark.parametrize("width", WIDTHS)
def test_wiring(width: int) -> None:
    rng = random.Random(width)
    bench = Bench()
    xs, ys = samples(width, rng), samples(24, rng)
    a, b = bench.number(width, xs), bench.number(24, ys)
    build = bench.builder
    cases: list[tuple[Wide | Ref, Callable[[int, int], int]]] = [
        (words.join(build, a, b), lambda x, y: x << 24 | y),
        (words.scale(build, a, 9), lambda x, _: x << 9),
        (words.extract(build, a, width + 6, 2), lambda x, _: x >> 2),
        (words.extract(build, a, width - 2, 0), lambda x, _: x & ((1 << (width - 1)) - 1)),
        (words.resize(build, a, width + 70), lambda x, _: x),
        (words.bit(build, a, width - 1), lambda x, _: x >> (width - 1)),
        (words.constant(build, -3, width), lambda _x, _y: -3 & ((1 << width) - 1)),
    ]
    for got, want in cases:
        bench.expect(got, [want(x, y) for x, y in zip(xs, ys)])
    bench.run()
