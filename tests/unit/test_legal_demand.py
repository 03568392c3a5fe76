"""Scalars are settled where something looks, and nowhere else; buffers and loops stay what they were."""
from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from kera_hw.driver.loops import native_with
from kera_hw.driver.session import load_program
from kera_hw.legal.legalise import legalise
from kera_hw.legal.native import F16_ARITHMETIC, F16_CONVERSIONS, FUSED_MULTIPLY_ADD
from kera_hw.loops.parser import parse_program
from kera_hw.loops.printer import print_program
from kera_hw.loops.program import Alloc, For, LoopProgram, Op, statements
from kera_hw.loops.transforms import parse_plan, replay
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_export
from kera_hw.support import KeraError
from tests.native_machine import differing_native, run_native


def _lowered(path: Path, source: str) -> LoopProgram:
    path.write_text(source)
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    (export,) = loaded.graph.exports
    assert differing_native(export, legalise(lower_export(export)), 7, 0) == []
    return lower_export(export)


def _inside(program: LoopProgram) -> Counter[str]:
    """Operations within loops."""
    loops = [item for item in program.body.body if isinstance(item, For)]
    return Counter(
        item.opcode for loop in loops for item in statements(loop.body) if isinstance(item, Op)
    )


def _all(program: LoopProgram) -> Counter[str]:
    return Counter(item.opcode for item in statements(program.body) if isinstance(item, Op))


def test_a_sum_of_odd_integers_is_extended_once(tmp_path: Path) -> None:
    program = _lowered(tmp_path / "a.kera", "pub fn f(x: [i13; 9]) -> i13 { sum(x) }\n")
    native = legalise(program)
    assert _inside(native) == {"integer.add": 1}
    assert _all(native) == {"integer.add": 1, "bits.shl": 1, "bits.shr": 1}


def test_what_cannot_wrap_is_not_extended(tmp_path: Path) -> None:
    source = "pub fn f(x: u5, y: u5) -> u13 { (x as u13) * (y as u13) + (x as u13) }\n"
    assert _all(legalise(_lowered(tmp_path / "a.kera", source))).keys() == {
        "convert.cast", "integer.mul", "integer.add",
    }


@pytest.mark.parametrize(
    "neutral", ["integer.add v3 0x0:i13", "integer.mul v3 0x1:i13", "integer.sub v3 0x0:i13"]
)
def test_what_has_wrapped_stays_to_be_extended(neutral: str) -> None:
    """The second operation wraps nothing, but its operand already has other bits above."""
    program = parse_program(
        "loops f\nin.x: param i13\nin.y: param i13\nout.0: result i13\n{\n  v1: i13 = load in.x\n"
        f"  v2: i13 = load in.y\n  v3: i13 = integer.add v1 v2\n  v4: i13 = {neutral}\n"
        "  store out.0 v4\n}\n"
    )
    args = [np.array([4095, -4096, 5], np.int16), np.array([1, -1, 7], np.int16)]
    (found,), _ = run_native(legalise(program), args, [], 3)
    assert found.tolist() == [-4096, 4095, 12]


def test_a_nan_is_made_canonical_where_it_is_stored(tmp_path: Path) -> None:
    source = "pub fn f(x: f32, y: f32) -> f32 { ((x * y) + x) / (x - y) }\n"
    assert _all(legalise(_lowered(tmp_path / "a.kera", source))) == {
        "floating.mul": 1, "floating.add": 1, "floating.div": 1, "floating.sub": 1,
        "compare.eq": 1, "control.select": 1,
    }


def test_a_chain_of_floats_in_a_loop_asks_for_no_nan(tmp_path: Path) -> None:
    source = "pub fn f(x: [f32; 9]) -> f32 { sum(x, order: sequential) }\n"
    native = legalise(_lowered(tmp_path / "a.kera", source))
    assert _inside(native) == {"floating.add": 1}
    assert _all(native)["control.select"] == 1


def test_f16_that_only_moves_stays_bits(tmp_path: Path) -> None:
    native = legalise(_lowered(tmp_path / "a.kera", "pub fn f(x: [f16; 6]) -> [f16; 6] { reverse(x, 0) }\n"))
    assert set(_all(native)) == {"bits.and", "compare.gt", "control.select"}  # the NaN of a parameter


