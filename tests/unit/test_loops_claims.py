"""What is said of loops and buffers is proved again: each false claim is told, one change from a true one."""
from __future__ import annotations

import pytest

from kera_hw.loops.parser import parse_program
from kera_hw.loops.printer import print_program
from kera_hw.loops.verifier import verify_loops

CLAIMED = """loops f
in.x: param u8[16] in fifo window 1
in.y: param u8[4, 4]
in.z: param u8[8] in host
out.0: result u8[16] in fifo window 1
out.1: result u8[4]
out.2: result u8[4]
out.3: result u8[14]
out.4: result u8
c0: const u8[2] in block_ram = 0102
state.s: state u8 in register = 00
{
  t1: temp u8[16] in fifo window 2
  for i2 < 16 {
    v3: u8 = load in.x[i2]
    store t1[i2] v3
    store out.0[i2] v3
  }
  for i4 < 14 {
    v5: u8 = load t1[i4]
    v6: u8 = load t1[i4 + 2]
    v7: u8 = integer.add v5 v6
    store out.3[i4] v7
  }
  grid i8 < 4 {
    t9: temp u8[4] in shared
    block i10 < 4 {
      v11: u8 = load in.y[i8, i10]
      store t9[i10] v11
    }
    v12: u8 = load t9[0]
    store out.1[i8] v12
  }
  t13: temp u8[8] in lut_ram bank cyclic 4 on 0
  parallel i14 < 2 {
    vector i15 < 4 {
      v16: u8 = load in.z[4*i14 + i15]
      store t13[4*i14 + i15] v16
    }
  }
  for i17 < 2 (v18: u8 = 0x0:u8 -> v19) ii 3 latency(integer.add=3, load=1, other=0) units(integer.add=2) {
    v20: u8 = load t13[4*i17]
    v21: u8 = load t13[4*i17 + 1]
    v22: u8 = load t13[4*i17 + 2]
    v23: u8 = load t13[4*i17 + 3]
    v24: u8 = integer.add v20 v21
    v25: u8 = integer.add v22 v23
    v35: u8 = integer.add v24 v25
    v36: u8 = integer.add v18 v35
    yield v36
  }
  store out.4 v19
  t26: temp u8[5]
  parallel i37 < 5 {
    store t26[i37] v19
  }
  for i27 < 4 ii 3 latency(load=1, other=1) {
    v28: u8 = load t26[i27]
    v29: u8 = integer.add v28 0x1:u8
    store t26[i27 + 1] v29
  }
  threads i30 < 4 {
    t31: temp u8[2] copies 2
    v32: u8 = load t26[i30]
    store t31[0] v32
    v33: u8 = load t31[0]
    store out.2[i30] v33
  }
  v34: u8 = load c0[1]
  store state.s v34
}
"""

