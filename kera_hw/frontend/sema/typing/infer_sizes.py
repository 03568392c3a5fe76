"""Compile-time sizes of a call from the types of its arguments."""
from __future__ import annotations

from dataclasses import dataclass, field

from kera_hw.frontend.sema.typing.unify import shallow
from kera_hw.frontend.syntax import ast
from kera_hw.types import TensorType, TupleType, Type


def infer_sizes(
    node: ast.FnItem | ast.StreamItem, types: list[Type], names: frozenset[str],
) -> dict[str, int]:
    """Sizes that stand alone as an extent of a parameter, then those in a sum, difference or multiple.

    The first to decide a size wins; what does not agree with it shows as a mismatch of that argument's type.
    """
    search = _Search(names)
    for param, kind in zip(node.params, types):
        search.match(param.type, shallow(kind))
    if len(search.found) < len(names):
        search.formulas = True
        for param, kind in zip(node.params, types):
            search.match(param.type, shallow(kind))
    return search.found


@dataclass(slots=True)
class _Search:
    names: frozenset[str]
    found: dict[str, int] = field(default_factory=dict[str, int])
    formulas: bool = False

    def match(self, written: ast.Type | None, kind: Type) -> None:
        if isinstance(written, (ast.ParenType, ast.RefType, ast.SpaceType)):
            self.match(written.inner, kind)
        elif isinstance(written, ast.TupleType) and isinstance(kind, TupleType):
            for part, item in zip(written.elements, kind.items):
                self.match(part, shallow(item))
        elif isinstance(written, ast.TensorType) and isinstance(kind, TensorType):
            self._tensor(written, kind)

    def _tensor(self, written: ast.TensorType, kind: TensorType) -> None:
        dims = written.dims
        if len(dims) > len(kind.shape):
            return
        for dim, extent in zip(dims, kind.shape):
            self._solve(dim, extent)
        rest = kind.shape[len(dims):]
        inner = TensorType(kind.element, rest, kind.space) if rest else shallow(kind.element)
        self.match(written.element, inner)

    def _solve(self, dim: ast.Expr | None, extent: int) -> None:
        """Decide a name so that the written extent is this one; nothing where no whole number does."""
        while isinstance(dim, ast.ParenExpr):
            dim = dim.inner
        if isinstance(dim, ast.PathExpr):
            name = dim.name
            if name is not None and name in self.names and extent >= 0:
                self.found.setdefault(name, extent)
        elif self.formulas and isinstance(dim, ast.Binary):
            a, b = self._known(dim.lhs), self._known(dim.rhs)
            if (a is None) == (b is None):
                return
            open_side, known = (dim.lhs, b) if a is None else (dim.rhs, a)
            assert known is not None
            if dim.op == "+":
                self._solve(open_side, extent - known)
            elif dim.op == "-":
                self._solve(open_side, extent + known if a is None else known - extent)
            elif dim.op == "*" and known > 0 and extent % known == 0:
                self._solve(open_side, extent // known)

    def _known(self, expr: ast.Expr | None) -> int | None:
        """The value of a number or of a size already found."""
        while isinstance(expr, ast.ParenExpr):
            expr = expr.inner
        if isinstance(expr, ast.Literal):
            return expr.int_value if expr.is_int else None
        name = expr.name if isinstance(expr, ast.PathExpr) else None
        return self.found.get(name) if name is not None else None
