"""Every scalar operation in cells, at the edges of every kind of width: all operands or pairs of edges."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

from kera_hw.graph import Export, Graph, Ref, Store
from kera_hw.types import BOOL, BoolType, FixType, IntType, TupleType, Type, numpy_dtype
from tests.differential.hardware_support import check_graph

WIDTHS = (1, 2, 3, 7, 8, 16, 31, 32, 33, 48, 63, 64)
BINARY = (
    "integer.add", "integer.sub", "integer.mul", "integer.div", "integer.rem", "integer.min", "integer.max",
    "integer.saturating_add", "integer.saturating_sub", "integer.saturating_mul", "bits.and", "bits.or",
    "bits.xor", "compare.eq", "compare.ne", "compare.lt", "compare.le", "compare.gt", "compare.ge",
)
HARD = ("integer.mul", "integer.div", "integer.rem", "integer.saturating_mul")
UNARY = (
    "integer.neg", "integer.abs", "integer.sign", "bits.not", "bits.reverse_bits", "bits.popcount",
    "bits.clz", "bits.ctz",
)
SHIFTS = ("bits.shl", "bits.shr", "bits.rotl", "bits.rotr")
AMOUNTS = tuple(IntType(width, False) for width in (1, 3, 6, 7, 32, 64))
FORMATS = ((1, 0), (1, 1), (4, 0), (4, 4), (7, 3), (8, 8), (16, 12), (33, 16), (64, 1), (64, 64))
MODES = ("floor", "trunc", "half_up", "half_even")


def raw_of(kind: Type) -> IntType:
    assert isinstance(kind, (IntType, FixType))
    return kind.raw if isinstance(kind, FixType) else kind


def edges(kind: Type) -> list[int]:
    """All values of narrow types; else both ends, both sides of zero and patterns."""
    if isinstance(kind, BoolType):
        return [0, 1]
    raw = raw_of(kind)
    if raw.width_bits <= 4:
        return list(range(raw.min, raw.max + 1))
    half = raw.width_bits // 2
    wanted = (
        0, 1, 2, 3, 10, -1, -2, raw.min, raw.min + 1, raw.max, raw.max - 1, raw.width_bits,
        1 << half, (1 << half) - 1, -1 << half, 0x5555_5555_5555_5555, 0xAAAA_AAAA_AAAA_AAAA,
    )
    return sorted({raw.wrap(value) for value in wanted})


def column(kind: Type, values: list[int]) -> np.ndarray:
    return np.array(values, dtype=object).astype(numpy_dtype(kind))


def graph_of(store: Store, params: list[Type], results: list[Ref]) -> Graph:
    result = TupleType(tuple(ref.type for ref in results))
    named = tuple((f"p{i}", kind) for i, kind in enumerate(params))
    return Graph([Export("f", "fn", named, result, store.region(params, results))])


def check_edges(
    store: Store, params: list[Type], results: list[Ref], device: str = "ecp5-85k", clock_mhz: float = 200
) -> None:
    """Every combination of the parameters' edges."""
    rows = list(itertools.product(*(edges(kind) for kind in params)))
    inputs = {
        f"p{i}": column(kind, list(values)) for i, (kind, values) in enumerate(zip(params, zip(*rows)))
    }
    check_graph(graph_of(store, params, results), 0, len(rows), device, clock_mhz, inputs)


@pytest.mark.parametrize("signed", (False, True), ids=("u", "i"))
@pytest.mark.parametrize("width", WIDTHS)
def test_integers(width: int, signed: bool) -> None:
    kind = IntType(width, signed)
    device, clock = ("ice40-hx8k", 60) if width % 2 else ("ecp5-85k", 250)
    store = Store()
    a, b = store.param(0, kind), store.param(1, kind)
    results = [store.op(name, a, b) for name in BINARY]
    results += [store.op(name, a) for name in UNARY]
    if width <= 32:
        results += [store.op("integer.mul_wide", a, b), store.op("bits.cat", a, b)]
    if width % 8 == 0:
        results.append(store.op("bits.reverse_bytes", a))
    if not signed:
        results.append(store.op("bits.clmul", a, b))
    check_edges(store, [kind, kind], results, device, clock)


@pytest.mark.parametrize("width", WIDTHS)
def test_carries_selections_and_booleans(width: int) -> None:
    for signed in (False, True):
        kind = IntType(width, signed)
        store = Store()
        a, b, c = store.param(0, kind), store.param(1, kind), store.param(2, BOOL)
        node = store.node("integer.add_carry", (a, b, c))
        nothing = store.op("compare.eq", a, b)
        results = [node.out(0), node.out(1), store.op("control.select", c, a, b), store.op("bits.not", c)]
        results += [store.op(f"bits.{name}", c, nothing) for name in ("and", "or", "xor")]
        results += [store.op(f"compare.{name}", c, nothing) for name in ("lt", "le", "eq", "ne", "gt", "ge")]
        results += [store.op("convert.cast", c, type=kind), store.op("bits.test", a, index=width - 1)]
        check_edges(store, [kind, kind, BOOL], results)


