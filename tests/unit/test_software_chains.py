"""Sums, minima and windows on images: planned in registers, the same bits on every level."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kera_hw.cpu_gpu.architectures import LEVELS
from kera_hw.cpu_gpu.engine import Instance, compile_export, missing_features
from kera_hw.cpu_gpu.machine.level import Level
from kera_hw.driver.session import load_program
from kera_hw.graph import Export
from kera_hw.interp.exports import run_leaves
from kera_hw.loops.program import Alloc, For, LoopProgram, Op, statements
from kera_hw.loops.transforms import parse_plan, print_plan, replay
from kera_hw.loops.transforms.planner import planned
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_export, lower_with_updates
from kera_hw.lower.options import LoweringOptions
from kera_hw.numerics.arrays import Array
from kera_hw.schedule.software.chains import chains_in_registers
from kera_hw.schedule.software.folding import folded
from kera_hw.schedule.software.layout import native_dtype
from kera_hw.schedule.software.tiling import Registers, has_product, tiled_products
from kera_hw.wasm.compile import compile_export as wasm_export
from kera_hw.wasm.engine import Instance as WasmInstance
from tests.loop_programs import runs

AVX2 = Registers(16, 256)
SOURCES = {
    "sum": "pub fn f(x: [f32; 3, 331]) -> [f32; 3] { sum(x, 1) }",
    "long sum": "pub fn f(x: [f32; 4160]) -> f32 { sum(x) }",
    "greatest": "pub fn f(x: [f32; 199]) -> f32 { max(x) }",
    "columns": "pub fn f(x: [i32; 70, 9]) -> [i32; 9] { sum(x, 0) }",
    "dot of integers": "pub fn f(a: [i8; 131], b: [i8; 131]) -> i32 { dot(a as i32, b as i32) }",
    "filter": """pub fn f(x: [i16; 71], h: [i16; 8]) -> [i32; 64] {
        let mut s = [0i32; 64];
        for k in 0..8 { s = s + (x[k..k + 64] as i32) * (h[k] as i32); }
        s
    }""",
    "softmax": "pub fn f(x: [f32; 2, 77]) -> [f32; 2, 77] { softmax(x, 1) }",
}
IMAGES = [  # channels, height, width, of kernels: number, height, width; stride, pad
    (2, 9, 20, 3, 3, 3, 1, 1), (1, 5, 37, 17, 3, 5, 1, 2), (3, 8, 8, 4, 1, 1, 1, 0),
    (2, 11, 19, 5, 3, 3, 2, 1), (1, 4, 16, 2, 2, 2, 1, 2), (1, 3, 18, 9, 3, 3, 1, 1),
]


def _export(tmp_path: Path, source: str) -> Export:
    path = tmp_path / "f.kera"
    path.write_text(source, encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    return loaded.graph.exports[0]


def _image(shape: tuple[int, ...], kind: str) -> str:
    c, h, w, n, kh, kw, stride, pad = shape
    high, wide = (h + 2 * pad - kh) // stride + 1, (w + 2 * pad - kw) // stride + 1
    head = f"pub fn f(x: [{kind}; {c}, {h}, {w}], w: [{kind}; {n}, {c}, {kh}, {kw}])"
    return f"{head} -> [{kind}; {n}, {high}, {wide}] {{ conv2d(x, w, {stride}, {pad}) }}"


def _values(buffer_shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> Array:
    """Of floats, infinities, NaNs and zeros of both signs among others."""
    random = np.random.default_rng(seed)
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, buffer_shape, dtype, endpoint=True)
    found = random.normal(size=buffer_shape).astype(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)
    where = random.random(buffer_shape) < 0.03
    found[where] = special[random.integers(0, 5, int(where.sum()))]
    return found


def _check(export: Export, level: Level, least: int = 0) -> None:
    if missing_features(level):
        pytest.skip("the processor lacks what the code uses")
    made = compile_export(export, level=level)
    args = [_values((2, *one.shape), native_dtype(one.element), k) for k, one in enumerate(made.params)]
    wanted = run_leaves(export, args, 2)
    found = Instance(made).run(args, 2)
    assert [one.tobytes() for one in found] == [one.reshape(two.shape).tobytes()
                                                for one, two in zip(wanted, found)]
    assert made.vector_loops >= least


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
@pytest.mark.parametrize("name", SOURCES)
def test_chains_keep_their_bits(tmp_path: Path, name: str, level: Level) -> None:
    _check(_export(tmp_path, SOURCES[name]), level, least=1)


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
@pytest.mark.parametrize("kind", ["f32", "i32"])
@pytest.mark.parametrize("shape", IMAGES, ids=str)
def test_windows_keep_their_bits(tmp_path: Path, shape: tuple[int, ...], kind: str, level: Level) -> None:
    _check(_export(tmp_path, _image(shape, kind)), level)


@pytest.mark.parametrize("name", SOURCES)
def test_the_steps_replay_and_keep_every_bit(tmp_path: Path, name: str) -> None:
    program = planned(lower_export(_export(tmp_path, SOURCES[name]))).after
    found = chains_in_registers(program, AVX2)
    after, plan = found.after, found.plan
    assert bool(plan.steps) == (name != "columns") and not verify_loops(after)
    assert replay(program, parse_plan(print_plan(plan))) == after
    assert runs(after) == runs(program)


def _lowered(export: Export) -> LoopProgram:
    return planned(lower_with_updates(export, options=LoweringOptions(roomy=True))[0], has_product).after


@pytest.mark.parametrize("shape", IMAGES, ids=str)
def test_a_tile_of_an_image_keeps_every_bit(tmp_path: Path, shape: tuple[int, ...]) -> None:
    program = _lowered(_export(tmp_path, _image(shape, "f32")))
    tiled = tiled_products(folded(program, settled=False), AVX2).after
    after = folded(tiled)
    assert not verify_loops(after)
    assert runs(program) == runs(tiled) == runs(after)


def test_questions_about_edges_are_few(tmp_path: Path) -> None:
    """Of three vectors side by side, the first and the last one may lie beyond an edge, by one column."""
    export = _export(tmp_path, _image((2, 9, 24, 4, 3, 3, 1, 1), "f32"))
    tiled = tiled_products(folded(_lowered(export), settled=False), AVX2).after
    program = folded(tiled)
    (most,) = {max(len(item.carried) for item in statements(program.body) if isinstance(item, For))}
    assert most == 3 * 4
    compared = [item for item in statements(program.body)
                if isinstance(item, Op) and item.opcode.startswith("compare.")]
    assert len(compared) == 2 + 2  # and two about rows
    assert all(str(item.operands[0].type) == "i32" for item in compared)
    assert not any(isinstance(item, Op) and item.opcode in ("integer.min", "integer.max")
                   for item in statements(program.body))


def test_far_rows_are_added_one_after_another(tmp_path: Path) -> None:
    source = """pub fn f(x: [f32; 9, 512]) -> [f32; 512] {
        let mut s = [0f32; 512];
        for k in 0..9 { s = s + x[k]; }
        s
    }"""
    program = planned(lower_export(_export(tmp_path, source))).after
    assert chains_in_registers(program, AVX2).after == program
    near = planned(lower_export(_export(tmp_path, source.replace("512", "64")))).after
    assert chains_in_registers(near, AVX2).after != near


def test_a_filter_has_no_sums_in_memory(tmp_path: Path) -> None:
    program = planned(lower_export(_export(tmp_path, SOURCES["filter"]))).after
    after = chains_in_registers(program, AVX2).after
    assert any(isinstance(item, Alloc) for item in statements(program.body))
    assert not any(isinstance(item, Alloc) for item in statements(after.body))


@pytest.mark.parametrize("shape", IMAGES[:2], ids=str)
def test_windows_keep_their_bits_in_modules(tmp_path: Path, shape: tuple[int, ...]) -> None:
    export = _export(tmp_path, _image(shape, "f32"))
    made = wasm_export(export)
    args = [_values((2, *one.shape), native_dtype(one.element), k) for k, one in enumerate(made.params)]
    (wanted,), (found,) = run_leaves(export, args, 2), WasmInstance(made).run(args, 2)
    assert found.tobytes() == wanted.tobytes()


def test_sums_of_a_long_filter_are_in_registers(tmp_path: Path) -> None:
    """Its rows overlap, so that a pass through all of them reads each element once."""
    source = SOURCES["filter"].replace("71", "4103").replace("64", "4096")
    lowered = lower_export(_export(tmp_path, source))
    made = chains_in_registers(folded(planned(lowered).after), AVX2).after
    assert not any(isinstance(item, Alloc) for item in statements(made.body))
