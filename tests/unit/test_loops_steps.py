"""Each transform on programs of its own: what it does, and the statement that it names when it refuses."""
from __future__ import annotations

from itertools import product

import pytest

from kera_hw.loops.parser import parse_program
from kera_hw.loops.printer import print_program
from kera_hw.loops.program import Alloc, For, statements
from kera_hw.loops.transforms import TRANSFORMS, Refused, Step, apply_plan
from kera_hw.loops.transforms.planner import planned
from kera_hw.loops.verifier import verify_loops
from tests.loop_programs import runs

TWO = """loops f
in.x: param u8[4]
out.0: result u8[4]
{
  t1: temp u8[4]
  parallel i2 < 4 {
    v3: u8 = load in.x[i2]
    store t1[i2] v3
  }
  t4: temp u8[4]
  parallel i5 < 4 {
    v6: u8 = load t1[%s]
    store t4[i5] v6
  }
  for i7 < 3 {
    v8: u8 = load t4[i7]
    store t4[i7 + 1] v8
  }
  parallel i9 < 2 {
    parallel i10 < 2 {
      v11: u8 = load t4[2*i9 + i10]
      store out.0[2*i9 + i10] v11
    }
  }
  for i12 < 5 {
  }
  v13: u8 = load in.x[0]
  for i14 < 5 {
  }
}
"""
SAME = parse_program(TWO % "i5")

REFUSED = {
    "fuse later rounds": ("-1*i5 + 3", ("fuse", "i2", "i5"), "`t1` before a later round of `i2`"),
    "fuse other counts": ("i5", ("fuse", "i5", "i7"), "`i5` has 4 rounds and `i7` 3"),
    "fuse backwards": ("i5", ("fuse", "i5", "i2"), "`i5` does not stand before `i2` in one block"),
    "fuse apart": ("i5", ("fuse", "i12", "i14"), "Something stands between `i12` and `i14`"),
    "fuse nothing": ("i5", ("fuse", "i2", "i77"), "There is no loop `i77`"),
    "interchange a chain": ("i5", ("interchange", "i7"), "is more than one loop"),
    "contract other places": ("-1*i5 + 3", ("contract", "t1"), "is read in another round or place"),
    "contract a parameter": ("i5", ("contract", "in.x"), "There is no temporary `in.x`"),
    "fission a value": ("i5", ("fission", "i5", 1), "Both parts of `i5` use `v6`"),
    "fission nowhere": ("i5", ("fission", "i5", 2), "there is no cut after 2"),
    "tile by none": ("i5", ("tile", "i5", 0), "at least one round, not 0"),
    "unroll nothing": ("i5", ("unroll", "i99"), "There is no loop `i99`"),
    "jam dependent rounds": ("i5", ("unroll_and_jam", "i7", 2), "Rounds of `i7` may meet in `t4`"),
    "jam without a loop": ("i5", ("unroll_and_jam", "i5", 2), "`i5` has 0 loops in its body"),
    "jam too many": ("i5", ("unroll_and_jam", "i9", 3), "`i9` has 2 rounds"),
    "carry what moves": ("i5", ("carry", "i7", "t4"), "`i7` does not change one element of `t4`"),
    "carry what is only read": ("i5", ("carry", "i5", "t1"), "`i5` does not change one element of `t1`"),
    "carry what lies deeper": ("i5", ("carry", "i9", "out.0"), "touches `out.0` in statements within"),
    "carry no rounds": ("i5", ("carry", "i77", "t4"), "There is no loop `i77`"),
    "regroup no chain": ("i5", ("regroup", "i7", 2), "`i7` does more than to join one value a round"),
    "sink no loop": ("i5", ("sink", "i5"), "The body of `i5` is not something and then a loop"),
    "split at the start": ("i5", ("split", "i5", 0), "none on one side of round 0"),
    "split at the end": ("i5", ("split", "i5", 4), "`i5` has 4 rounds, none on one side of round 4"),
    "clear what comes later": ("i5", ("clear", "i7", "i5"), "`i7` does not stand before `i5`"),
    "promote what moves": ("i5", ("promote", "t1"), "`t1` has an index that is not constant"),
    "hoist nothing": ("i5", ("hoist", "i5"), "Nothing is the same in each round of `i5`"),
    "inline two writers": ("i5", ("inline", "t4"), "`t4` is written by 2 statements"),
    "vectorise dependent rounds": ("i5", ("vectorise", "i7", 2), "Rounds of `i7` may meet in `t4`"),
    "vectorise too many": ("i5", ("vectorise", "i5", 8), "`i5` has 4 rounds, which do not fill 8 lanes"),
    "parallelise dependent rounds": ("i5", ("parallelise", "i7", "threads"),
        "Rounds of `i7` may meet in `t4`"),
    "parallelise on what": ("i5", ("parallelise", "i5", "cores"), "not on `cores`"),
    "block without a grid": ("i5", ("parallelise", "i5", "block"), "on block stands within nothing"),
    "pack what is written": ("i5", ("pack", "i7", "t4"), "`t4` is written within `i7`"),
    "pack what is not read": ("i5", ("pack", "i7", "in.x"), "`in.x` is not read within `i7`"),
    "place a parameter": ("i5", ("place", "in.x", "block_ram"), "comes from outside; pack it first"),
    "place nowhere": ("i5", ("place", "t1", "attic"), "There is no memory `attic`"),
    "place in a FIFO": ("i5", ("place", "t1", "fifo"), "is for `stream` to see"),
    "place shared": ("i5", ("place", "t1", "shared"), "no temporary of a loop on a grid"),
    "bank an axis": ("i5", ("bank", "t1", 1, 2, "cyclic"), "no 2 banks on axis 1"),
    "bank too often": ("i5", ("bank", "t1", 0, 5, "block"), "no 5 banks on axis 0"),
    "bank how": ("i5", ("bank", "t1", 0, 2, "striped"), "cyclic or block, not `striped`"),
    "stream backwards": ("-1*i5 + 3", ("stream", "t1"),
        "`t1` is looked back over as a whole by the loop `i5`"),
    "stream what is written again": ("i5", ("stream", "t4"), "`t4` is not written in order by the loop `i7`"),
    "double a parameter": ("i5", ("double_buffer", "in.x"), "`in.x` is a param, which all rounds share"),
    "pipeline too fast": ("i5", ("pipeline", "i7", 1, "other=1"),
        "`i7` starts a round every 2 cycles at best"),
    "pipeline untold": ("i5", ("pipeline", "i7", 2, "load=1"), "The latency of `store` is not stated"),
    "pipeline a nest": ("i5", ("pipeline", "i9", 9, "other=1"), "Within `i9` stands the loop `i10`"),
    "pipeline never": ("i5", ("pipeline", "i5", 0, "other=1"), "every cycle at most, not every 0"),
    "latencies": ("i5", ("pipeline", "i5", 1, "other"), "`other` is no latency"),
    "share nothing": ("i5", ("share", "i5", "integer.mul", 1), "`i5` has no operation `integer.mul`"),
}