@pytest.mark.parametrize("turn", [0, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("signed", (False, True), ids=("u", "i"))
@pytest.mark.parametrize("width", WIDTHS)
def test_shifts_by_any_amount(width: int, signed: bool, turn: int) -> None:
    """Every width by every other type of amount, signed by those that unsigned is not; then by the rest."""
    kind = IntType(width, signed)
    for amount in AMOUNTS[(WIDTHS.index(width) + signed + turn) % 2 :: 2]:
        store = Store()
        a, n = store.param(0, kind), store.param(1, amount)
        few = column(kind, edges(kind))
        counts = {amount.wrap(v) for v in (*range(width + 3), 64, 65, 127, 1 << 31, 1 << 32, 1 << 63, -1)}
        pairs = list(itertools.product(few.tolist(), sorted(counts)))
        inputs = {
            "p0": column(kind, [a for a, _ in pairs]), "p1": column(amount, [n for _, n in pairs]),
        }
        results = [store.op(name, a, n) for name in SHIFTS]
        check_graph(graph_of(store, [kind, amount], results), 0, len(pairs), "ecp5-85k", 150, inputs)


@pytest.mark.parametrize("signed", (False, True), ids=("u", "i"))
@pytest.mark.parametrize("width", (1, 2, 3, 8, 13, 33, 64))
def test_constant_operands(width: int, signed: bool) -> None:
    """Where an operand is known, cells are simplified: each constant has its own way to go wrong."""
    kind = IntType(width, signed)
    store = Store()
    x = store.param(0, kind)
    constants = [store.constant(kind, value) for value in edges(kind)]
    ops = BINARY if width <= 33 else tuple(op for op in BINARY if op not in ("integer.div", "integer.rem"))
    results = [store.op(op, x, c) for op in ops for c in constants]
    if not signed:
        results += [store.op("bits.clmul", *pair) for c in constants for pair in ((x, c), (c, x))]
    results += [store.op(op, c, x) for op in BINARY if width <= 13 for c in constants]
    amounts = (0, 1, width // 2, width - 1, width, width + 1, 0xFFFF_FFFF)
    counts = [store.constant(IntType(32, False), n) for n in amounts]
    results += [store.op(op, x, n) for op in SHIFTS for n in counts]
    values = list(range(kind.min, kind.max + 1)) if width <= 8 else edges(kind)
    graph = graph_of(store, [kind], results)
    check_graph(graph, 0, len(values), "ecp5-85k", 200, {"p0": column(kind, values)})


@pytest.mark.parametrize("signed", (False, True), ids=("u", "i"))
def test_all_pairs_of_bytes(signed: bool) -> None:
    kind = IntType(8, signed)
    store = Store()
    a, b = store.param(0, kind), store.param(1, kind)
    everything = np.arange(256).astype(np.uint8).view(numpy_dtype(kind))
    inputs = {"p0": np.repeat(everything, 256), "p1": np.tile(everything, 256)}
    results = [store.op(name, a, b) for name in HARD]
    check_graph(graph_of(store, [kind, kind], results), 0, 65536, "ecp5-85k", 200, inputs)


@pytest.mark.parametrize("signed", (False, True), ids=("u", "i"))
@pytest.mark.parametrize("width", WIDTHS)
def test_casts(width: int, signed: bool) -> None:
    kind = IntType(width, signed)
    store = Store()
    x = store.param(0, kind)
    targets: list[Type] = [IntType(w, s) for w in WIDTHS for s in (False, True)]
    targets += [FixType(w, f, s) for w, f in FORMATS for s in (False, True)]
    results = [store.op("convert.cast", x, type=target) for target in targets]
    parts = [(low, high) for low in (0, width // 2) for high in (low, width - 1)]
    results += [store.op("bits.extract", x, high=high, low=low) for low, high in parts]
    check_edges(store, [kind], results)


@pytest.mark.parametrize("signed", (False, True), ids=("u", "s"))
@pytest.mark.parametrize("source", FORMATS, ids=str)
def test_fixed_point(source: tuple[int, int], signed: bool) -> None:
    kind = FixType(*source, signed)
    store = Store()
    x, y = store.param(0, kind), store.param(1, kind)
    results = [store.op(f"fixed.{name}", x, y) for name in
               ("add", "sub", "min", "max", "saturating_add", "saturating_sub")]
    results += [store.op(f"fixed.{name}", x) for name in ("neg", "abs", "sign")]
    results += [store.op(f"compare.{name}", x, y) for name in ("eq", "lt", "ge")]
    if 2 * kind.width_bits <= 64:
        results.append(store.op("fixed.mul", x, y))
    amount = store.constant(IntType(32, False), min(3, kind.width_bits))
    results += [store.op(op, x, amount) for op in ("bits.shl", "bits.shr")]
    check_edges(store, [kind, kind], results)


@pytest.mark.parametrize("signed", (False, True), ids=("u", "s"))
@pytest.mark.parametrize("source", FORMATS, ids=str)
def test_rounding(source: tuple[int, int], signed: bool) -> None:
    kind = FixType(*source, signed)
    store = Store()
    x = store.param(0, kind)
    targets = [FixType(w, f, s) for w, f in FORMATS for s in (False, True)]
    integers = (IntType(5, True), IntType(40, False))
    results = [store.op("convert.cast", x, type=target) for target in (*targets, *integers)]
    results += [
        store.op("convert.round_to", x, mode=mode, overflow=overflow, type=target)
        for target in targets for mode in MODES for overflow in ("wrap", "saturate")
    ]
    raw = kind.raw
    values = list(range(raw.min, raw.max + 1)) if raw.width_bits <= 8 else edges(kind)
    if raw.width_bits > 8:  # halves and their neighbours at every place that a target may cut at
        values += [raw.wrap((k << shift) + (1 << shift >> 1) + d)
                   for shift in range(1, raw.width_bits) for k in (0, 1, 2, -1, -2) for d in (-1, 0, 1)]
    graph = graph_of(store, [kind], results)
    check_graph(graph, 0, len(values), "ecp5-85k", 200, {"p0": column(kind, values)})
