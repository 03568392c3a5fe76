"""Machine code by itself: what is wrong is seen, its pages, processors and stacks that it is not for."""
from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import kera_hw
from kera_hw.cpu_gpu.architectures import LEVELS, isa_letters
from kera_hw.cpu_gpu.engine import Instance, best_level, compile_export, missing_features
from kera_hw.cpu_gpu.riscv64.machine import RVV
from kera_hw.cpu_gpu.x86_64 import scalars
from kera_hw.cpu_gpu.x86_64.machine import LEVELS as X86_LEVELS
from kera_hw.cpu_gpu.x86_64.machine import SSE2, X86Level
from kera_hw.driver.cpu_target import cpu_executor, level_of
from kera_hw.driver.options import CPU_TARGETS
from kera_hw.driver.session import compile_text, load_program
from kera_hw.driver.software import to_compile
from kera_hw.graph import Graph
from kera_hw.support import KeraError, SourceFile
from tests.differential.software import ITEMS, checked, differing, fir

pytestmark = pytest.mark.skipif(bool(missing_features()), reason="the processor lacks what the code uses")


def test_a_wrong_function_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """An addition made a subtraction."""
    rules = {**scalars.RULES, "integer.add": scalars.RULES["integer.sub"]}
    monkeypatch.setattr(scalars, "RULES", rules)
    assert differing(fir(), compile_export(fir()), Instance, 8, 0) == [0]


def test_code_is_never_writable_and_executable() -> None:
    instance = Instance(compile_export(fir()))
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    address = instance.code_address
    (own,) = [line for line in maps if _holds(line, address)]
    assert own.split()[1].startswith("r-x"), own


def _holds(line: str, address: int) -> bool:
    first, _, end = line.split()[0].partition("-")
    return int(first, 16) <= address < int(end, 16)