def test_every_transform_has_a_case() -> None:
    assert {case[1][0] for case in REFUSED.values()} | {"fold"} == set(TRANSFORMS)


def test_what_is_folded_has_nothing_more_to_fold() -> None:
    folded = apply_plan(SAME, [Step("fold", ())])
    assert "v13" in print_program(SAME) and "v13" not in print_program(folded)
    with pytest.raises(Refused, match="Nothing is known before it runs"):
        apply_plan(folded, [Step("fold", ())])


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_change_a_bit_is_refused(case: str) -> None:
    place, (name, *arguments), message = REFUSED[case]
    with pytest.raises(Refused) as caught:
        apply_plan(parse_program(TWO % place), [Step(name, tuple(arguments))])
    assert message in str(caught.value)


BACK = """loops f
in.x: param u8[6]
out.0: result u8[4]
{
  t1: temp u8[6]
  parallel i2 < %d {
    v3: u8 = load in.x[i2]
    store t1[i2] v3
  }
  parallel i4 < 4 {
    v5: u8 = load in.x[i4]
    store t1[i4 + 2] v5
  }
  parallel i6 < 4 {
    v7: u8 = load t1[i6]
    store out.0[i6] v7
  }
}
"""


def test_looking_back_is_refused_where_the_verifier_does_not_follow() -> None:
    """Of the six elements all are written before; one by one with those that read them, that is not seen."""
    whole, parts = parse_program(BACK % 6), parse_program(BACK % 2)
    assert verify_loops(whole) == verify_loops(parts) == []
    step = Step("fuse", ("i4", "i6"))
    fused = apply_plan(whole, [step])
    assert verify_loops(fused) == [] and runs(fused) == runs(whole)
    with pytest.raises(Refused, match="looks back to earlier ones of `i4`: `t1` is read where"):
        apply_plan(parts, [step])
    assert [step.transform for step in planned(parts).steps] == []


