"""How much a compile-time expression would compute, so that none can keep the compiler busy for ever."""
from __future__ import annotations

from dataclasses import fields
from typing import cast

from kera_hw.frontend.sema.tree import hir
from kera_hw.types import TensorType, Type

#: The most operations one constant may take; more is K0214.
MAX_CONSTANT_WORK = 5_000_000

_PARTS = (
    hir.Expr, hir.Stmt, hir.Arm, hir.Slice, hir.Place, hir.FieldStep, hir.IndexStep, hir.Lambda,
)


def work(part: object, known: dict[hir.Function, int] | None = None) -> int:
    """An upper estimate of the operations a piece of the tree takes; loops count their full bound."""
    known = {} if known is None else known
    if isinstance(part, tuple):
        return sum(work(item, known) for item in cast("tuple[object, ...]", part))
    if not isinstance(part, _PARTS) or isinstance(part, hir.Const):
        return 0
    if isinstance(part, hir.HigherOrder):  # the operands are computed once, the lambda for every element
        first = part.args[0].type
        return 1 + work(part.args, known) + work(part.body, known) * _elements(part, first)
    inner = 1 + sum(work(getattr(part, item.name), known) for item in fields(part))
    if isinstance(part, (hir.For, hir.While)):
        return inner * max(1, part.count if isinstance(part, hir.For) else part.max_count)
    if isinstance(part, hir.Call):
        return inner + _function(part.function, known)
    if isinstance(part, hir.StreamApply):
        return inner + _function(part.stream, known) * max(1, part.length)
    if isinstance(part, hir.Expr) and isinstance(part.type, TensorType):
        return inner + part.type.size
    return inner


def _elements(part: hir.HigherOrder, first: Type) -> int:
    """How often the lambda runs: `map` and `zip` on every element, `reduce` and `scan` on every row."""
    if not isinstance(first, TensorType):
        return 1
    return max(1, first.size if part.name in ("map", "zip") else first.shape[0])


def _function(function: hir.Function, known: dict[hir.Function, int]) -> int:
    if function not in known:
        known[function] = 0  # a cycle is reported elsewhere
        known[function] = work(function.body, known)
        # Streams held by a stream run once for each of its items.
        known[function] += sum(_function(item.stream, known) for item in function.instances)
    return known[function]
