"""Programs for regions: what is dropped, what is written out and kept apart; bits by the loops' evaluator."""
from __future__ import annotations

import numpy as np
import pytest

from kera_hw.driver.lowering import Lowering
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.process import regions_of
from kera_hw.graph import Export
from kera_hw.loops.evaluator import run_program
from kera_hw.loops.parser import parse_program
from kera_hw.loops.program import Alloc, LoopProgram, Store
from kera_hw.rtl.machine.nests import Regions, touched
from kera_hw.rtl.machine.staged import staged
from kera_hw.rtl.machine.tidy import tidied
from tests.fuzz.test_process_fuzz import compiled
from tests.loop_programs import Reference, runs

SIZE = 128


def regions(body: str) -> tuple[Export, Regions]:
    text = f"pub fn f(x: [i16; {SIZE}]) -> [i16; {SIZE}] {{\n{body}\n}}\n"
    graph, export = compiled(text)
    return export, regions_of(Lowering(graph, export, TargetOptions(), {}))


def check(export: Export, program: LoopProgram) -> None:
    reference = Reference(export, 3, 1)
    found, _ = run_program(program, reference.args, (), 3)
    for one, two in zip(found, reference.wanted, strict=True):
        assert np.array_equal(one, two)


def temporaries(program: LoopProgram) -> int:
    return sum(isinstance(item, Alloc) for item in program.body.body)


def test_stores_that_others_follow_and_copies_to_results_are_no_work_of_regions() -> None:
    export, found = regions("""
        let mut y = [7i16; 128];
        for i in 0..128 { y[i] = x[127 - i] + 1; }
        for s in 0..3 { for i in 0..127 { y[i] = y[i + 1] ^ 5; } }
        y""")
    check(export, found.program)
    assert temporaries(found.program) == 0 and len(found.nests) == 2
    bodies = [nest.levels[-1].loop.body.body for nest in found.nests]
    assert [sum(isinstance(item, Store) for item in body) for body in bodies] == [1, 1]


@pytest.mark.parametrize(("copied", "left"), [
    ("for k < 128 {; a: i16 = load t[k]; store out.0[k] a; }", 0),
    ("for k < 128 {; a: i16 = load t[k]; store out.0[k] a; }; "
     "for n < 128 {; b: i16 = load t[n]; store out.1[n] b; }", 0),
    ("for k < 128 {; a: i16 = load t[k]; store out.0[k] a; store t[127 - k] 0x3:i16; }", 1),
    ("for k < 128 {; a: i16 = load t[k]; store out.0[k] a; store out.0[0] 0x3:i16; }", 1),
    ("for k < 128 {; a: i16 = load t[k]; b: i16 = load t[127 - k]; "
     "store out.0[k] a; store out.1[k] b; }", 0),
])  # fmt: skip
def test_a_copy_is_a_result_where_neither_is_written_behind_it(copied: str, left: int) -> None:
    """One of two results that are alike is the copy; the other one is copied from it."""
    body = copied.replace("; ", "\n")
    program = parse_program(f"""loops f
in.p: param i16[128]
out.0: result i16[128]
out.1: result i16[128]
{{
t: temp i16[128]
for i < 128 {{
v: i16 = load in.p[i]
store t[i] v
}}
{body}
}}
""")
    found = tidied(program)
    assert temporaries(found) == left
    assert runs(found) == runs(program)


def test_what_is_read_between_stores_is_stored_first() -> None:
    export, found = regions("""
        let mut y = x;
        let mut sum: i16 = 0;
        for s in 0..3 { for i in 0..128 { y[i] = sum ^ 3; sum += y[127 - i]; y[i] = sum; } }
        y""")
    check(export, found.program)


@pytest.mark.parametrize(("round_", "stages"), [
    ("y[i] = y[i] + (s as i16)", 4),
    ("let a = y[i / 2]; y[i / 2] = y[127 - i / 2]; y[127 - i / 2] = a", None),  # written twice
    ("y[i] = y[127 - i] ^ y[i]", None),  # the second half reads what the first has written
    ("y[i] = y[min(i + 1, 127)] ^ y[i]", 4),  # reads ahead of what it writes
    ("y[i] = y[(x[i] & 127) as u8] ^ y[i]", None),  # data decide
    ("if x[i] > 0 { y[i] = s as i16; }", None),  # not all of it
])  # fmt: skip
def test_rounds_that_overwrite_a_tensor_whole_are_stages(round_: str, stages: int | None) -> None:
    export, found = regions(f"""
        let mut y = [0i16; 128];
        for i in 0..128 {{ y[i] = x[127 - i]; }}
        for s in 0..4 {{ for i in 0..128 {{ {round_}; }} }}
        y""")
    spread = staged(found)
    if stages is None:
        assert spread is None
        return
    assert spread is not None
    made = spread.regions
    check(export, made.program)
    assert len(made.nests) == 1 + stages and temporaries(made.program) == stages
    written = [touched(nest, Store) for nest in made.nests]
    assert all(len(one) == 1 for one in written) and len(set[str]().union(*written)) == 1 + stages
