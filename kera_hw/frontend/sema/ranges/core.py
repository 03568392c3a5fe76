"""The prover's shared state and its dispatch: abstract execution of one body at a time.

Evaluating an expression in a ``State`` gives a symbol per leaf, performs its assignments on the state, and
checks the indices in it. A quiet evaluation only looks.
"""
from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kera_hw.frontend.sema.ranges.linear import known, linear
from kera_hw.frontend.sema.ranges.state import State
from kera_hw.frontend.sema.ranges.store import MAX_DEPTH, SymbolStore
from kera_hw.frontend.sema.ranges.symbol import Head, Known, Symbol, Symbols
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.walk import bound_vars
from kera_hw.support import Diagnostic, Span
from kera_hw.types import Type

ExprRule = Callable[["Prover", State, Any], Symbols]
StmtRule = Callable[["Prover", State, Any], None]


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition known to hold (or, with ``truth`` False, not to) where the current point is reached."""

    cond: hir.Expr
    truth: bool


@dataclass(frozen=True, slots=True)
class Summary:
    """What a function gives whatever its arguments: of its result and of its `&mut` parameters, by leaf."""

    result: tuple[Known, ...]
    borrowed: tuple[tuple[Known, ...], ...]


@dataclass(slots=True)
class Scope:
    """Where in a body one is: enclosing loops and guards, and the definitions of immutable locals."""

    function: hir.Function | None
    loops: list[hir.For] = field(default_factory=list[hir.For])
    guards: list[Guard] = field(default_factory=list[Guard])
    lets: dict[hir.Var, hir.Let] = field(default_factory=dict[hir.Var, hir.Let])

    def record(self, stmt: hir.Let) -> None:
        self.lets.update((var, stmt) for var in bound_vars(stmt.pattern) if not var.mutable)


@dataclass(eq=False, slots=True)
class ProofContext:
    """What loops were found to keep, so that the next look at one starts there: by loop and call, inside
    one another as they are run."""

    heads: dict[tuple[hir.Var, int], Head] = field(default_factory=dict[tuple[hir.Var, int], Head])
    found: dict[Any, Known | None] = field(default_factory=dict[Any, "Known | None"])
    cases: tuple[Any, ...] = ()
    inner: dict[int, ProofContext] = field(default_factory=dict[int, "ProofContext"])

    def enter(self, part: object) -> ProofContext:
        return self.inner.setdefault(id(part), ProofContext())


class Prover:
    """Collects a diagnostic per index that may leave its axis."""

    def __init__(self, expr_rules: Mapping[type, ExprRule], stmt_rules: Mapping[type, StmtRule]) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.reported: set[tuple[str, Span]] = set()
        self.summaries: dict[hir.Function, Summary] = {}
        self.sizes: dict[hir.Function, int] = {}
        self.store = SymbolStore()
        self.scope = Scope(None)
        self.context = ProofContext()
        self._quiet = 0
        self._exprs = expr_rules
        self._stmts = stmt_rules

    @property
    def quiet(self) -> bool:
        return self._quiet > 0

    @contextmanager
    def looking(self) -> Generator[None]:
        """Within it, no index is checked: for evaluations that are repeated or hypothetical."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

    @contextmanager
    def within(self, context: ProofContext) -> Generator[None]:
        outer, self.context = self.context, context
        try:
            yield
        finally:
            self.context = outer

    @contextmanager
    def scoped(self, scope: Scope) -> Generator[None]:
        outer, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = outer

    @contextmanager
    def guarded(self, cond: hir.Expr, truth: bool) -> Generator[None]:
        self.scope.guards.append(Guard(cond, truth))
        try:
            yield
        finally:
            self.scope.guards.pop()

    def expr(self, state: State, expr: hir.Expr) -> Symbols:
        return self._exprs[type(expr)](self, state, expr)

    def scalar(self, state: State, expr: hir.Expr) -> Symbol:
        """Of an expression with a single leaf, which may be a tensor's."""
        return self.expr(state, expr)[0]

    def stmt(self, state: State, stmt: hir.Stmt) -> None:
        self._stmts[type(stmt)](self, state, stmt)

    def block(self, state: State, block: hir.Block) -> Symbols:
        for stmt in block.stmts:
            self.stmt(state, stmt)
        return () if block.result is None else self.expr(state, block.result)

    def make(
        self, state: State, name: str, kind: Type, args: Sequence[Symbol],
        attrs: Mapping[str, Any] | None = None, note: Any = None, base: Known | None = None,
    ) -> Symbol:
        """An operation on symbols; an unknown with its range where the expression grows too deep."""
        symbol = self.store.make(name, kind, args, attrs, note, base)
        if symbol.depth <= MAX_DEPTH:
            return symbol
        found = known(state, symbol)
        return self.store.atom(kind, found.interval, found.residue, symbol.heads)

    def compared(self, state: State, symbol: Symbol, value: int, limit: bool = False) -> None:
        """A value met a constant: loops that it comes from may keep it on one side of that. ``limit``: they
        had better keep it at most so."""
        if not symbol.heads:
            return
        form = linear(state, symbol)
        if len(form.terms) == 1:
            ((_, coefficient),) = form.terms.items()
            value = (value - form.constant) // coefficient
        for head in symbol.heads:
            head.thresholds.update((value - 1, value, value + 1))
            if limit:
                head.limits.add(value)
