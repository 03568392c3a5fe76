"""Functions and streams as regions, and the calls to them."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kera_hw.frontend.sema.lowering.control import scan_node
from kera_hw.frontend.sema.lowering.core import (
    FailedCallee,
    Leaves,
    LoweredFunction,
    LowerError,
    Lowering,
    constant_leaves,
)
from kera_hw.frontend.sema.lowering.frame import Frame
from kera_hw.frontend.sema.lowering.index import ResolvedPlace, read_place, resolve_place, write_place
from kera_hw.frontend.sema.lowering.observe import add_observed, begin, finish, meet_any
from kera_hw.frontend.sema.tree import hir
from kera_hw.graph.node import Ref, StateVar
from kera_hw.support import Severity
from kera_hw.types import Type, flatten_type, leaf_types


def lower_function(ctx: Lowering, function: hir.Function) -> LoweredFunction | None:
    """The function's region, made once; None (with its diagnostic recorded) where it has no lowering."""
    if function not in ctx.functions:
        ctx.functions[function] = None
        outer_file, outer_origin = ctx.file, ctx.store.origin
        ctx.file, ctx.store.origin = function.file, None
        try:
            ctx.functions[function] = _build(ctx, function)
        except LowerError as error:
            # The program is right and its other exports are usable, so this is no error of the program.
            ctx.diagnostics.append(replace(error.diagnostic, severity=Severity.WARNING))
        except FailedCallee:
            pass
        finally:
            ctx.file, ctx.store.origin = outer_file, outer_origin
    return ctx.functions[function]


def callee(ctx: Lowering, function: hir.Function) -> LoweredFunction:
    lowered = lower_function(ctx, function)
    if lowered is None:
        raise FailedCallee
    return lowered


def _build(ctx: Lowering, function: hir.Function) -> LoweredFunction:
    state = tuple(_state(ctx, function))
    params = [kind for param in function.params for kind in leaf_types(param.var.type)]
    leading = [*params, *(var.initial.type for var in state)]
    frame = Frame(ctx.store, leading)
    inputs = [ctx.store.param(index, kind) for index, kind in enumerate(leading)]
    position = 0
    for var, count in _bound_vars(ctx, function):
        frame.bind(var, inputs[position : position + count])
        position += count
    assert function.body is not None
    sites = ctx.observations.sites(function)
    outer_numbers = ctx.print_numbers
    ctx.print_numbers = {id(site.part): number for number, site in enumerate(sites.prints)}
    begin(ctx, frame, sites)
    try:
        result = ctx.block(frame, function.body)
    finally:
        ctx.print_numbers = outer_numbers
    borrowed = [
        leaf for param in function.params if param.borrow == "&mut" for leaf in frame.leaves(param.var)
    ]
    after = [leaf for var, _ in _state_vars(ctx, function) for leaf in frame.leaves(var)]
    region = frame.region([*result, *borrowed, *after, *finish(ctx, frame, sites)])
    ctx.add_scope(region, function.body.span)
    return LoweredFunction(region, state, len(result), len(borrowed), sites)


def _bound_vars(ctx: Lowering, function: hir.Function) -> Iterator[tuple[hir.Var, int]]:
    """Variables that the region's parameters bind, with their leaf counts."""
    for param in function.params:
        yield param.var, len(leaf_types(param.var.type))
    yield from _state_vars(ctx, function)


def _state_vars(ctx: Lowering, function: hir.Function) -> Iterator[tuple[hir.Var, int]]:
    for state in function.states:
        yield state.var, len(leaf_types(state.var.type))
    for instance in function.instances:
        yield instance.var, len(callee(ctx, instance.stream).state)


def _state(ctx: Lowering, function: hir.Function) -> Iterator[StateVar]:
    """Own state, then that of the instances, which is state of this stream too."""
    for state in function.states:
        values, place = constant_leaves(state.initial.value), ctx.place_of(state.var, function.file)
        for leaf, value in zip(flatten_type(state.var.type), values):
            name = ".".join((state.var.name, *leaf.path))
            yield StateVar(name, ctx.store.constant(leaf.type, value), place)
    for instance in function.instances:
        for inner in callee(ctx, instance.stream).state:
            yield StateVar(f"{instance.var.name}.{inner.name}", inner.initial, inner.origin)


# ---------------------------------------------------------------- calls


