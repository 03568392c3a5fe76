"""Values of constant expressions, in interpreter form, that need no graph: data, and operations on scalars.

An operation is evaluated by its registry row, the same as in a graph.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kera_hw.frontend.sema.tree import hir
from kera_hw.interp.evaluator import Context
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import EvalCall
from kera_hw.types import StructType, TensorType, TupleType, Type, is_scalar, numpy_dtype

#: The most elements a compile-time value may have.
MAX_CONSTANT_ELEMENTS = 1 << 24


def element_count(kind: Type) -> int:
    """How many scalars a value of the type holds."""
    if isinstance(kind, TensorType):
        return kind.size * element_count(kind.element)
    if isinstance(kind, TupleType):
        return sum(element_count(item) for item in kind.items)
    if isinstance(kind, StructType):
        return sum(element_count(item) for _, item in kind.fields)
    return 1


def plain_value(tree: hir.Expr) -> Any:
    """The value of literals, constants and constructors of them; None for anything computed."""
    if isinstance(tree, hir.Const):
        return tree.value
    if isinstance(tree, (hir.Aggregate, hir.TensorLit)):
        values = [plain_value(item) for item in tree.items]
        if any(value is None for value in values):
            return None
        if isinstance(tree, hir.Aggregate):
            return tuple(values)
        assert isinstance(tree.type, TensorType)
        return stack(tree.type, values)
    if isinstance(tree, hir.TensorFill):
        value = plain_value(tree.value)
        assert isinstance(tree.type, TensorType)
        return None if value is None else fill(tree.type, tree.value.type, value)
    if isinstance(tree, hir.Block) and not tree.stmts and tree.result is not None:
        return plain_value(tree.result)
    return _computed(tree) if isinstance(tree, hir.Op) else None


def _computed(tree: hir.Op) -> Any:
    """An operation on known scalars; None where it has other operands."""
    types = tuple(arg.type for arg in tree.args)
    if not is_scalar(tree.type) or not all(is_scalar(kind) for kind in types) or tree.name not in OPS:
        return None
    row = OPS[tree.name]
    if row.effect is not None:
        return None
    values = [plain_value(arg) for arg in tree.args]
    if any(value is None for value in values):
        return None
    operands = tuple(np.array([value], numpy_dtype(kind)) for value, kind in zip(values, types))
    call = EvalCall(Context(1), operands, types, (tree.type,), tree.attrs)
    return row.evaluate(call)[0][0]


def stack(kind: TensorType, values: Sequence[Any]) -> Any:
    """Items of one type as the outermost axis of a tensor."""
    parts = _items(kind.element)
    if parts is not None:
        columns = [[value[i] for value in values] for i in range(len(parts))]
        return tuple(
            stack(TensorType.tensor(part, kind.shape), column) for part, column in zip(parts, columns)
        )
    if not values:
        return np.zeros(kind.shape, dtype=numpy_dtype(kind))
    return np.array(values, dtype=numpy_dtype(kind)).reshape(kind.shape)


def fill(kind: TensorType, item: Type, value: Any) -> Any:
    """A tensor of equal items."""
    parts = _items(kind.element)
    if parts is not None:
        inner = item.shape if isinstance(item, TensorType) else ()
        lead = kind.shape[: len(kind.shape) - len(inner)]
        return tuple(
            fill(TensorType.tensor(part, kind.shape), TensorType.tensor(part, inner) if inner else part, v)
            for part, v in zip(parts, value)
        ) if lead else value
    return np.broadcast_to(np.asarray(value, dtype=numpy_dtype(kind)), kind.shape).copy()


def _items(kind: Type) -> tuple[Type, ...] | None:
    if isinstance(kind, TupleType):
        return kind.items
    if isinstance(kind, StructType):
        return tuple(item for _, item in kind.fields)
    return None
