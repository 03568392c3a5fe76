"""The checked program as a graph, constant evaluation, and the regions of in-file tests.

``lower_program`` gives the exports of the root file. The same lowering followed by the reference evaluator
gives the values of constants, so that a constant means what the same expression means at run time.
"""
from __future__ import annotations

from kera_hw.frontend.sema.lowering.control import (
    lower_assign,
    lower_block,
    lower_expr_stmt,
    lower_for,
    lower_higher_order,
    lower_if,
    lower_let,
    lower_while,
)
from kera_hw.frontend.sema.lowering.core import ExprHandler, Lowering, StmtHandler
from kera_hw.frontend.sema.lowering.expressions import (
    lower_aggregate,
    lower_const,
    lower_logical,
    lower_op,
    lower_structural,
    lower_tensor_fill,
    lower_tensor_lit,
)
from kera_hw.frontend.sema.lowering.functions import (
    lower_call,
    lower_function,
    lower_stream_apply,
    lower_stream_step,
)
from kera_hw.frontend.sema.lowering.index import lower_index, lower_local, lower_place_expr, lower_project
from kera_hw.frontend.sema.lowering.match_arms import lower_match
from kera_hw.frontend.sema.lowering.observe import lower_observe, marked
from kera_hw.frontend.sema.tree import hir
from kera_hw.graph.node import Export, Graph
from kera_hw.graph.store import Store
from kera_hw.support import Diagnostic

EXPR_HANDLERS: dict[type, ExprHandler] = {
    hir.Const: lower_const,
    hir.Local: lower_local,
    hir.Op: lower_op,
    hir.Structural: lower_structural,
    hir.Aggregate: lower_aggregate,
    hir.Project: lower_project,
    hir.TensorLit: lower_tensor_lit,
    hir.TensorFill: lower_tensor_fill,
    hir.Index: lower_index,
    hir.Block: lower_block,
    hir.If: lower_if,
    hir.Logical: lower_logical,
    hir.Match: lower_match,
    hir.Call: lower_call,
    hir.PlaceExpr: lower_place_expr,
    hir.StreamApply: lower_stream_apply,
    hir.StreamStep: lower_stream_step,
    hir.HigherOrder: lower_higher_order,
}

STMT_HANDLERS: dict[type, StmtHandler] = {
    hir.Let: lower_let,
    hir.Assign: lower_assign,
    hir.ExprStmt: lower_expr_stmt,
    hir.For: lower_for,
    hir.While: lower_while,
    hir.Observe: lower_observe,
}


def new_lowering(store: Store | None = None) -> Lowering:
    return Lowering(store if store is not None else Store(), EXPR_HANDLERS, STMT_HANDLERS)


def lower_program(program: hir.CheckedProgram, store: Store | None = None) -> tuple[Graph, list[Diagnostic]]:
    """The graph of a checked, proved program: one export per `pub` item of the root file.

    A function that has no lowering gives a warning (K0502) and is left out, as are its callers.
    """
    ctx = new_lowering(store)
    exports: list[Export] = []
    for function in program.functions:
        if function.public_name is None:
            continue
        lowered = lower_function(ctx, function)
        if lowered is None:
            continue
        params = tuple((param.var.name, param.var.type) for param in function.params)
        plain = lowered.region.results[: len(lowered.region.results) - lowered.sites.leaves]
        observed = marked(ctx, lowered.sites, lowered.region.results[len(plain):])
        region = ctx.store.region(lowered.region.params, [*plain, *observed])
        ctx.store.add_scopes(region, ctx.store.scopes.get(lowered.region, ()))
        exports.append(Export(
            function.public_name, function.kind, params, function.result, region, lowered.state,
            function.effects, tuple(ctx.place_of(param.var, function.file) for param in function.params),
        ))
    public = [function for function in program.functions if function.public_name is not None]
    if public and not exports:
        names = ", ".join(f"`{function.public_name}`" for function in public)
        ctx.diagnostics.append(Diagnostic(
            "K0506", f"Nothing is left to build or run: {names} cannot be turned into a graph.",
            public[0].file, public[0].span,
        ))
    return Graph(exports, ctx.store.origins, ctx.store.scopes), ctx.diagnostics
