"""Operations that machine code writes in a way of its own, on operands where that could go wrong."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kera_hw.driver.session import load_program
from kera_hw.graph import Export
from kera_hw.interp.exports import run_leaves
from kera_hw.numerics.arrays import Array
from kera_hw.types import element_type, numpy_dtype, shape_of
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


SUMS = """
pub fn filter(x: [i16; 150], h: [i16; 7]) -> [i32; 144] {
    let mut s = [0i32; 144];
    for k in 0..7 { s = s + (x[k..k + 144] as i32) * (h[k] as i32); }
    s
}
pub fn bytes(x: [i8; 147], h: [i8; 4]) -> [i32; 144] {
    let mut s = [7i32; 144];
    for k in 0..4 { s = s + (x[k..k + 144] as i32) * (h[k] as i32); }
    s
}
pub fn known(x: [u8; 147], y: [i32; 144]) -> [i32; 144] {
    y + (x[0..144] as i32) * 3 + (x[1..145] as i32) * (-32768) + (x[2..146] as i32) + (x[3..147] as i32) * 9
}
pub fn rows(x: [i16; 3, 146]) -> [i32; 144] {
    let a = (x[0, 0..144] as i32) + 2 * (x[0, 1..145] as i32) + (x[0, 2..146] as i32) * 32767;
    let b = 5 * (x[2, 1..145] as i32) + (x[2, 0..144] as i32) * 6;
    a + b + (x[2, 2..146] as i32) * (x[1, 0..144] as i32)
}
pub fn others(x: [i16; 146], h: [i32; 2], y: [u16; 145]) -> ([i32; 144], [i32; 144]) {
    let twice = (x[0..144] as i32) * 3;
    let wide = (x[0..144] as i32) * h[0] + (x[1..145] as i32) * h[1];
    (twice + (x[1..145] as i32) * 5 + wide, twice + (y[0..144] as i32) * 7 + (y[1..145] as i32) * 40000)
}
"""
PAIRED = {"filter", "bytes", "known", "rows"}


def test_sums_of_products_of_neighbours(processor: Processor, tmp_path: Path) -> None:
    """Of the least numbers, whose sums wrap, too; by factors that are known, and others, and too wide."""
    random = np.random.default_rng(7)
    for export in _exports(tmp_path, SUMS):
        args: list[Array] = []
        for _, kind in export.params:
            dtype, shape = numpy_dtype(element_type(kind)), (ITEMS, *shape_of(kind))
            limits = np.iinfo(str(dtype))
            arg = random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
            arg[:3] = [np.full(shape[1:], one, dtype) for one in (limits.min, limits.max, limits.min)]
            args.append(arg)
        _check(export, processor, args)
        if processor.level.architecture == "x86-64":
            names = {inst.op for _, inst in processor.compiled(export, True).machine.instructions}
            paired = any(name.startswith(("vpmaddwd", "vpdpwssd")) for name in names)
            assert paired == (export.name in PAIRED), export.name


def test_sums_whose_ends_stay_in_registers(processor: Processor, tmp_path: Path) -> None:
    """Lanes of sums are halved in straight code: what was stored is handed on, in part too."""
    source = """
pub fn words(x: [f32; 700]) -> (f32, f32) { (sum(x), max(x)) }
pub fn long(x: [f64; 391]) -> f64 { sum(x * x) }
pub fn rows(x: [f32; 3, 320]) -> [f32; 3, 320] { layer_norm(x, 1) }
pub fn numbers(x: [i32; 300]) -> (i32, i32) { (sum(x), min(x)) }
pub fn short(x: [f32; 67]) -> f32 { sum(x) + x[66] }
"""
    random = np.random.default_rng(11)
    for export in _exports(tmp_path, source):
        ((_, kind),) = export.params
        dtype, shape = numpy_dtype(element_type(kind)), (ITEMS, *shape_of(kind))
        _check(export, processor, [(random.standard_normal(shape) * 1000).astype(dtype)])
