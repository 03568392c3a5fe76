"""The index proof on trees made by hand: what it accepts, what it refuses, and what it says."""
from __future__ import annotations

import numpy as np
import pytest

from kera_hw.frontend.sema.ranges.proof import prove_indices
from kera_hw.frontend.sema.tree import hir
from kera_hw.types import BOOL, U32, IntType, TensorType
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
    span_slice,
    stmt,
    use,
    var,
    when,
    wild,
)

VEC = TensorType(U32, (10,))
I32 = IntType(32, True)


def messages(*stmts: hir.Stmt, params: tuple[hir.Var, ...] = (), result: hir.Expr | None = None) -> list[str]:
    diagnostics = prove_indices(program(function("f", params, block(*stmts, result=result))))
    assert all(item.code == "K0301" for item in diagnostics)
    return [item.message for item in diagnostics]


def lt(a: hir.Expr, b: hir.Expr) -> hir.Expr:
    return op("compare.lt", a, b)


A = var("a", VEC)


def proved(entry: hir.Expr, *params: hir.Var) -> bool:
    return messages(params=(A, *params), result=index(use(A), entry)) == []


def test_a_type_that_fits_the_axis_needs_nothing() -> None:
    table, i = var("table", TensorType(U32, (256,))), var("i", U8)
    assert messages(params=(table, i), result=index(use(table), use(i))) == []


def test_a_type_that_does_not_fit_is_refused_with_its_range() -> None:
    i = var("i", U8)
    assert messages(params=(A, i), result=index(use(A), use(i))) == [
        "The index may be 0 to 255, but the axis has 10 elements."
    ]


def test_a_constant_outside_is_certain() -> None:
    assert messages(params=(A,), result=index(use(A), const(10))) == [
        "The index is 10, but the axis has 10 elements."
    ]


X = var("x")
PROVED = {
    "mask": op("bits.and", use(X), const(7)),
    "remainder": op("integer.rem", use(X), const(10)),
    "shift": op("bits.shr", use(X), const(29)),
    "min": op("integer.min", use(X), const(9)),
    "narrow": cast(use(X), IntType(3, False)),
    "extract": op("bits.extract", use(X), kind=IntType(3, False), high=6, low=4),
    "sum of masks": add(op("bits.and", use(X), const(7)), op("bits.and", use(X), const(2))),
    "difference": op("integer.sub", const(9), op("bits.and", use(X), const(7))),
    "through a wrap": add(op("integer.sub", op("bits.and", use(X), const(7)), const(1)), const(1)),
    "popcount": op("bits.popcount", cast(use(X), U8), kind=U32),
    "select": op("control.select", lt(use(X), const(10)), use(X), const(0), kind=U32),
}
REFUSED = {
    "mask too wide": op("bits.and", use(X), const(15)),
    "remainder too wide": op("integer.rem", use(X), const(11)),
    "remainder by an input": op("integer.rem", use(X), use(X)),
    "max": op("integer.max", use(X), const(9)),
    "wraps below": op("integer.sub", op("bits.and", use(X), const(7)), const(1)),
    "signed remainder": cast(op("integer.rem", cast(use(X), I32), const(10, I32)), I32),
}


@pytest.mark.parametrize("name", PROVED)
def test_arithmetic_that_bounds_is_proved(name: str) -> None:
    assert proved(PROVED[name], X)


@pytest.mark.parametrize("name", REFUSED)
def test_arithmetic_that_does_not_bound_is_refused(name: str) -> None:
    assert not proved(REFUSED[name], X)


def test_a_dominating_condition_holds_in_its_arm_only() -> None:
    read = index(use(A), use(X))
    inside = when(lt(use(X), const(10)), block(result=read), block(result=const(0)))
    outside = when(lt(use(X), const(10)), block(result=const(0)), block(result=read))
    assert messages(params=(A, X), result=inside) == []
    assert len(messages(params=(A, X), result=outside)) == 1
    assert len(messages(stmt(inside), params=(A, X), result=read)) == 1


