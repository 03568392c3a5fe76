"""`if` and `match`."""
from __future__ import annotations

from kera_hw.frontend.sema.checking.blocks import block, body_block
from kera_hw.frontend.sema.checking.exhaustive import cover, domain, example, takes_all
from kera_hw.frontend.sema.checking.patterns import BuildPattern, arm_patterns, check_misspelt
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import Context, Value, broken, is_poison, poison, rule
from kera_hw.frontend.sema.typing.unify import describe, has_error, resolve
from kera_hw.frontend.syntax import ast
from kera_hw.support import Diagnostic, Fix, Label, Severity, Span
from kera_hw.types import BOOL, UNIT


@rule(ast.If)
def _if(ctx: Context, expr: ast.If) -> Value:
    span = expr.span
    condition = ctx.expr(expr.condition, span)
    ctx.expect(condition, BOOL)
    then = _branch(ctx, expr.then_block, span)
    branch = expr.else_branch
    other = _branch(ctx, branch, span) if branch is not None else None
    if other is not None and then.dropped is not None and resolve(other.type) != UNIT:
        good = ctx.expect(then, other.type, [(other.span, f"the other branch is {describe(other.type)}")])
    elif other is not None:
        good = ctx.expect(other, then.type, [(then.span, f"the other branch is {describe(then.type)}")])
    else:
        good = has_error(then.type) or _unit_only(ctx, then)
    kind = then.type if good else other.type if other is not None else UNIT

    def build() -> hir.Expr:
        cond = condition.build()
        with ctx.guarded(cond, True):
            first = then.build()
        with ctx.guarded(cond, False):
            second = other.build() if other is not None else None
        if not good or any(item is not None and is_poison(item) for item in (cond, first, second)):
            return poison(span)
        otherwise = body_block(second) if second is not None else None
        return hir.If(resolve(kind), span, cond, body_block(first), otherwise)

    # Mismatches show at the values of the branches, so the carets stay narrow.
    dropped = then.dropped if other is not None and other.dropped is not None else None
    return Value(kind if good else broken(span).type, span, build, dropped=dropped)


def _unit_only(ctx: Context, then: Value) -> bool:
    if resolve(then.type) == UNIT:
        return True
    ctx.report(
        "K0302", f"This `if` gives {describe(then.type)} but has no `else` to give one as well.", then.span
    )
    return False


def _branch(ctx: Context, node: ast.Expr | None, span: Span) -> Value:
    return block(ctx, node) if isinstance(node, ast.Block) else ctx.expr(node, span)


@rule(ast.Match)
def _match(ctx: Context, expr: ast.Match) -> Value:
    span = expr.span
    scrutinee = ctx.expr(expr.scrutinee, span)
    arms: list[tuple[list[BuildPattern], Value, ast.MatchArm]] = []
    first: Value | None = None
    good = True
    for node in expr.arms:
        with ctx.block():
            patterns = arm_patterns(ctx, node.pattern, scrutinee.type)
            body = _branch(ctx, node.body, node.span)
            check_misspelt(ctx, node.pattern)
        if first is None or has_error(first.type):
            first = body
        elif first.dropped is not None and resolve(body.type) != UNIT:
            good = ctx.expect(first, body.type, [(body.span, f"this arm is {describe(body.type)}")]) and good
        else:
            good = (
                ctx.expect(body, first.type, [(first.span, f"the first arm is {describe(first.type)}")])
                and good
            )
        arms.append((patterns, body, node))
    if first is None:
        ctx.report("K0307", "A `match` needs at least one arm.", span)
        return broken(span)
    kind = first.type

    def build() -> hir.Expr:
        value = scrutinee.build()
        made = [(_patterns(patterns), body.build(), node) for patterns, body, node in arms]
        if is_poison(value) or any(patterns is None for patterns, _, _ in made):
            return poison(span)
        known = [(patterns or (), body, node) for patterns, body, node in made]
        covered = _check_cover(ctx, expr, value, [(patterns, node) for patterns, _, node in known])
        if not covered or any(is_poison(body) for _, body, _ in known):
            return poison(span)
        done = tuple(hir.Arm(patterns, body_block(body), node.span) for patterns, body, node in known)
        return hir.Match(resolve(kind), span, value, done)

    return Value(kind if good else broken(span).type, span, build)


def _unreachable(ctx: Context, span: Span, whole: bool, greedy: Span | None) -> Diagnostic:
    what = "arm" if whole else "alternative"
    before, labels = "those before it take them all", ()
    if greedy is not None:
        before = f"`{ctx.file.text(greedy)}` takes them all"
        labels = (Label(greedy, "this takes every value"),)
    message = f"No value reaches this {what}: {before}."
    return Diagnostic("K0308", message, ctx.file, span, labels, severity=Severity.WARNING)


def _patterns(builders: list[BuildPattern]) -> tuple[hir.Pattern, ...] | None:
    made = [builder() for builder in builders]
    good = tuple(item for item in made if item is not None)
    return good if made and len(good) == len(made) else None


def _check_cover(
    ctx: Context, expr: ast.Match, value: hir.Expr, arms: list[tuple[tuple[hir.Pattern, ...], ast.MatchArm]],
) -> bool:
    scrutinee = expr.scrutinee.span if expr.scrutinee is not None else expr.span
    if domain(value.type) is None:
        ctx.report("K0304", f"`match` takes integers, bools and tuples of them, and this is "
                   f"{describe(value.type)}.", scrutinee)
        return False
    unreached, missing = cover(value.type, [patterns for patterns, _ in arms])
    greedy: Span | None = None  # an arm so far that takes every value by itself
    for lost, (patterns, node) in zip(unreached, arms):
        spans = {pattern.span for pattern in patterns}
        whole = {node.pattern.span} if node.pattern is not None else set[Span]()
        for span in spans | whole:
            # Where all alternatives are lost the arm is, as a whole.
            is_lost = span in whole if lost == spans else span in lost
            finding = _unreachable(ctx, span, span in whole, greedy) if is_lost else None
            ctx.checker.usage.note_arm(ctx.file, span, finding)
        greedy = greedy or next((item.span for item in patterns if takes_all(item, value.type)), None)
    if missing is not None:
        close = Span(expr.span.end - 1, expr.span.end - 1)
        ctx.report("K0307", f"The value `{example(missing, value.type)}` has no arm.", scrutinee,
                   fix=Fix("end with an arm for all other values: `_ => ..`", close, None))
        return False
    return True
