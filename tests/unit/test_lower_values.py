"""Lowered programs compute what their source means: values against Python, by the reference evaluator."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kera_hw.frontend.sema.lowering.whole import lower_program
from kera_hw.frontend.sema.tree import hir
from kera_hw.graph import Export, verify_graph
from kera_hw.interp import run_export
from kera_hw.types import BOOL, U32, IntType, StructType, TensorType, TupleType
from tests.unit.lower_builder import (
    SPAN,
    U8,
    add,
    arm,
    assign,
    at,
    block,
    cast,
    const,
    function,
    index,
    let,
    literal,
    loop,
    op,
    place,
    program,
    project,
    span_slice,
    stmt,
    tup,
    use,
    var,
    when,
    wild,
)

VEC = TensorType(U32, (8,))
MAT = TensorType(U32, (3, 4))
RNG = np.random.default_rng(5)


def lowered(*functions: hir.Function) -> Export:
    """The last function's export, from a graph that verifies."""
    graph, diagnostics = lower_program(program(*functions))
    assert diagnostics == []
    assert verify_graph(graph) == []
    export = graph.export(functions[-1].name)
    assert export is not None
    return export


def run(export: Export, **inputs: Any) -> Any:
    return run_export(export, inputs)


def test_a_loop_carries_what_its_body_assigns() -> None:
    a, limit, total, i = var("a", VEC), var("limit"), var("total", mutable=True), var("i")
    item = index(use(a), use(i))
    body = when(op("compare.lt", item, use(limit)), block(assign(total, add(use(total), item))))
    f = function("f", [a, limit], block(let(total, const(0)), loop(i, 8, stmt(body)), result=use(total)))
    values = np.arange(8, dtype=np.uint32) * 3
    assert run(lowered(f), a=values, limit=np.uint32(10)) == sum(x for x in values if x < 10)


def test_a_loop_runs_over_its_arithmetic_progression() -> None:
    out, i = var("out", VEC, True), var("i")
    f = function("f", [], block(
        let(out, const(0, VEC)),
        loop(i, 4, assign(place(out, at(use(i)), kind=U32), add(use(i), const(1))), start=7, step=-2),
        result=use(out),
    ))
    assert run(lowered(f)).tolist() == [0, 2, 0, 4, 0, 6, 0, 8]


@pytest.mark.parametrize(("x", "want"), [(0, 10), (5, 11), (100, 12)])
def test_a_branch_gives_value_and_assignments(x: int, want: int) -> None:
    p, seen, y = var("p"), var("seen", mutable=True), var("y")
    inner = when(
        op("compare.lt", use(p), const(50)),
        block(assign(seen, const(2)), result=const(11)), block(result=const(12)),
    )
    outer = when(
        op("compare.eq", use(p), const(0)), block(assign(seen, const(1)), result=const(10)),
        block(result=inner),
    )
    f = function("f", [p], block(let(seen, const(0)), let(y, outer), result=tup(use(y), use(seen))))
    seen_wanted = {10: 1, 11: 2, 12: 0}[want]
    assert run(lowered(f), p=np.uint32(x)) == (want, seen_wanted)


def test_while_stops_by_its_condition_and_by_its_bound() -> None:
    n, x = var("n"), var("x", mutable=True)
    body = block(assign(x, op("integer.mul", use(x), const(2))))
    cond = op("compare.lt", use(x), use(n))
    f = function("f", [n], block(let(x, const(1)), hir.While(SPAN, cond, 6, body), result=use(x)))
    export = lowered(f)
    assert run(export, n=np.uint32(20)) == 32
    assert run(export, n=np.uint32(1)) == 1
    assert run(export, n=np.uint32(10**9)) == 64


def test_while_whose_condition_assigns() -> None:
    n, x = var("n"), var("x", mutable=True)
    cond = block(assign(x, add(use(x), const(3))), result=op("compare.lt", use(x), use(n)))
    body = block(assign(x, add(use(x), const(10))))
    f = function("f", [n], block(let(x, const(0)), hir.While(SPAN, cond, 5, body), result=use(x)))
    assert run(lowered(f), n=np.uint32(20)) == 29