def test_a_function_that_needs_too_much_stack_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All values are alive at once: they are used in the order that they were made in."""
    path = tmp_path / "pressing.kera"
    lines = [f"let v{k + 1} = (v{k} ^ (v{k} >> 3)) * {2 * k + 3};" for k in range(40)]
    total = "".join(f"s = (s ^ v{k}) * 5;" for k in range(40))
    source = f"pub fn f(v0: u32) -> u32 {{ {''.join(lines)} let mut s = v40; {total} s }}"
    path.write_text(source, encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None
    (export,) = loaded.graph.exports
    made = checked(compile_export, Instance, export, ITEMS, 1)
    assert made is not None and made.machine.slots > 10
    monkeypatch.setattr("kera_hw.cpu_gpu.engine.MOST_STACK_BYTES", 320)
    with pytest.raises(KeraError) as caught:
        compile_export(export)
    assert [item.code for item in caught.value.diagnostics] == ["K0705"]


COUNTED = """
pub fn f(p: [i33; 5, 3], r: [u8; 5, 3], q: u8) -> (i33, [fix<12, 5>; 5, 3], fix<12, 5>) {
    let mut t = [(1.5 as fix<12, 5>); 5, 3];
    let mut a: fix<12, 5> = t[3, 1] + (p[2, 0] as fix<12, 5>);
    let mut b: i33 = (t[0, 2] as i33) + p[1, 2];
    for i in 0..3 {
        let mut u = [1u8; 2];
        for j in 0..5 {
            let less = (u[1] as i16) < (p[4 - i, 2 - i] as i16);
            for k in (0..3).rev() {
                t[k, k] = if less { (q as fix<12, 5>) - (u[1] as fix<12, 5>) } else {
                    if (u[1] & 1) == 1 { j as fix<12, 5> } else { u[1] as fix<12, 5> }
                };
                b = p[k, i] - (t[k, (k * 5 + 3) % 3] as i33) * (u[1] as i33);
                u[1] = u[0] + (t[k, 2 - i] as u8);
            }
        }
    }
    for i in 0..4 {
        t[i, 0] = (p[3, 2] as fix<12, 5>) + (r[4 - i, (a as u8) % 3] as fix<12, 5>)
            + ((r[i, 2] as fix<12, 5>) + t[4 - i, 2]);
        for j in 0..3 {
            let last = if (q & 1) == 1 { q as fix<12, 5> } else { j as fix<12, 5> };
            a = (p[i, 2 - j] as fix<12, 5>) + a + last;
        }
    }
    (b, t, a)
}
"""


def test_counts_of_shifts_stay_while_operands_are_fetched() -> None:
    """Without BMI a count has a register of its own, which what lies on the stack passes through as well."""
    graph = compile_text(SourceFile.from_text(COUNTED), Path("counted.kera")).graph
    assert graph is not None
    export = to_compile(graph, graph.exports[0])
    made = compile_export(export, False, SSE2)
    assert made.machine.slots > 10 and differing(export, made, Instance, ITEMS, 1) == []


LONG = """
pub fn floats(x: [f32; 4501]) -> [f32; 4501] { max(x, 0f32) * 3f32 }
pub fn doubles(x: [f64; 2333]) -> [f64; 2333] { x + 1f64 }
pub fn bytes(x: [u8; 20000]) -> [u8; 20000] { x ^ 85 }
pub fn wider(x: [i16; 5000]) -> [i32; 5000] { x as i32 }
"""
LEAVES = {
    "floats": (np.float32, 4501), "doubles": (np.float64, 2333), "bytes": (np.uint8, 20000),
    "wider": (np.int16, 5000),
}


@pytest.mark.parametrize("level", X86_LEVELS, ids=lambda level: level.name)
def test_long_results_anywhere_in_a_line_of_the_cache(level: X86Level, tmp_path: Path) -> None:
    """Also between elements; nothing beside them is written."""
    if missing_features(level):
        pytest.skip(f"the processor lacks {missing_features(level)}")
    path = tmp_path / "f.kera"
    path.write_text(LONG, encoding="utf-8")
    program = kera_hw.load(path)
    for name, (dtype, count) in LEAVES.items():
        x = (np.arange(count) - count // 2).astype(dtype)
        wanted = program.function(name, "interp")(x=x)
        function = program.function(name, level.name)
        for offset in (*range(0, 64, wanted.itemsize), 1, 63):
            room = np.full(wanted.nbytes + 256, 0xA5, np.uint8)
            first = 64 - room.ctypes.data % 64 + offset
            out = room[first : first + wanted.nbytes].view(wanted.dtype)
            assert function(x=x, out=out) is out and out.tobytes() == wanted.tobytes(), (name, offset)
            assert (room[:first] == 0xA5).all() and (room[first + wanted.nbytes :] == 0xA5).all()


def test_another_processor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kera_hw.cpu_gpu.engine.host_features", lambda: frozenset({"avx2"}))
    for target in CPU_TARGETS:
        with pytest.raises(KeraError) as caught:
            cpu_executor(Graph([fir()], {}, {}), fir(), target)
        (fault,) = caught.value.diagnostics
        lacking = {"cpu": "sse2", "x86-64-sse2": "sse2", "x86-64-avx2": "bmi2", "x86-64-avx512": "bmi2"}.get(
            target, f"{target} under Linux"
        )
        assert fault.code == "K0706" and lacking in fault.message and "avx2," not in fault.message
    assert best_level() is None


@pytest.mark.parametrize(
    "machine, level", [("aarch64", "aarch64"), ("riscv64", "riscv64"), ("x86_64", "x86-64-avx512")]
)
def test_a_machine_runs_the_levels_of_its_own(
    monkeypatch: pytest.MonkeyPatch, machine: str, level: str
) -> None:
    features = frozenset(name for one in LEVELS for name in one.features)
    monkeypatch.setattr("kera_hw.cpu_gpu.engine.host_features", lambda: features)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert level_of("cpu").name == level
    for one in LEVELS:
        runs = one.architecture == level_of(level).architecture
        assert bool(missing_features(one)) != runs


def test_the_best_level_is_the_last_that_the_processor_has(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ("cpu", *(level.name for level in LEVELS)) == CPU_TARGETS
    for level in X86_LEVELS:
        monkeypatch.setattr("kera_hw.cpu_gpu.engine.host_features", partial(frozenset, level.features))
        assert best_level() == level_of("cpu") == level == level_of(level.name)


def test_riscv_calls_a_processor_by_its_extensions() -> None:
    missing = {*RVV.features} - {*isa_letters(" rv64imafdcv_zicsr_zba\n")}
    assert not missing and "v" not in isa_letters("rv64imafdc") and "zba" in isa_letters("rv64i_zba")


@pytest.mark.parametrize("level", X86_LEVELS, ids=lambda level: level.name)
def test_code_of_a_level_uses_no_more_than_it_has(level: X86Level, tmp_path: Path) -> None:
    """Instructions of AVX-512 begin with 0x62, of AVX with 0xC4 or 0xC5, and no others in 64-bit code."""
    path = tmp_path / "f.kera"
    source = "pub fn f(x: [f32; 64], y: [f32; 64]) -> [f32; 64] { max(exp(x), y / x) }"
    path.write_text(source, encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None
    machine = compile_export(loaded.graph.exports[0], level=level).machine
    first = {machine.code[at] for at, _ in machine.instructions}
    assert (0x62 in first) == level.evex
    assert bool(first & {0xC4, 0xC5}) == level.vex
