"""Loops whose bounds change with the loops around them: ``for i in 0..8 { for j in i + 1..8 { .. } }``.

A loop in the graph has static bounds. Such a bound is known in each iteration all the same, so it is
evaluated in every one of them; the loop then runs over all values it takes anywhere, and its body stands
under the condition that the value is one of the present iteration's.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd

from kera_hw.frontend.sema.names.scope import Local
from kera_hw.frontend.sema.ranges.points import known_values, unknown_var
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.walk import walk
from kera_hw.frontend.sema.typing.context import Context, Value, broken, is_poison
from kera_hw.frontend.sema.typing.elementwise import make_op
from kera_hw.frontend.sema.typing.literals import scalar_constant
from kera_hw.frontend.sema.typing.unify import describe, resolve
from kera_hw.frontend.syntax import ast
from kera_hw.frontend.syntax.kinds import SyntaxKind
from kera_hw.support import Fix, Span
from kera_hw.types import BOOL, IntType

#: Start, step and number of iterations.
Plan = tuple[int, int, int]
_I64 = IntType(64, True)
MOST_ROUNDS = (1 << 31) - 1
#: How a loop is written whose number of rounds is known at run time only.
RUN_TIME_LOOP = Fix(
    "write `let mut i = 0; while i < n, max 16 { .. i += 1; }`, where 16 is the most rounds there may be"
)


@dataclass(slots=True)
class Bound:
    """A walked bound or step."""

    value: Value
    name: str  # "A bound of a loop", for messages

    def build(self, ctx: Context) -> hir.Expr | None:
        made = self.value.build()
        if is_poison(made):
            return None
        if not isinstance(made.type, IntType):
            ctx.report("K0309", f"{self.name} is an integer, and this is {describe(made.type)}.",
                       self.value.span)
            return None
        return made


@dataclass(slots=True)
class KnownRange:
    """``low..high``, then ``.rev()`` if ``backward``, and at most one ``.step_by``; ``from_end``: that one
    came after the ``.rev()``, so that it counts from the last value."""

    low: Bound
    high: Bound
    inclusive: bool
    span: Span
    ready: Callable[[], bool]  # whether the functions that the bounds call are checked and can be run
    backward: bool = False
    step: Bound | None = None
    from_end: bool = False


def changes(ctx: Context, exprs: Sequence[ast.Expr | None]) -> bool:
    """Whether expressions use loop variables or immutable locals, so that no single value may be theirs."""
    symbols = (ctx.lookup(name) for expr in exprs for name in _names(expr))
    return any(
        isinstance(symbol, Local) and symbol.role in ("loop variable", "variable") and not symbol.var.mutable
        for symbol in symbols
    )


def _names(expr: ast.Expr | None) -> Iterator[str]:
    """Plain names in an expression, but not those under ``len``, whose value is static."""
    stack = [expr.node] if expr is not None else []
    while stack:
        node = stack.pop()
        if node.kind is SyntaxKind.CALL_EXPR:
            callee = ast.Call(node).callee
            path = callee.path if isinstance(callee, ast.PathExpr) else None
            if path is not None and path.names == ["len"]:
                continue
        if node.kind is SyntaxKind.PATH_EXPR:
            path = ast.PathExpr(node).path
            if path is not None and len(path.names) == 1:
                yield path.names[0]
        stack.extend(node.children)


def known_range(ctx: Context, expr: ast.Range, modifiers: Sequence[ast.MethodCall]) -> KnownRange | None:
    """Walk the bounds and the step; None when something was reported."""
    calls = len(ctx.shared.calls)
    low, high = (bound_of(ctx, bound, "A bound of a loop") for bound in (expr.start, expr.end))
    step: Bound | None = None
    backward = from_end = False
    for item in modifiers:
        if item.name == "rev":
            backward = not backward
        elif step is not None:
            ctx.report("K0316", "A range whose bounds change takes one `step_by`.", item.span)
            return None
        else:
            step, from_end = bound_of(ctx, item.args[0].value, "A step"), backward
    called = ctx.shared.calls[calls:]
    return KnownRange(low, high, expr.inclusive, expr.span, lambda: ctx.checker.complete(ctx, called),
                      backward, step, from_end)


def bound_of(ctx: Context, expr: ast.Expr | None, name: str) -> Bound:
    """Where the bound is a constant its type is of no matter, as in a loop with constant bounds alone."""
    if expr is None or changes(ctx, [expr]):
        return Bound(ctx.expr(expr), name)
    with ctx.advising(RUN_TIME_LOOP):
        number = ctx.integer(expr, name)
    if number is None:
        return Bound(broken(expr.span), name)
    span = expr.span
    if not _I64.min <= number <= _I64.max:
        return Bound(ctx.fail("K0316", "The bounds of this loop leave the range of `i64`.", span), name)
    return Bound(Value(_I64, span, lambda: hir.Const(_I64, span, scalar_constant(number, _I64))), name)


def settle(ctx: Context, head: KnownRange, var: hir.Var) -> tuple[Plan, hir.Expr | None] | None:
    """The static plan and the condition on the body (None: always); None when something was reported."""
    low, high = head.low.build(ctx), head.high.build(ctx)
    step = head.step.build(ctx) if head.step is not None else None
    if low is None or high is None or (head.step is not None and step is None) or not head.ready():
        return None
    exprs = (low, high) if step is None else (low, high, step)
    columns = known_values(ctx.known, exprs, ctx.file)
    if columns is None:
        report_unknown(ctx, exprs, head.span)
        return None
    lows, highs = columns[:2]
    steps = columns[2] if step is not None else [1] * len(lows)
    if steps and min(steps) < 1:
        ctx.report("K0309", f"A step is 1 to {MOST_ROUNDS}, and this is {min(steps)} in some iteration.",
                   exprs[-1].span)
        return None
    every = [_Round(a, b + head.inclusive, k, head.from_end) for a, b, k in zip(lows, highs, steps)]
    taken = [one for one in every if one.low < one.end]
    if not taken:
        return (0, 1, 0), None
    by = gcd(*(one.step for one in taken), *(one.anchor - taken[0].anchor for one in taken))
    least, most = min(one.least for one in taken), max(one.most for one in taken)
    count = (most - least) // by + 1
    if count > MOST_ROUNDS:
        ctx.report("K0316", f"This loop would run {count} times in some iteration of the loops around it, "
                   f"more than {MOST_ROUNDS}.", head.span)
        return None
    kind = resolve(var.type)
    if not isinstance(kind, IntType):
        return None
    values = [value for column in columns for value in column]
    wide = kind if kind.min <= min(values) and max(values) <= kind.max else _I64
    if not (wide.min <= min(values) and max(values) <= wide.max):
        ctx.report("K0316", "The bounds of this loop leave the range of `i64` in some iteration.", head.span)
        return None
    condition = _Condition(head, wide, converted(hir.Local(kind, head.span, var), wide),
                           tuple(converted(expr, wide) for expr in exprs))
    plan = (most, -by, count) if head.backward else (least, by, count)
    return plan, condition.make(
        any(one.low > least for one in every), any(one.end <= most for one in every),
        any(one.step != by for one in taken),
    )


@dataclass(frozen=True, slots=True)
class _Round:
    """The values of the range in one iteration of the loops around it."""

    low: int
    end: int  # exclusive
    step: int
    from_end: bool

    @property
    def anchor(self) -> int:
        """The value that steps are counted from."""
        return self.end - 1 if self.from_end else self.low

    @property
    def least(self) -> int:
        return self.end - 1 - self._reach if self.from_end else self.low

    @property
    def most(self) -> int:
        return self.end - 1 if self.from_end else self.low + self._reach

    @property
    def _reach(self) -> int:
        return (self.end - 1 - self.low) // self.step * self.step


@dataclass(frozen=True, slots=True)
class _Condition:
    """That the loop variable has a value of the present iteration. Bounds are (low, high[, step])."""

    head: KnownRange
    kind: IntType
    value: hir.Expr
    bounds: tuple[hir.Expr, ...]

    def make(self, from_low: bool, to_high: bool, by_step: bool) -> hir.Expr | None:
        """The parts that do not hold anyway."""
        low, high, span = self.bounds[0], self.bounds[1], self.head.span
        parts: list[hir.Expr] = []
        if from_low:
            parts.append(make_op("compare.le", BOOL, span, [low, self.value]))
        if to_high:
            name = "compare.le" if self.head.inclusive else "compare.lt"
            parts.append(make_op(name, BOOL, span, [self.value, high]))
        if by_step:
            parts.append(self._stride())
        if not parts:
            return None
        made = parts[0]
        for part in parts[1:]:
            made = hir.Logical(BOOL, span, "and", made, part)
        return made

    def _stride(self) -> hir.Expr:
        """Whole steps from the anchor. Outside of the bounds this may wrap: there the bounds refuse."""
        low, high, step = self.bounds
        if self.head.from_end:
            last = high if self.head.inclusive else self._op("sub", high, self._number(1))
            distance = self._op("sub", last, self.value)
        else:
            distance = self._op("sub", self.value, low)
        return make_op(
            "compare.eq", BOOL, self.head.span, [self._op("rem", distance, step), self._number(0)]
        )

    def _op(self, name: str, *args: hir.Expr) -> hir.Expr:
        return make_op(f"integer.{name}", self.kind, self.head.span, args)

    def _number(self, value: int) -> hir.Expr:
        return hir.Const(self.kind, self.head.span, scalar_constant(value, self.kind))


def converted(expr: hir.Expr, kind: IntType) -> hir.Expr:
    """The expression as a value of the type."""
    return expr if expr.type == kind else make_op("convert.cast", kind, expr.span, [expr], {"type": kind})


def report_unknown(
    ctx: Context, exprs: Sequence[hir.Expr], span: Span, what: str = "The range of this loop",
    advice: Fix = RUN_TIME_LOOP,
) -> None:
    """K0210 at what keeps an expression from being known in each iteration."""
    for expr in exprs:
        var = unknown_var(ctx.known, expr)
        if var is None:
            continue
        uses = [part for part in walk(expr) if isinstance(part, hir.Local)]
        where = next((part for part in uses if unknown_var(ctx.known, part) is not None), expr)
        name = where.var.name if isinstance(where, hir.Local) else var.name
        ctx.report(
            "K0210", f"`{name}` is known only at run time, and a compile-time value is needed here.",
            where.span, labels=[(var.span, f"`{var.name}` decides its value")], fix=advice,
        )
        return
    ctx.report("K0210", f"{what} can't be worked out at compile time for each iteration of the loops around "
               "it.", span)
