"""Streams that keep inputs of earlier items and nothing else: a block of items is as many single ones."""
from __future__ import annotations

import ctypes
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from kera_hw.cpu_gpu.engine import Instance, best_level, compile_export
from kera_hw.driver.session import load_program
from kera_hw.driver.software import to_compile
from kera_hw.graph import Export
from kera_hw.interp.exports import run_leaves
from kera_hw.lower.export import lower_export
from kera_hw.numerics.arrays import Array
from kera_hw.schedule.software.blocks import ITEMS, in_blocks
from tests.emulated import PROCESSORS, Processor
from tests.loop_programs import same_bits

LINES = """
pub stream late(x: i16) -> i32 {
    state line: [i16; 5] = [7, -7, 3, 1, 2];
    line = shift_in(line, x);
    (line[0] as i32) * 3 + (line[4] as i32) - (line[2] as i32)
}
pub stream before(x: i16) -> i16 {
    state line: [i16; 5] = [7, -7, 3, 1, 2];
    let found = sum(line);
    line = shift_in(line, x);
    found ^ x
}
pub stream last(x: u8, y: f32) -> f32 {
    state one: u8 = 9;
    state two: u8 = 4;
    state z: f32 = 0.5;
    let found = (if one > two { z } else { -z }) + y;
    two = one;
    one = x;
    z = y;
    found
}
pub stream shorts(x: f16) -> f16 {
    state line: [f16; 3] = [1, 2, 3];
    line = shift_in(line, x);
    line[0] * 0.5f16 + line[2]
}
pub stream rows(x: i32, t: [i32; 3]) -> [i32; 2] {
    state a: i32 = -1;
    let found = [t[0] * a + t[2], x - a];
    a = x;
    found
}
pub stream kept(x: f16, y: f32) -> (f16, f32) {
    state a: f16 = 1;
    state b: f32 = 2;
    let found = (a, b);
    a = x;
    b = y;
    found
}
"""
OTHERS = """
pub stream total(x: i32) -> i32 { state s: i32 = 0; s = s + x; s }
pub stream held(x: i32) -> i32 { state s: i32 = 3; let y = s + x; y }
pub stream half(x: [i32; 2]) -> i32 { state s: i32 = 3; let y = s; s = x[1]; y }
pub stream some(x: i32, go: bool) -> i32 { state s: i32 = 3; let y = s; if go { s = x; } y }
pub stream none(x: i32) -> i32 { state s: [i32; 0] = [3; 0]; sum(s) + x }
pub stream beside(x: i32) -> i32 {
    state s: [i32; 0] = [3; 0];
    state t: i32 = 3;
    let y = t;
    t = x;
    sum(s) + y
}
"""


def _exports(tmp_path: Path, source: str) -> list[Export]:
    path = tmp_path / "f.kera"
    path.write_text(source, encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    return [to_compile(loaded.graph, export) for export in loaded.graph.exports]


def _inputs(export: Export, items: int) -> list[Array]:
    """Random ones; floats with NaNs of other bits than the canonical one."""
    random = np.random.default_rng(items)
    found: list[Array] = []
    for _, kind in export.params:
        shape, name = getattr(kind, "shape", ()), str(getattr(kind, "element", kind))
        if name[0] == "f":
            values = random.normal(size=(items, *shape)).astype({"f16": np.float16, "f32": np.float32}[name])
            words = values.view({"f16": np.uint16, "f32": np.uint32}[name])
            words[::2] |= {"f16": 0x7C01, "f32": 0x7F80_0001}[name]
            found.append(values)
        else:
            dtype = np.dtype({"i": "int", "u": "uint"}[name[0]] + name[1:])
            limits = np.iinfo(dtype)
            found.append(random.integers(limits.min, limits.max, (items, *shape), dtype, endpoint=True))
    return found


def _words(args: list[Array]) -> list[Array]:
    """As native code takes them."""
    return [arg.view(np.uint16) if arg.dtype == np.float16 else arg for arg in args]


def _settled(args: list[Array]) -> list[Array]:
    """As the reference takes them: with the one NaN."""
    return [
        np.where(np.isnan(arg), arg.dtype.type("nan"), arg) if arg.dtype.kind == "f" else arg for arg in args
    ]


@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda processor: processor.name)
def test_items_of_blocks_are_those_of_one_after_another(processor: Processor, tmp_path: Path) -> None:
    processor.check()
    exports = _exports(tmp_path, LINES)
    assert all(in_blocks(lower_export(export)) is not None for export in exports)
    for export in exports:
        instance = processor.instance(processor.compiled(export))
        for items in (1, 4, ITEMS + 4, ITEMS + 5, 3 * ITEMS + 60):
            args = _inputs(export, items)
            wanted = run_leaves(export, _settled(args), items)
            instance.reset()
            found = instance.run(_words(args), items)
            assert all(same_bits(*pair) for pair in zip(wanted, found, strict=True)), (export.name, items)


@pytest.mark.skipif(best_level() is None, reason="the processor lacks what the code uses")
def test_states_go_on_from_call_to_call(tmp_path: Path) -> None:
    for export in _exports(tmp_path, LINES):
        instance = Instance(compile_export(export))
        args = _inputs(export, 3 * ITEMS)
        wanted = run_leaves(export, _settled(args), 3 * ITEMS)
        args = _words(args)
        cut = [0, 2, ITEMS + 90, ITEMS + 93, 3 * ITEMS]
        parts = [
            instance.run([arg[first:end] for arg in args], end - first) for first, end in pairwise(cut)
        ]
        for k, whole in enumerate(wanted):
            assert same_bits(whole, np.concatenate([part[k] for part in parts])), export.name


@pytest.mark.skipif(best_level() is None, reason="the processor lacks what the code uses")
@pytest.mark.parametrize("shift", [-3, 0, 3])
def test_results_may_lie_where_inputs_do(shift: int, tmp_path: Path) -> None:
    """Item by item, each reading before it writes: then in order, as without blocks."""
    export = next(one for one in _exports(tmp_path, LINES) if one.name == "before")
    items = 2 * ITEMS
    (x,) = _inputs(export, items)
    made = compile_export(export)
    found: list[Array] = []
    for blocks in (True, False):
        instance = Instance(made if blocks else compile_export(export, vectors=False))
        room = np.zeros(items + 16, np.int16)
        room[8 : 8 + items] = x
        call, memory = instance.entry
        places = [room.ctypes.data + 16, room.ctypes.data + 16 + 2 * shift]
        call(items, (ctypes.c_void_p * 2)(*places), memory)
        found.append(room)
    assert (found[0] == found[1]).all()


def test_what_keeps_something_else_is_left(tmp_path: Path) -> None:
    others = _exports(tmp_path, OTHERS)
    assert [in_blocks(lower_export(export)) for export in others] == [None] * len(others)
