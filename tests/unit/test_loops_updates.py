"""Tensors are overwritten where nobody needs the old value, copied elsewhere, and it is said which."""
from __future__ import annotations

import pytest

from kera_hw.frontend import compile_source
from kera_hw.loops.program import Alloc, LoopProgram, statements
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_with_updates
from kera_hw.support import SourceFile
from tests.loop_programs import differing

BRANCHES = """
pub fn f(x: [u8; 8], c: bool, v: u8) -> [u8; 8] {
    let mut z = x;
    let mut k = 0u8;
    for i in 0..8 {
        if z[i] > v { z[i] = v; k += 1; }
        if c { z[7 - i] = z[i]; } else { z[i] = 0; }
    }
    z[0] = k;
    z
}
"""
SWAPPED = """
pub fn f(x: [u8; 8], c: bool, v: u8) -> ([u8; 8], [u8; 8]) {
    let mut a = x;
    let mut b = x;
    a[0] = v;
    b[1] = v;
    if c { let t = a; a = b; b = t; a[3] = 4; }
    (a, b)
}
"""
NEEDED = """
pub fn f(x: [u8; 8], c: bool, v: u8) -> ([u8; 8], u8) {
    let mut a = x;
    a[0] = v;
    let old = a;
    if c { a[1] = v; } else { a[2] = v; }
    (a, old[1] + old[2])
}
"""
KEPT = """
pub stream f(x: u8, set: bool, at: u3) -> u8 {
    state mem: [u8; 8] = [0u8; 8];
    state line: [u8; 4] = [1u8; 4];
    let old = mem[at];
    if set { mem[at] = x; }
    line = shift_in(line, old);
    line[0]
}
"""
EXCHANGED = """
pub stream f(x: u8, at: u3) -> u8 {
    state a: [u8; 8] = [0u8; 8];
    state b: [u8; 8] = [1u8; 8];
    let old = a;
    a = b;
    b = old;
    if x > 100 { a[at] = x; }
    old[at]
}
"""
MATCHED = """
pub fn f(x: [u8; 4], k: u8) -> [u8; 4] {
    let mut z = x;
    z[3] = k;
    match k { 0 => { z[0] = 1; }, 1 => { z[1] = 2; }, _ => {} }
    z
}
"""
TWICE = """
fn put(a: [u8; 4], b: [u8; 4]) -> u8 {
    let mut c = a;
    c[0] = 77;
    c[1] + b[0] + c[0]
}
pub fn f(y: u8) -> u8 {
    let z = [y, y + 1, y + 2, y + 3];
    put(z, z)
}
"""


def lowered(text: str) -> tuple[LoopProgram, list[str]]:
    result = compile_source(SourceFile("f.kera", text.encode()), lambda _: None)
    assert result.graph is not None, result.diagnostics
    (export,) = result.graph.exports
    program, updates = lower_with_updates(export, result.graph.origins)
    assert verify_loops(program) == []
    assert differing(export, program, 64, 7) == []
    return program, list(map(str, updates))


CASES: dict[str, tuple[str, int, list[str], list[str]]] = {
    # temporaries, updates in place, copies
    "branches in a loop": (
        BRANCHES, 1, ["`t3` is updated in place"], ["`in.x` is copied, since it is a parameter"]
    ),
    "two tensors exchanged": (
        SWAPPED, 4, ["`t3` is updated in place", "`t6` is updated in place"], ["`in.x` is copied"]
    ),
    "needed after the branch": (NEEDED, 2, [], ["`t3` is copied, since it is used later"]),
    "states": (KEPT, 0, ["`state.mem` is updated in place", "`state.line` is updated in place"], []),
    "states exchanged": (EXCHANGED, 2, ["`state.b` is updated in place"], []),
    "one of several": (MATCHED, 1, ["`t2` is updated in place"], ["`in.x`"]),
    "one tensor as two arguments": (TWICE, 2, [], ["`t5` is copied, since it is used later"]),
}


@pytest.mark.parametrize("case", CASES)
def test_in_place_or_copied(case: str) -> None:
    text, count, in_place, copied = CASES[case]
    program, said = lowered(text)
    temporaries = [item for item in statements(program.body) if isinstance(item, Alloc)]
    assert len(temporaries) == count, said
    for wanted in (*in_place, *copied):
        assert any(wanted in line for line in said), said
    if not copied:
        assert not any("copied" in line for line in said), said
