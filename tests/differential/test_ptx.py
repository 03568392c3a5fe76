"""Kernels by themselves: where items, rounds and memory are pushed, and that what is wrong is seen."""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kera_hw.cpu_gpu.gpu import kernels
from kera_hw.cpu_gpu.gpu.device import Instance
from kera_hw.cpu_gpu.gpu.kernels import GpuModule
from kera_hw.cpu_gpu.gpu.writer import Held
from kera_hw.cpu_gpu.ptx import scalars
from kera_hw.cpu_gpu.ptx.code import Code
from kera_hw.cpu_gpu.ptx.compile import compile_export
from kera_hw.cpu_gpu.ptx.interpreter.machine import Machine
from kera_hw.driver.session import load_program
from kera_hw.graph import Export, without_probes
from kera_hw.interp.exports import run_leaves
from kera_hw.legal.native import Signature
from kera_hw.support import KeraError
from kera_hw.types import IntType
from tests.differential.software import checked, compile_ptx, differing, fir, ptx_instance, results
from tests.loop_programs import inputs_of, same_bits

_BARRIER = "\tbar.sync 0;\n"
_NET = """
pub fn net(x: [f32; 64], w: [[f32; 64]; 32], g: [f32; 32]) -> ([f32; 32], f32) {
    let y = matmul([x], transpose(w));
    let h = softmax(y[0] * g);
    (h, sum(h * g))
}
pub stream smooth(x: [f32; 64]) -> ([f32; 64], f32) {
    state past: [f32; 64] = [0.5; 64];
    state total: f32 = 0.0;
    let mixed = past * 0.75 + x * 0.25;
    past = mixed;
    total = total + sum(mixed * x);
    (mixed - x, total)
}
pub fn sorted(x: [[i32; 5]; 64]) -> [[i32; 5]; 64] {
    let mut out = x;
    for r in 0..64 {
        let mut row = x[r];
        for i in 1..5 { for j in 0..4 { if row[j] > row[j + 1] {
            let t = row[j]; row[j] = row[j + 1]; row[j + 1] = t;
        } } }
        out[r] = row;
    }
    out
}
"""


