"""NVIDIA's assembler takes what we write, for every GPU, and adds no operation that was not asked for."""
from __future__ import annotations

import re
from collections import Counter
from itertools import cycle
from pathlib import Path

import pytest

from kera_hw.cpu_gpu.ptx.code import CLASSES
from kera_hw.cpu_gpu.ptx.interpreter.machine import Machine
from kera_hw.cpu_gpu.ptx.program import TARGET, VERSION
from kera_hw.cpu_gpu.ptx.table import Instruction, instructions, rows, width_bits
from kera_hw.driver.session import load_program
from kera_hw.graph import without_probes
from kera_hw.graph.generate import generatable_ops
from tests.differential.software import PROGRAMS, compile_ptx
from tests.loop_programs import random_export
from tests.ptx_tools import ARCHITECTURES, assemble, machine_code

_HEAD = f".version {VERSION}\n.target {TARGET}\n.address_size 64\n.global .align 8 .b8 global_[64];\n"
_CONSTANTS = {"b": "3", "u": "3", "s": "-3"}
_FLOATS = {"f32": "0f40400000", "f64": "0d4008000000000000"}


def _register(kind: str, number: int) -> str:
    letter = next(k for k, declared in CLASSES.items() if declared in (kind, f"b{max(width_bits(kind), 32)}"))
    return f"%{letter}{number}"


def _operand(row: Instruction, place: int, constants: bool) -> str:
    one = row.operands[place]
    if one.address:
        return {"param": "[a]", "global": "[%d1+-8]"}.get(row.chosen.get("space", "param"), "[own+8]")
    if not one.kind:
        return "$L0"
    written = place == 0 and not row.row.startswith("st.")
    if constants and not written and one.kind != "pred" and not row.row.startswith(("st.", "cvta", "mma.")):
        return _FLOATS.get(one.kind) or _CONSTANTS[one.kind[0]]
    return "0" if row.row.startswith("bar.") else _register(one.kind, 0 if written else place + 1)


def _each_instruction(constants: bool) -> str:
    """A kernel with every instruction of the table once."""
    body: list[str] = []
    for row in instructions().values():
        if row.name == "ret":
            continue
        operands = [_operand(row, k, constants) for k in range(len(row.operands))]
        pairs = zip(row.operands, operands)
        line = f"{row.name} {', '.join(one._replace(address=False).written(text) for one, text in pairs)};"
        for space in ("shared", "local"):
            line = line.replace("[own", f"[own_{space}") if f".{space}" in row.name else line
        if row.name.startswith("ld.param."):
            line = line.replace("[a]", f"[of_{row.kind}]")
        body.append(line)
    declared = [f".reg .{kind} %{letter}<8>;" for letter, kind in CLASSES.items()]
    arrays = [".shared .align 8 .b8 own_shared[64];", ".local .align 8 .b8 own_local[64];"]
    params = ", ".join(f".param .{kind} of_{kind}" for kind in ("u32", "u64", "f32", "f64"))
    return "\n".join([
        f"{_HEAD}.visible .entry k({params})", "{", *declared, *arrays,
        "mov.u32 %r1, %tid.x; mov.u32 %r1, %ctaid.y; mov.u64 %d1, global_; mov.u64 %d2, own_shared;", "$L0:",
        *body, "@!%p1 bra $L0;", "ret;", "}", "",
    ])  # fmt: skip


@pytest.mark.parametrize("constants", [False, True])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_row_of_the_table(architecture: str, constants: bool, tmp_path: Path) -> None:
    text = _each_instruction(constants)
    Machine(text)
    assert {row.row for row in instructions().values()} == rows()
    assert assemble(text, architecture, tmp_path / "k.cubin") == ""