STENCIL = """loops f
in.x: param u8[10]
in.y: param u8[4]
out.0: result u8[8]
out.1: result u8[4, 2]
state.s: state u8[4] = 00000000
{
  t1: temp u8[10]
  parallel i2 < 10 {
    v3: u8 = load in.x[i2]
    v4: u8 = integer.mul v3 v3
    store t1[i2] v4
  }
  parallel i5 < 8 {
    v6: u8 = load t1[i5]
    v7: u8 = load t1[i5 + 2]
    v8: u8 = integer.add v6 v7
    store out.0[i5] v8
  }
  t9: temp u8[2]
  for i10 < 4 {
    parallel i11 < 2 {
      v12: u8 = load in.x[2*i10 + i11]
      store t9[i11] v12
    }
    parallel i13 < 2 {
      v14: u8 = load t9[-1*i13 + 1]
      v15: u8 = load t9[0]
      v16: u8 = integer.mul v14 v15
      v17: u8 = integer.mul v16 v15
      store out.1[i10, i13] v17
    }
  }
  t18: temp u8[4]
  parallel i19 < 4 {
    v20: u8 = load state.s[i19]
    store t18[i19] v20
  }
  parallel i21 < 4 {
    v22: u8 = load in.y[i21]
    store state.s[i21] v22
  }
  for i23 < 4 (v24: u8 = 0x0:u8 -> v25) {
    v26: u8 = load t18[i23]
    v27: u8 = integer.add v24 v26
    yield v27
  }
  store state.s[0] v25
}
"""

LEGAL = {
    "a producer computed again": ([("inline", "t1")], "integer.mul v3_", 2),
    "a line buffer": ([("stream", "t1")], "t1: temp u8[10] in fifo window 2", 1),
    "a port as a stream": ([("stream", "in.y")], "in.y: param u8[4] in fifo window 1", 1),
    "a buffer of each round, twice": ([("double_buffer", "t9")], "    t9: temp u8[2] copies 2", 1),
    "a buffer of each item, twice": ([("double_buffer", "t1")], "\n  t1: temp u8[10] copies 2", 1),
    "lanes and banks": (
        [("vectorise", "i2", 5), ("bank", "t1", 0, 5, "cyclic")], "bank cyclic 5 on 0", 1,
    ),
    "rounds that overlap": ([("pipeline", "i23", 2, "integer.add=2 load=1 other=0")], "ii 2 latency(", 1),
    "one unit for two": (
        [("pipeline", "i13", 2, "other=1"), ("share", "i13", "integer.mul", 1)], "units(integer.mul=1)", 1,
    ),
    "rounds side by side": ([("unroll", "i11"), ("parallelise", "i21", "threads")], "threads i21 < 4", 1),
    "a local copy": ([("pack", "i5", "t1")], "t1_1: temp u8[3]", 1),
    "a memory": ([("place", "t18", "block_ram")], "t18: temp u8[4] in block_ram", 1),
}


@pytest.mark.parametrize("case", LEGAL)
def test_what_keeps_every_bit_is_done(case: str) -> None:
    steps, wanted, times = LEGAL[case]
    before = parse_program(STENCIL)
    after = apply_plan(before, [Step(name, tuple(rest)) for name, *rest in steps])
    assert print_program(after).count(wanted) == times, print_program(after)
    assert verify_loops(after) == [] and parse_program(print_program(after)) == after
    assert runs(after) == runs(before)