def test_an_assignment_ends_what_a_condition_said() -> None:
    i = var("i", mutable=True)
    body = block(assign(i, add(use(i), const(1))), result=index(use(A), use(i)))
    guarded = when(lt(use(i), const(10)), body, block(result=const(0)))
    assert len(messages(let(i, use(X)), params=(A, X), result=guarded)) == 1
    tight = when(lt(use(i), const(9)), body, block(result=const(0)))
    assert messages(let(i, use(X)), params=(A, X), result=tight) == []


def test_logical_operators_prove_their_right_side() -> None:
    hit = op("compare.eq", index(use(A), use(X)), const(0))
    both = hir.Logical(BOOL, SPAN, "and", lt(use(X), const(10)), hit)
    either = hir.Logical(BOOL, SPAN, "or", op("compare.ge", use(X), const(10)), hit)
    wrong = hir.Logical(BOOL, SPAN, "or", lt(use(X), const(10)), hit)
    swapped = hir.Logical(BOOL, SPAN, "and", hit, lt(use(X), const(10)))
    assert [len(messages(params=(A, X), result=e)) for e in (both, either, wrong, swapped)] == [0, 0, 1, 1]


def test_conditions_combine() -> None:
    x = var("x", I32)
    low, high = op("compare.ge", use(x), const(0, I32)), lt(use(x), const(10, I32))
    read = block(result=index(use(A), use(x)))
    both = when(hir.Logical(BOOL, SPAN, "and", low, high), read, block(result=const(0)))
    one = when(high, read, block(result=const(0)))
    outside = hir.Logical(BOOL, SPAN, "or", op("bits.not", low), op("bits.not", high))
    neither = when(outside, block(result=const(0)), read)
    named = var("inside", BOOL)
    stored = when(use(named), read, block(result=const(0)))
    keep = let(named, hir.Logical(BOOL, SPAN, "and", low, high))
    assert messages(params=(A, x), result=both) == []
    assert len(messages(params=(A, x), result=one)) == 1
    assert messages(params=(A, x), result=neither) == []
    assert messages(keep, params=(A, x), result=stored) == []


def test_relations_between_variables() -> None:
    i, j = var("i"), var("j")
    below = hir.Logical(BOOL, SPAN, "and", lt(use(i), use(j)), op("compare.le", use(j), const(10)))
    read = block(result=index(use(A), use(i)))
    apart = block(result=index(use(A), op("integer.sub", use(j), use(i))))
    none = block(result=const(0))
    assert messages(params=(A, i, j), result=when(below, read, none)) == []
    assert len(messages(params=(A, i, j), result=when(lt(use(i), use(j)), read, none))) == 1
    # j - i is 1 to 10: one too many; j - i - 1 fits
    assert len(messages(params=(A, i, j), result=when(below, apart, none))) == 1
    less = block(result=index(use(A), op("integer.sub", op("integer.sub", use(j), use(i)), const(1))))
    assert messages(params=(A, i, j), result=when(below, less, none)) == []


def test_match_arms_bound_the_scrutinee() -> None:
    read = index(use(A), use(X))
    inside = hir.Match(U32, SPAN, use(X), (arm(read, literal(0, 4), literal(7, 9)), arm(const(0), wild())))
    rest = hir.Match(U32, SPAN, use(X), (arm(const(0), literal(10, 2**32 - 1)), arm(read, wild())))
    outside = hir.Match(U32, SPAN, use(X), (arm(read, literal(0, 10)), arm(const(0), wild())))
    assert [len(messages(params=(A, X), result=e)) for e in (inside, rest, outside)] == [0, 0, 1]