MATCHES = [
    ([[(0, 0)], [(1, 1), (2, 2)], [(3, 7)]], U8),
    ([[(1, 1)], [(200, 255)]], U8),
    ([[(0, 3)], [(0, 9)], [(5, 5)]], U8),
    ([[(-5, -1)], [(0, 0), (7, 9)]], IntType(6, True)),
    ([[(0, 0)], [(1, 1)], [(2, 2)]], IntType(2, False)),
    ([[(40, 60)], [(0, 20)]], IntType(16, False)),
]


@pytest.mark.parametrize(("patterns", "kind"), MATCHES)
def test_match_takes_the_first_arm_that_fits(patterns: list[list[tuple[int, int]]], kind: IntType) -> None:
    x = var("x", kind)
    arms = [arm(const(k), *(literal(lo, hi) for lo, hi in alts)) for k, alts in enumerate(patterns)]
    arms.append(arm(const(99), wild()))
    f = function("f", [x], block(result=hir.Match(U32, SPAN, use(x), tuple(arms))))
    export = lowered(f)
    low, high = max(kind.min, -64), min(kind.max, 300)
    for value in range(low, high + 1):
        want = next((k for k, alts in enumerate(patterns) if any(a <= value <= b for a, b in alts)), 99)
        assert run(export, x=value) == want


def test_match_on_a_tuple_binds_names() -> None:
    x, b, y = var("x"), var("b", BOOL), var("y")
    pair = hir.TuplePattern(SPAN, (hir.Binding(SPAN, y), literal(1)))
    arms = (
        arm(const(7), hir.TuplePattern(SPAN, (literal(3), wild()))),
        arm(add(use(y), const(1)), pair),
        arm(const(0), wild()),
    )
    f = function("f", [x, b], block(result=hir.Match(U32, SPAN, tup(use(x), use(b)), arms)))
    export = lowered(f)
    assert [run(export, x=np.uint32(v), b=t) for v, t in ((3, True), (9, True), (9, False))] == [7, 10, 0]


def test_partial_index_and_slices() -> None:
    m, i = var("m", MAT), var("i")
    row = index(use(m), use(i))
    window = index(use(m), span_slice(use(i), None, 2), const(1))
    f = function("f", [m, i], block(result=tup(row, window, index(row, const(2)))))
    export = lowered(f)
    values = RNG.integers(0, 99, (3, 4)).astype(np.uint32)
    got = run(export, m=values, i=np.uint32(1))
    assert got[0].tolist() == values[1].tolist()
    assert got[1].tolist() == values[1:3, 1].tolist()
    assert got[2] == values[1, 2]


def test_index_of_an_index_is_one_operation() -> None:
    m, i, j = var("m", MAT), var("i"), var("j")
    once = function("f", [m, i, j], block(result=index(use(m), use(i), use(j))))
    twice = function("f", [m, i, j], block(result=index(index(use(m), use(i)), use(j))))
    assert lowered(once).region.hash == lowered(twice).region.hash


@pytest.mark.parametrize("kind", [U32, IntType(8, True), IntType(2, False), IntType(3, True)])
def test_at_gives_the_alternative_outside(kind: IntType) -> None:
    a, i = var("a", VEC), var("i", kind)
    f = function("f", [a, i], block(result=index(use(a), use(i), mode="at", otherwise=const(77))))
    export = lowered(f)
    values = np.arange(10, 18, dtype=np.uint32)
    for value in range(max(-128, kind.min), min(20, kind.max) + 1):
        want = values[value] if 0 <= value < 8 else 77
        assert run(export, a=values, i=value) == want


def test_nested_places_update_one_element() -> None:
    inner = StructType("S", (("v", TensorType(U8, (2,))), ("n", U32)))
    s, i, j = var("s", TensorType(inner, (3,)), True), var("i"), var("j")
    target = place(s, at(use(i)), hir.FieldStep(0), at(use(j)), kind=U8)
    p = var("p", s.type)
    f = function("f", [p, i, j], block(
        let(s, use(p)), assign(target, const(9, U8)),
        assign(place(s, at(const(0)), hir.FieldStep(1), kind=U32), use(i)), result=use(s),
    ))
    export = lowered(f)
    assert len(export.region.nodes()) == 4 + 2 + 2  # parameters, constants, updates
    value = {"v": np.zeros((3, 2), np.uint8), "n": np.arange(3, dtype=np.uint32)}
    got = run(export, p=value, i=np.uint32(2), j=np.uint32(1))
    assert got["v"].tolist() == [[0, 0], [0, 0], [0, 9]]
    assert got["n"].tolist() == [2, 1, 2]


