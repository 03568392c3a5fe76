"""Integers wider than a word: what they mean, held against words, and how mapping cuts them into limbs."""
from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from kera_hw.graph import Export, Graph, verify_graph
from kera_hw.graph.node import Ref
from kera_hw.graph.store import Store
from kera_hw.graph.verifier import verify_region
from kera_hw.interp import run_operation, run_region
from kera_hw.interp.evaluator import Context
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import EvalCall, TypeRuleError
from kera_hw.ops.wide import ITEMS, rule_of
from kera_hw.rtl.formal.blocks import scalar
from kera_hw.rtl.formal.graph import Translator
from kera_hw.rtl.formal.terms import Terms, evaluate
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.design import FlatDesign
from kera_hw.rtl.lower.floats import shifts
from kera_hw.rtl.lower.floats.wires import Wires
from kera_hw.rtl.techmap import wide
from kera_hw.types import BOOL, IntType, Type, bit_width, is_wide, numpy_dtype

WIDTHS = (65, 110, 130, 181)
COUNT = 60
U8 = IntType(8, False)


def samples(kind: Type, rng: random.Random) -> list[int]:
    """Numbers of all lengths, and the corners."""
    if kind == BOOL:
        return [rng.randrange(2) for _ in range(COUNT)]
    assert isinstance(kind, IntType)
    width = kind.width_bits
    full = (1 << width) - 1
    corners = [0, 1, full, full - 1, 1 << (width - 1), full >> 1]
    found = [*corners, *(full ^ (1 << rng.randrange(width)) for _ in range(6))]
    found += [rng.getrandbits(width) >> rng.randrange(width) for _ in range(COUNT - len(found))]
    rng.shuffle(found)
    return [kind.wrap(value) for value in found]


def column(kind: Type, values: list[int]) -> np.ndarray[Any, Any]:
    made = np.empty(len(values), numpy_dtype(kind))
    made[:] = values
    return made


class Bench:
    """A region whose parameters are words, of which wide operands are joined."""

    def __init__(self, seed: int) -> None:
        self.builder = Builder(Store())
        self.rng = random.Random(seed)
        self.kinds: list[Type] = []
        self.columns: list[np.ndarray[Any, Any]] = []

    def operand(self, kind: Type, values: list[int]) -> Ref:
        """A value of any type that takes these values."""
        if not is_wide(kind):
            self.kinds.append(kind)
            self.columns.append(column(kind, values))
            return self.builder.store.param(len(self.kinds) - 1, kind)
        assert isinstance(kind, IntType)
        parts: list[Ref] = []
        for low in range(0, kind.width_bits, 37):
            part = IntType(min(37, kind.width_bits - low), False)
            parts.append(self.operand(part, [value >> low & part.max for value in values]))
        return self.builder.cast(self.builder.op("bits.cat", *reversed(parts)), kind)

    def operands(self, kinds: Sequence[Type]) -> tuple[list[Ref], list[list[int]]]:
        """Operands with random values, a few equal where two have one type."""
        values = [samples(kind, self.rng) for kind in kinds]
        if len(kinds) > 1 and kinds[0] == kinds[-1]:
            values[-1][:9] = values[0][:9]
        return [self.operand(kind, item) for kind, item in zip(kinds, values)], values

    def run(self, results: Sequence[Ref]) -> list[list[int]]:
        """The results; their bits are the same where the region is cut into words."""
        store = self.builder.store
        whole = run_region(store.region(self.kinds, results), self.columns, COUNT)
        words = [part for ref in results for part in self._words(ref)]
        region = store.region(self.kinds, words)
        cut = wide.narrowed(FlatDesign("f", region, (), (), (), (), ())).region
        assert verify_region(region) == [] and verify_region(cut) == []
        assert not any(is_wide(kind) for node in cut.nodes() for kind in node.types)
        for place, pair in enumerate(zip(*(run_region(item, self.columns, COUNT) for item in (region, cut)))):
            want, got = (item.tolist() for item in pair)
            assert want == got, f"word {place}"
        self._proves(results, whole)
        return [[int(value) for value in item] for item in whole]

    def _proves(self, results: Sequence[Ref], found: Sequence[np.ndarray[Any, Any]]) -> None:
        """What proofs say of the region, on a few items."""
        terms = Terms()
        args = [scalar(terms.var(f"p{i}", bit_width(kind))) for i, kind in enumerate(self.kinds)]
        blocks = Translator(terms).region(self.builder.store.region(self.kinds, results), args)
        for row in range(0, COUNT, 20):
            bits = {
                f"p{i}": int(item[row]) & (1 << bit_width(kind)) - 1
                for i, (kind, item) in enumerate(zip(self.kinds, self.columns))
            }
            said = evaluate([block.item for block in blocks], bits)
            widths = [bit_width(ref.type) for ref in results]
            assert said == [int(item[row]) & (1 << width) - 1 for item, width in zip(found, widths)]

    def _words(self, ref: Ref) -> list[Ref]:
        if not is_wide(ref.type):
            return [ref]
        assert isinstance(ref.type, IntType)
        ends = [(low, min(low + 64, ref.type.width_bits) - 1) for low in range(0, ref.type.width_bits, 64)]
        return [self.builder.op("bits.extract", ref, high=high, low=low) for low, high in ends]