def test_loop_variables_are_known_in_each_iteration() -> None:
    i, j = var("i"), var("j")
    out = var("out", TensorType(U32, (8,)), True)
    stage, k = var("stage"), var("k")
    mask = op("integer.sub", op("bits.shl", const(1), use(stage)), const(1))
    left = op("bits.shl", op("bits.shr", use(k), use(stage)), add(use(stage), const(1)))
    twisted = var("twisted")
    fft = loop(stage, 3, loop(
        k, 4, let(twisted, op("bits.or", left, op("bits.and", use(k), mask))),
        assign(place(out, at(use(twisted)), kind=U32), const(1)),
        assign(place(out, at(add(use(twisted), op("bits.shl", const(1), use(stage)))), kind=U32), const(1)),
    ))
    assert messages(let(out, const(0, out.type)), fft) == []
    guard = op("compare.le", use(j), use(i))
    triangle = loop(i, 8, loop(j, 8, stmt(when(guard, block(
        assign(place(out, at(op("integer.sub", use(i), use(j)))), const(1)))))))
    assert messages(let(out, const(0, out.type)), triangle) == []
    square = loop(i, 4, loop(j, 4, assign(
        place(out, at(op("integer.mul", use(i), use(j)))), const(1))))
    assert messages(let(out, const(0, out.type)), square) == [
        "The index is 9 when i = 3 and j = 3, but the axis has 8 elements."
    ]


def test_loops_count_down_and_step() -> None:
    i = var("i")
    down = loop(i, 10, stmt(index(use(A), use(i))), start=9, step=-1)
    over = loop(i, 4, stmt(index(use(A), use(i))), start=0, step=4)
    assert messages(down, params=(A,)) == []
    assert messages(over, params=(A,)) == [
        "The index is 12 when i = 12, but the axis has 10 elements."
    ]


def test_a_table_of_indices_is_looked_up() -> None:
    i = var("i")
    good = const(np.array([3, 9, 0]), TensorType(U32, (3,)))
    bad = const(np.array([3, 10, 0]), TensorType(U32, (3,)))
    assert messages(loop(i, 3, stmt(index(use(A), index(good, use(i))))), params=(A,)) == []
    assert messages(loop(i, 3, stmt(index(use(A), index(bad, use(i))))), params=(A,)) == [
        "The index is 10 when i = 1, but the axis has 10 elements."
    ]


def test_a_variable_assigned_in_a_loop_is_anything_its_assignments_allow() -> None:
    p, i = var("p", mutable=True), var("i")
    read = stmt(index(use(A), use(p)))
    ring = assign(p, op("bits.and", add(use(p), const(1)), const(7)))
    free = assign(p, add(use(p), const(1)))
    more = block(result=add(use(p), const(1)))
    wraps = when(op("compare.eq", use(p), const(9)), block(result=const(0)), more)
    assert messages(let(p, const(0)), loop(i, 50, read, ring), params=(A,)) == []
    assert len(messages(let(p, const(0)), loop(i, 50, read, free), params=(A,))) == 1
    assert messages(let(p, const(0)), loop(i, 50, read, assign(p, wraps)), params=(A,)) == []


def test_while_conditions_hold_in_the_body() -> None:
    p = var("p", mutable=True)
    read, step = stmt(index(use(A), use(p))), assign(p, add(use(p), const(1)))
    before = hir.While(SPAN, lt(use(p), const(10)), 20, block(read, step))
    after = hir.While(SPAN, lt(use(p), const(10)), 20, block(step, read))
    assert messages(let(p, const(0)), before, params=(A,)) == []
    assert len(messages(let(p, const(0)), after, params=(A,))) == 1


def test_slices_must_fit_whole() -> None:
    i = var("i")
    window = index(use(A), span_slice(use(i), None, 3))
    assert messages(loop(i, 8, stmt(window)), params=(A,)) == []
    assert messages(loop(i, 9, stmt(window)), params=(A,)) == [
        "The slice starts at 8 when i = 8, so its 3 elements leave the axis of 10."
    ]
    assert messages(params=(A, X), result=index(use(A), span_slice(use(X), None, 3))) == [
        "The slice may start at 0 to 4294967295, but its 3 elements must lie within the axis of 10."
    ]


def test_at_and_clamped_need_no_proof() -> None:
    assert messages(params=(A, X), result=index(use(A), use(X), mode="clamped")) == []
    assert messages(params=(A, X), result=index(use(A), use(X), mode="at", otherwise=const(0))) == []
    inner = index(use(A), use(X))
    assert len(messages(params=(A, X), result=index(use(A), inner, mode="clamped"))) == 1