def lower_call(ctx: Lowering, frame: Frame, expr: hir.Call) -> Leaves:
    target = callee(ctx, expr.function)
    args: Leaves = []
    places: list[ResolvedPlace] = []
    for arg, borrow in zip(expr.args, expr.borrows):
        if borrow == "&mut" and isinstance(arg, hir.PlaceExpr):
            place = resolve_place(ctx, frame, arg.place)
            places.append(place)
            args.extend(read_place(ctx, frame, place))
        else:
            args.extend(ctx.expr(frame, arg))
    outs = _call(ctx, target, args)
    written = outs[target.result_count :][: target.borrowed_count]
    for place in places:
        count = place.high - place.low
        write_place(ctx, frame, place, written[:count])
        written = written[count:]
    _observed(ctx, frame, target, outs)
    return outs[: target.result_count]


def _call(ctx: Lowering, target: LoweredFunction, args: Leaves) -> list[Ref]:
    if not target.region.results:
        return []
    node = ctx.store.node("control.call", args, {"region": target.region})
    return [node.out(index) for index in range(len(node.types))]


def lower_stream_step(ctx: Lowering, frame: Frame, expr: hir.StreamStep) -> Leaves:
    """A call that takes the instance's state and gives its next state."""
    target = callee(ctx, expr.stream)
    args = [leaf for arg in expr.args for leaf in ctx.expr(frame, arg)]
    outs = _call(ctx, target, [*args, *frame.leaves(expr.instance)])
    frame.assign(expr.instance, 0, outs[target.result_count :][: len(target.state)])
    _observed(ctx, frame, target, outs)
    return outs[: target.result_count]


def lower_stream_apply(ctx: Lowering, frame: Frame, expr: hir.StreamApply) -> Leaves:
    """A stream over tensors, from reset: a scan over its state."""
    target = callee(ctx, expr.stream)
    items = [leaf for arg in expr.args for leaf in ctx.expr(frame, arg)]
    initial = [var.initial for var in target.state]
    rows = [kind for param in expr.stream.params for kind in leaf_types(param.var.type)]
    leading = [*(ref.type for ref in initial), *rows]
    if target.sites.entries and frame.knows(ctx.observations.record):
        return _printing_apply(ctx, frame, target, initial, items, leading, expr.length)
    inner = Frame(ctx.store, leading)
    inputs = [ctx.store.param(index, kind) for index, kind in enumerate(leading)]
    outs = _call(ctx, target, [*inputs[len(initial):], *inputs[: len(initial)]])
    split, flags = target.result_count, len(target.sites.checks)
    last = split + len(initial)
    region = inner.region([*outs[split:last], *outs[:split], *outs[last : last + flags]])
    outs = scan_node(ctx, initial, items, expr.length, region)[len(initial):]
    for site, column in zip(target.sites.checks, outs[split:]):
        meet_any(ctx, frame, ctx.observations.var(site), column)
    return outs[:split]


def _printing_apply(
    ctx: Lowering, frame: Frame, target: LoweredFunction, initial: Leaves, items: Leaves,
    leading: list[Type], length: int,
) -> Leaves:
    """The same for a stream that prints: the observations so far go from item to item beside its state."""
    hidden = [*map(ctx.observations.var, target.sites.checks), ctx.observations.record]
    begun = [leaf for var in hidden for leaf in frame.leaves(var)]
    rows, states = leading[len(initial):], leading[: len(initial)]
    carried = [*states, *(ref.type for ref in begun)]
    inner = Frame(ctx.store, [*carried, *rows])
    inputs = [ctx.store.param(index, kind) for index, kind in enumerate(inner.leading)]
    position = len(initial)
    for var in hidden:
        inner.bind(var, inputs[position : position + frame.leaf_count(var)])
        position += frame.leaf_count(var)
    outs = _call(ctx, target, [*inputs[len(carried):], *inputs[: len(initial)]])
    _observed(ctx, inner, target, outs)
    split = target.result_count
    after = [leaf for var in hidden for leaf in inner.leaves(var)]
    region = inner.region([*outs[split : split + len(initial)], *after, *outs[:split]])
    found = scan_node(ctx, [*initial, *begun], items, length, region)
    position = len(initial)
    for var in hidden:
        count = frame.leaf_count(var)
        frame.assign(var, 0, found[position : position + count])
        position += count
    return found[position:]


def _observed(ctx: Lowering, frame: Frame, target: LoweredFunction, outs: Leaves) -> None:
    add_observed(ctx, frame, target.sites, outs[len(outs) - target.sites.leaves :])