def test_mutable_borrow_writes_back_through_the_place() -> None:
    v, k, i = var("v", TensorType(U32, (4,)), True), var("k"), var("i")
    scale = function("scale", [hir.Param(v, "&mut"), k], block(
        loop(i, 4, assign(place(v, at(use(i)), kind=U32), op("integer.mul", index(use(v), use(i)), use(k)))),
        result=use(k),
    ))
    scale.public_name = None
    m, r = var("m", MAT), var("r", MAT, True)
    row = place(r, at(const(1)), kind=v.type)
    call = hir.Call(U32, SPAN, scale, (hir.PlaceExpr(v.type, SPAN, row), const(5)), ("&mut", ""))
    f = function("f", [m], block(let(r, use(m)), stmt(call), result=use(r)))
    values = RNG.integers(0, 99, (3, 4)).astype(np.uint32)
    want = values.copy()
    want[1] *= 5
    assert run(lowered(scale, f), m=values).tolist() == want.tolist()


def _accumulator() -> hir.Function:
    x, total, last = var("x"), var("total", mutable=True), var("last", mutable=True)
    states = [hir.State(total, const(10)), hir.State(last, const(0))]
    return function("acc", [x], block(
        assign(total, add(use(total), use(x))), assign(last, use(x)), result=use(total),
    ), "stream", states)


def test_a_stream_keeps_state_between_items() -> None:
    export = lowered(_accumulator())
    assert [s.name for s in export.state] == ["total", "last"]
    items = np.arange(5, dtype=np.uint32)
    assert run_export(export, {"x": items}, batch=True).tolist() == [10, 11, 13, 16, 20]


def test_stream_instances_nest_and_step() -> None:
    acc = _accumulator()
    acc.public_name = None
    x, f, g = var("x"), var("f"), var("g")
    step = hir.StreamStep(U32, SPAN, f, acc, (use(x),))
    nested_step = hir.StreamStep(U32, SPAN, g, acc, (step,))
    outer = function("outer", [x], block(
        result=when(op("compare.lt", use(x), const(100)), block(result=nested_step), block(result=use(x))),
    ), "stream", [], [hir.Instance(f, acc), hir.Instance(g, acc)])
    export = lowered(acc, outer)
    assert [s.name for s in export.state] == ["f.total", "f.last", "g.total", "g.last"]
    items = np.array([1, 500, 2], dtype=np.uint32)
    # f: 11, 13; g: 10 + 11, 21 + 13; the item of 500 advances neither
    assert run_export(export, {"x": items}, batch=True).tolist() == [21, 500, 34]


def test_a_stream_applied_to_a_tensor_starts_from_reset() -> None:
    acc = _accumulator()
    acc.public_name = None
    a = var("a", VEC)
    apply = hir.StreamApply(VEC, SPAN, acc, (use(a),), 8)
    export = lowered(acc, function("f", [a], block(result=apply)))
    values = np.ones(8, np.uint32)
    assert run(export, a=values).tolist() == list(range(11, 19))


def _lambda(body: hir.Expr, *params: hir.Var) -> hir.Lambda:
    return hir.Lambda(params, body, SPAN)


def test_map_captures_and_keeps_shape() -> None:
    m, k, x = var("m", MAT), var("k"), var("x")
    f = function("f", [m, k], block(result=hir.HigherOrder(
        MAT, SPAN, "map", (use(m),), _lambda(add(use(x), use(k)), x))))
    values = RNG.integers(0, 99, (3, 4)).astype(np.uint32)
    assert run(lowered(f), m=values, k=np.uint32(3)).tolist() == (values + 3).tolist()