# What they mean


def _kinds(opcode: str, width: int, signed: bool) -> tuple[tuple[Type, ...], dict[str, Any]]:
    """Operands of an operation, and attributes."""
    kind, low = IntType(width, signed), width // 3
    attrs: dict[str, dict[str, Any]] = {
        "bits.extract": {"high": width - 1, "low": low}, "bits.test": {"index": low},
        "convert.cast": {"type": IntType(max(1, width - low), not signed)},
        "convert.bitcast": {"type": IntType(width, not signed)},
    }
    if opcode in attrs or opcode in ("bits.not", "bits.clz"):
        return (kind,), attrs.get(opcode, {})
    if opcode == "control.select":
        return (BOOL, kind, kind), {}
    if opcode in ("bits.shl", "bits.shr"):
        return (kind, U8), {}
    return (kind, kind), {}


@pytest.mark.parametrize("opcode", ITEMS)
def test_wide_rules_are_the_registrys_on_words(opcode: str) -> None:
    rng = random.Random(opcode)
    for width in (1, 2, 7, 8, 13, 31, 32, 33, 63, 64):
        for signed in (False, True):
            kinds, attrs = _kinds(opcode, width, signed)
            try:
                types = OPS[opcode].infer(kinds, attrs)
            except TypeRuleError:
                continue
            if is_wide(types[0]):
                continue  # joined
            for row in zip(*(samples(kind, rng) for kind in kinds)):
                args = [column(kind, [value]) for kind, value in zip(kinds, row)]
                _, (want,) = run_operation(opcode, args, kinds, attrs)
                (got,) = rule_of(opcode)(EvalCall(Context(1), tuple(args), kinds, types, attrs))
                assert want.dtype == got.dtype and want.tolist() == got.tolist(), (kinds, row)


def test_programs_have_none() -> None:
    store, kind = Store(), IntType(65, False)
    region = store.region([kind], [store.op("bits.not", store.param(0, kind))])
    graph = Graph([Export("f", "fn", (("x", kind),), kind, region)])
    assert any("wider than the 64 bits" in fault.message for fault in verify_graph(graph))


# Cut into limbs


def test_every_operation_that_has_a_wide_meaning_is_cut() -> None:
    assert set(wide.RULES) == set(ITEMS) | {"core.constant"}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("opcode", ITEMS)
def test_operations_are_the_same_on_limbs(opcode: str, width: int, signed: bool) -> None:
    bench = Bench(width)
    kinds, attrs = _kinds(opcode, width, signed)
    args, _ = bench.operands(kinds)
    bench.run([bench.builder.store.op(opcode, *args, **attrs)])


