"""Walking the typed tree: direct parts of a piece of it, and the variable leaves that it assigns."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kera_hw.frontend.sema.tree import hir
from kera_hw.types import StructType, TensorType, TupleType, Type, flatten_type

Part = Any  # Expr, Stmt, Block, Arm, Slice, Place or Lambda: told apart by class


def item_types(kind: Type) -> tuple[Type, ...]:
    """The types of a product's items; empty for any other type."""
    if isinstance(kind, TupleType):
        return kind.items
    if isinstance(kind, StructType):
        return tuple(item for _, item in kind.fields)
    return ()


def field_range(kind: Type, index: int) -> tuple[int, int]:
    """Half-open range of leaves that field ``index`` of a product type (or of a tensor's element) takes."""
    items = item_types(kind.element if isinstance(kind, TensorType) else kind)
    counts = [len(flatten_type(item)) for item in items]
    low = sum(counts[:index])
    return low, low + counts[index]


def step_into(kind: Type, step: hir.FieldStep | hir.IndexStep) -> Type:
    """The type one step of a place further in."""
    if isinstance(step, hir.FieldStep):
        inner = item_types(kind.element if isinstance(kind, TensorType) else kind)[step.index]
        return TensorType.tensor(inner, kind.shape, kind.space) if isinstance(kind, TensorType) else inner
    assert isinstance(kind, TensorType)
    kept = tuple(e.length for e in step.entries if isinstance(e, hir.Slice)) + kind.shape[len(step.entries):]
    return TensorType(kind.element, kept, kind.space) if kept else kind.element


def place_range(place: hir.Place) -> tuple[int, int]:
    """Half-open range of the root variable's leaves that the place touches."""
    kind = place.root.type
    low, high = 0, len(flatten_type(kind))
    for step in place.path:
        if isinstance(step, hir.FieldStep):
            offset, end = field_range(kind, step.index)
            low, high = low + offset, low + end
        kind = step_into(kind, step)
    return low, high


def _entry_parts(entries: tuple[hir.Expr | hir.Slice, ...]) -> list[Part]:
    found: list[Part] = []
    for entry in entries:
        if isinstance(entry, hir.Slice):
            found += [part for part in (entry.start, entry.stop) if part is not None]
        else:
            found.append(entry)
    return found


def _place_parts(place: hir.Place) -> list[Part]:
    return [
        part for step in place.path if isinstance(step, hir.IndexStep) for part in _entry_parts(step.entries)
    ]


def _there(*found: Part | None) -> list[Part]:
    return [part for part in found if part is not None]


def _args(part: Any) -> Sequence[Part]:
    return part.args


def _items(part: Any) -> Sequence[Part]:
    return part.items


def _nothing(_: Any) -> Sequence[Part]:
    return ()


_PARTS: dict[type, Callable[[Any], Sequence[Part]]] = {
    hir.Const: _nothing,
    hir.Local: _nothing,
    hir.Op: _args,
    hir.Structural: _args,
    hir.Aggregate: _items,
    hir.TensorLit: _items,
    hir.Project: lambda p: (p.base,),
    hir.TensorFill: lambda p: (p.value,),
    hir.Index: lambda p: _there(p.base, *_entry_parts(p.entries), p.otherwise),
    hir.Block: lambda p: _there(*p.stmts, p.result),
    hir.If: lambda p: _there(p.cond, p.then, p.otherwise),
    hir.Logical: lambda p: (p.lhs, p.rhs),
    hir.Match: lambda p: (p.scrutinee, *[arm.body for arm in p.arms]),
    hir.Call: _args,
    hir.PlaceExpr: lambda p: _place_parts(p.place),
    hir.StreamApply: _args,
    hir.StreamStep: _args,
    hir.HigherOrder: lambda p: (*p.args, p.body.body),
    hir.Let: lambda p: (p.value,),
    hir.Assign: lambda p: [p.value, *_place_parts(p.place)],
    hir.ExprStmt: lambda p: (p.value,),
    hir.For: lambda p: (p.body,),
    hir.While: lambda p: (p.cond, p.body),
    hir.AssertEq: lambda p: (p.left, p.right),
    hir.Assert: lambda p: (p.cond,),
    hir.Observe: lambda p: (p.cond,),
}


def parts(part: Part) -> Sequence[Part]:
    """Direct sub-expressions and statements, in order of evaluation."""
    return _PARTS[type(part)](part)


def walk(root: Part, into_lambdas: bool = True) -> Iterator[Part]:
    """All parts below and including ``root``, in source order. Iterative."""
    stack = [root]
    while stack:
        part = stack.pop()
        yield part
        if into_lambdas or not isinstance(part, hir.HigherOrder):
            stack.extend(parts(part)[::-1])
        else:
            stack.extend(part.args[::-1])


def assigned_ranges(part: Part) -> Iterator[tuple[hir.Var, int, int | None]]:
    """(variable, first leaf, end leaf) that this part itself assigns; ``None`` = all leaves."""
    if isinstance(part, hir.Assign):
        yield (part.place.root, *place_range(part.place))
    elif isinstance(part, hir.StreamStep):
        yield part.instance, 0, None
    elif isinstance(part, hir.Call):
        for arg, borrow in zip(part.args, part.borrows):
            if borrow == "&mut" and isinstance(arg, hir.PlaceExpr):
                yield (arg.place.root, *place_range(arg.place))


def bound_vars(pattern: hir.Pattern) -> Iterator[hir.Var]:
    """The variables that a pattern binds."""
    if isinstance(pattern, hir.Binding):
        yield pattern.var
    elif isinstance(pattern, hir.TuplePattern):
        for item in pattern.items:
            yield from bound_vars(item)
