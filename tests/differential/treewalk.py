"""A second meaning for the typed tree: a plain tree-walking evaluator with mutable variables.

It shares nothing with lowering (no SSA, no captures, no regions), so agreement on random programs says that
lowering keeps the order of assignments. Integers, bools, tuples and rank-1 tensors of integers only.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kera_hw.frontend.sema.tree import hir
from kera_hw.types import BoolType, IntType, TensorType, Type, element_type

BINARY: dict[str, Callable[[int, int], int]] = {
    "integer.add": lambda a, b: a + b,
    "integer.sub": lambda a, b: a - b,
    "integer.mul": lambda a, b: a * b,
    "integer.min": min,
    "integer.max": max,
    "bits.and": lambda a, b: a & b,
    "bits.or": lambda a, b: a | b,
    "bits.xor": lambda a, b: a ^ b,
    "bits.shr": lambda a, b: a >> b,
    "bits.shl": lambda a, b: a << b,
    "integer.rem": lambda a, b: a % b if b else a,  # unsigned here
    "compare.lt": lambda a, b: a < b,
    "compare.le": lambda a, b: a <= b,
    "compare.gt": lambda a, b: a > b,
    "compare.ge": lambda a, b: a >= b,
    "compare.eq": lambda a, b: a == b,
    "compare.ne": lambda a, b: a != b,
}


def wrap(kind: Type, value: Any) -> Any:
    return kind.wrap(int(value)) if isinstance(kind, IntType) else bool(value)


def listed(value: Any) -> Any:
    """A constant in interpreter form as Python lists, tuples and integers."""
    if isinstance(value, tuple):
        return tuple(listed(item) for item in value)
    return np.asarray(value).tolist()


class Walker:
    """Values: int, bool, list (tensor), tuple. Tensors copy when they are bound."""

    def __init__(self) -> None:
        self.env: dict[hir.Var, Any] = {}

    def call(self, function: hir.Function, args: list[Any]) -> tuple[Any, list[Any]]:
        """Result, and final values of the exclusive borrows."""
        inner = Walker()
        for param, value in zip(function.params, args):
            inner.env[param.var] = copy(value)
        assert function.body is not None
        result = inner.block(function.body)
        return result, [inner.env[p.var] for p in function.params if p.borrow == "&mut"]

    def block(self, block: hir.Block) -> Any:
        for stmt in block.stmts:
            getattr(self, f"do_{type(stmt).__name__}")(stmt)
        return self.expr(block.result) if block.result is not None else ()

    def expr(self, expr: hir.Expr) -> Any:
        return getattr(self, f"get_{type(expr).__name__}")(expr)

    def get_Const(self, expr: hir.Const) -> Any:
        return listed(expr.value)

    def get_Local(self, expr: hir.Local) -> Any:
        return copy(self.env[expr.var])

    def get_Block(self, expr: hir.Block) -> Any:
        return self.block(expr)

    def get_Op(self, expr: hir.Op) -> Any:
        args = [self.expr(arg) for arg in expr.args]
        kind = element_type(expr.type)
        if expr.name == "convert.cast":
            return wrap(kind, args[0])
        if expr.name == "bits.not":
            return wrap(kind, not args[0] if isinstance(kind, BoolType) else ~args[0])
        return wrap(kind, BINARY[expr.name](args[0], args[1]))

    def get_Structural(self, expr: hir.Structural) -> Any:
        assert expr.name == "shift_in"
        tensor, item = (self.expr(arg) for arg in expr.args)
        return [*tensor[1:], item]

    def get_Aggregate(self, expr: hir.Aggregate) -> Any:
        return tuple(self.expr(item) for item in expr.items)

    def get_Project(self, expr: hir.Project) -> Any:
        return self.expr(expr.base)[expr.index]

    def get_TensorLit(self, expr: hir.TensorLit) -> Any:
        return [self.expr(item) for item in expr.items]

    def get_TensorFill(self, expr: hir.TensorFill) -> Any:
        assert isinstance(expr.type, TensorType)
        return [self.expr(expr.value)] * expr.type.shape[0]

    def get_Index(self, expr: hir.Index) -> Any:
        assert expr.mode in ("clamped", "proved")
        base = self.expr(expr.base)
        (entry,) = expr.entries
        assert isinstance(entry, hir.Expr)
        return base[max(0, min(len(base) - 1, self.expr(entry)))]

    def get_If(self, expr: hir.If) -> Any:
        if self.expr(expr.cond):
            return self.block(expr.then)
        return self.block(expr.otherwise) if expr.otherwise is not None else ()

    def get_Logical(self, expr: hir.Logical) -> Any:
        lhs, rhs = self.expr(expr.lhs), self.expr(expr.rhs)
        return lhs and rhs if expr.op == "and" else lhs or rhs

    def get_Match(self, expr: hir.Match) -> Any:
        value = self.expr(expr.scrutinee)
        for arm in expr.arms:
            for pattern in arm.patterns:
                if self.matches(pattern, value):
                    return self.block(arm.body)
        raise AssertionError("not exhaustive")

    def get_Call(self, expr: hir.Call) -> Any:
        result, lent = self.call(expr.function, [self.expr(arg) for arg in expr.args])
        places = [arg.place for arg, borrow in zip(expr.args, expr.borrows)
                  if borrow == "&mut" and isinstance(arg, hir.PlaceExpr)]
        for place, value in zip(places, lent):
            self.write(place, value)
        return result

    def get_PlaceExpr(self, expr: hir.PlaceExpr) -> Any:
        assert not expr.place.path
        return copy(self.env[expr.place.root])

    def matches(self, pattern: hir.Pattern, value: Any) -> bool:
        if isinstance(pattern, hir.IntRange):
            return pattern.low <= int(value) <= pattern.high
        if isinstance(pattern, hir.TuplePattern):
            return all(self.matches(item, part) for item, part in zip(pattern.items, value))
        if isinstance(pattern, hir.Binding):
            self.env[pattern.var] = value
        return True

    def do_Let(self, stmt: hir.Let) -> None:
        assert self.matches(stmt.pattern, self.expr(stmt.value))

    def do_ExprStmt(self, stmt: hir.ExprStmt) -> None:
        self.expr(stmt.value)

    def do_Assign(self, stmt: hir.Assign) -> None:
        self.write(stmt.place, self.expr(stmt.value))

    def write(self, place: hir.Place, value: Any) -> None:
        self.env[place.root] = self.written(self.env[place.root], place.path, value)

    def written(self, old: Any, path: tuple[Any, ...], value: Any) -> Any:
        if not path:
            return copy(value)
        step, rest = path[0], path[1:]
        index = step.index if isinstance(step, hir.FieldStep) else self.expr(step.entries[0])
        parts = list(old)
        parts[index] = self.written(parts[index], rest, value)
        return tuple(parts) if isinstance(old, tuple) else parts

    def do_For(self, stmt: hir.For) -> None:
        for turn in range(stmt.count):
            self.env[stmt.var] = stmt.start + turn * stmt.step
            self.block(stmt.body)

    def do_While(self, stmt: hir.While) -> None:
        for _ in range(stmt.max_count):
            if not self.expr(stmt.cond):
                break
            self.block(stmt.body)


def copy(value: Any) -> Any:
    return list(value) if isinstance(value, list) else value
