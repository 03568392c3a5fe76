"""`kera build --target cpu`: files that linkers and loaders take, called from C and through ctypes."""
from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import kera_hw
from kera_hw.cpu_gpu.architectures import LEVELS
from kera_hw.cpu_gpu.engine import best_level, missing_features
from kera_hw.cpu_gpu.machine.level import Level
from kera_hw.cpu_gpu.memory import CLEAR, LIBGCC
from kera_hw.driver.recheck import recheck
from tests.emulated import EMULATORS, Emulator
from tests.tidy.repo import ROOT
from tests.unit.cli_support import Kera

FIR = ROOT / "examples" / "fir.kera"
some_level = pytest.mark.skipif(best_level() is None, reason="the processor lacks what the code uses")
_MIXED = """
struct Pair { a: i13, b: bool }
pub fn mixed(p: Pair, x: f16, int: fix<8, 4>, t: [u64; 3], e: [u8; 0]) -> (Pair, [f32; 2], bf16) {
    let s = t[0] + t[1] * 3 + t[2];
    (Pair { a: p.a + (s as i13), b: !p.b }, [exp(x as f32), (int as f32) * 0.1], x as bf16)
}
"""


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name}")
    return found


def _built(kera: Kera, path: Path, out: Path, *more: str) -> Path:
    done = kera("build", path, "-o", out, "--json", *more)
    assert done.status == 0, done.err
    return out


def _called(out: Path, library: str, emulator: Emulator | None) -> subprocess.CompletedProcess[str]:
    """The C program beside the header, linked with the object or the library, run."""
    program = out / f"with_{library}"
    _compile(out, program, library, "gcc" if emulator is None else emulator.compiler)
    call = [str(program)]
    if emulator is not None:
        system = f"/usr/{emulator.compiler.removesuffix('-gcc')}"
        call = [_tool(emulator.qemu), "-L", system, "-cpu", emulator.cpu, *call]
    return subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)


def _compile(out: Path, program: Path, library: str, compiler: str) -> None:
    source = out / "main.c"
    linked = [str(out / "fir.o")] if library == "obj" else ["-L", str(out), "-lfir", f"-Wl,-rpath,{out}"]
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-std=c11", "-I", str(out)]
    call = [_tool(compiler), *flags, str(source), *linked, "-o", str(program)]
    subprocess.run(call, check=True, timeout=60)


_MAIN = """
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "fir.h"
int main(void) {
    static int16_t x[1000];
    static int32_t y[1000];
    void *memory = malloc(fir_MEMORY_BYTES);
    uint32_t state = 1;
    for (int i = 0; i < 1000; i++) { state = state * 1664525u + 1013904223u; x[i] = (int16_t)(state >> 16); }
    for (int round = 0; round < 2; round++) {
        fir_reset(memory);
        fir(memory, 400, x, y);
        fir(memory, 600, x + 400, y + 400);
    }
    for (int i = 0; i < 1000; i++) printf("%" PRId32 "\\n", y[i]);
    printf("%s\\n", fir_fingerprint);
    return 0;
}
"""


@pytest.mark.parametrize("library", ["obj", "so"])
@pytest.mark.parametrize("emulator", [None, *EMULATORS], ids=lambda one: one.name if one else "cpu")
def test_a_c_program_calls_it(kera: Kera, tmp_path: Path, library: str, emulator: Emulator | None) -> None:
    """Two calls go on from each other's state, and a reset begins anew."""
    if emulator is None and best_level() is None:
        pytest.skip("the processor lacks what the code uses")
    target = "cpu" if emulator is None else emulator.level
    out = _built(kera, FIR, tmp_path / "out", "--fn", "fir", "--target", target)
    (out / "main.c").write_text(_MAIN, encoding="utf-8")
    done = _called(out, library, emulator)
    assert done.returncode == 0, done.stderr
    *numbers, fingerprint = done.stdout.split()
    state, samples = 1, list[int]()
    for _ in range(1000):
        state = (state * 1664525 + 1013904223) % (1 << 32)
        samples.append(state >> 16)
    x = np.array(samples, np.uint16).view(np.int16)
    fir = kera_hw.load(str(FIR)).function("fir")
    assert [int(text) for text in numbers] == fir.batch(x=x).tolist()
    assert fingerprint == fir.fingerprint


@some_level
def test_ctypes_calls_it_without_a_compiler(kera: Kera, tmp_path: Path) -> None:
    """Leaves of every kind, one of them called as a word of C."""
    path = tmp_path / "mixed.kera"
    path.write_text(_MIXED, encoding="utf-8")
    out = _built(kera, path, tmp_path / "out", "--target", "cpu")
    plan = json.loads((out / "plan.json").read_text(encoding="utf-8"))
    library = ctypes.CDLL(str(out / "libmixed.so"))
    memory = ctypes.create_string_buffer(plan["memory_bytes"])
    image_bytes = int(_defined(out / "mixed.h", "mixed_IMAGE_BYTES"))
    ctypes.memmove(memory, ctypes.addressof(ctypes.c_char.in_dll(library, "mixed_image")), image_bytes)
    items = 21
    rng = np.random.default_rng(2)
    a, b = rng.integers(-4096, 4096, items).astype(np.int16), rng.integers(0, 2, items).astype(np.uint8)
    x = rng.integers(0, 1 << 16, items).astype(np.uint16)
    y = rng.integers(-128, 128, items).astype(np.int8)
    t = rng.integers(0, 1 << 63, (items, 3)).astype(np.uint64)
    empty = np.zeros(1, np.uint8)
    found = [np.zeros(items, np.int16), np.zeros(items, np.uint8), np.zeros((items, 2), np.float32),
             np.zeros(items, np.uint16)]
    leaves = [a, b, x, y, t, empty, *found]
    ports = (ctypes.c_void_p * len(leaves))(*(leaf.ctypes.data for leaf in leaves))
    library.mixed_kernel(ctypes.c_uint64(items), ports, memory)
    mixed = kera_hw.load(str(path)).function("mixed")
    wanted = mixed.batch(
        p={"a": a, "b": b.astype(bool)}, x=x.view(np.float16), int=y, t=t, e=np.zeros((items, 0), np.uint8)
    )
    flat = [wanted[0]["a"], wanted[0]["b"], wanted[1], wanted[2]]
    assert [leaf.tobytes() for leaf in found] == [np.ascontiguousarray(leaf).tobytes() for leaf in flat]
    if shutil.which("gcc"):
        source = '#include "mixed.h"\nint main(void) { return mixed_fingerprint[0] != 107; }\n'
        (out / "main.c").write_text(source, encoding="utf-8")
        subprocess.run(["gcc", "-Wall", "-Werror", "-c", "main.c", "-o", "main.o"], cwd=out, check=True)


