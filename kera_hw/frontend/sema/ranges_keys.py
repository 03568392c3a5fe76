"""Names for simple expressions, so that a fact learned about one holds wherever the same one stands.

A key is a nested tuple: equal keys mean equal values as long as none of their variables is assigned.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kera_hw.frontend.sema import hir

Key = tuple[Any, ...]

_DEPTH = 8
# A local whose definition is larger stands for itself: else keys double with each `let b = a + a`.
_ALIAS_SIZE = 24


class Definitions:
    """Immutable locals and what they were bound to: ``let j = i + 1;`` makes j and i + 1 one key."""

    def __init__(self) -> None:
        self.lets: dict[hir.Var, hir.Let] = {}
        self._keys: dict[hir.Var, Key] = {}

    def record(self, stmt: hir.Let) -> None:
        for var in bound_vars(stmt.pattern):
            if not var.mutable:
                self.lets[var] = stmt
        pattern = stmt.pattern
        if isinstance(pattern, hir.Binding) and not pattern.var.mutable:
            key = self.key(stmt.value)
            if key is None or key_size(key) > _ALIAS_SIZE:
                return
            if not any(var.mutable for var in key_vars(key)):
                self._keys[pattern.var] = key

    def value_of(self, var: hir.Var) -> hir.Expr | None:
        """The expression an immutable local stands for, if it can't have changed since."""
        if var not in self._keys:
            return None
        return self.lets[var].value

    def key(self, expr: hir.Expr, depth: int = _DEPTH) -> Key | None:
        """The expression's key; None where it is too deep or not simple."""
        if isinstance(expr, hir.Local):
            return self._keys.get(expr.var) or ("var", expr.var)
        if depth == 0:
            return None
        if isinstance(expr, hir.Const):
            value = expr.value
            if isinstance(value, tuple) or np.ndim(value) or np.asarray(value).dtype.kind not in "iub":
                return None
            return ("const", int(np.asarray(value).item()))
        if isinstance(expr, hir.Project):
            base = self.key(expr.base, depth - 1)
            return None if base is None else ("field", base, expr.index)
        if isinstance(expr, hir.Op):
            return self._parts(("op", expr.name, expr.type, _frozen(expr.attrs)), expr.args, depth)
        if isinstance(expr, hir.Logical):
            return self._parts(("op", expr.op), (expr.lhs, expr.rhs), depth)
        if isinstance(expr, hir.Index) and expr.mode == "proved":
            entries = [entry for entry in expr.entries if not isinstance(entry, hir.Slice)]
            if len(entries) == len(expr.entries):
                return self._parts(("index",), (expr.base, *entries), depth)
        return None

    def _parts(self, head: Key, args: tuple[hir.Expr, ...], depth: int) -> Key | None:
        keys: list[Key] = []
        for arg in args:
            key = self.key(arg, depth - 1)
            if key is None:
                return None
            keys.append(key)
        return (*head, *keys)


def _frozen(attrs: Mapping[str, Any]) -> Key:
    return tuple(sorted(((name, repr(value)) for name, value in attrs.items())))


def key_size(key: Key) -> int:
    """How many tuples the key is made of."""
    return 1 + sum(key_size(part) for part in key if isinstance(part, tuple))  # pyright: ignore[reportUnknownArgumentType]


def key_vars(key: Key) -> Iterator[hir.Var]:
    """The variables that a key mentions."""
    for part in key:
        if isinstance(part, hir.Var):
            yield part
        elif isinstance(part, tuple):
            yield from key_vars(part)  # pyright: ignore[reportUnknownArgumentType]


def bound_vars(pattern: hir.Pattern) -> Iterator[hir.Var]:
    if isinstance(pattern, hir.Binding):
        yield pattern.var
    elif isinstance(pattern, hir.TuplePattern):
        for item in pattern.items:
            yield from bound_vars(item)
