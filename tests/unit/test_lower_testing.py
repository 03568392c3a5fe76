"""In-file tests and compile-time constants run by the reference evaluator."""
from __future__ import annotations

import numpy as np
import pytest

from kera_hw.frontend.sema.constants.run import evaluate_constant
from kera_hw.frontend.sema.testing import TestResult, run_tests
from kera_hw.frontend.sema.tree import hir
from kera_hw.support import KeraError
from kera_hw.types import F32, U32, FixType, IntType, TensorType, TupleType
from tests.unit.lower_builder import (
    FILE,
    I16,
    SPAN,
    add,
    assign,
    block,
    const,
    index,
    let,
    loop,
    op,
    program,
    stmt,
    tup,
    use,
    var,
    when,
)


def results(*stmts: hir.Stmt) -> TestResult:
    (result,) = run_tests(program(tests=[hir.Test("t", FILE, SPAN, block(*stmts))]))
    return result


def equal(left: hir.Expr, right: hir.Expr) -> hir.AssertEq:
    return hir.AssertEq(SPAN, left, right)


def test_equal_sides_pass() -> None:
    kind = TensorType(U32, (2, 2))
    assert results(equal(const([[1, 2], [3, 4]], kind), const([[1, 2], [3, 4]], kind))).passed


def test_the_first_difference_is_named_with_bits() -> None:
    kind = TensorType(I16, (2, 3))
    left, right = const([[1, 2, 3], [4, -5, 6]], kind), const([[1, 2, 3], [4, 5, 0]], kind)
    result = results(equal(const(1), const(1)), equal(left, right))
    assert not result.passed and result.diagnostic is not None
    assert result.diagnostic.code == "K0920"
    assert "`[1, 1]`: -5 (0xfffb) against 5 (0x0005)" in result.diagnostic.message
    assert result.diagnostic.notes == ("left:  [[1, 2, 3], [4, -5, 6]]", "right: [[1, 2, 3], [4, 5, 0]]")


def test_a_difference_in_a_field_names_its_path() -> None:
    fix = FixType(8, 4, True)
    left, right = tup(const(1), const(24, fix)), tup(const(1), const(-8, fix))
    result = results(equal(left, right))
    assert result.diagnostic is not None
    assert "`.1`: 1.5 (0x18) against -0.5 (0xf8)" in result.diagnostic.message


def test_assertions_in_loops_and_branches_report_the_first_failure() -> None:
    i, sums = var("i"), var("sums", mutable=True)
    check = when(op("compare.gt", use(i), const(2)), block(equal(use(sums), const(99))))
    result = results(
        let(sums, const(0)), loop(i, 6, assign(sums, add(use(sums), use(i))), stmt(check)),
    )
    assert result.diagnostic is not None and ": 6 (0x00000006) against 99" in result.diagnostic.message
    skipped = when(op("compare.gt", const(1), const(2)), block(equal(const(0), const(1))))
    assert results(stmt(skipped)).passed


def test_a_false_condition_fails() -> None:
    result = results(hir.Assert(SPAN, op("compare.lt", const(5), const(3))))
    assert result.diagnostic is not None and "condition is false" in result.diagnostic.message


def test_float_arithmetic_runs_in_tests() -> None:
    total = op("floating.add", const(1.5, F32), const(1.5, F32))
    assert results(equal(total, const(3.0, F32))).passed
    failed = results(equal(total, const(-3.0, F32)))
    assert not failed.passed and failed.diagnostic is not None
    assert failed.diagnostic.code == "K0920" and "3.0 (0x40400000)" in failed.diagnostic.message


def test_float_sides_compare_by_bits() -> None:
    result = results(equal(const(0.0, F32), const(-0.0, F32)))
    assert not result.passed and result.diagnostic is not None
    assert "0.0 (0x00000000) against -0.0 (0x80000000)" in result.diagnostic.message
    nan = const(np.float32(np.nan), F32)
    assert results(equal(nan, nan)).passed


def test_constants_use_the_run_time_semantics() -> None:
    small = IntType(5, False)
    value = evaluate_constant(add(const(30, small), const(3, small)), FILE)
    assert value == 1 and value.dtype == np.uint8


def test_constants_nest_like_the_tree() -> None:
    kind = TensorType(TupleType((U32, TensorType(I16, (2,)))), (3,))
    x = var("x")
    pair = tup(use(x), hir.TensorLit(TensorType(I16, (2,)), SPAN, (const(1, I16), const(2, I16))))
    iota = hir.Op(TensorType(U32, (3,)), SPAN, "tensor.iota", (), {"size": 3, "type": U32})
    mapped = hir.HigherOrder(kind, SPAN, "map", (iota,), hir.Lambda((x,), pair, SPAN))
    first, second = evaluate_constant(mapped, FILE)
    assert first.tolist() == [0, 1, 2]
    assert second.tolist() == [[1, 2]] * 3


def test_a_constant_that_cannot_be_evaluated_is_a_diagnostic() -> None:
    shout = hir.Op(U32, SPAN, "effect.now", (), {})
    with pytest.raises(KeraError) as caught:
        evaluate_constant(index(hir.TensorLit(TensorType(U32, (1,)), SPAN, (shout,)), const(0)), FILE)
    assert [item.code for item in caught.value.diagnostics] == ["K0502"]