def test_f16_by_what_the_machine_has(tmp_path: Path) -> None:
    program = _lowered(tmp_path / "a.kera", "pub fn f(x: f16, y: f16) -> f16 { x * y + x }\n")
    plain, converted = _all(legalise(program)), _all(legalise(program, F16_CONVERSIONS))
    assert plain["floating.mul"] == converted["floating.mul"] == 1 and plain["bits.and"] > 5
    assert converted == {
        "convert.bitcast": 3, "convert.cast": 5, "floating.mul": 1, "floating.add": 1,
        "compare.eq": 1, "control.select": 1,
    }
    assert _all(legalise(program, F16_ARITHMETIC)) == {
        "convert.bitcast": 3, "floating.mul": 1, "floating.add": 1, "compare.eq": 1, "control.select": 1,
    }


def test_fma_by_what_the_machine_has(tmp_path: Path) -> None:
    program = _lowered(tmp_path / "a.kera", "pub fn f(x: f64, y: f64) -> f64 { fma(x, y, x) }\n")
    assert _all(legalise(program, FUSED_MULTIPLY_ADD)) == {
        "floating.fma": 1, "compare.eq": 1, "control.select": 1,
    }
    assert "floating.fma" not in _all(legalise(program))


PLAN = """
function = "f"
[[step]]
transform = "parallelise"
arguments = ["{outer}", "threads"]
[[step]]
transform = "vectorise"
arguments = ["{inner}", 8]
"""


def test_rounds_that_run_at_once_still_do(tmp_path: Path) -> None:
    source = "pub fn f(x: [[f64; 16]; 4], y: [[f64; 16]; 4]) -> [[f64; 16]; 4] { fma(x, y, x) }\n"
    program = _lowered(tmp_path / "a.kera", source)
    outer = program.body.body[1]
    assert isinstance(outer, For) and isinstance(outer.body.body[0], For)
    text = PLAN.format(outer=outer.var.name, inner=outer.body.body[0].var.name)
    planned = replay(program, parse_plan(text, None), None)
    native = legalise(planned)
    on = [item.schedule.on for item in statements(native.body) if isinstance(item, For)]
    assert "threads" in on and "vector" in on
    assert verify_loops(native) == []


def test_names_memories_and_contents_stay() -> None:
    program = parse_program(
        "loops f\nin.x: param u4\nout.0: result bool\nc0: const bool[3] = 010001\n"
        "state.a: state f16 = 003c\n{\n  t1: temp i13[4] in block_ram\n  v2: u4 = load in.x\n"
        "  v3: u4 = integer.min v2 0x2:u4\n  v4: bool = load c0[v3]\n  store out.0 v4\n}\n"
    )
    assert verify_loops(program) == []
    native = legalise(program)
    assert verify_loops(native) == []
    assert [(buffer.name, str(buffer.element)) for buffer in native.buffers] == [
        ("in.x", "u8"), ("out.0", "u8"), ("c0", "u8"), ("state.a", "u16"),
    ]
    assert [buffer.data for buffer in native.buffers] == [buffer.data for buffer in program.buffers]
    (temporary,) = [item.buffer for item in native.body.body if isinstance(item, Alloc)]
    assert str(temporary.element) == "i16" and temporary.storage.memory == "block_ram"


def test_an_index_stays_within_its_buffer() -> None:
    """A u4 reaches 15; the u8 that it lives in would reach beyond."""
    program = parse_program(
        "loops f\nin.x: param u4\nout.0: result u8\nc0: const u8[16] = 000102030405060708090a0b0c0d0e0f\n"
        "{\n  v1: u4 = load in.x\n  v2: u8 = load c0[v1]\n  store out.0 v2\n}\n"
    )
    assert verify_loops(program) == []
    native = legalise(program)
    assert verify_loops(native) == []
    assert "integer.min" in print_program(native)


def test_a_capability_that_there_is_not() -> None:
    with pytest.raises(KeraError) as caught:
        native_with(["fma", "fna"])
    (item,) = caught.value.diagnostics
    assert item.code == "K0905" and "`fna`" in item.message and "f16-arithmetic" in item.message