@pytest.fixture
def exports(tmp_path: Path) -> dict[str, Export]:
    path = tmp_path / "net.kera"
    path.write_text(_NET, encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    return {export.name: without_probes(export) for export in loaded.graph.exports}


def module_of(export: Export) -> GpuModule:
    module = checked(compile_ptx, ptx_instance, export, 9, 1)
    assert module is not None
    return module


def test_regions_hand_on_scalars_and_buffers(exports: dict[str, Export]) -> None:
    """A matmul and a softmax: grids of rounds, and one thread an item for what goes in order."""
    module = module_of(exports["net"])
    assert module.vector_loops >= 2 and len(module.kernels) > module.vector_loops
    assert {kernel.unit for kernel in module.kernels} == {"round", "item"}
    assert any(region.takes for region in module.plan.regions)
    assert module.plan.item_bytes > 0


def test_a_stream_is_one_block_with_barriers(exports: dict[str, Export]) -> None:
    module = module_of(exports["smooth"])
    (kernel,) = module.kernels
    assert (kernel.unit, kernel.threads) == ("batch", 64)
    assert module.text.count("bar.sync 0;") > 1 and module.plan.shared


def test_a_missing_barrier_is_seen(exports: dict[str, Export]) -> None:
    """One at a time; none stands where regions have nothing to do with each other."""
    module = compile_export(exports["smooth"])
    head, *parts = module.text.partition(f".entry {module.kernels[0].name}_reset")[0].split(_BARRIER)
    assert len(parts) == 4
    seen = 0
    for missing in range(len(parts)):
        text = head + "".join(("" if k == missing else _BARRIER) + part for k, part in enumerate(parts))
        machine = Machine(text.removesuffix(".visible "))
        try:
            Instance(replace(module, reset=None), machine).run(inputs_of(exports["smooth"], 3, 1)[0], 3)
        except KeraError as error:
            seen += error.diagnostics[0].code == "K0708"
    assert seen >= 2


def test_memory_that_a_block_has_not(exports: dict[str, Export], monkeypatch: pytest.MonkeyPatch) -> None:
    """What regions hand on lies in the device's memory where it is more than a block has."""
    monkeypatch.setattr("kera_hw.schedule.software.grids.MOST_SHARED_BYTES", 64)
    module = module_of(exports["smooth"])
    assert not module.plan.shared and module.plan.item_bytes > 0


def test_temporaries_of_a_round(exports: dict[str, Export], monkeypatch: pytest.MonkeyPatch) -> None:
    """In local memory, and where they are more than that, in slots of the item's."""
    module = module_of(exports["sorted"])
    assert any(region.slot_bytes and region.space == "local" for region in module.plan.regions)
    monkeypatch.setattr("kera_hw.schedule.software.grids.MOST_LOCAL_BYTES", 0)
    module = module_of(exports["sorted"])
    assert module.plan.item_bytes > 0 and ".local" not in module.text


def test_a_batch_in_parts(exports: dict[str, Export], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of memory, of a grid's second axis, and of blocks that run together in the interpreter."""
    monkeypatch.setattr("kera_hw.schedule.software.batches.BATCH_BYTES", 20_000)
    monkeypatch.setattr("kera_hw.cpu_gpu.gpu.device.MOST_ITEMS_OF_A_LAUNCH", 2)
    monkeypatch.setattr("kera_hw.cpu_gpu.gpu.device.MOST_ITEMS_IN_TURN", 4)
    monkeypatch.setattr("kera_hw.cpu_gpu.gpu.interpreter.host.MOST_LANES", 64)
    for name in ("net", "smooth", "sorted"):
        args, _ = inputs_of(exports[name], 11, 4)
        wanted = run_leaves(exports[name], args, 11)
        found = results(compile_ptx(exports[name], True), ptx_instance, args, 11)
        assert all(map(same_bits, wanted, found))


def test_rounds_that_fill_no_block(exports: dict[str, Export]) -> None:
    """A grid's last block has threads with nothing to do; nests count rounds in mixed radix."""
    path = exports["sorted"]
    for least in (1, 2, 64, 65):
        module = compile_export(path, least)
        assert differing(path, module, ptx_instance, 3, least) == []


def test_a_module_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_PARAMETER_BYTES", "MOST_DATA_BYTES", "MOST_INSTRUCTIONS"):
        with monkeypatch.context() as patch:
            patch.setattr(kernels, name, 10)
            with pytest.raises(KeraError) as caught:
                compile_export(fir())
        assert [item.code for item in caught.value.diagnostics] == ["K0705"]


def test_a_wrong_kernel_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """An addition made a subtraction, but for those that count items and rounds."""
    add, subtract = (scalars.RULES[f"integer.{verb}"] for verb in ("add", "sub"))

    def wrong(code: Code, args: Sequence[scalars.Source], op: Signature) -> Held[str]:
        return (subtract if op.result == IntType(32, True) else add)(code, args, op)

    rules = {**scalars.RULES, "integer.add": wrong}
    monkeypatch.setattr(scalars, "RULES", rules)
    monkeypatch.setattr("kera_hw.cpu_gpu.ptx.writer.RULES", rules)
    assert differing(fir(), compile_export(fir()), ptx_instance, 8, 0) == [0]


def test_the_text_is_the_same_each_time(exports: dict[str, Export]) -> None:
    for export in exports.values():
        assert compile_export(export).text == compile_export(export).text


def test_nans_of_the_machine_are_not_shown(tmp_path: Path) -> None:
    """f32 instructions give 0x7FFFFFFF, which no result holds."""
    path = tmp_path / "nans.kera"
    path.write_text("pub fn f(x: f32, y: f32) -> (f32, u32) { (x - y, bitcast::<u32>(x / y)) }", "utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    (export,) = loaded.graph.exports
    infinite = np.full(2, np.inf, np.float32)
    found = results(compile_ptx(export, True), ptx_instance, [infinite, infinite], 2)
    assert [leaf.view(np.uint32).tolist() for leaf in found] == [[0x7FC0_0000] * 2] * 2


_BYTES = """
pub fn signed(a: [[i8; 64]; 8], b: [[i8; 64]; 6]) -> [[i32; 6]; 8] { matmul(a as i32, transpose(b) as i32) }
pub fn mixed(a: [[u8; 36]; 8], b: [[i8; 36]; 6]) -> [[i32; 6]; 8] { matmul(a as i32, transpose(b) as i32) }
pub fn plain(a: [[u8; 12]; 8], b: [[u8; 12]; 6]) -> [[u32; 6]; 8] { matmul(a as u32, transpose(b) as u32) }
pub fn odd(a: [[i8; 65]; 8], b: [[i8; 65]; 6]) -> [[i32; 6]; 8] { matmul(a as i32, transpose(b) as i32) }
pub fn across(a: [[i8; 64]; 8], b: [[i8; 8]; 64]) -> [[i32; 8]; 8] { matmul(a as i32, b as i32) }
pub fn shorts(a: [[i16; 64]; 8], b: [[i16; 64]; 6]) -> [[i32; 6]; 8] { matmul(a as i32, transpose(b) as i32) }
"""


def test_products_of_bytes_four_at_a_time(tmp_path: Path) -> None:
    """Where both factors lie in words: the peeled first product leaves three before them. Elsewhere, not."""
    path = tmp_path / "bytes.kera"
    path.write_text(_BYTES, encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    found: dict[str, set[str]] = {}
    for export in loaded.graph.exports:
        module = compile_ptx(without_probes(export), True)
        found[export.name] = set(re.findall(r"dp4a[.a-z0-9]*", module.text))
        assert sum(kernel.byte_products for kernel in module.kernels) == len(found[export.name])
        assert differing(without_probes(export), module, ptx_instance, 12, 3) == []
    assert found == {
        "signed": {"dp4a.s32.s32"}, "mixed": {"dp4a.u32.s32"}, "plain": {"dp4a.u32.u32"}, "odd": set(),
        "across": set(), "shorts": set(),
    }


_TILES = """
pub fn both(a: [[i8; 32]; 16], b: [[i8; 32]; 24]) -> [[i32; 24]; 16] { matmul(a as i32, transpose(b) as i32) }
pub fn mixed(a: [[u8; 16]; 8], b: [[i8; 16]; 8]) -> [[i32; 8]; 8] { matmul(a as i32, transpose(b) as i32) }
pub fn plain(a: [[u8; 48]; 40], b: [[u8; 48]; 8]) -> [[u32; 8]; 40] { matmul(a as u32, transpose(b) as u32) }
pub fn square(a: [[i8; 32]; 32], b: [[i8; 32]; 32]) -> [[i32; 32]; 32] {
    matmul(a as i32, transpose(b) as i32)
}
pub fn more(a: [[i8; 32]; 16], b: [[i8; 32]; 24]) -> [[i32; 24]; 16] {
    matmul(a as i32, transpose(b) as i32) + [[1; 24]; 16]
}
pub fn narrow(a: [[i8; 32]; 12], b: [[i8; 32]; 8]) -> [[i32; 8]; 12] { matmul(a as i32, transpose(b) as i32) }
"""


def test_products_of_matrices_in_tiles(tmp_path: Path) -> None:
    """On tensor cores where the shapes allow, and the plan says why not elsewhere."""
    path = tmp_path / "tiles.kera"
    path.write_text(_TILES, encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    reasons: dict[str, set[str]] = {}
    for export in loaded.graph.exports:
        module = compile_ptx(without_probes(export), True)
        reasons[export.name] = {kernel.tiles for kernel in module.kernels}
        assert ("mma.sync" in module.text) == ("" in reasons[export.name])
        assert differing(without_probes(export), module, ptx_instance, 9, 3) == []
    assert [reasons[name] for name in ("both", "mixed", "plain", "square")] == [{""}] * 4
    assert reasons["narrow"] == {"12 by 8 results of 32 products are no tiles of 8 by 8 of 16"}
    assert "" not in reasons["more"] or len(reasons["more"]) > 1
    (kernel,) = compile_export(fir()).kernels
    assert kernel.tiles == "threads of a block share the rounds out"


def test_a_wrong_product_of_bytes_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "bytes.kera"
    path.write_text(_BYTES, encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None
    (export,) = (one for one in loaded.graph.exports if one.name == "signed")
    module = compile_ptx(without_probes(export), True)
    wrong = replace(module, text=module.text.replace("dp4a.s32.s32", "dp4a.u32.s32"))
    assert differing(without_probes(export), wrong, ptx_instance, 4, 3) == [0]
