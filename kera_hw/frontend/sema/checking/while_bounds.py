"""The bound of a `while`: a constant, or a value known in each iteration of the loops around it.

The graph's loop has one bound. Where the bound changes, a `for` over all rounds that any iteration may take
goes on as long as the condition has held and the present bound is not reached; its rounds are numbered, so
the comparison with the bound folds away in circuits.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.frontend.sema.checking.index import acts
from kera_hw.frontend.sema.checking.known_bounds import (
    MOST_ROUNDS,
    Bound,
    bound_of,
    changes,
    converted,
    report_unknown,
)
from kera_hw.frontend.sema.ranges.points import known_values
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import Context, Instance, constant_expr
from kera_hw.frontend.sema.typing.elementwise import make_op
from kera_hw.frontend.sema.typing.literals import scalar_constant
from kera_hw.frontend.syntax import ast
from kera_hw.support import Fix, Span
from kera_hw.types import BOOL, UNIT, IntType

_WHAT = "The bound of a `while`"
_I64 = IntType(64, True)
_RUN_TIME = Fix("write the most rounds there may be, and test the other bound in the condition")


@dataclass(frozen=True, slots=True)
class Most:
    """A bound that changes: its value, and the largest one that it takes."""

    value: hir.Expr
    largest: int


@dataclass(slots=True)
class KnownBound:
    """A walked bound that uses loop variables or immutable locals."""

    bound: Bound
    calls: list[tuple[Instance, Span]]

    def settle(self, ctx: Context) -> int | Most | None:
        """Once types are known: the bound, one number where it is; None when something was reported."""
        made = self.bound.build(ctx)
        if made is None or not ctx.checker.complete(ctx, self.calls):
            return None
        columns = known_values(ctx.known, (made,), ctx.file)
        if columns is None:
            report_unknown(ctx, (made,), made.span, _WHAT, _RUN_TIME)
            return None
        values = columns[0]
        for value in (min(values, default=0), max(values, default=0)):
            if not 0 <= value <= MOST_ROUNDS:
                ctx.report("K0309", f"{_WHAT} is 0 to {MOST_ROUNDS}, and this is {value} in some iteration.",
                           made.span)
                return None
        largest = max(values, default=0)
        return largest if min(values, default=0) == largest else Most(made, largest)


def while_bound(ctx: Context, written: ast.Expr | None) -> int | KnownBound | None:
    """The bound as far as it is known before types are; None when something was reported."""
    if written is None or not changes(ctx, [written]):
        with ctx.advising(_RUN_TIME):
            return ctx.size(written, _WHAT)
    before = len(ctx.shared.calls)
    walked = bound_of(ctx, written, _WHAT)
    return KnownBound(walked, ctx.shared.calls[before:])


def bounded_loop(span: Span, cond: hir.Expr, body: hir.Block, most: Most) -> hir.Stmt:
    """``while cond, max most``."""
    go = hir.Var("<go>", BOOL, True, span)
    round_ = hir.Var("<round>", _I64, False, span)
    going = hir.Local(BOOL, span, go)
    within = make_op("compare.lt", BOOL, span, [hir.Local(_I64, span, round_), converted(most.value, _I64)])
    if acts(cond):
        # As in any loop whose condition does something: once before it, and once after each round.
        first, inner = cond, _block(span, hir.ExprStmt(span, body), _set(span, go, cond))
    else:
        stop = _block(span, _set(span, go, _truth(span, False)))
        first = _truth(span, True)
        inner = _block(span, hir.ExprStmt(span, hir.If(UNIT, span, cond, body, stop)))
    step = hir.If(UNIT, span, hir.Logical(BOOL, span, "and", going, within), inner, None)
    loop = hir.For(span, round_, 0, 1, most.largest, _block(span, hir.ExprStmt(span, step)))
    return hir.ExprStmt(span, _block(span, hir.Let(span, hir.Binding(span, go), first), loop))


def _truth(span: Span, value: bool) -> hir.Expr:
    return constant_expr(BOOL, span, scalar_constant(value, BOOL))


def _set(span: Span, var: hir.Var, value: hir.Expr) -> hir.Stmt:
    return hir.Assign(span, hir.Place(var, (), BOOL, span), value)


def _block(span: Span, *stmts: hir.Stmt) -> hir.Block:
    return hir.Block(UNIT, span, stmts, None)