def _defined(header: Path, name: str) -> str:
    lines = header.read_text(encoding="utf-8").splitlines()
    return next(line.split()[2] for line in lines if line.startswith(f"#define {name} "))


@pytest.mark.parametrize("level", [level.name for level in LEVELS])
def test_files_and_receipt(kera: Kera, tmp_path: Path, level: str) -> None:
    """Also for a processor that this one is not; what is left out is not missed, what is changed is."""
    out = _built(kera, FIR, tmp_path, "--fn", "fir", "--target", level, "--emit", "so,header")
    names = {"libfir.so", "fir.h", "fir.keg", "plan.json", "receipt.json"}
    assert {path.name for path in out.iterdir()} == names
    plan = json.loads((out / "plan.json").read_text(encoding="utf-8"))
    assert plan["target"] == plan["isa"] == level
    assert recheck(out).holds
    library = bytearray((out / "libfir.so").read_bytes())
    library[-1] ^= 1
    (out / "libfir.so").write_bytes(library)
    assert {fault.code for fault in recheck(out).faults} == {"K0809", "K0811"}


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_no_page_is_writable_and_executable_and_the_stack_is_neither(
    kera: Kera, tmp_path: Path, level: Level
) -> None:
    """As binutils read the library: segments, and names with their sizes."""
    out = _built(kera, FIR, tmp_path, "--fn", "fir", "--target", level.name, "--emit", "so")
    call = [_tool("readelf"), "-lW", "--dyn-syms", "libfir.so"]
    done = subprocess.run(call, cwd=out, capture_output=True, text=True, check=True)
    assert "Warning" not in done.stderr + done.stdout and "Error" not in done.stderr
    flags = [line for line in done.stdout.splitlines() if line.split()[:1] in (["LOAD"], ["GNU_STACK"])]
    assert len(flags) == 4 and not any("RWE" in line or "W E" in line for line in flags)
    for name in ("fir_kernel", "fir_image", "fir_fingerprint"):
        assert f" {name}" in done.stdout


def test_wrong_products_are_refused(kera: Kera, tmp_path: Path) -> None:
    for target, emit in (("cpu", "verilog"), ("cpu", "obj,"), ("wasm", "obj"), ("fpga:ecp5-25k", "obj")):
        done = kera("build", FIR, "--fn", "fir", "--target", target, "--emit", emit, "-o", tmp_path)
        assert done.status == 2 and "K0908" in done.err, (target, emit)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("emulator", EMULATORS, ids=lambda one: one.name)
def test_other_machines_libgcc_has_what_makes_code_seen(emulator: Emulator) -> None:
    """Where pages are made executable on them (``CodeMemory``)."""
    triple = emulator.compiler.removesuffix("-gcc")
    library = Path(f"/usr/{triple}/lib") / LIBGCC
    if not library.exists():
        pytest.skip(f"there is no {library}")
    call = [_tool(f"{triple}-nm"), "-D", "--defined-only", str(library)]
    names = subprocess.run(call, capture_output=True, text=True, check=True).stdout
    assert f" T {CLEAR}" in names


def test_the_instruction_set_may_be_said_beside_cpu(kera: Kera, tmp_path: Path) -> None:
    out = _built(kera, FIR, tmp_path, "--fn", "fir", "--target", "cpu", "--isa", "riscv64", "--emit", "so")
    plan = json.loads((out / "plan.json").read_text(encoding="utf-8"))
    assert plan["isa"] == plan["target"] == "riscv64" and recheck(out).holds
    for given, said in (
        (("--isa", "riscv64"), "riscv64 under Linux"), (("--isa", "mips"), "x86-64-sse2"),
        (("--isa", "riscv64", "--target", "wasm"), "`wasm` is another target"),
    ):
        done = kera("run", FIR, "--fn", "fir", *given, "-i", "x=[1]", "--batch")
        assert done.status != 0 and said in done.err, given
    assert kera("verify", FIR, "--targets", "interp,cpu", "--isa", "riscv64").status == 2


@some_level
def test_what_is_said_is_what_runs(kera: Kera) -> None:
    name = next(level.name for level in LEVELS if not missing_features(level))
    call = ("run", FIR, "--fn", "fir", "-i", "x=[1000, 0, 0, 0]", "--batch")
    assert kera(*call, "--isa", name).out == kera(*call, "--target", "cpu").out == kera(*call).out
