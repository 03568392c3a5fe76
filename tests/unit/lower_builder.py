"""Typed trees by hand, for tests of lowering and of the index proof: short constructors, no inference."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kera_hw.frontend.sema.tree import hir
from kera_hw.support import SourceFile, Span
from kera_hw.types import (
    BOOL,
    U32,
    UNIT,
    IntType,
    TensorType,
    TupleType,
    Type,
    numpy_dtype,
    shape_of,
    with_element,
)

FILE = SourceFile("built.kera", b"built by a test\n")
SPAN = Span(0, 5)
U8 = IntType(8, False)
I16 = IntType(16, True)


def var(name: str, kind: Type = U32, mutable: bool = False) -> hir.Var:
    return hir.Var(name, kind, mutable, SPAN)


def const(value: Any, kind: Type = U32) -> hir.Const:
    array = np.broadcast_to(np.asarray(value, numpy_dtype(kind)), shape_of(kind))
    return hir.Const(kind, SPAN, array)


def use(variable: hir.Var) -> hir.Local:
    return hir.Local(variable.type, SPAN, variable)


def op(name: str, *args: hir.Expr, kind: Type | None = None, **attrs: Any) -> hir.Op:
    """Result type: that of the first operand unless given; comparisons give bools."""
    found = kind or (with_element(args[0].type, BOOL) if name.startswith("compare.") else args[0].type)
    return hir.Op(found, SPAN, name, args, attrs)


def add(a: hir.Expr, b: hir.Expr) -> hir.Op:
    return op("integer.add", a, b)


def cast(x: hir.Expr, kind: Type) -> hir.Op:
    return op("convert.cast", x, kind=with_element(x.type, kind), type=kind)


def index(base: hir.Expr, *entries: hir.Expr | hir.Slice, mode: str = "proved",
          otherwise: hir.Expr | None = None) -> hir.Index:
    assert isinstance(base.type, TensorType)
    kept = tuple(e.length for e in entries if isinstance(e, hir.Slice)) + base.type.shape[len(entries):]
    kind = TensorType(base.type.element, kept) if kept else base.type.element
    return hir.Index(kind, SPAN, base, entries, mode, otherwise)


def span_slice(start: hir.Expr | None, stop: hir.Expr | None, length: int) -> hir.Slice:
    return hir.Slice(start, stop, length, SPAN)


def block(*stmts: hir.Stmt, result: hir.Expr | None = None) -> hir.Block:
    return hir.Block(UNIT if result is None else result.type, SPAN, stmts, result)


def let(variable: hir.Var, value: hir.Expr) -> hir.Let:
    return hir.Let(SPAN, hir.Binding(SPAN, variable), value)


def place(root: hir.Var, *path: hir.FieldStep | hir.IndexStep, kind: Type | None = None) -> hir.Place:
    return hir.Place(root, path, kind or root.type, SPAN)


def at(*entries: hir.Expr | hir.Slice) -> hir.IndexStep:
    return hir.IndexStep(entries, SPAN)


def assign(target: hir.Place | hir.Var, value: hir.Expr) -> hir.Assign:
    return hir.Assign(SPAN, target if isinstance(target, hir.Place) else place(target), value)


def when(cond: hir.Expr, then: hir.Block, otherwise: hir.Block | None = None) -> hir.If:
    return hir.If(then.type, SPAN, cond, then, otherwise)


def stmt(value: hir.Expr) -> hir.ExprStmt:
    return hir.ExprStmt(SPAN, value)


def loop(variable: hir.Var, count: int, *stmts: hir.Stmt, start: int = 0, step: int = 1) -> hir.For:
    return hir.For(SPAN, variable, start, step, count, block(*stmts))


def arm(body: hir.Expr | hir.Block, *patterns: hir.Pattern) -> hir.Arm:
    wrapped = body if isinstance(body, hir.Block) else block(result=body)
    return hir.Arm(patterns, wrapped, SPAN)


def literal(low: int, high: int | None = None) -> hir.IntRange:
    return hir.IntRange(SPAN, low, low if high is None else high)


def wild() -> hir.Wildcard:
    return hir.Wildcard(SPAN)


def tup(*items: hir.Expr) -> hir.Aggregate:
    return hir.Aggregate(TupleType(tuple(item.type for item in items)), SPAN, items)


def project(base: hir.Expr, field: int) -> hir.Project:
    kind = base.type
    items = kind.items if isinstance(kind, TupleType) else tuple(t for _, t in kind.fields)  # type: ignore[attr-defined]
    return hir.Project(items[field], SPAN, base, field)


def function(
    name: str, params: Sequence[hir.Var | hir.Param], body: hir.Block, kind: str = "fn",
    states: Sequence[hir.State] = (), instances: Sequence[hir.Instance] = (),
) -> hir.Function:
    wrapped = tuple(p if isinstance(p, hir.Param) else hir.Param(p) for p in params)
    return hir.Function(
        name, kind, wrapped, body.type, (), FILE, SPAN, name, tuple(states), tuple(instances), body,
    )


def program(*functions: hir.Function, tests: Sequence[hir.Test] = ()) -> hir.CheckedProgram:
    return hir.CheckedProgram(functions, tuple(tests), FILE)
