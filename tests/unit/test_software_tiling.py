"""Products of matrices are planned as tiles: steps that replay, and the same bits for every shape."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kera_hw.cpu_gpu.engine import Instance, compile_export, missing_features
from kera_hw.driver.session import load_program
from kera_hw.graph import Export
from kera_hw.loops.program import For, LoopProgram, statements
from kera_hw.loops.transforms import parse_plan, print_plan, replay
from kera_hw.loops.transforms.planner import planned
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_export
from kera_hw.schedule.software.tiling import Registers, has_product, tiled_products
from tests.differential.software import differing
from tests.loop_programs import runs

AVX2 = Registers(16, 256)
SHAPES = [
    (1, 9, 8), (2, 5, 8), (5, 7, 11), (6, 8, 16), (7, 6, 17), (16, 5, 3), (16, 16, 16), (17, 9, 24),
    (19, 5, 39), (33, 12, 41), (130, 5, 19),
]


def _export(tmp_path: Path, source: str) -> Export:
    path = tmp_path / "f.kera"
    path.write_text(source, encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    return loaded.graph.exports[0]


def _product(tmp_path: Path, shape: tuple[int, int, int], kind: str) -> Export:
    m, k, n = shape
    head = f"pub fn f(a: [{kind}; {m}, {k}], b: [{kind}; {k}, {n}]) -> [{kind}; {m}, {n}]"
    return _export(tmp_path, f"{head} {{ matmul(a, b) }}")


def _program(export: Export) -> LoopProgram:
    return planned(lower_export(export), has_product).after


def _most_carried(program: LoopProgram) -> int:
    return max(len(item.carried) for item in statements(program.body) if isinstance(item, For))


_KINDS = [(AVX2, 12), (Registers(32, 512), 24), (Registers(16, 128, False), 12)]


@pytest.mark.parametrize("registers, sums", _KINDS)
def test_a_tile_fills_the_registers(tmp_path: Path, registers: Registers, sums: int) -> None:
    """Beside the sums: vectors of columns, an element of a row, and a product that is not added at once."""
    found = tiled_products(_program(_product(tmp_path, (96, 64, 96), "f32")), registers)
    assert _most_carried(found.after) == sums < registers.count


@pytest.mark.parametrize("shape, engine, packs", [
    ((96, 64, 96), False, False), ((128, 64, 96), False, True), ((15, 8, 1024), False, False),
    ((16, 8, 1024), False, True), ((16, 64, 96), True, True),
])
def test_columns_are_packed_for_many_rows_or_from_far(
    tmp_path: Path, shape: tuple[int, int, int], engine: bool, packs: bool
) -> None:
    found = tiled_products(_program(_product(tmp_path, shape, "f32")), replace(AVX2, engine=engine))
    assert ("pack" in [step.transform for step in found.plan.steps]) == packs


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_steps_replay_and_keep_every_bit(tmp_path: Path, shape: tuple[int, int, int]) -> None:
    program = _program(_product(tmp_path, shape, "f32"))
    found = tiled_products(program, AVX2)
    tiled, plan = found.after, found.plan
    assert plan.steps
    assert not verify_loops(tiled)
    assert replay(program, parse_plan(print_plan(plan))) == tiled
    assert runs(tiled) == runs(program)


def test_what_is_no_product_stays(tmp_path: Path) -> None:
    """Sums of rows, where no loop has columns, and what has no sum."""
    sources = (
        "pub fn f(a: [f32; 8, 40]) -> [f32; 8] { sum(a, 1) }",
        "pub fn f(a: [f32; 8, 8], b: [f32; 8, 8]) -> [f32; 8, 8] { a * b + a }",
    )
    for source in sources:
        program = _program(_export(tmp_path, source))
        assert tiled_products(program, AVX2).after == program


@pytest.mark.skipif(bool(missing_features()), reason="the processor lacks what the code uses")
@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16", "i32", "i8", "u64", "i13"])
def test_machine_code_gives_the_references_bits(tmp_path: Path, kind: str) -> None:
    for shape in SHAPES:
        export = _product(tmp_path, shape, kind)
        assert differing(export, compile_export(export), Instance, 3, 5) == [], shape


@pytest.mark.skipif(bool(missing_features()), reason="the processor lacks what the code uses")
@pytest.mark.parametrize("rows, sums", [(1, 3), (20, 12)])
def test_products_of_as_many_rows_are_tiled_each(tmp_path: Path, rows: int, sums: int) -> None:
    """Two layers, of which the second reads what the first made."""
    head = f"pub fn f(x: [f32; {rows}, 12], v: [f32; 12, 16], w: [f32; 16, 19]) -> [f32; {rows}, 19]"
    export = _export(tmp_path, f"{head} {{ matmul(relu(matmul(x, v)), w) }}")
    found = tiled_products(_program(export), AVX2)
    assert _most_carried(found.after) == sums
    assert differing(export, compile_export(export), Instance, 2, 6) == []


@pytest.mark.skipif(bool(missing_features()), reason="the processor lacks what the code uses")
def test_what_follows_the_sum_is_part_of_the_tile(tmp_path: Path) -> None:
    head = "pub fn f(x: [f32; 20, 30], w: [f32; 30, 19], b: [f32; 20, 19]) -> [f32; 20, 19]"
    source = f"{head} {{ relu(matmul(x, w) + b) }}"
    export = _export(tmp_path, source)
    assert _most_carried(tiled_products(_program(export), AVX2).after) == 12
    assert differing(export, compile_export(export), Instance, 2, 6) == []