@pytest.mark.parametrize("width", WIDTHS)
def test_constants_casts_and_known_amounts(width: int) -> None:
    bench = Bench(width)
    builder, kind, other = bench.builder, IntType(width, False), IntType(width + 40, True)
    (x,), (values,) = bench.operands([IntType(50, True)])
    signed = builder.cast(x, other)
    grown, third, mask = builder.cast(signed, kind), (1 << width) // 3, (1 << width) - 1
    known = (0, 1, 59, 64, width - 1, width, 255)
    amounts = [builder.const(U8, amount) for amount in known]
    found = bench.run([
        grown, builder.op("integer.mul", grown, builder.const(kind, third)),
        builder.op("compare.lt", signed, builder.const(other, -(1 << 48))),
        builder.op("compare.eq", signed, builder.const(other, -1)),
        *(builder.op("bits.shl", grown, amount) for amount in amounts),
        *(builder.op("bits.shr", signed, amount) for amount in amounts),
    ])
    assert found == [
        [value & mask for value in values], [value * third & mask for value in values],
        [int(value < -(1 << 48)) for value in values], [int(value == -1) for value in values],
        *([value << amount & mask for value in values] for amount in known),
        *([value >> amount for value in values] for amount in known),
    ]


# What float units are made of, of any width


Law = Callable[[int, int, int], int]


@pytest.mark.parametrize("width", (5, 24, 64, *WIDTHS))
def test_vectors_of_any_width(width: int) -> None:
    bench = Bench(width)
    kind, mask, wires = IntType(width, False), (1 << width) - 1, Wires(bench.builder)
    (x, y, flag), columns = bench.operands([kind, kind, BOOL])
    carry = wires.cast(flag, kind)
    cases: list[tuple[Ref, Law]] = [
        (wires.add(x, y, carry), lambda a, b, c: a + b + c & mask),
        (wires.add(carry, wires.add(x, y)), lambda a, b, c: a + b + c & mask),
        (wires.subtract(x, y), lambda a, b, _: a - b & mask),
        (wires.any(x), lambda a, _, __: int(a != 0)),
        (wires.select(flag, x, y), lambda a, b, c: a if c else b),
        (wires.flip_if(flag, x), lambda a, _, c: a ^ mask if c else a),
        (wires.product(x, y), lambda a, b, _: a * b),
        (wires.product(x, wires.low_bits(y, 3)), lambda a, b, _: a * (b & 7)),
        (wires.cat(x, wires.low_bits(y, 4)), lambda a, b, _: a << 4 | b & 15),
        (wires.scaled(x, 9), lambda a, _, __: a << 9),
        (wires.window(x, width + 6, 2), lambda a, _, __: a >> 2),
        (wires.window(x, width + 9, width + 3), lambda _, __, ___: 0),
        (wires.extended(x, width + 70), lambda a, _, __: a),
        (wires.bit(x, width - 1), lambda a, _, __: a >> (width - 1)),
        (wires.const(-3 & mask, width), lambda _, __, ___: -3 & mask),
        (wires.leading_zeros(x), lambda a, _, __: width - a.bit_length()),
    ]
    found = bench.run([ref for ref, _ in cases])
    assert found == [[want(*row) for row in zip(*columns)] for _, want in cases]


@pytest.mark.parametrize("width", (5, 24, 64, *WIDTHS))
def test_shifts_tell_what_falls_out(width: int) -> None:
    bench = Bench(width)
    (x, amount), columns = bench.operands([IntType(width, False), U8])
    moved, lost = shifts.shift_right_sticky(Wires(bench.builder), x, amount)
    rows = list(zip(*columns))
    assert bench.run([moved, lost]) == [
        [value >> by for value, by in rows], [int(value & ((1 << by) - 1) != 0) for value, by in rows],
    ]
