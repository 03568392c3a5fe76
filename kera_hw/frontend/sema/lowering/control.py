"""Statements and structured control: branches, loops, lambdas. Control stays structured in the graph."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.frontend.sema.lowering.core import Leaves, Lowering
from kera_hw.frontend.sema.lowering.frame import Captures, Frame, VarLeaf
from kera_hw.frontend.sema.lowering.index import resolve_place, write_place
from kera_hw.frontend.sema.lowering.observe import hidden_changes, meet_any
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.walk import field_range, item_types
from kera_hw.graph.node import Ref, Region
from kera_hw.types import TensorType, Type, leaf_types

# ---------------------------------------------------------------- statements


def lower_let(ctx: Lowering, frame: Frame, stmt: hir.Let) -> None:
    bind_pattern(ctx, frame, stmt.pattern, stmt.value.type, ctx.expr(frame, stmt.value))


def bind_pattern(ctx: Lowering, frame: Frame, pattern: hir.Pattern, kind: Type, leaves: Leaves) -> None:
    """Bind the names of an (already matched) pattern."""
    if isinstance(pattern, hir.Binding):
        ctx.name(pattern.var.type, pattern.var.name, leaves)
        frame.bind(pattern.var, leaves)
    elif isinstance(pattern, hir.TuplePattern):
        for index, (item, item_type) in enumerate(zip(pattern.items, item_types(kind))):
            low, high = field_range(kind, index)
            bind_pattern(ctx, frame, item, item_type, leaves[low:high])


def lower_assign(ctx: Lowering, frame: Frame, stmt: hir.Assign) -> None:
    value = ctx.expr(frame, stmt.value)
    write_place(ctx, frame, resolve_place(ctx, frame, stmt.place), value)


def lower_expr_stmt(ctx: Lowering, frame: Frame, stmt: hir.ExprStmt) -> None:
    ctx.expr(frame, stmt.value)


def lower_block(ctx: Lowering, frame: Frame, expr: hir.Block) -> Leaves:
    return ctx.block(frame, expr)


# ---------------------------------------------------------------- branches


def lower_if(ctx: Lowering, frame: Frame, expr: hir.If) -> Leaves:
    selector = ctx.scalar(frame, expr.cond)
    otherwise = expr.otherwise or hir.Block(expr.type, expr.span, (), None)
    return branch(ctx, frame, selector, [otherwise, expr.then])


class Arms:
    """Arms of one branch, lowered over shared captures. Results: outside leaves that any of them
    assigns, in order of first assignment, then the value."""

    def __init__(self, ctx: Lowering, frame: Frame) -> None:
        self.ctx = ctx
        self.frame = frame
        self.captures = Captures(frame, 0)
        self._lowered: list[tuple[Frame, Leaves]] = []

    def add(self, body: hir.Block, bound: tuple[hir.Pattern, Type, Leaves] | None = None) -> None:
        """``bound``: a pattern whose names the body may use, with the matched value."""
        inner = Frame(self.frame.store, (), self.captures)
        if bound is not None:
            pattern, kind, scrutinee = bound
            bind_pattern(self.ctx, inner, pattern, kind, [self.captures.bring(leaf) for leaf in scrutinee])
        self._lowered.append((inner, self.ctx.block(inner, body)))

    def finish(self, selector: Ref, table: Sequence[int]) -> Leaves:
        """The branch node; ``table[k]`` is the arm that selector value k takes."""
        changed: dict[VarLeaf, None] = {}
        for inner, _ in self._lowered:
            changed.update(dict.fromkeys(inner.changed()))
        targets = list(changed)
        results = [
            [*(inner.leaf(var, index) for var, index in targets), *value] for inner, value in self._lowered
        ]
        if not results[0]:
            return []
        regions = [inner.region(leaves) for (inner, _), leaves in zip(self._lowered, results)]
        node = self.ctx.store.node(
            "control.branch", [selector, *self.captures.refs], {"regions": tuple(regions[k] for k in table)}
        )
        outs = [node.out(index) for index in range(len(node.types))]
        self.frame.assign_all(targets, outs)
        return outs[len(targets):]


def branch(ctx: Lowering, frame: Frame, selector: Ref, bodies: Sequence[hir.Block]) -> Leaves:
    arms = Arms(ctx, frame)
    for body in bodies:
        arms.add(body)
    return arms.finish(selector, range(len(bodies)))


# ---------------------------------------------------------------- loops


def lower_for(ctx: Lowering, frame: Frame, stmt: hir.For) -> None:
    """Carried: leaves living outside that the body assigns."""
    targets = ctx.assigned(frame, stmt.body)
    initial = [frame.leaf(var, index) for var, index in targets]
    leading = [stmt.var.type, *(ref.type for ref in initial)]
    captures = Captures(frame, len(leading))
    inner = Frame(frame.store, leading, captures)
    inner.bind(stmt.var, [frame.store.param(0, stmt.var.type)])
    _bind_carried(inner, targets, initial, first=1)
    ctx.block(inner, stmt.body)
    if not targets:
        return  # nothing can come of it; the body was lowered for its diagnostics
    region = inner.region([inner.leaf(var, index) for var, index in targets])
    node = frame.store.node("control.loop", [*initial, *captures.refs], {
        "carried": len(targets), "count": stmt.count, "index_type": stmt.var.type, "region": region,
        "start": stmt.start, "step": stmt.step,
    })
    frame.assign_all(targets, (node.out(index) for index in range(len(targets))))


def _bind_carried(inner: Frame, targets: Sequence[VarLeaf], initial: Sequence[Ref], first: int) -> None:
    inner.assign_all(targets, (inner.store.param(first + k, ref.type) for k, ref in enumerate(initial)))


def lower_while(ctx: Lowering, frame: Frame, stmt: hir.While) -> None:
    targets = ctx.assigned(frame, stmt.cond, stmt.body)
    if ctx.assigned(frame, stmt.cond):
        _while_with_flag(ctx, frame, stmt, targets)
        return
    initial = [frame.leaf(var, index) for var, index in targets]
    leading = [ref.type for ref in initial]
    captures = Captures(frame, len(leading))
    test = Frame(frame.store, leading, captures)
    _bind_carried(test, targets, initial, first=0)
    go = ctx.scalar(test, stmt.cond)
    inner = Frame(frame.store, leading, captures)
    _bind_carried(inner, targets, initial, first=0)
    ctx.block(inner, stmt.body)
    if not targets:
        return
    body = inner.region([inner.leaf(var, index) for var, index in targets])
    _while_node(ctx, frame, stmt, targets, initial, captures, test.region([go]), body)


def _while_with_flag(ctx: Lowering, frame: Frame, stmt: hir.While, targets: Sequence[VarLeaf]) -> None:
    """The condition itself assigns: it runs before the loop and after each body; its value is carried."""
    first = ctx.scalar(frame, stmt.cond)
    flag = hir.Var("<go>", first.type, True, stmt.span)
    frame.bind(flag, [first])
    carried = [(flag, 0), *targets]
    initial = [frame.leaf(var, index) for var, index in carried]
    leading = [ref.type for ref in initial]
    captures = Captures(frame, len(leading))
    inner = Frame(frame.store, leading, captures)
    _bind_carried(inner, carried, initial, first=0)
    ctx.block(inner, stmt.body)
    inner.assign(flag, 0, [ctx.scalar(inner, stmt.cond)])
    body = inner.region([inner.leaf(var, index) for var, index in carried])
    test = Frame(frame.store, leading, captures)
    _while_node(
        ctx, frame, stmt, carried, initial, captures, test.region([frame.store.param(0, first.type)]), body,
    )


def _while_node(
    ctx: Lowering, frame: Frame, stmt: hir.While, targets: Sequence[VarLeaf], initial: Sequence[Ref],
    captures: Captures, cond: Region, body: Region,
) -> None:
    node = ctx.store.node("control.while", [*initial, *captures.refs], {
        "body": body, "carried": len(targets), "cond": cond, "max": stmt.max_count,
    })
    frame.assign_all(targets, (node.out(index) for index in range(len(targets))))


# ---------------------------------------------------------------- lambdas


def lower_higher_order(ctx: Lowering, frame: Frame, expr: hir.HigherOrder) -> Leaves:
    if expr.name in ("map", "zip"):
        return _lower_map(ctx, frame, expr)
    return _lower_fold(ctx, frame, expr)


def _lower_map(ctx: Lowering, frame: Frame, expr: hir.HigherOrder) -> Leaves:
    operands = [ctx.expr(frame, arg) for arg in expr.args]
    tensors = [leaf for leaves in operands for leaf in leaves]
    outer = expr.args[0].type
    assert isinstance(outer, TensorType)
    scalars = [kind for param in expr.body.params for kind in leaf_types(param.type)]
    if any(isinstance(kind, TensorType) for kind in scalars):
        return _map_rows(ctx, frame, expr, tensors, outer)
    captures = Captures(frame, len(scalars))
    inner = Frame(frame.store, scalars, captures)
    results = _lambda_body(ctx, inner, expr.body)
    flags = hidden_changes(frame, inner)
    region = inner.region([*results, *(flag for _, flag in flags)])
    node = ctx.store.node(
        "control.map", [*tensors, *captures.refs], {"arity": len(tensors), "region": region}
    )
    for index, (var, _) in enumerate(flags, len(results)):
        meet_any(ctx, frame, var, node.out(index))
    return [node.out(index) for index in range(len(results))]


def _map_rows(
    ctx: Lowering, frame: Frame, expr: hir.HigherOrder, tensors: Leaves, outer: TensorType
) -> Leaves:
    """Elements that hold tensors: a scan without state over the elements in row-major order."""
    flat = [
        ctx.store.op("tensor.reshape", leaf, shape=(outer.size, *_inner_shape(leaf, outer)))
        if len(outer.shape) > 1 else leaf
        for leaf in tensors
    ]
    outs = _scan(ctx, frame, [], flat, outer.size, expr.body, carried_result=False)
    if len(outer.shape) == 1:
        return outs
    kinds = leaf_types(expr.type)
    return [
        ctx.store.op("tensor.reshape", out, shape=kind.shape)
        for out, kind in zip(outs, kinds) if isinstance(kind, TensorType)
    ]


def _inner_shape(leaf: Ref, outer: TensorType) -> tuple[int, ...]:
    assert isinstance(leaf.type, TensorType)
    return leaf.type.shape[len(outer.shape):]


def _lower_fold(ctx: Lowering, frame: Frame, expr: hir.HigherOrder) -> Leaves:
    tensor, init = expr.args
    items, initial = ctx.expr(frame, tensor), ctx.expr(frame, init)
    assert isinstance(tensor.type, TensorType)
    outs = _scan(ctx, frame, initial, items, tensor.type.shape[0], expr.body, expr.name == "scan")
    return outs[len(initial):] if expr.name == "scan" else outs[: len(initial)]


def _scan(
    ctx: Lowering, frame: Frame, initial: Leaves, items: Leaves, length: int, body: hir.Lambda,
    carried_result: bool,
) -> Leaves:
    """All outputs of a scan whose lambda takes (carried, row): final carried leaves, then stacked ones.

    The lambda's value is the next carried value if there is one; with ``carried_result`` it is stacked too.
    """
    leading = [kind for param in body.params for kind in leaf_types(param.type)]
    captures = Captures(frame, len(leading))
    inner = Frame(frame.store, leading, captures)
    value = _lambda_body(ctx, inner, body)
    results = [*value, *value] if carried_result else value
    flags = hidden_changes(frame, inner)
    region = inner.region([*results, *(flag for _, flag in flags)])
    outs = scan_node(ctx, initial, items, length, region, captures.refs)
    for (var, _), column in zip(flags, outs[len(results):]):
        meet_any(ctx, frame, var, column)
    return outs[: len(results)]


def scan_node(
    ctx: Lowering, initial: Sequence[Ref], items: Sequence[Ref], length: int, region: Region,
    captured: Sequence[Ref] = (),
) -> Leaves:
    node = ctx.store.node("control.scan", [*initial, *items, *captured], {
        "carried": len(initial), "items": len(items), "length": length, "region": region,
    })
    return [node.out(index) for index in range(len(node.types))]


def _lambda_body(ctx: Lowering, inner: Frame, body: hir.Lambda) -> Leaves:
    index = 0
    for param in body.params:
        kinds = leaf_types(param.type)
        inner.bind(param, [inner.store.param(index + k, kind) for k, kind in enumerate(kinds)])
        index += len(kinds)
    return ctx.expr(inner, body.body)
