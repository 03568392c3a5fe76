"""Division in a loop, where the initiation interval leaves it the time: every digit, sign and edge."""
from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.session import compile_text, optimise
from kera_hw.graph import Store
from kera_hw.interp import run_region
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.support import SourceFile

PLENTY = 100
"""Cycles in which any of these loops ends."""


def _flat(source: str, interval: int) -> FlatDesign:
    graph = compile_text(SourceFile("a.kera", source.encode()), Path("a.kera")).graph
    assert graph is not None
    flat = flatten_export(optimise(graph).exports[0], Store(), interval)
    assert isinstance(flat, FlatDesign), flat
    return flat


def _loops(flat: FlatDesign) -> list[int]:
    """The steps of every loop that was kept."""
    nodes = flat.region.nodes()
    counts = [node.attr("count") for node in nodes if node.opcode == "control.loop"]
    assert not counts or not any(node.opcode in ("integer.div", "integer.rem") for node in nodes)
    return [count for count in counts if isinstance(count, int)]


def _both(kind: str) -> str:
    return f"pub fn f(a: {kind}, b: {kind}) -> ({kind}, {kind}) {{ (a / b, a % b) }}"


def _expected(kind: str, a: int, b: int) -> tuple[int, int]:
    """Toward zero; all ones and the dividend for a divisor of 0; the least by -1 wraps."""
    width = int(kind[1:])
    if b == 0:
        return (-1 if kind[0] == "i" else (1 << width) - 1), a
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    wraps = kind[0] == "i" and quotient == 1 << (width - 1)
    return (-quotient if wraps else quotient), a - quotient * b


def _check(flat: FlatDesign, kind: str, pairs: list[tuple[int, int]]) -> None:
    width, signed = int(kind[1:]), kind[0] == "i"
    word = np.dtype(f"{'int' if signed else 'uint'}{max(8, 1 << (width - 1).bit_length())}")
    columns = [np.array([pair[k] for pair in pairs], dtype=word) for k in (0, 1)]
    got = run_region(flat.region, columns, batch=len(pairs))
    wanted = [_expected(kind, a, b) for a, b in pairs]
    for k in (0, 1):
        assert got[k].tolist() == [item[k] for item in wanted]


@pytest.mark.parametrize("kind", ["u8", "i8"])
def test_every_pair_of_bytes(kind: str) -> None:
    flat = _flat(_both(kind), PLENTY)
    assert _loops(flat) == [8]  # one for both results
    span = range(-128, 128) if kind == "i8" else range(256)
    _check(flat, kind, list(product(span, span)))


@pytest.mark.parametrize("kind", [f"{sign}{width}" for sign in "ui" for width in (31, 32, 33, 63, 64)])
def test_edges_of_other_widths(kind: str) -> None:
    width = int(kind[1:])
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if kind[0] == "i" else (0, (1 << width) - 1)
    edges = {low, low + 1, high, high - 1, 0, 1, 2, 3, high >> 1, (high >> 1) + 1, *((-1, -2) if low else ())}
    rng = random.Random(width)
    drawn = [tuple(rng.randint(low, high) >> rng.randrange(width) for _ in range(2)) for _ in range(300)]
    flat = _flat(_both(kind), PLENTY)
    assert _loops(flat) == [width]
    _check(flat, kind, [*product(edges, edges), *((a, b) for a, b in drawn)])


NARROW = """
pub fn f(a: u16, b: u16, c: i16) -> (u16, u16, i16, i16) {
    let x = a & 0x3ff;
    let y = b & 0xff;
    (a / y, a % y, ((x as i16) - 512) % ((y as i16) + 1), c / ((x as i16) - 1023))
}
"""


def test_loops_are_as_long_as_the_dividend() -> None:
    flat = _flat(NARROW, PLENTY)
    assert sorted(_loops(flat)) == [10, 16, 16]
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 1 << 16, 3000).astype(np.uint16) for _ in range(2))
    c = rng.integers(-(1 << 15), 1 << 15, 3000).astype(np.int16)
    b[:200] &= 0xFF00  # divisors of 0
    got = run_region(flat.region, [a, b, c], batch=3000)
    wanted = run_region(_flat(NARROW, 1).region, [a, b, c], batch=3000)
    assert [column.tolist() for column in got] == [column.tolist() for column in wanted]


@pytest.mark.parametrize(("source", "interval"), [
    (_both("u16"), 16),  # one cycle too few
    (_both("u7"), PLENTY),  # an array is as small
    ("pub fn f(a: u16) -> u16 { a / 7 }", PLENTY),
])
def test_where_no_loop_is_made(source: str, interval: int) -> None:
    assert _loops(_flat(source, interval)) == []


def test_the_circuit_divides(tmp_path: Path) -> None:
    source = tmp_path / "a.kera"
    source.write_text(_both("i16"))
    circuit = kera_hw.load(source).function("f", target="rtl", interval=17)
    rng = random.Random(5)
    pairs = [(rng.randint(-32768, 32767), rng.choice((0, -1, rng.randint(-200, 200)))) for _ in range(300)]
    pairs[0] = (-32768, -1)
    columns = np.array(pairs, np.int16).T
    got = circuit.batch(a=columns[0], b=columns[1])
    assert list(zip(*(column.tolist() for column in got))) == [_expected("i16", *pair) for pair in pairs]
    plain = kera_hw.load(source).function("f", target="rtl").plan["estimate"]
    sites, array = (max(figures["lut"], figures["ff"]) for figures in (circuit.plan["estimate"], plain))
    assert sites < array / 2
