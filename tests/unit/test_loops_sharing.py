"""Transforms share what they leave alone, and find sums of counters and dead code in one place each."""
from __future__ import annotations

import gc

from kera_hw.loops.contents import defined, indexing, touched, used
from kera_hw.loops.counters import Counters
from kera_hw.loops.dead import without_dead
from kera_hw.loops.parser import parse_program
from kera_hw.loops.program import COUNTER, Affine, For, Op, of_var, statements
from kera_hw.loops.spans import Spans, spans_within
from kera_hw.loops.transforms import Step, apply_plan
from kera_hw.support import collection_put_off

NESTS = parse_program("""loops f
in.x: param u8[8]
out.0: result u8[8]
{
  parallel i1 < 4 {
    v2: u8 = load in.x[i1]
    store out.0[i1] v2
  }
  for i3 < 4 (v4: u8 = 0x0:u8 -> v9, v5: u8 = 0x0:u8 -> v10) {
    v6: u8 = load in.x[i3 + 4]
    v7: u8 = integer.add v4 v6
    v8: u8 = integer.add v5 v6
    yield v7, v8
  }
  parallel i11 < 4 {
    v12: i64 = integer.mul i11 0x2:i64
    v13: i64 = integer.add v12 0xfffffffffffffffe:i64
    v14: bool = compare.lt v13 i11
    store out.0[i11 + 4] v9
  }
}
""")


def test_what_nobody_needs_is_gone() -> None:
    """A sum that is carried for itself alone, and a question whose answer nobody reads."""
    loops = [item for item in without_dead(NESTS).body.body if isinstance(item, For)]
    assert [item.inner.name for item in loops[1].carried] == ["v4"]
    assert list(defined(loops[1].body)) == ["v6", "v7"]
    assert not defined(loops[2].body)
    assert loops[0] is NESTS.body.body[0]
    settled = without_dead(NESTS)
    assert without_dead(settled) is settled


def test_a_step_leaves_other_nests_as_they_are() -> None:
    after = apply_plan(NESTS, [Step("unroll", ("i3",))])
    assert after.body.body[0] is NESTS.body.body[0]
    last = after.body.body[-1]
    assert isinstance(last, For) and "v9" not in {var.name for var in used(last.body)}
    same = apply_plan(NESTS, [Step("tile", ("i11", 2))])
    assert all(new is old for new, old in zip(same.body.body[:2], NESTS.body.body))


def test_what_a_block_names() -> None:
    whole = NESTS.body
    assert {"i1", "v2", "i3", "v4", "v9", "v14"} <= defined(whole)
    assert {var.name for var in indexing(whole)} == {"i1", "i3", "i11"}
    assert touched(whole) == {"in.x", "out.0"}
    loop = whole.body[1]
    assert isinstance(loop, For) and {var.name for var in used(loop.body)} == {"v4", "v5", "v6", "v7", "v8"}


def test_sums_of_counters() -> None:
    counters = Counters(Spans(NESTS.body), lambda var: var.type == COUNTER)
    ops = {item.results[0].name: item for item in statements(NESTS.body) if isinstance(item, Op)}
    (counter,) = (item.var for item in NESTS.body.body[2:] if isinstance(item, For))
    found = [counters.note(ops[name]) for name in ("v12", "v13")]
    assert found == [of_var(counter) * 2, of_var(counter) * 2 - 2]
    assert counters.difference(ops["v14"]) == Affine(-2, ((counter, 1),))


def test_spans_that_are_asked_for_are_those_of_a_walk() -> None:
    asked = Spans(NESTS.body)
    for var, span in reversed(spans_within(NESTS.body).items()):
        assert asked.get(var) == span


def test_the_search_for_garbage_is_put_off_for_a_while() -> None:
    assert gc.isenabled()
    with collection_put_off():
        with collection_put_off():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