FALSE = {
    "fifo written backwards": ("store t1[i2]", "store t1[-1*i2 + 15]", "`i2` do not write `t1` in order"),
    "fifo written in part": ("for i2 < 16", "for i2 < 15", "not written whole"),
    "fifo window": ("t1: temp u8[16] in fifo window 2", "t1: temp u8[16] in fifo window 1",
        "read 2 elements back, of 1"),
    "fifo looked back": ("load t1[i4]", "load t1[0]", "read 15 elements back, of 2 kept"),
    "fifo read twice": ("  grid i8", "  v99: u8 = load t1[0]\n  grid i8",
        "`t1` is looked back over as a whole"),
    "fifo in any order": ("for i2 < 16", "threads i2 < 16", "`i2`, which touch `t1`, run in any order"),
    "fifo without window": ("u8[16] in fifo window 2", "u8[16] in fifo", "has a window of 0 elements"),
    "window without fifo": ("u8[16] in fifo window 2", "u8[16] window 2", "has a window of 2 elements"),
    "fifo with banks": ("in fifo window 2", "in fifo window 2 bank cyclic 2 on 0",
        "FIFO, which has no banks"),
    "parameter backwards": ("load in.x[i2]", "load in.x[-1*i2 + 15]",
        "`in.x` is looked back over as a whole"),
    "result twice": ("store out.0[i2] v3", "store out.0[i2] v3\n    store out.0[i2] v3",
        "`out.0` is not written"),
    "constant as fifo": ("in block_ram = 0102", "in fifo window 1 = 0102", "`c0` is a const, which keeps"),
    "shared outside a grid": ("grid i8", "threads i8",
        "`t9` is shared, but is no temporary of a loop on a grid"),
    "block outside a grid": ("threads i30", "block i30", "`i30` on block stands within nothing"),
    "grid in a grid": ("block i10", "grid i10", "`i10` on grid stands within grid"),
    "threads in a grid": ("block i10", "threads i10", "`i10` on threads stands within grid"),
    "not parallel": ("for i27 < 4 ii 3 latency(load=1, other=1)", "vector i27 < 4", "loop of `i27` may meet"),
    "vector in a vector": ("parallel i14", "vector i14", "The vector `i15` stands within another"),
    "store under a condition": (
        "      store t13[4*i14 + i15] v16",
        "      v98: bool = compare.eq v16 0x0:u8\n      if v98 {\n        store t13[4*i14 + i15] v16\n"
        "      } else {\n        store t13[4*i14 + i15] 0x0:u8\n      }",
        "Lanes of `i15` store to `t13` under a condition",
    ),
    "while in a vector": (
        "      store t13[4*i14 + i15] v16",
        "      store t13[4*i14 + i15] v16\n      while max 2 (v97: u8 = v16 -> v96) {\n"
        "        v95: bool = compare.eq v97 0x0:u8\n        yield v95\n      } {\n        yield v97\n      }",
        "Lanes of `i15` go round a `while`",
    ),
    "lanes in a bank": ("bank cyclic 4", "bank cyclic 2", "Lanes of `i15` may meet in a bank of `t13`"),
    "lanes in a stretch": ("bank cyclic 4", "bank block 4", "Lanes of `i15` may meet in a bank of `t13`"),
    "axis of banks": ("4 on 0", "4 on 1", "`t13` has no 4 banks on axis 1"),
    "number of banks": ("bank cyclic 4", "bank cyclic 9", "`t13` has no 9 banks on axis 0"),
    "banks twice": ("4 on 0", "4 on 0 bank cyclic 2 on 0", "banked twice on an axis"),
    "ports": (" bank cyclic 4 on 0", "", "`t13` is loaded from 4 times a round of `i17`"),
    "ports of a bank": (" + 1]\n    v22: u8 = load t13[4*i17 + 2]\n    v23: u8 = load t13[4*i17 + 3]",
                        " - 0]\n    v22: u8 = load t13[4*i17]\n    v23: u8 = load t13[4*i17]",
                           "4 times a round"),
    "interval of a value": ("ii 3 latency(integer", "ii 2 latency(integer",
        "carried as `v18` goes round in more than 2"),
    "interval of a buffer": ("ii 3 latency(load=1, other=1)", "ii 2 latency(load=1, other=1)",
        "every 3 cycles at best"),
    "latency unstated": ("latency(load=1, other=1)", "latency(load=1, store=1)",
        "`integer.add` is not stated"),
    "latency alone": ("ii 3 latency(load=1, other=1)", "latency(load=1)", "`i27` has latencies"),
    "interval and lanes": ("threads i30 < 4", "threads i30 < 4 ii 1 latency(other=1)",
        "and start one after another"),
    "loop in a pipeline": ("grid i8 < 4", "parallel i8 < 4 ii 9 latency(other=1)", "stands the loop `i10`"),
    "units": ("units(integer.add=2)", "units(integer.add=0)", "has 0 units for 4 operations"),
    "too few units": ("units(integer.add=2)", "units(integer.add=1)", "in no fewer than 4 cycles, not in 3"),
    "units of nothing": ("units(integer.add=2)", "units(integer.mul=2)", "for 0 operations `integer.mul`"),
    "copies of a parameter": ("in.z: param u8[8] in host", "in.z: param u8[8] copies 2",
        "`in.z` has 2 copies"),
    "copies of none": ("copies 2", "copies 0", "`t31` has 0 copies"),
    "memory of one": ("state u8 in register", "state u8 in lut_ram", "`state.s` is a single element"),
    "parameter in a memory": ("u8[8] in host", "u8[8] in block_ram",
        "`in.z` is a param, which comes from outside"),
    "host in a loop": ("u8[2] copies 2", "u8[2] in host copies 2", "does not lie on the host"),
}


def test_what_holds_may_be_claimed() -> None:
    program = parse_program(CLAIMED)
    assert verify_loops(program) == []
    assert print_program(program) == CLAIMED


@pytest.mark.parametrize("kind", FALSE)
def test_each_false_claim_is_told(kind: str) -> None:
    old, new, message = FALSE[kind]
    assert CLAIMED.count(old) >= 1
    faults = verify_loops(parse_program(CLAIMED.replace(old, new, 1)))
    assert any(message in fault for fault in faults), faults