def test_map_over_structs_with_tensors() -> None:
    pair = TupleType((U32, TensorType(U32, (2,))))
    t, x = var("t", TensorType(pair, (2, 3))), var("x", pair)
    body = add(project(use(x), 0), index(project(use(x), 1), const(1)))
    f = function("f", [t], block(result=hir.HigherOrder(
        TensorType(U32, (2, 3)), SPAN, "map", (use(t),), _lambda(body, x))))
    first = RNG.integers(0, 99, (2, 3)).astype(np.uint32)
    second = RNG.integers(0, 99, (2, 3, 2)).astype(np.uint32)
    assert run(lowered(f), t=(first, second)).tolist() == (first + second[..., 1]).tolist()


def test_reduce_folds_rows_and_scan_keeps_each_step() -> None:
    m, acc, row = var("m", MAT), var("acc"), var("row", TensorType(U32, (4,)))
    body = add(op("integer.mul", use(acc), const(3)), index(use(row), const(2)))

    def higher(name: str, kind: Any) -> hir.HigherOrder:
        return hir.HigherOrder(kind, SPAN, name, (use(m), const(1)), _lambda(body, acc, row))

    f = function("f", [m], block(result=tup(higher("reduce", U32), higher("scan", TensorType(U32, (3,))))))
    values = RNG.integers(0, 99, (3, 4)).astype(np.uint32)
    steps, state = [], 1
    for line in values.tolist():
        state = state * 3 + line[2]
        steps.append(state)
    total, each = run(lowered(f), m=values)
    assert (total, each.tolist()) == (state, steps)


def test_structural_operations_split_structs() -> None:
    pair = TupleType((U32, TensorType(U8, (2,))))
    t = var("t", TensorType(pair, (2, 3)))
    flipped = hir.Structural(
        TensorType(pair, (3, 2)), SPAN, "permute", (use(t),), (True,), {"axes": (1, 0)})
    value = tup(const(7), const(5, TensorType(U8, (2,))))
    padded = hir.Structural(
        TensorType(pair, (2, 4)), SPAN, "pad", (use(t), value), (True, True), {"low": (0, 1), "high": (0, 0)})
    f = function("f", [t], block(result=tup(flipped, padded)))
    first = RNG.integers(0, 99, (2, 3)).astype(np.uint32)
    second = RNG.integers(0, 99, (2, 3, 2)).astype(np.uint8)
    flip, pad = run(lowered(f), t=(first, second))
    assert flip[0].tolist() == first.T.tolist()
    assert flip[1].tolist() == second.transpose(1, 0, 2).tolist()
    assert pad[0][:, 0].tolist() == [7, 7] and pad[0][:, 1:].tolist() == first.tolist()
    assert pad[1][:, 0].tolist() == [[5, 5], [5, 5]] and pad[1][:, 1:].tolist() == second.tolist()


def test_select_by_element_reaches_inner_tensors() -> None:
    pair = TupleType((U32, TensorType(U8, (2,))))
    c, a, b = (var(name, TensorType(kind, (3,))) for name, kind in (("c", BOOL), ("a", pair), ("b", pair)))
    chosen = hir.Structural(a.type, SPAN, "select", (use(c), use(a), use(b)), (False, True, True))
    f = function("f", [c, a, b], block(result=chosen))
    ones, twos = np.ones(3, np.uint32), np.full(3, 2, np.uint32)
    inner = np.arange(6, dtype=np.uint8).reshape(3, 2)
    got = run(lowered(f), c=np.array([True, False, True]), a=(ones, inner), b=(twos, inner + 10))
    assert got[0].tolist() == [1, 2, 1]
    assert got[1].tolist() == [[0, 1], [12, 13], [4, 5]]


def test_tensor_literals_of_computed_items() -> None:
    x = var("x", U8)
    lit = hir.TensorLit(TensorType(U32, (3,)), SPAN, (cast(use(x), U32), const(4), cast(use(x), U32)))
    fill = hir.TensorFill(TensorType(U32, (2, 3)), SPAN, lit)
    f = function("f", [x], block(result=fill))
    assert run(lowered(f), x=np.uint8(9)).tolist() == [[9, 4, 9]] * 2