def test_gather_proves_all_its_indices() -> None:
    b = var("b", TensorType(U8, (4,)))
    masked = hir.Op(b.type, SPAN, "bits.and", (use(b), const(7, U8)))
    kind = TensorType(U32, (4,))

    def gather(indices: hir.Expr) -> hir.Structural:
        return hir.Structural(kind, SPAN, "gather", (use(A), indices), (True, False))

    assert messages(params=(A, b), result=gather(masked)) == []
    assert messages(params=(A, b), result=gather(use(b))) == [
        "The index may be 0 to 255, but the axis has 10 elements."
    ]


def test_what_a_function_gives_is_known_but_not_what_it_is_given() -> None:
    y = var("y")
    mask = function("mask", [y], block(result=op("bits.and", use(y), const(7))))
    b, z = var("b", VEC), var("z")
    pick = function("pick", [b, z], block(result=index(use(b), use(z))))
    call = hir.Call(U32, SPAN, mask, (use(X),), ("",))
    good = function("good", [A, X], block(result=index(use(A), call)))
    assert prove_indices(program(mask, good)) == []
    given = function("given", [A], block(result=hir.Call(U32, SPAN, pick, (use(A), const(3)), ("", ""))))
    assert len(prove_indices(program(pick, given))) == 1


def test_stream_state_starts_at_its_initial_value() -> None:
    x, head = var("x"), var("head", mutable=True)
    buffer = var("buffer", TensorType(U32, (10,)), True)

    def ring(step: hir.Expr) -> list[str]:
        states = [hir.State(head, const(0)), hir.State(buffer, const(0, VEC))]
        body = block(
            assign(place(buffer, at(use(head)), kind=U32), use(x)), assign(head, step),
            result=index(use(buffer), use(head)),
        )
        return [d.message for d in prove_indices(program(function("s", [x], body, "stream", states)))]

    assert ring(op("integer.rem", add(use(head), const(1)), const(10))) == []
    assert ring(add(use(head), const(1))) == [
        "The index may be 0 to 4294967295, but the axis has 10 elements."
    ]


def test_lambda_parameters_have_the_elements_range() -> None:
    b, y = var("b", TensorType(U8, (4,))), var("y", U8)
    body = index(use(A), use(y))

    def mapped(source: hir.Expr) -> hir.HigherOrder:
        return hir.HigherOrder(TensorType(U32, (4,)), SPAN, "map", (source,), hir.Lambda((y,), body, SPAN))

    masked = hir.Op(b.type, SPAN, "bits.and", (use(b), const(7, U8)))
    assert len(messages(params=(A, b), result=mapped(use(b)))) == 1
    assert messages(params=(A, b), result=mapped(masked)) == []


def test_code_never_reached_needs_no_proof() -> None:
    never = when(lt(use(X), const(0)), block(result=index(use(A), use(X))), block(result=const(0)))
    assert messages(params=(A, X), result=never) == []
    i = var("i")
    assert messages(loop(i, 0, stmt(index(use(A), const(99)))), params=(A,)) == []


def test_one_bad_index_in_nested_loops_is_one_diagnostic() -> None:
    i, j, k = var("i"), var("j"), var("k")
    read = stmt(index(use(A), use(X)))
    assert len(messages(loop(i, 3, loop(j, 3, loop(k, 3, read))), params=(A, X))) == 1


def test_huge_iteration_spaces_fall_back_on_ranges() -> None:
    i, j = var("i"), var("j")
    product = op("integer.rem", op("integer.mul", use(i), use(j)), const(10))
    nest = loop(i, 1 << 20, loop(j, 1 << 20, stmt(index(use(A), product))))
    assert messages(nest, params=(A,)) == []
    wild_index = op("bits.xor", use(i), use(j))
    nest = loop(i, 1 << 20, loop(j, 1 << 20, stmt(index(use(A), wild_index))))
    assert messages(nest, params=(A,)) == ["The index may be 0 to 1048575, but the axis has 10 elements."]
