"""Parts of loop programs as flat designs: run round by round, they give what the loop program gives."""
from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from kera_hw.driver.session import compile_text, load_program, optimise
from kera_hw.graph import Ref, without_probes
from kera_hw.graph.generate import generatable_ops
from kera_hw.loops.evaluator import reset_states, run_program
from kera_hw.loops.parser import parse_program
from kera_hw.loops.program import COUNTER, Alloc, LoopProgram, statements
from kera_hw.loops.transforms.storage import bank
from kera_hw.lower.export import lower_export
from kera_hw.rtl.lower import FlatDesign
from kera_hw.support import SourceFile
from kera_hw.types import TensorType
from tests.loop_programs import random_export, values_of
from tests.parts import Parts, words_in
from tests.tidy.repo import ROOT

PROGRAMS = sorted((ROOT / "tests" / "programs").rglob("*.kera"))
_CHUNKS = 8


def designs_of(program: LoopProgram, seed: int, tables: bool = False) -> list[FlatDesign]:
    """The designs of a program's parts, after two items that gave what the program gives."""
    below, parts, states = random.Random(seed), Parts(program, tables), reset_states(program, 1)
    for _ in range(2):
        args = [
            values_of(TensorType(b.element, b.shape) if b.shape else b.element, 1, below)
            for b in program.of_kind("param")
        ]
        parts.item(args)
        results, states = run_program(program, args, states, 1)
        wanted = [*zip(program.of_kind("result"), results), *zip(program.of_kind("state"), states)]
        for buffer, array in wanted:
            assert parts.contents(buffer) == words_in(buffer, np.asarray(array)), buffer.name
    return parts.designs


@pytest.mark.parametrize("chunk", range(_CHUNKS))
def test_random_graphs_in_parts(chunk: int) -> None:
    """A graph for every other operation."""
    for seed in range(chunk, len(generatable_ops()), 2 * _CHUNKS):
        designs_of(lower_export(random_export(seed)), seed, tables=seed % 3 == 0)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_in_parts(path: Path) -> None:
    loaded = load_program(path)
    assert loaded.graph is not None
    for export in loaded.graph.exports:
        designs_of(lower_export(without_probes(export)), 1)


SOURCE = """
pub fn f(x: [i12; 7, 6], i: u3, j: u8) -> [i12; 7, 6] {
    let mut t = x;
    for k in 0..7 {
        if x[k, 2] > 3 { t[k, min(i, 5)] = t[6 - k, 5] + 1; } else { t[min(i, 6), 4] = t[k, min(j, 5)]; }
        for m in 0..3 { t[k, 2 * m] = t[min(j, 6), 2 * m + 1] ^ t[k, m]; }
    }
    t
}
"""


@pytest.mark.parametrize("axis", (0, 1))
@pytest.mark.parametrize("spread", ("cyclic", "block"))
@pytest.mark.parametrize("count", (2, 3, 4))
def test_banks(axis: int, spread: str, count: int) -> None:
    """A buffer in several memories, with accesses whose bank is known and such whose bank is data."""
    program = program_of(SOURCE)
    inside = [item.buffer for item in statements(program.body) if isinstance(item, Alloc)]
    names = [buffer.name for buffer in (*program.buffers, *inside) if len(buffer.shape) == 2]
    for name in names:
        program = bank(bank(program, name, axis, count, spread), name, 1 - axis, 2, "cyclic")
    memories = {memory.name for design in designs_of(program, 3) for memory in design.memories}
    wanted = {f"{name}.{k}.{m}" for name in names for k in range(count) for m in range(2)}
    assert len(names) >= 2 and memories == {"in.i", "in.j", *wanted}


def program_of(source: str) -> LoopProgram:
    graph = compile_text(SourceFile("p.kera", source.encode()), Path("p.kera")).graph
    assert graph is not None
    return lower_export(optimise(graph).exports[0])


HISTOGRAM = """
loops histogram
in.x: param u8[64]
state.bins: state u16[256] = {zeros}
{{
  for i1 < 64 {{
    v2: u8 = load in.x[i1]
    v3: u16 = load state.bins[v2]
    v4: u16 = integer.add v3 1:u16
    store state.bins[v2] v4
  }}
}}
"""


def test_a_round_of_a_histogram_is_a_read_a_sum_and_a_write() -> None:
    (design,) = designs_of(parse_program(HISTOGRAM.format(zeros="00" * 512)), 5)
    (count,) = design.inputs
    assert (count.type, [memory.name for memory in design.memories]) == (COUNTER, ["in.x", "state.bins"])
    assert design.memories[1].initial == (0,) * 256 and design.memories[0].initial is None
    x, bins = (Ref(design.region.results[k].node, 0) for k in (0, 1))
    assert x.node.opcode == "core.param"
    written, value, address = bins.node.inputs
    assert written.node.opcode == "core.param" and value.node.opcode == "integer.add"
    assert value.node.inputs[0].node.inputs == (written, address)
    assert address.node.opcode == "tensor.index"
