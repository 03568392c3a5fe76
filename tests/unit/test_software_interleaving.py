"""How many vectors of rounds go side by side, and that they are written so."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kera_hw.cpu_gpu.engine import TABLE, Instance, compile_export, missing_features
from kera_hw.cpu_gpu.x86_64.machine import AVX2
from kera_hw.driver.session import load_program
from kera_hw.graph import Export
from kera_hw.interp.exports import run_leaves
from kera_hw.loops.program import For
from kera_hw.schedule.software.interleaving import most_alive, side_by_side
from kera_hw.schedule.software.native import native_program, rows_of
from kera_hw.schedule.software.vector_loops import plan_vectors


def _export(tmp_path: Path, source: str) -> Export:
    path = tmp_path / "f.kera"
    path.write_text(source, encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None
    return loaded.graph.exports[0]


@pytest.mark.parametrize("registers, copies", [(13, 4), (12, 2), (5, 1)])
def test_as_many_as_registers_hold(tmp_path: Path, registers: int, copies: int) -> None:
    """x, y and their sum are alive at once, and beside four of each the NaN of results."""
    source = "pub fn f(x: [f32; 64], y: [f32; 64]) -> [f32; 64] { (x + y) * (x - y) + x * y }"
    program = native_program(_export(tmp_path, source), TABLE, rows_of(AVX2.capabilities))
    (loop,) = (statement for statement in program.body.body if isinstance(statement, For))
    vector = plan_vectors(program, 256)[id(loop)]
    assert most_alive(loop.body, vector) == 3
    assert side_by_side(loop.body, vector, registers).copies == copies


def test_constants_may_lie_in_memory_and_others_not(tmp_path: Path) -> None:
    """Of nine numbers alike three have to have a register where they are constants, and all where not."""
    known = " + ".join(f"x * {k}" for k in range(3, 12))
    given = " + ".join(f"x * h[{k}]" for k in range(9))
    found: list[int] = []
    for terms in (known, given):
        source = f"pub fn f(x: [i32; 64], h: [i32; 9]) -> [i32; 64] {{ {terms} }}"
        program = native_program(_export(tmp_path, source), TABLE, rows_of(AVX2.capabilities))
        (loop,) = (statement for statement in program.body.body if isinstance(statement, For))
        vector = plan_vectors(program, 256)[id(loop)]
        found.append(side_by_side(loop.body, vector, 4 * most_alive(loop.body, vector) + 3).copies)
    assert found == [4, 2]


def test_a_body_with_loops_is_written_alone(tmp_path: Path) -> None:
    source = "pub fn f(a: [f32; 8, 8], b: [f32; 8, 8]) -> [f32; 8, 8] { matmul(a, b) }"
    program = native_program(_export(tmp_path, source), TABLE, rows_of(AVX2.capabilities))
    plan = plan_vectors(program, 256)
    (outer,) = (statement for statement in program.body.body if isinstance(statement, For))
    (inner,) = (statement for statement in outer.body.body if isinstance(statement, For))
    assert side_by_side(inner.body, plan[id(inner)], 1 << 20).copies == 1


@pytest.mark.skipif(bool(missing_features()), reason="the processor lacks what the code uses")
@pytest.mark.parametrize("count", [8, 31, 32, 33, 45, 64, 100])
def test_rounds_that_are_left_over_are_not_forgotten(tmp_path: Path, count: int) -> None:
    """Four vectors at a time, then one, then a round; the round's own number is in the result."""
    source = f"pub fn f(x: [i32; {count}], a: i32) -> [i32; {count}] {{ x * a + iota::<i32, {count}>() }}"
    export = _export(tmp_path, source)
    x, a = np.arange(3 * count, dtype=np.int32).reshape(3, count) * 77_777, np.arange(3, dtype=np.int32)
    (wanted,) = run_leaves(export, [x, a], 3)
    made = compile_export(export, level=AVX2)
    assert made.vector_loops
    assert (Instance(made).run([x, a], 3)[0] == wanted).all()
