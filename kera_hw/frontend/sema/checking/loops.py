"""The static ranges of `for`."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kera_hw.frontend.sema.checking.known_bounds import (
    MOST_ROUNDS,
    RUN_TIME_LOOP,
    KnownRange,
    Plan,
    changes,
    known_range,
    settle,
)
from kera_hw.frontend.sema.names.scope import Local
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import Context
from kera_hw.frontend.sema.typing.types import resolve_type
from kera_hw.frontend.sema.typing.unify import ERROR, describe
from kera_hw.frontend.syntax import ast
from kera_hw.frontend.syntax.kinds import SyntaxKind
from kera_hw.support import Fix, Span
from kera_hw.types import U32, IntType, Type


@dataclass(slots=True)
class Head:
    """A checked head: the loop variable, its name in scope (None for `_`), and the range unless reported."""

    var: hir.Var
    local: Local | None
    range: Plan | KnownRange | None
    span: Span  # where values that do not fit are reported

    def settle(self, ctx: Context) -> tuple[Plan, hir.Expr | None] | None:
        """Once types are known: the plan, and a condition on the body; None when something was reported."""
        if not isinstance(self.range, KnownRange):
            return None if self.range is None else (self.range, None)
        found = settle(ctx, self.range, self.var)
        if found is None or (isinstance(self.var.type, IntType)
                             and not _fits(ctx, found[0], self.var.type, self.span)):
            return None
        return found


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
    plan = _plan(ctx, node.range, kind)
    if node.range is not None and _is_empty(node.range, plan):
        ctx.checker.usage.empty_ranges[ctx.file.path, node.span] = node.range.span
    where = node.type.span if node.type is not None else node.range.span if node.range else node.span
    if plan is None:
        ctx.shared.errors += 1
        if node.type is None and not _is_range(node.range):
            kind = ERROR  # perhaps the elements of a tensor were meant
    elif isinstance(kind, IntType) and not isinstance(plan, KnownRange):
        _fits(ctx, plan, kind, where)
    pattern, token = node.pattern, node.name_token
    var = hir.Var(token.text if token else "_", kind, False, token.span if token else node.span)
    if pattern is not None and not isinstance(pattern, (ast.NamePattern, ast.WildcardPattern)):
        ctx.report("K0323", "A loop variable is one name, or `_`.", pattern.span)
    elif isinstance(pattern, ast.NamePattern) and pattern.is_mut:
        ctx.report("K0305", "A loop variable cannot be `mut`: the range decides its values.", pattern.span)
    return Head(var, Local(var, "loop variable") if token else None, plan, where)


def _fits(ctx: Context, plan: Plan, kind: IntType, span: Span) -> bool:
    start, step, count = plan
    if not count:
        return True
    last = start + (count - 1) * step
    for value in (min(start, last), max(start, last)):
        if not kind.min <= value <= kind.max:
            hint = "" if kind != U32 else "; give the variable a type: `for i: i32 in ..`"
            ctx.report("K0316", f"The loop takes the value {value}, and `{kind}` holds {kind.min} to "
                       f"{kind.max}{hint}.", span)
            return False
    return True


def _is_empty(written: ast.Expr, plan: Plan | KnownRange | None) -> bool:
    """Whether the loop never runs, and not for a named constant alone that may be 0 today."""
    if isinstance(plan, KnownRange) or plan is None or plan[2]:
        return isinstance(plan, KnownRange)  # which may turn out to be so in every iteration
    bounds = [ast.cast(node) for node in written.node.descendants() if node.kind is SyntaxKind.RANGE_EXPR]
    return any(
        isinstance(bound, ast.Range) and isinstance(bound.start, ast.Literal)
        and (isinstance(bound.end, ast.Literal) or bound.start.int_value != 0)
        for bound in bounds
    )


def _is_range(expr: ast.Expr | None) -> bool:
    while isinstance(expr, (ast.ParenExpr, ast.MethodCall)):
        expr = expr.inner if isinstance(expr, ast.ParenExpr) else expr.receiver
    return isinstance(expr, ast.Range)


def _plan(ctx: Context, expr: ast.Expr | None, kind: Type) -> Plan | KnownRange | None:
    """The range of a `for`; None when something was reported."""
    modifiers: list[ast.MethodCall] = []
    while isinstance(expr, ast.ParenExpr) or (
        isinstance(expr, ast.MethodCall) and expr.name in ("rev", "step_by")
    ):
        if isinstance(expr, ast.MethodCall):
            modifiers.append(expr)
        expr = expr.inner if isinstance(expr, ast.ParenExpr) else expr.receiver
    if not isinstance(expr, ast.Range):
        if expr is not None and not isinstance(expr, ast.Error):
            ctx.report(
                "K0316",
                "A `for` runs over a range such as `0..8`, `(0..8).rev()` or `(0..8).step_by(2)`.",
                expr.span, fix=_as_range(expr),
            )
        return None
    modifiers.reverse()
    if not _well_formed(ctx, expr, modifiers):
        return None
    steps = [item.args[0].value for item in modifiers if item.name == "step_by"]
    if isinstance(kind, IntType) and changes(ctx, [expr.start, expr.end, *steps]):
        return known_range(ctx, expr, modifiers)
    plan = _range(ctx, expr)
    for item in modifiers:
        plan = _reversed(plan) if item.name == "rev" else _stepped(ctx, item.args[0].value, plan)
    return plan


def _as_range(expr: ast.Expr) -> Fix | None:
    """The range meant by `range(n)`, or by a tensor."""
    values = [arg.value for arg in expr.args if arg.value is not None] if isinstance(expr, ast.Call) else []
    if isinstance(expr, ast.Call) and expr.name == "range" and 1 <= len(values) <= 3:
        ends = ["0", *(value.text for value in values)] if len(values) == 1 else [v.text for v in values]
        made = f"{ends[0]}..{ends[1]}" + (f").step_by({ends[2]})" if len(ends) == 3 else "")
        made = f"({made}" if len(ends) == 3 else made
        return Fix(f"write `{made}`", expr.span, made)
    if isinstance(expr, ast.PathExpr):
        return Fix(f"write `for i in 0..len({expr.text})`, and use `{expr.text}[i]`")
    return None


def _well_formed(ctx: Context, expr: ast.Range, modifiers: Sequence[ast.MethodCall]) -> bool:
    before = ctx.shared.errors
    if expr.start is None or expr.end is None:
        ctx.report("K0316", "The range of a `for` needs both of its bounds.", expr.span)
    for item in modifiers:
        if item.name == "rev" and item.args:
            ctx.report("K0306", "`rev` takes no arguments.", item.span)
        elif item.name == "step_by" and len(item.args) != 1:
            ctx.report("K0306", "`step_by` takes the step alone.", item.span)
    return ctx.shared.errors == before


def _range(ctx: Context, expr: ast.Range) -> Plan | None:
    with ctx.advising(RUN_TIME_LOOP):
        start = ctx.integer(expr.start, "A bound of a loop")
        end = ctx.integer(expr.end, "A bound of a loop")
    if start is None or end is None:
        return None
    count = max(0, end - start + expr.inclusive)
    if count > MOST_ROUNDS:
        ctx.report("K0316", f"This loop would run {count} times, more than {MOST_ROUNDS}.", expr.span)
        return None
    return start, 1, count


def _reversed(plan: Plan | None) -> Plan | None:
    if plan is None:
        return None
    start, step, count = plan
    return (start + (count - 1) * step, -step, count) if count else plan


def _stepped(ctx: Context, written: ast.Expr | None, plan: Plan | None) -> Plan | None:
    by = ctx.size(written, "A step", least=1)
    if plan is None or by is None:
        return None
    start, step, count = plan
    return start, step * by, -(-count // by)
