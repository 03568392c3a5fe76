"""Each way in which a loop program can be unsound is told, on texts that are one change away from sound."""
from __future__ import annotations

import pytest

from kera_hw.loops.parser import parse_program
from kera_hw.loops.verifier import verify_loops

SOUND = """loops f
in.x: param u8[4]
in.n: param u2
out.0: result u8[4]
out.1: result u8
c0: const u8[2] = 0102
state.s: state u8 = 00
{
  v1: u2 = load in.n
  t2: temp u8[4]
  parallel i3 < 4 {
    v4: u8 = load in.x[i3]
    v5: u8 = integer.add v4 0x1:u8
    store t2[i3] v5
  }
  for i6 < 3 {
    v7: u8 = load t2[i6 + 1]
    store t2[i6] v7
  }
  v8: u8 = load t2[v1]
  for i9 < 2 (v10: u8 = v8 -> v11) {
    v12: u8 = load c0[i9]
    v13: u8 = integer.add v10 v12
    yield v13
  }
  while max 3 (v14: u8 = v11 -> v15) {
    v16: bool = compare.lt v14 0x9:u8
    yield v16
  } {
    v17: u8 = integer.add v14 0x1:u8
    yield v17
  }
  v18: bool = compare.eq v15 0x0:u8
  v19: u8 = if v18 {
    yield 0x1:u8
  } else {
    v20: u8 = load state.s
    yield v20
  }
  parallel i21 < 2 {
    parallel i22 < 2 {
      v23: u8 = load t2[2*i21 + i22]
      store out.0[2*i21 + i22] v23
    }
  }
  store out.1 v19
  store state.s v15
}
"""

UNSOUND = {
    "assigned twice": ("v1: u2 = load in.n", "v1: u2 = load in.n\n  v1: u2 = load in.n", "`v1` is defined"),
    "buffer twice": ("t2: temp u8[4]", "t2: temp u8[4]\n  t2: temp u8[4]", "`t2` is defined twice"),
    "unknown buffer": ("load in.x[i3]", "load in.y[i3]", "There is no buffer `in.y` here"),
    "rank": ("load in.x[i3]", "load in.x[i3, i3]", "`in.x` takes 1 indices, not 2"),
    "operand type": ("0x1:u8\n    store", "0x1:u16\n    store", "does not take its operands"),
    "result type": ("v5: u8 = integer.add", "v5: u16 = integer.add", "`integer.add` gives (u8), not (u16)"),
    "tensor operation": ("integer.add v4 0x1:u8", "tensor.stack v4 0x1:u8", "is no operation on scalars"),
    "attributes": ("integer.add v10 v12", "integer.add v10 v12 axis=1", "attributes none, not axis"),
    "literal": ("0x9:u8", "0x109:u8", "The constant 0x109 is none of u8"),
    "load type": ("v4: u8 = load", "v4: i8 = load", "`v4` is i8, loaded from u8"),
    "store type": ("store out.1 v19", "store out.1 v18", "A bool is stored in `out.1` of u8"),
    "index high": ("load t2[i6 + 1]", "load t2[i6 + 2]", "of `t2` may be 2 to 4, of 4 elements"),
    "index low": ("load t2[i6 + 1]", "load t2[i6 - 1]", "of `t2` may be -1 to 1, of 4 elements"),
    "index wide": ("in.n: param u2", "in.n: param u3", "is u2, loaded from u3"),
    "parameter written": ("store t2[i3] v5", "store t2[i3] v5\n    store in.x[i3] v5", "`in.x` is written"),
    "constant written": ("store out.1 v19", "store out.1 v19\n  store c0[0] v19", "const `c0` is written"),
    "yield missing": ("    yield v13\n", "", "A block yields (), but (u8) is wanted"),
    "yield type": ("yield v16", "yield v14", "A block yields (u8), but (bool) is wanted"),
    "condition": ("v19: u8 = if v18", "v19: u8 = if v15", "A branch asks something that is no bool"),
    "carried type": ("(v10: u8 = v8 -> v11)", "(v10: u8 = v1 -> v11)", "changes its type"),
    "unwritten": ("parallel i3 < 4", "parallel i3 < 3", "`t2` is read where it may not have been written"),
    "gaps": ("store t2[i3] v5", "store t2[0] v5", "`t2` is read where it may not have been written"),
    "result unwritten": ("  store out.1 v19\n", "", "The result `out.1` is not written whole"),
    "result in part": ("parallel i22 < 2", "parallel i22 < 1", "The result `out.0` is not written whole"),
    "carried by parallel": ("for i9 < 2", "parallel i9 < 2", "The parallel loop of `i9` carries values"),
    "parallel meets itself": ("store t2[i3] v5", "store t2[0] v5", "loop of `i3` may meet"),
    "parallel reads others": ("for i6 < 3", "parallel i6 < 3", "loop of `i6` may meet"),
    "parallel overlaps": ("store out.0[2*i21 + i22]", "store out.0[i21 + i22]", "`i21` may meet in `out.0`"),
    "contents": ("= 0102", "= 01", "The contents of `c0` do not fill it"),
    "temporary outside": ("c0: const", "t9: temp u8\nc0: const", "is a temporary outside every block"),
    "kind inside": ("t2: temp u8[4]", "t2: temp u8[4]\n  o: result u8", "`o` in a block is a result"),
}


def test_a_sound_program_is_sound() -> None:
    assert verify_loops(parse_program(SOUND)) == []


@pytest.mark.parametrize("kind", UNSOUND)
def test_each_fault_is_told(kind: str) -> None:
    old, new, message = UNSOUND[kind]
    assert SOUND.count(old) >= 1
    faults = verify_loops(parse_program(SOUND.replace(old, new, 1)))
    assert any(message in fault for fault in faults), faults


def test_a_value_is_not_seen_outside_its_block() -> None:
    """The reader itself refuses the name; the check does so for programs made otherwise."""
    sound = parse_program(SOUND)
    loop = sound.body.body[2]
    moved = type(sound)(sound.name, sound.buffers, type(sound.body)((*loop.body.body, *sound.body.body)))  # type: ignore[union-attr]
    assert any("has no value where it is used" in fault for fault in verify_loops(moved))
