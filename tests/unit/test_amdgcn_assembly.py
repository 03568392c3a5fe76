"""LLVM's assembler takes what we write, for both processors, and refuses what our tables refuse."""
from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from kera_hw.cpu_gpu.amdgcn.interpreter.machine import Machine
from kera_hw.cpu_gpu.amdgcn.interpreter.text import read_statement
from kera_hw.cpu_gpu.amdgcn.program import PROCESSORS
from kera_hw.cpu_gpu.amdgcn.table import Row, instructions
from kera_hw.driver.session import load_program
from kera_hw.graph import without_probes
from kera_hw.graph.generate import generatable_ops
from kera_hw.ops.registry import FAMILIES
from kera_hw.support import KeraError
from kera_hw.target.coverage import BOUND
from kera_hw.target.minimal import TYPES, minimal_programs
from tests.amdgcn_tools import assemble, joined
from tests.differential.software import PROGRAMS, compile_amdgcn
from tests.loop_programs import random_export

processors = pytest.mark.parametrize("processor", PROCESSORS)

_OPERANDS = {
    "v": ["v3"], "v2": ["v[4:5]"], "a": ["a3"], "s": ["s7"], "s2": ["s[6:7]"],
    "m2": ["s[6:7]", "vcc", "exec"],
    "any": ["v3", "s7", "5", "0x12345678"], "src": ["v3", "s7", "-16", "0x12345678"],
    "arg": ["v3", "s7", "64"], "arg2": ["v[4:5]", "s[6:7]", "64"],
    "neg2": ["v[4:5]", "-v[4:5]", "1.0", "-4.0", "3"], "ssrc": ["s7", "3", "0x12345678"],
    "ssrc2": ["s[6:7]", "vcc", "3"], "offset": ["0", "0x40"], "label": [".Lk"],
    "counts": ["vmcnt(0) lgkmcnt(0)", "vmcnt(62)", "lgkmcnt(0)"], "count": ["0", "7"],
}


def _forms(row: Row) -> list[str]:
    """An instruction with every kind of operand that the table says, where it takes them together."""
    found: list[str] = []
    for chosen in itertools.product(*(_OPERANDS.get(kind, [kind]) for kind in row.kinds)):
        scalars = {one for one in chosen[row.written :] if one in ("s7", "s[6:7]", "vcc", "0x12345678")}
        if row.name.startswith("v_") and len(scalars) > 1:
            continue
        text = f"{row.name} {', '.join(chosen)}".strip()
        offsets = [" offset:8", " offset:4095"] if row.is_memory else []
        found += [text, *(text + offset for offset in offsets)]
    return found


@processors
def test_every_row_of_the_table(processor: str) -> None:
    """As the interpreter reads it."""
    lines = [line for row in instructions().values() for line in _forms(row)]
    for number, line in enumerate(lines):
        read_statement(number, line, 0, [])
    text = "\n".join([f'.amdgcn_target "amdgcn-amd-amdhsa--{processor}"', ".Lk:", *lines, ""])
    assert assemble(text, processor) == ""


@pytest.mark.parametrize("wrong", [
    "v_add_u32 v1, s2, s3", "v_add_f64 v[1:2], v[4:5], v[6:7]", "v_fma_f32 v1, v2, v3, 0x12345678",
    "v_mul_lo_u32 v1, s2, s3", "v_cndmask_b32 v1, s2, v3, vcc", "s_load_dwordx2 exec, s[0:1], 0",
    "global_load_dword v1, v[2:3], off offset:4096", "v_add_f64 v[2:3], v[4:5], 0x12345678",
    "s_add_u32 v1, s2, s3", "v_mov_b64 v[2:3], v[4:5], v1",
    "v_ldexp_f64 v[2:3], v[4:5], -32", "s_waitcnt vmcnt(64)",
])  # fmt: skip
def test_assembler_and_interpreter_refuse_the_same(wrong: str) -> None:
    with pytest.raises(KeraError) as caught:
        read_statement(1, wrong, 0, [])
    assert caught.value.diagnostics[0].code == "K0707"
    assert assemble(f'.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"\n{wrong}\n', "gfx90a") != ""


@pytest.mark.parametrize("family", FAMILIES)
def test_every_operation_on_every_type(family: str) -> None:
    """Least programs, in turn for each processor."""
    texts: dict[str, list[str]] = {processor: [] for processor in PROCESSORS}
    turns = itertools.cycle(PROCESSORS)
    for row in FAMILIES[family]:
        for kind in () if row.name in BOUND else TYPES:
            for program in itertools.islice(minimal_programs(row.name, kind), 1):
                processor = next(turns)
                module = compile_amdgcn(without_probes(program.export), True, processor)
                texts[processor].append(module.text)
    _taken(texts)


def _taken(texts: dict[str, list[str]]) -> None:
    for processor, several in texts.items():
        if several:
            assert assemble(joined(several), processor) == ""


def test_programs() -> None:
    texts: dict[str, list[str]] = {processor: [] for processor in PROCESSORS}
    turns = itertools.cycle([(processor, grids) for grids in (True, False) for processor in PROCESSORS])
    for path in PROGRAMS:
        loaded = load_program(path)
        assert loaded.graph is not None
        for export in loaded.graph.exports:
            processor, grids = next(turns)
            texts[processor].append(compile_amdgcn(without_probes(export), grids, processor).text)
    _taken(texts)


def test_random_graphs() -> None:
    """A graph for every fourth operation."""
    texts: dict[str, list[str]] = {processor: [] for processor in PROCESSORS}
    for seed, processor in zip(range(0, len(generatable_ops()), 4), itertools.cycle(PROCESSORS)):
        texts[processor].append(compile_amdgcn(without_probes(random_export(seed)), True, processor).text)
    _taken(texts)


def test_the_metadata_is_taken(tmp_path: Path) -> None:
    """What the loader reads is held against the descriptors by both; a wrong one is seen."""
    path = tmp_path / "one.kera"
    path.write_text("pub fn one(x: i32) -> i32 { x + 1 }", encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None
    text = compile_amdgcn(loaded.graph.exports[0], True).text
    assert assemble(text, "gfx90a") == ""
    with pytest.raises(KeraError):
        Machine(text.replace(".kernarg_segment_size: 40", ".kernarg_segment_size: 48"))
