"""A verifier of the typed tree, for tests: every operation has the type its registry row infers, every
part the type its whole implies. Knows nothing of how the checker works."""
from __future__ import annotations

import dataclasses
from typing import Any

from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.unify import ErrorType, Unknown
from kera_hw.ops.registry import OPS
from kera_hw.types import (
    BOOL,
    UNIT,
    IntType,
    StructType,
    TensorType,
    TupleType,
    Type,
    flatten_type,
    leaf_types,
)

_OPS_OF_STRUCTURAL = {"select": "control.select"}


def verify_program(program: hir.CheckedProgram) -> None:
    for function in program.functions:
        assert function.body is not None
        assert_type(function.result)
        assert function.body.type == function.result, (function.name, function.body.type, function.result)
        for state in function.states:
            assert state.initial.type == state.var.type
        verify(function.body)
    for test in program.tests:
        assert test.body.type == UNIT
        verify(test.body)


def assert_type(kind: Type) -> None:
    """No unknown and no error may be left."""
    assert not isinstance(kind, (Unknown, ErrorType)), kind
    if isinstance(kind, TensorType):
        assert not isinstance(kind.element, TensorType)
        assert_type(kind.element)
    elif isinstance(kind, TupleType):
        for item in kind.items:
            assert_type(item)
    elif isinstance(kind, StructType):
        for _, item in kind.fields:
            assert_type(item)


def verify(part: Any) -> None:
    """Check a piece of the tree and all below it."""
    if isinstance(part, hir.Expr):
        assert_type(part.type)
        rule = _RULES.get(type(part))
        if rule is not None:
            rule(part)
    elif isinstance(part, hir.Var):
        assert_type(part.type)
        return
    elif isinstance(part, hir.Let):
        _pattern(part.pattern, part.value.type)
    elif isinstance(part, hir.Assign):
        assert part.place.type == part.value.type
    elif isinstance(part, hir.AssertEq):
        assert part.left.type == part.right.type
    elif isinstance(part, (hir.While, hir.Assert)):
        assert part.cond.type == BOOL
    elif isinstance(part, hir.For):
        assert isinstance(part.var.type, IntType)
    if isinstance(part, (hir.Function, hir.Const)) or not dataclasses.is_dataclass(part):
        return
    for item in dataclasses.fields(part):
        value = getattr(part, item.name)
        for inner in value if isinstance(value, tuple) else (value,):
            if dataclasses.is_dataclass(inner) and not isinstance(inner, (Type, type)):
                verify(inner)


def _pattern(pattern: hir.Pattern, kind: Type) -> None:
    if isinstance(pattern, hir.Binding):
        assert pattern.var.type == kind, (pattern.var.name, pattern.var.type, kind)
    elif isinstance(pattern, hir.TuplePattern):
        assert isinstance(kind, TupleType)
        for item, part in zip(pattern.items, kind.items, strict=True):
            _pattern(item, part)


def _infer(name: str, args: tuple[Type, ...], attrs: Any) -> tuple[Type, ...]:
    row = OPS[name]
    assert set(attrs) == set(row.attrs), (name, attrs, row.attrs)
    return row.infer(args, attrs)


def _op(expr: hir.Op) -> None:
    if expr.name.startswith("effect."):  # in the tree they have no token, which the row takes first
        return
    for arg in expr.args:
        assert len(flatten_type(arg.type)) == 1
    found = _infer(expr.name, tuple(arg.type for arg in expr.args), expr.attrs)
    assert found == leaf_types(expr.type), (expr.name, found, expr.type)


def _structural(expr: hir.Structural) -> None:
    if expr.name == "clone":
        assert expr.type == expr.args[0].type
        return
    leaves = leaf_types(expr.type)
    name = _OPS_OF_STRUCTURAL.get(expr.name, f"tensor.{expr.name}")
    for number, leaf in enumerate(leaves):
        args = tuple(
            leaf_types(arg.type)[number] if split else arg.type
            for arg, split in zip(expr.args, expr.per_leaf, strict=True)
        )
        assert _infer(name, args, expr.attrs) == (leaf,), (expr.name, args, expr.attrs, leaf)