CHAINS = """loops f
in.x: param u8[11]
in.a: param u8
in.f: param f32[9]
out.0: result u8
out.1: result f32
out.2: result u8[4]
out.3: result f32
{
  v1: u8 = load in.x[0]
  for i2 < 10 (v3: u8 = v1 -> v4) {
    v5: u8 = load in.x[i2 + 1]
    v6: u8 = integer.mul v5 v5
    v7: u8 = integer.add v6 v3
    yield v7
  }
  store out.0 v4
  v8: f32 = load in.f[0]
  for i9 < 9 (v10: f32 = v8 -> v11) {
    v12: f32 = load in.f[i9]
    v13: f32 = floating.%s v10 v12
    yield v13
  }
  store out.1 v11
  t14: temp u8[4]
  parallel i15 < 4 {
    store t14[i15] 0x0:u8
  }
  for i16 < 3 {
    v17: u8 = load in.x[i16 + 1]
    v18: u8 = load in.a
    parallel i19 < 4 {
      v20: u8 = load in.x[i16 + i19]
      v21: u8 = integer.mul v17 v20
      v22: u8 = load t14[i19]
      v23: u8 = integer.add v22 v21
      v24: u8 = integer.mul v23 v18
      store t14[i19] v24
    }
  }
  parallel i25 < 4 {
    v26: u8 = load t14[i25]
    store out.2[i25] v26
  }
  for i27 < 9 (v28: f32 = v8 -> v29) {
    v30: f32 = load in.f[i27]
    v31: f32 = floating.max v28 v30
    v32: f32 = floating.add v31 v30
    yield v32
  }
  store out.3 v29
}
"""
_TURNED = [("sink", "i16"), ("interchange", "i16"), ("fuse", "i15", "i19"), ("fuse", "i15", "i25")]
CHAINS_DONE = {
    "an order that is free": ([("regroup", "i2", 4)], "for i2_", 1),
    "and what is left over": ([("regroup", "i2", 4)], "parallel i2_", 4),
    "of floats, the greatest": ([("regroup", "i9", 2)], "floating.max v", 4 + 1),
    "a sum in a register": ([*_TURNED, ("carry", "i16", "t14"), ("contract", "t14")], "t14", 0),
    "two of a chain": ([("split", "i9", 2)], "for i9", 2),
    "what is the same": (
        [("sink", "i16"), ("interchange", "i16"), ("hoist", "i16")], "load in.a\n    for i16", 1,
    ),
    "what is the same in rounds": ([("sink", "i16"), ("hoist", "i19")], "load in.a\n    parallel i19", 1),
}


@pytest.mark.parametrize("case", CHAINS_DONE)
def test_chains_are_cut_and_carried(case: str) -> None:
    steps, wanted, times = CHAINS_DONE[case]
    before = parse_program(CHAINS % "max")
    after = apply_plan(before, [Step(name, tuple(rest)) for name, *rest in steps])
    assert print_program(after).count(wanted) == times, print_program(after)
    assert verify_loops(after) == [] and parse_program(print_program(after)) == after
    assert runs(after) == runs(before)


CHAINS_REFUSED = {
    "a sum of floats": ("add", ("regroup", "i9", 2), "The order of `floating.add` in `i9` is part of its"),
    "a chain that is looked at": ("max", ("regroup", "i27", 2), "`i27` looks at what it has joined so far"),
    "too few rounds": ("max", ("regroup", "i2", 8), "The 10 rounds of `i2` make no 8 chains"),
    "no power of two": ("max", ("regroup", "i2", 3), "make no 3 chains, a power of 2, of two rounds"),
    "an element a round": ("max", ("carry", "i19", "t14"), "touches another element of `t14` in each round"),
}


@pytest.mark.parametrize("case", CHAINS_REFUSED)
def test_what_has_an_order_keeps_it(case: str) -> None:
    verb, (name, *arguments), message = CHAINS_REFUSED[case]
    with pytest.raises(Refused) as caught:
        apply_plan(parse_program(CHAINS % verb), [Step(name, tuple(arguments))])
    assert message in str(caught.value)


STENCIL_REFUSED = {
    "recomputed from what has changed": (("inline", "t18"),
        "`state.s`, from which `t18` is computed, is written"),
    "lanes that meet": (("vectorise", "i10", 4), "Rounds of `i10` may meet in `t9`"),
}


@pytest.mark.parametrize("case", STENCIL_REFUSED)
def test_what_would_not_is_refused(case: str) -> None:
    (name, *arguments), message = STENCIL_REFUSED[case]
    with pytest.raises(Refused) as caught:
        apply_plan(parse_program(STENCIL), [Step(name, tuple(arguments))])
    assert message in str(caught.value)


def test_what_was_said_must_still_hold() -> None:
    """Steps that would break an earlier one's claim."""
    program = apply_plan(parse_program(STENCIL), [
        Step("bank", ("t1", 0, 2, "cyclic")), Step("stream", ("in.y",)),
        Step("parallelise", ("i19", "threads")),
    ])
    broken = {
        ("vectorise", "i2", 5): "Lanes of `i2_2` may meet in a bank of `t1`",
        ("parallelise", "i21", "threads"): "Rounds of `i21`, which touch `in.y`, run in any order",
        ("tile", "i19", 2): "It is said already how rounds of `i19` run",
    }
    for (name, *arguments), message in broken.items():
        with pytest.raises(Refused) as caught:
            apply_plan(program, [Step(name, tuple(arguments))])
        assert message in str(caught.value)