@pytest.mark.parametrize("wrong", ["add.s32 %r0, %r1, %f1;", "add.s32 %r0, %r1;", "cvt.f32.f64 %f0, %g0;"])
def test_the_assembler_refuses_what_is_wrong(wrong: str, tmp_path: Path) -> None:
    text = _each_instruction(False).replace("$L0:\n", f"$L0:\n{wrong}\n")
    assert assemble(text, "sm_80", tmp_path / "k.cubin") != ""


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs(path: Path, tmp_path: Path) -> None:
    loaded = load_program(path)
    assert loaded.graph is not None
    for k, export in enumerate(loaded.graph.exports):
        text = compile_ptx(without_probes(export), k % 2 == 0).text
        assert assemble(text, ARCHITECTURES[k % len(ARCHITECTURES)], tmp_path / "k.cubin") == ""


def test_random_graphs(tmp_path: Path) -> None:
    """A graph for every operation, in turn for every GPU."""
    for seed in range(len(generatable_ops())):
        text = compile_ptx(without_probes(random_export(seed)), True).text
        assert assemble(text, ARCHITECTURES[seed % len(ARCHITECTURES)], tmp_path / "k.cubin") == "", seed


_SEPARATE = """
pub fn separate(a: [f32; 64], b: [f32; 64], x: [f64; 64], y: [f64; 64]) -> ([f32; 64], [f64; 64]) {
    (a * b + a, x * y - x)
}
pub fn fused(a: f32, b: f32, c: f32, x: f64, y: f64) -> (f32, f64) { (fma(a, b, c), fma(x, y, x)) }
"""


def _floating(code: str) -> Counter[str]:
    return Counter(re.findall(r"\b(FFMA|FMUL|FADD|DFMA|DMUL|DADD)\b(?!\.FTZ)", code))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nothing_is_fused_that_was_not_asked_for(architecture: str, tmp_path: Path) -> None:
    path = tmp_path / "fusing.kera"
    path.write_text(_SEPARATE, encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None
    fused, separate = (
        _floating(machine_code(compile_ptx(export, True).text, architecture))
        for export in sorted(loaded.graph.exports, key=lambda export: export.name)
    )
    assert fused == {"FFMA": 1, "DFMA": 1}
    assert separate == {"FMUL": 1, "FADD": 1, "DMUL": 1, "DADD": 1}


_FUSED = {"f32": "FFMA", "f64": "DFMA"}


def _unasked(text: str, code: str) -> list[str]:
    """Fused operations of a type for which the text has none, and what flushes subnormal numbers; but for
    quotients and roots, which ptxas writes out with both, on numbers that are not subnormal."""
    within = re.search(r"\b(div|sqrt)\.rn\.f|\b(div|rem)\.[us]", text)
    found = [] if within else re.findall(r"\w+(?:\.\w+)*\.FTZ\b", code)
    for kind, fused in _FUSED.items():
        asked = within or f"fma.rn.{kind}" in text
        found += [] if asked else re.findall(rf"\b{fused}\b", code)
    return found


def test_what_was_not_asked_for_is_seen() -> None:
    text = "mul.rn.f64 %g0, %g1, %g2; add.rn.f64 %g0, %g0, %g1; fma.rn.f32 %f0, %f1, %f2, %f3;"
    code = "DFMA R2; FFMA R3; FADD.FTZ R4; MUFU.RCP"
    assert _unasked(text, code) == ["FADD.FTZ", "DFMA"]
    assert _unasked(f"{text} div.rn.f32 %f0, %f1, %f2;", code) == []


def test_nothing_is_fused_or_flushed_in_programs() -> None:
    """The machine code of all programs, and of a random graph for every sixth operation; GPUs take turns."""
    turns = cycle(ARCHITECTURES)
    seen: Counter[str] = Counter()
    texts: list[str] = []
    for path in PROGRAMS:
        loaded = load_program(path)
        assert loaded.graph is not None
        texts += [compile_ptx(without_probes(export), True).text for export in loaded.graph.exports]
    seeds = range(0, len(generatable_ops()), 6)
    texts += [compile_ptx(without_probes(random_export(seed)), True).text for seed in seeds]
    for text in texts:
        if re.search(r"(add|sub|mul)\.rn", text):
            architecture = next(turns)
            assert _unasked(text, machine_code(text, architecture)) == [], text.split("\n", 1)[0]
            seen[architecture] += 1
    assert min(seen[architecture] for architecture in ARCHITECTURES) >= 3
