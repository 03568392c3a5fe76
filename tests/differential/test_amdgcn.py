"""AMDGCN by itself: quotients whatever the machine's reciprocals are, registers that run out, divergence."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kera_hw.cpu_gpu.amdgcn import scalars
from kera_hw.cpu_gpu.amdgcn.compile import compile_export
from kera_hw.cpu_gpu.amdgcn.interpreter import meanings
from kera_hw.driver.session import load_program
from kera_hw.graph import Export, without_probes
from kera_hw.interp.exports import run_leaves
from kera_hw.numerics.arrays import Array
from kera_hw.support import KeraError
from tests.differential.software import amdgcn_instance, compile_amdgcn, differing, fir, results
from tests.loop_programs import same_bits

_SOURCE = """
pub fn f32s(x: f32, y: f32) -> (f32, f32) { (x / y, sqrt(x)) }
pub fn f64s(x: f64, y: f64) -> (f64, f64) { (x / y, sqrt(x)) }
pub fn u32s(x: u32, y: u32) -> (u32, u32) { (x / y, x % y) }
pub fn i32s(x: i32, y: i32) -> (i32, i32) { (x / y, x % y) }
pub fn u64s(x: u64, y: u64) -> (u64, u64) { (x / y, x % y) }
pub fn i64s(x: i64, y: i64) -> (i64, i64) { (x / y, x % y) }
pub fn deep(x: i32) -> i32 {
    let mut n = x & 63;
    let mut steps = 0;
    while n > 1, max 120 { if n & 1 == 1 { n = 3 * n + 1; } else { n = n / 2; } steps = steps + 1; }
    steps
}
pub fn wide(x: [u64; 300]) -> [u64; 300] {
    let mut s = x;
    for i in 1..300 { s[i] = s[i] ^ (s[i - 1] * 3); }
    s
}
"""
_ITEMS = 6_000


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Export]:
    path = tmp_path_factory.mktemp("amdgcn") / "all.kera"
    path.write_text(_SOURCE, encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    return {export.name: without_probes(export) for export in loaded.graph.exports}


def _operands(kind: str, seed: int) -> list[Array]:
    """Of all magnitudes, with quotients near where they are rounded, and edges against each other."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(kind)
    word = np.dtype(f"u{dtype.itemsize}")
    pair = [random.integers(0, np.iinfo(word).max, _ITEMS, word, endpoint=True) for _ in range(2)]
    pair = [one >> random.integers(0, 8 * word.itemsize, _ITEMS).astype(word) if k % 2 else one
            for k, one in enumerate(pair)]
    a, b = (one.view(dtype) for one in pair)
    if dtype.kind == "f":
        edges = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny,
                 np.nextafter(dtype.type(0), dtype.type(1)), 1.5, 3.0,
                 np.nextafter(dtype.type(1), dtype.type(0)),
                 np.nextafter(dtype.type(4), dtype.type(0)), np.nextafter(dtype.type(2), dtype.type(0))]
        third = _ITEMS // 3
        b[:third] = np.frexp(b[:third])[0]  # and near 1, so that subnormal quotients have subnormal dividends
        with np.errstate(all="ignore"):
            a[:third] *= b[:third]
    else:
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        edges = [least, most, 0, 1, 2, 3, most // 2, most - 1, least + 1, 10, 641]
    pairs = np.array([(x, y) for x in edges for y in edges], dtype)
    a[-len(pairs) :], b[-len(pairs) :] = pairs.T
    return [a, b]


@pytest.mark.parametrize(("name", "kind"), [
    ("f32s", "f4"), ("f64s", "f8"), ("u32s", "u4"), ("i32s", "i4"), ("u64s", "u8"), ("i64s", "i8"),
])
@pytest.mark.parametrize("error", ["none", "above", "below", "chance"])
def test_quotients_and_roots(
    exports: dict[str, Export], name: str, kind: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the machine's reciprocals are, within what the manual allows."""
    if error != "chance":
        factor = {"none": 1.0, "above": 1 + 2.0**-23, "below": 1 - 2.0**-23}[error]

        def skewed(exact: Callable[[Array], Array]) -> Callable[[Array], Array]:
            return lambda bits: (exact(bits.view(np.float64)) * factor).view(np.uint64)

        made = {
            **meanings.MEANINGS, "v_rcp_f64": skewed(lambda a: 1 / a),
            "v_rsq_f64": skewed(lambda a: 1 / np.sqrt(a)),
        }
        monkeypatch.setattr("kera_hw.cpu_gpu.amdgcn.interpreter.machine.MEANINGS", made)
    export, args = exports[name], _operands(kind, 7)
    wanted = run_leaves(export, args, _ITEMS)
    found = results(compile_amdgcn(export, True), amdgcn_instance, args, _ITEMS)
    assert all(map(same_bits, wanted, found))


def test_threads_of_a_wave_part_and_meet(exports: dict[str, Export]) -> None:
    module = compile_amdgcn(exports["deep"], True)
    assert "s_and_saveexec_b64" in module.text and "s_cbranch_execz" in module.text
    assert differing(exports["deep"], module, amdgcn_instance, 200, 1) == []


def test_more_values_than_registers(exports: dict[str, Export]) -> None:
    """In accumulation registers, and then in the block's memory."""
    export = exports["wide"]
    found: set[str] = set()
    for processor in ("gfx90a", "gfx942"):
        module = compile_export(export, processor)
        resources = [kernel.resources for kernel in module.kernels]
        found |= {name for one in resources for name, count in one.items() if count}
        assert differing(export, module, amdgcn_instance, 70, 2) == []
    assert found


def test_nested_deeper_than_masks_are_kept(tmp_path: Path) -> None:
    """Masks lie in scalar registers, of which a wave has about a hundred."""
    path = tmp_path / "deep.kera"
    loops = "".join(f"{'    ' * k}for i{k} in 0..2 {{\n" for k in range(50))
    path.write_text(
        f"pub fn f(x: i32) -> i32 {{ let mut s = x;\n{loops}s = s * 3 + 1;{'}' * 50} s }}", encoding="utf-8"
    )
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    with pytest.raises(KeraError) as caught:
        compile_export(without_probes(loaded.graph.exports[0]))
    assert [item.code for item in caught.value.diagnostics] == ["K0702"]


def test_a_wrong_kernel_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products made sums."""
    rules = {**scalars.RULES, "integer.mul": scalars.RULES["integer.add"]}
    monkeypatch.setattr("kera_hw.cpu_gpu.amdgcn.writer.RULES", rules)
    assert differing(fir(), compile_export(fir()), amdgcn_instance, 8, 0) == [0]


def test_the_text_is_the_same_each_time(exports: dict[str, Export]) -> None:
    for export in exports.values():
        assert compile_export(export).text == compile_export(export).text