NEST = """loops f
in.x: param u8[6]
out.0: result u8[6]
{
  t1: temp u8[6]
  parallel i2 < 6 {
    v3: u8 = load in.x[i2]
    store t1[i2] v3
  }
  for i4 < 2 {
    for i5 < 3 {
      v6: u8 = load t1[%s]
      store t1[%s] v6
    }
  }
  parallel i7 < 6 {
    v8: u8 = load t1[i7]
    store out.0[i7] v8
  }
}
"""


def _index(outer: int, inner: int, constant: int) -> str:
    return f"{outer}*i4 + {inner}*i5 + {constant}"


def test_loops_are_interchanged_where_rounds_that_meet_keep_their_order() -> None:
    """All small pairs of indices: what is done gives the same, and much of it is done."""
    parts = [part for part in product((0, 1, 2, 3), (0, 1, 2), (0, 1)) if part[0] + 2 * part[1] + part[2] < 6]
    done = 0
    for load, store in product(parts, repeat=2):
        before = parse_program(NEST % (_index(*load), _index(*store)))
        try:
            after = apply_plan(before, [Step("interchange", ("i4",))])
        except Refused as error:
            assert "Rounds of `i4` that meet in `t1` would change their order" in str(error)
            continue
        assert verify_loops(after) == [] and runs(after) == runs(before)
        done += 1
    assert done > len(parts)
    kept = parse_program(NEST % ("i4", "i4 + i5 + 1"))
    with pytest.raises(Refused):
        apply_plan(kept, [Step("interchange", ("i4",))])


MARKED = """loops f
in.x: param u8[4]
out.0: result u8[16]
{
  parallel i1 < 2 {
    parallel i2 < 2 {
      parallel i3 < 2 {
        v4: u8 = load in.x[i3]
        store out.0[8*i1 + 2*i2 + i3] v4
      }
      v5: u8 = load in.x[i2]
      store out.0[8*i1 + 2*i2 + 4] v5
      store out.0[8*i1 + 2*i2 + 5] v5
    }
  }
}
"""


def test_an_interchanged_loop_is_marked_only_as_what_can_be_proved() -> None:
    """Rounds of `i2` do not meet across those of `i1`, but by more than ranges and steps tell."""
    before = parse_program(MARKED)
    after = apply_plan(before, [Step("interchange", ("i1",))])
    assert verify_loops(before) == verify_loops(after) == [] and runs(after) == runs(before)
    assert "  for i2 < 2 {\n    parallel i1 < 2 {" in print_program(after)


def test_joined_loops_need_no_buffer() -> None:
    steps = [Step("fuse", ("i2", "i5")), Step("contract", ("t1",))]
    after = apply_plan(SAME, steps)
    assert verify_loops(after) == []
    assert [item.buffer.name for item in statements(after.body) if isinstance(item, Alloc)] == ["t4"]
    assert planned(SAME).plan.steps[:2] == tuple(steps)


def test_a_rest_is_a_loop_of_its_own() -> None:
    after = apply_plan(SAME, [Step("tile", ("i7", 2))])
    loops = [item for item in statements(after.body) if isinstance(item, For)]
    counts = [item.count for item in loops if item.var.name.startswith("i7")]
    assert counts == [1, 2, 1] and verify_loops(after) == []


SLICES = """loops f
in.x: param u8[4, 3]
out.0: result u8[4]
{
  t1: temp u8[4, 3]
  t2: temp u8[4, 1]
  for i3 < 4 {
    parallel i4 < 3 {
      v5: u8 = load in.x[i3, i4]
      store t1[i3, i4] v5
      v6: u8 = load t1[i3, i4]
    }
    v7: u8 = load t1[i3, 0]
    v8: u8 = load t1[i3, 2]
    v9: u8 = integer.add v7 v8
    store t2[i3, 0] v9
    for i10 < 2 (v11: u8 = v9 -> v12) {
      v13: u8 = load t2[i3, 0]
      v14: u8 = integer.mul v11 v13
      yield v14
    }
    store out.0[i3] v12
  }
}
"""


def test_a_temporary_shrinks_to_what_a_round_needs() -> None:
    """A slice of each round; then what was stored is taken where it is loaded, in inner loops too."""
    before = parse_program(SLICES)
    after = apply_plan(before, [Step("contract", ("t1",)), Step("contract", ("t2",))])
    text = print_program(after)
    assert "    t1: temp u8[3]\n" in text and "t2" not in text and text.count("load t1") == 2
    assert verify_loops(after) == [] and runs(after) == runs(before)
    with pytest.raises(Refused, match="`t1` is read in another round or place than it is written"):
        apply_plan(after, [Step("contract", ("t1",))])
