"""The state that lowering shares: store, memoised regions, origins, and the dispatch over the typed tree.

A value is the list of its leaves (``kera_hw.types.flatten_type``); structs and tuples never reach the graph.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kera_hw.frontend.sema.lowering.frame import Frame, VarLeaf, is_constant
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.observing import SITE, Observations, Sites
from kera_hw.frontend.sema.tree.walk import assigned_ranges, item_types, walk
from kera_hw.graph.node import Origin, Ref, Region, StateVar
from kera_hw.graph.store import Store
from kera_hw.ops.spec import Array
from kera_hw.support import Diagnostic, SourceFile, Span
from kera_hw.types import U32, TensorType, Type, flatten_type, leaf_types, numpy_dtype, shape_of

Leaves = list[Ref]
ExprHandler = Callable[["Lowering", Frame, Any], Leaves]
StmtHandler = Callable[["Lowering", Frame, Any], None]


class LowerError(Exception):
    """The program asks for something that has no lowering yet; carries the diagnostic."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        super().__init__(diagnostic.message)


class FailedCallee(Exception):
    """A function this one uses could not be lowered; that was reported where it happened."""


@dataclass(frozen=True, slots=True)
class LoweredFunction:
    """A function's region. Its parameters: parameter leaves, then state leaves; its results: result leaves,
    then final leaves of `&mut` parameters, then next state leaves, then what it observes."""

    region: Region
    state: tuple[StateVar, ...]
    result_count: int
    borrowed_count: int
    sites: Sites = Sites()


@dataclass(frozen=True, slots=True)
class Watch:
    """The hidden variable of one assertion: a flag, then both sides where it first failed."""

    var: hir.Var
    side_types: tuple[Type, ...]


class Lowering:
    """One lowering run. Handlers are registered per class of tree node in ``lower.py``."""

    def __init__(
        self,
        store: Store,
        expr_handlers: dict[type, ExprHandler],
        stmt_handlers: dict[type, StmtHandler],
    ) -> None:
        self.store = store
        self.file = SourceFile("<none>", b"")
        self.functions: dict[hir.Function, LoweredFunction | None] = {}
        self.watches: dict[int, Watch] = {}  # by id of the assertion
        self.observations = Observations()
        self.print_numbers: dict[int, int] = {}  # by id of the print, in what is being lowered
        self.diagnostics: list[Diagnostic] = []
        self._exprs = expr_handlers
        self._stmts = stmt_handlers

    # ------------------------------------------------------------ dispatch

    def expr(self, frame: Frame, expr: hir.Expr) -> Leaves:
        """The leaves of an expression's value."""
        outer = self.store.origin
        self._enter(expr.span)
        leaves = self._exprs[type(expr)](self, frame, expr)
        self.store.origin = outer
        return leaves

    def scalar(self, frame: Frame, expr: hir.Expr) -> Ref:
        """The one leaf of a leaf-typed expression."""
        (leaf,) = self.expr(frame, expr)
        return leaf

    def stmt(self, frame: Frame, stmt: hir.Stmt) -> None:
        outer = self.store.origin
        self._enter(stmt.span)
        self._stmts[type(stmt)](self, frame, stmt)
        self.store.origin = outer

    def add_statements(self, handlers: dict[type, StmtHandler]) -> None:
        self._stmts = {**self._stmts, **handlers}

    def block(self, frame: Frame, block: hir.Block) -> Leaves:
        for stmt in block.stmts:
            self.stmt(frame, stmt)
        return [] if block.result is None else self.expr(frame, block.result)

    # ------------------------------------------------------------ origins

    def _enter(self, span: Span) -> None:
        self.store.origin = self._place(span)

    def _place(self, span: Span) -> Origin:
        return Origin(self.file.path, span, self.file.line(span.start))

    @staticmethod
    def place_of(var: hir.Var, file: SourceFile) -> Origin:
        """Where a variable is declared."""
        return Origin(file.path, var.span, file.line(var.span.start))

    def add_scope(self, region: Region, span: Span) -> None:
        """Remember the text that a region was made from."""
        self.store.add_scopes(region, (self._place(span),))

    def name(self, kind: Type, name: str, leaves: Sequence[Ref]) -> None:
        """Remember the variable that a value was bound to; the first name of a node stays."""
        for leaf, ref in zip(flatten_type(kind), leaves):
            origin = self.store.origins.get(ref.node)
            shared = ref.node.opcode in ("core.param", "core.constant")
            if origin is not None and origin.name is None and not shared:
                named = ".".join((name, *leaf.path))
                self.store.origins[ref.node] = Origin(
                    origin.path, origin.span, origin.line, named, origin.others
                )

    # ------------------------------------------------------------ helpers

    def assigned(self, frame: Frame, *roots: Any) -> list[VarLeaf]:
        """Leaves living in ``frame`` that the parts assign, in order of first assignment."""
        found: dict[VarLeaf, None] = {}
        for root in roots:
            for part in walk(root):
                for var in self.observations.assigned(part):
                    if frame.knows(var):
                        found.update(dict.fromkeys((var, index) for index in range(frame.leaf_count(var))))
            for part in walk(root, into_lambdas=False):
                ranges = list(assigned_ranges(part))
                if id(part) in self.watches:
                    ranges.append((self.watches[id(part)].var, 0, None))
                for var, low, high in ranges:
                    if frame.knows(var):
                        stop = frame.leaf_count(var) if high is None else high
                        found.update(dict.fromkeys((var, index) for index in range(low, stop)))
        return list(found)

    def index_constant(self, value: int) -> Ref:
        return self.store.constant(U32, value)

    def numbers_array(self, numbers: Sequence[int]) -> Array:
        """Numbers of prints as a table."""
        return np.array(numbers, numpy_dtype(SITE))

    def zeros(self, kind: Type) -> Ref:
        return self.store.constant(kind, np.zeros(shape_of(kind), numpy_dtype(kind)))

    def error(self, code: str, message: str, span: Span) -> LowerError:
        return LowerError(Diagnostic(code, message, self.file, span))


def constant_leaves(value: Any) -> list[Any]:
    """The leaf arrays of a constant in the nested form of ``hir.Const``."""
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in constant_leaves(item)]  # pyright: ignore[reportUnknownVariableType]
    return [value]


def nest_leaves(kind: Type, leaves: list[Any]) -> Any:
    """Inverse of ``constant_leaves`` for a type; consumes ``leaves`` from the front."""
    inner = kind.element if isinstance(kind, TensorType) else kind
    if len(leaf_types(inner)) == 1 and not item_types(inner):
        return leaves.pop(0)
    return tuple(
        nest_leaves(TensorType.tensor(item, kind.shape) if isinstance(kind, TensorType) else item, leaves)
        for item in item_types(inner)
    )


def constant_array(ref: Ref) -> Array:
    """The value of a ``core.constant`` output, shaped, in the storage dtype."""
    assert is_constant(ref)
    data = ref.node.attr("value")
    assert isinstance(data, bytes)
    dtype = numpy_dtype(ref.type)
    return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype).reshape(shape_of(ref.type))