def _local(expr: hir.Local) -> None:
    assert expr.type == expr.var.type


def _aggregate(expr: hir.Aggregate) -> None:
    items = expr.type.items if isinstance(expr.type, TupleType) else tuple(
        kind for _, kind in expr.type.fields) if isinstance(expr.type, StructType) else None
    assert items == tuple(item.type for item in expr.items)


def _project(expr: hir.Project) -> None:
    kind = expr.base.type
    items = kind.items if isinstance(kind, TupleType) else tuple(
        item for _, item in kind.fields) if isinstance(kind, StructType) else ()
    assert items[expr.index] == expr.type


def _block(expr: hir.Block) -> None:
    assert expr.type == (UNIT if expr.result is None else expr.result.type)


def _if(expr: hir.If) -> None:
    assert expr.cond.type == BOOL and expr.then.type == expr.type
    assert expr.otherwise.type == expr.type if expr.otherwise is not None else expr.type == UNIT


def _match(expr: hir.Match) -> None:
    assert all(arm.body.type == expr.type and arm.patterns for arm in expr.arms)


def _call(expr: hir.Call) -> None:
    assert expr.type == expr.function.result
    assert tuple(arg.type for arg in expr.args) == tuple(param.var.type for param in expr.function.params)
    for arg, borrow, param in zip(expr.args, expr.borrows, expr.function.params, strict=True):
        assert borrow == param.borrow
        assert isinstance(arg, hir.PlaceExpr) == bool(borrow)


def _index(expr: hir.Index) -> None:
    kind = expr.base.type
    assert isinstance(kind, TensorType)
    kept: list[int] = []
    for entry, extent in zip(expr.entries, kind.shape):
        if isinstance(entry, hir.Slice):
            kept.append(entry.length)
            assert entry.length <= extent or expr.mode != "proved" or entry.stop is not None
        else:
            assert isinstance(entry.type, IntType)
    shape = (*kept, *kind.shape[len(expr.entries):])
    assert expr.type == (TensorType(kind.element, shape, kind.space) if shape else kind.element)
    if expr.otherwise is not None:
        assert expr.otherwise.type == expr.type


def _tensor(expr: hir.TensorLit) -> None:
    assert expr.type == TensorType.tensor(expr.items[0].type, (len(expr.items),))
    assert all(item.type == expr.items[0].type for item in expr.items)


def _fill(expr: hir.TensorFill) -> None:
    kind, item = expr.type, expr.value.type
    assert isinstance(kind, TensorType)
    assert kind.element == (item.element if isinstance(item, TensorType) else item)


def _logical(expr: hir.Logical) -> None:
    assert expr.type == expr.lhs.type == expr.rhs.type == BOOL


def _apply(expr: hir.StreamApply) -> None:
    assert expr.type == TensorType.tensor(expr.stream.result, (expr.length,))
    for arg, param in zip(expr.args, expr.stream.params, strict=True):
        assert arg.type == TensorType.tensor(param.var.type, (expr.length,))


def _step(expr: hir.StreamStep) -> None:
    assert expr.type == expr.stream.result


def _higher(expr: hir.HigherOrder) -> None:
    first = expr.args[0].type
    assert isinstance(first, TensorType)
    body = expr.body.body.type
    if expr.name in ("map", "zip"):
        assert expr.type == TensorType.tensor(body, first.shape, first.space)
        return
    assert body == expr.args[1].type == expr.body.params[0].type
    assert expr.type == (body if expr.name == "reduce" else TensorType.tensor(body, (first.shape[0],)))


_RULES: dict[type[hir.Expr], Any] = {
    hir.Op: _op, hir.Structural: _structural, hir.Local: _local, hir.Aggregate: _aggregate,
    hir.Project: _project, hir.Block: _block, hir.If: _if, hir.Match: _match, hir.Call: _call,
    hir.Index: _index, hir.TensorLit: _tensor, hir.TensorFill: _fill, hir.Logical: _logical,
    hir.StreamApply: _apply, hir.StreamStep: _step, hir.HigherOrder: _higher,
}
