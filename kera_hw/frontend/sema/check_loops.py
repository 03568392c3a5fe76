"""The static ranges of `for`."""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.frontend.sema import hir
from kera_hw.frontend.sema.context import Context
from kera_hw.frontend.sema.scope import Local
from kera_hw.frontend.sema.types import resolve_type
from kera_hw.frontend.sema.unify import ERROR, describe
from kera_hw.frontend.syntax import ast
from kera_hw.support import Span
from kera_hw.types import U32, IntType, Type

#: Start, step and number of iterations.
Plan = tuple[int, int, int]


@dataclass(slots=True)
class Head:
    """A checked head: the loop variable, its name in scope (None for `_`), and the plan unless reported."""

    var: hir.Var
    local: Local | None
    plan: Plan | None


def for_statement(ctx: Context, node: ast.ForStmt) -> Head:
    """Check the head of a `for`; the caller declares the variable for the body."""
    kind: Type = U32
    if node.type is not None:
        kind = resolve_type(ctx, node.type)
        if kind is not ERROR and not isinstance(kind, IntType):
            ctx.report(
                "K0316", f"A loop variable is an integer, and {describe(kind)} is none.", node.type.span
            )
            kind = ERROR
    plan = _plan(ctx, node.range)
    if plan is None:
        ctx.shared.errors += 1
        if node.type is None and not _is_range(node.range):
            kind = ERROR  # perhaps the elements of a tensor were meant
    elif isinstance(kind, IntType) and node.range is not None:
        _check_fit(ctx, plan, kind, node.type.span if node.type is not None else node.range.span)
    pattern, token = node.pattern, node.name_token
    where = token.span if token else node.span
    var = hir.Var(token.text if token else "_", kind, False, where)
    if pattern is not None and not isinstance(pattern, (ast.NamePattern, ast.WildcardPattern)):
        ctx.report("K0323", "A loop variable is one name, or `_`.", pattern.span)
    elif isinstance(pattern, ast.NamePattern) and pattern.is_mut:
        ctx.report("K0305", "A loop variable cannot be `mut`: the range decides its values.", pattern.span)
    return Head(var, Local(var, "loop variable") if token else None, plan)


def _check_fit(ctx: Context, plan: Plan, kind: IntType, span: Span) -> None:
    start, step, count = plan
    if not count:
        return
    last = start + (count - 1) * step
    for value in (min(start, last), max(start, last)):
        if not kind.min <= value <= kind.max:
            hint = "" if kind != U32 else "; give the variable a type: `for i: i32 in ..`"
            ctx.report("K0316", f"The loop takes the value {value}, and `{kind}` holds {kind.min} to "
                       f"{kind.max}{hint}.", span)
            return


def _is_range(expr: ast.Expr | None) -> bool:
    while isinstance(expr, (ast.ParenExpr, ast.MethodCall)):
        expr = expr.inner if isinstance(expr, ast.ParenExpr) else expr.receiver
    return isinstance(expr, ast.Range)


def _plan(ctx: Context, expr: ast.Expr | None) -> Plan | None:
    while isinstance(expr, ast.ParenExpr):
        expr = expr.inner
    if isinstance(expr, ast.Range):
        return _range(ctx, expr)
    if isinstance(expr, ast.MethodCall) and expr.name in ("rev", "step_by"):
        inner = _plan(ctx, expr.receiver)
        return _reversed(ctx, expr, inner) if expr.name == "rev" else _stepped(ctx, expr, inner)
    if expr is not None and not isinstance(expr, ast.Error):
        ctx.report(
            "K0316",
            "A `for` runs over a range such as `0..8`, `(0..8).rev()` or `(0..8).step_by(2)`.",
            expr.span,
        )
    return None


def _range(ctx: Context, expr: ast.Range) -> Plan | None:
    if expr.start is None or expr.end is None:
        ctx.report("K0316", "The range of a `for` needs both of its bounds.", expr.span)
        return None
    start = ctx.integer(expr.start, "A bound of a loop")
    end = ctx.integer(expr.end, "A bound of a loop")
    if start is None or end is None:
        return None
    count = max(0, end - start + expr.inclusive)
    if count >= 1 << 31:
        ctx.report("K0316", f"This loop would run {count} times, more than {(1 << 31) - 1}.", expr.span)
        return None
    return start, 1, count


def _reversed(ctx: Context, expr: ast.MethodCall, inner: Plan | None) -> Plan | None:
    if expr.args:
        ctx.report("K0306", "`rev` takes no arguments.", expr.span)
        return None
    if inner is None:
        return None
    start, step, count = inner
    return (start + (count - 1) * step, -step, count) if count else inner


def _stepped(ctx: Context, expr: ast.MethodCall, inner: Plan | None) -> Plan | None:
    args = expr.args
    if len(args) != 1:
        ctx.report("K0306", "`step_by` takes the step alone.", expr.span)
        return None
    by = ctx.size(args[0].value, "A step", least=1)
    if inner is None or by is None:
        return None
    start, step, count = inner
    return start, step * by, -(-count // by)
