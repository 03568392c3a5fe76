"""Compile-time sizes of a call from the types of its arguments."""
from __future__ import annotations

from kera_hw.frontend.sema.unify import shallow
from kera_hw.frontend.syntax import ast
from kera_hw.types import TensorType, TupleType, Type


def infer_sizes(
    node: ast.FnItem | ast.StreamItem, types: list[Type], names: frozenset[str],
) -> dict[str, int]:
    """Sizes that stand alone as an extent of a parameter; the first to decide a size wins.

    What does not agree with it shows as a mismatch of that argument's type.
    """
    found: dict[str, int] = {}
    for param, kind in zip(node.params, types):
        _match(param.type, shallow(kind), names, found)
    return found


def _match(written: ast.Type | None, kind: Type, names: frozenset[str], found: dict[str, int]) -> None:
    if isinstance(written, (ast.ParenType, ast.RefType, ast.SpaceType)):
        _match(written.inner, kind, names, found)
    elif isinstance(written, ast.TupleType) and isinstance(kind, TupleType):
        for part, item in zip(written.elements, kind.items):
            _match(part, shallow(item), names, found)
    elif isinstance(written, ast.TensorType) and isinstance(kind, TensorType):
        _match_tensor(written, kind, names, found)


def _match_tensor(
    written: ast.TensorType, kind: TensorType, names: frozenset[str], found: dict[str, int]
) -> None:
    dims = written.dims
    if len(dims) > len(kind.shape):
        return
    for dim, extent in zip(dims, kind.shape):
        while isinstance(dim, ast.ParenExpr) and dim.inner is not None:
            dim = dim.inner
        name = dim.name if isinstance(dim, ast.PathExpr) else None
        if name is not None and name in names:
            found.setdefault(name, extent)
    rest = kind.shape[len(dims):]
    inner = TensorType(kind.element, rest, kind.space) if rest else shallow(kind.element)
    _match(written.element, inner, names, found)
