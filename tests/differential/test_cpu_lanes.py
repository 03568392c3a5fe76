"""Operations that machine code writes in a way of its own, on operands where that could go wrong."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kera_hw.driver.session import load_program
from kera_hw.graph import Export
from kera_hw.interp.exports import run_leaves
from kera_hw.numerics.arrays import Array
from tests.emulated import PROCESSORS, Processor
from tests.loop_programs import same_bits

ITEMS, LANES = 60, 37


@pytest.fixture(params=PROCESSORS, ids=lambda processor: processor.name)
def processor(request: pytest.FixtureRequest) -> Processor:
    request.param.check()
    return request.param


def _exports(tmp_path: Path, source: str) -> tuple[Export, ...]:
    path = tmp_path / "f.kera"
    path.write_text(source, encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    return tuple(loaded.graph.exports)


def _check(export: Export, processor: Processor, args: list[Array]) -> None:
    wanted = run_leaves(export, args, ITEMS)
    for vectors in (True, False):
        found = processor.instance(processor.compiled(export, vectors)).run(args, ITEMS)
        assert all(same_bits(*pair) for pair in zip(wanted, found, strict=True)), (export.name, vectors)


@pytest.mark.parametrize("kind, dtype", [("f32", "<f4"), ("f64", "<f8")])
def test_extremes_and_selections_of_floats(
    processor: Processor, tmp_path: Path, kind: str, dtype: str
) -> None:
    """Zeros of both signs, infinities, NaN, subnormals; against each other and against constants."""
    tensor = f"[{kind}; {LANES}]"
    bodies = [
        "(min(a, b), max(a, b))",
        f"(max(a, 0{kind}), max(0{kind}, b))",
        f"(min(a, -0{kind}), min(-0{kind}, b))",
        "(if a < b { a } else { b }, if a < b { b } else { a })",
        "(if a > b { a } else { b }, if a > b { b } else { a })",
        "(if a <= b { a } else { b }, if a >= b { b } else { a })",
        f"(if a < 1{kind} {{ a }} else {{ 1{kind} }}, if -1{kind} < a {{ a }} else {{ -1{kind} }})",
        f"(if a == b {{ 0{kind} }} else {{ a }}, if a != 0{kind} {{ b }} else {{ 3{kind} }})",
    ]
    head = f"(a: {kind}, b: {kind}) -> ({kind}, {kind})"
    lines = [f"pub fn s{k}{head} {{ {body} }}" for k, body in enumerate(bodies)]
    lines.append(f"pub fn v(a: {tensor}, b: {tensor}) -> ({tensor}, {tensor}) {{ {bodies[0]} }}")
    edges: Array = np.array([0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan, 1e-45, -1e-40]).astype(dtype)
    random = np.random.default_rng(3)
    for export in _exports(tmp_path, "\n".join(lines)):
        shape = (ITEMS, LANES) if export.name == "v" else (ITEMS,)
        _check(export, processor, [random.choice(edges, shape), random.choice(edges, shape)])


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_shifts_and_rotations_by_what_is_known_and_not(
    processor: Processor, tmp_path: Path, width: int
) -> None:
    unsigned, signed = f"[u{width}; {LANES}]", f"[i{width}; {LANES}]"
    lines = [
        f"pub fn turned(x: {unsigned}, n: {unsigned}) -> {unsigned} "
        f"{{ rotl(x, n) ^ rotr(x, 3) ^ rotl(x, {width - 1}) ^ rotr(x, n) }}",
        f"pub fn moved(x: {unsigned}, n: {unsigned}) -> {unsigned} "
        f"{{ (x << n) ^ (x >> n) ^ (x << 3) ^ (x >> {width - 1}) ^ (x << 0) }}",
        f"pub fn signs(x: {signed}, n: {unsigned}) -> {signed} "
        f"{{ (x >> n) ^ (x >> 3) ^ (x >> {width - 1}) ^ (x << {width - 1}) }}",
    ]
    random = np.random.default_rng(4)
    for export in _exports(tmp_path, "\n".join(lines)):
        x = random.integers(0, 1 << 63, (ITEMS, LANES)).astype(f"u{width // 8}")
        n = random.integers(0, min(3 * width, 255), (ITEMS, LANES)).astype(f"u{width // 8}")
        _check(export, processor, [x.view(f"i{width // 8}") if export.name == "signs" else x, n])


def test_products_of_words_short_and_long(processor: Processor, tmp_path: Path) -> None:
    """Of 64 bits, where one, both or neither is known to have 32."""
    tensor = f"[u64; {LANES}]"
    source = f"""
pub fn short(x: {tensor}, y: {tensor}) -> {tensor} {{ (x & 0xffff_ffff) * (y >> 32) }}
pub fn mixed(x: {tensor}, y: {tensor}) -> {tensor} {{ (x & 0xffff_ffff) * y ^ x * (y >> 31) }}
pub fn long(x: {tensor}, y: {tensor}) -> {tensor} {{ x * y }}
"""
    random = np.random.default_rng(5)
    for export in _exports(tmp_path, source):
        pair = [random.integers(0, 1 << 64, (ITEMS, LANES), np.uint64) for _ in range(2)]
        _check(export, processor, pair)


def test_products_without_carries(processor: Processor, tmp_path: Path) -> None:
    """In lanes and alone, by a number that is known and by one that is not, of halves and of whole words."""
    source = f"""
pub fn words(x: [u64; {LANES}], y: u64) -> [u64; {LANES}] {{ clmul(x, x >> 3) ^ clmul(x, y) }}
pub fn known(x: [u64; {LANES}], y: u64) -> [u64; {LANES}] {{
    clmul(x & 0xffff_ffff, 0xce33_71cb) ^ clmul(x >> 32, y)
}}
pub fn halves(x: [u32; {LANES}], y: u32) -> [u64; {LANES}] {{ clmul(x, x >> 1) ^ clmul(x, y) }}
"""
    random = np.random.default_rng(3)
    for export in _exports(tmp_path, source):
        kind = np.uint32 if export.name == "halves" else np.uint64
        bits = random.integers(0, np.iinfo(kind).max, (ITEMS, LANES + 1), kind, endpoint=True)
        _check(export, processor, [bits[:, :LANES].copy(), bits[:, LANES].copy()])
