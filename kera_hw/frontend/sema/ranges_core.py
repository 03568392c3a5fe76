"""The prover's shared state and its dispatch: abstract execution of one body at a time.

Evaluating an expression in a ``State`` gives a range per leaf, performs its assignments on the state, and
checks the indices in it. A quiet evaluation only looks.
"""
from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kera_hw.frontend.sema import hir
from kera_hw.frontend.sema.ranges_keys import Definitions
from kera_hw.frontend.sema.ranges_state import Ranges, State
from kera_hw.ops.intervals import Interval, type_interval
from kera_hw.support import Diagnostic, Span
from kera_hw.types import Type, leaf_types

ExprRule = Callable[["Prover", State, Any], Ranges]
StmtRule = Callable[["Prover", State, Any], None]


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition known to hold (or, with ``truth`` False, not to) where the current point is reached."""

    cond: hir.Expr
    truth: bool


@dataclass(frozen=True, slots=True)
class Summary:
    """What a function gives whatever its arguments: ranges of its result and of its `&mut` parameters."""

    result: tuple[Interval | None, ...]
    borrowed: tuple[tuple[Interval | None, ...], ...]


@dataclass(slots=True)
class Scope:
    """Where in a body the prover is: enclosing loops and guards, and the definitions of locals."""

    function: hir.Function | None
    loops: list[hir.For] = field(default_factory=list[hir.For])
    guards: list[Guard] = field(default_factory=list[Guard])
    definitions: Definitions = field(default_factory=Definitions)


class Prover:
    """Collects a diagnostic per index that may leave its axis."""

    def __init__(self, expr_rules: dict[type, ExprRule], stmt_rules: dict[type, StmtRule]) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.reported: set[tuple[str, Span]] = set()
        self.summaries: dict[hir.Function, Summary] = {}
        self.scope = Scope(None)
        self.in_form = False
        self.in_refine = False
        self._quiet = 0
        self._exprs = expr_rules
        self._stmts = stmt_rules

    @property
    def quiet(self) -> bool:
        return self._quiet > 0

    @property
    def hasty(self) -> bool:
        """In a look from within a look: take shortcuts, else nested loops cost a power of their depth."""
        return self._quiet > 1

    @contextmanager
    def looking(self) -> Generator[None]:
        """Within it, no index is checked: for evaluations that are repeated or hypothetical."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

    @contextmanager
    def forming(self) -> Generator[None]:
        """Within it a linear form is being worked out."""
        outer, self.in_form = self.in_form, True
        try:
            yield
        finally:
            self.in_form = outer
        self.in_refine = False

    @contextmanager
    def refining(self) -> Generator[None]:
        """Within it a condition is being learnt from."""
        self.in_refine = True
        try:
            yield
        finally:
            self.in_refine = False

    @contextmanager
    def guarded(self, cond: hir.Expr, truth: bool) -> Generator[None]:
        self.scope.guards.append(Guard(cond, truth))
        try:
            yield
        finally:
            self.scope.guards.pop()

    def expr(self, state: State, expr: hir.Expr) -> Ranges:
        return self._exprs[type(expr)](self, state, expr)

    def peek(self, state: State, expr: hir.Expr) -> Ranges:
        """Ranges of an expression, leaving state and diagnostics alone."""
        with self.looking():
            return self.expr(state.copy(), expr)

    def scalar(self, state: State, expr: hir.Expr) -> Interval | None:
        found = self.expr(state, expr)
        return found[0] if found else None

    def stmt(self, state: State, stmt: hir.Stmt) -> None:
        self._stmts[type(stmt)](self, state, stmt)

    def block(self, state: State, block: hir.Block) -> Ranges:
        for stmt in block.stmts:
            self.stmt(state, stmt)
        return [] if block.result is None else self.expr(state, block.result)


def full_ranges(kind: Type) -> Ranges:
    """The ranges of a value of which only the type is known."""
    return [type_interval(leaf) for leaf in leaf_types(kind)]
