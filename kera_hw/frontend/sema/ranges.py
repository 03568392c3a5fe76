"""The index proof: every index must lie in its axis whatever the inputs, or K0301 says where it may not.

Each function instance is executed abstractly, once, with its parameters anything of their types; so callers'
facts do not flow in, while what a function can return flows out. A stream's state starts at its initial value
and is anything that its own steps can make of that.
"""
from __future__ import annotations

from kera_hw.frontend.sema import hir, ranges_expr, ranges_stmt
from kera_hw.frontend.sema.lower_core import constant_leaves
from kera_hw.frontend.sema.ranges_core import ExprRule, Prover, Scope, StmtRule, Summary, full_ranges
from kera_hw.frontend.sema.ranges_state import Ranges, State
from kera_hw.support import Diagnostic

EXPR_RULES: dict[type, ExprRule] = {
    hir.Const: ranges_expr.const,
    hir.Local: ranges_expr.local,
    hir.Op: ranges_expr.op,
    hir.Structural: ranges_expr.structural,
    hir.Aggregate: ranges_expr.aggregate,
    hir.Project: ranges_expr.project,
    hir.TensorLit: ranges_expr.tensor_lit,
    hir.TensorFill: ranges_expr.tensor_fill,
    hir.Index: ranges_expr.index,
    hir.Block: ranges_stmt.block,
    hir.If: ranges_stmt.branch,
    hir.Logical: ranges_expr.logical,
    hir.Match: ranges_stmt.match,
    hir.Call: ranges_expr.call,
    hir.PlaceExpr: ranges_expr.place_expr,
    hir.StreamApply: ranges_expr.stream_apply,
    hir.StreamStep: ranges_expr.stream_step,
    hir.HigherOrder: ranges_expr.higher_order,
}

STMT_RULES: dict[type, StmtRule] = {
    hir.Let: ranges_stmt.let,
    hir.Assign: ranges_stmt.assign,
    hir.ExprStmt: ranges_stmt.expr_stmt,
    hir.For: ranges_stmt.for_loop,
    hir.While: ranges_stmt.while_loop,
    hir.AssertEq: ranges_stmt.assert_eq,
    hir.Assert: ranges_stmt.assert_true,
}


def prove_indices(program: hir.Program) -> list[Diagnostic]:
    """A K0301 for every index of the program, its tests and constants included, that may leave its axis."""
    prover = Prover(EXPR_RULES, STMT_RULES)
    for function in program.functions:
        prover.summaries[function] = _prove_function(prover, function)
    for test in program.tests:
        shell = hir.Function(test.name, "fn", (), test.body.type, (), test.file, test.span, body=test.body)
        _prove_function(prover, shell)
    for tree, file in program.constants:
        body = hir.Block(tree.type, tree.span, (), tree)
        _prove_function(prover, hir.Function("", "fn", (), tree.type, (), file, tree.span, body=body))
    return prover.diagnostics


def _prove_function(prover: Prover, function: hir.Function) -> Summary:
    assert function.body is not None
    state = State()
    for param in function.params:
        state.bind(param.var, full_ranges(param.var.type))
    initial: dict[hir.Var, Ranges] = {}
    for held in function.states:
        values = constant_leaves(held.initial.value)
        initial[held.var] = [ranges_expr.array_interval(value) for value in values]
        state.bind(held.var, initial[held.var])
    for instance in function.instances:
        state.bind(instance.var, [])

    def round_(head: State) -> None:
        prover.scope = Scope(function)
        for param in function.params:
            head.bind(param.var, full_ranges(param.var.type))
        prover.block(head, function.body or hir.Block(function.result, function.span, (), None))

    prover.scope = Scope(function)
    if initial:
        state = ranges_stmt.invariant(prover, state, list(initial), round_, function.body)
    result = prover.block(state, function.body)
    borrowed = [tuple(state.ranges[p.var]) for p in function.params if p.borrow == "&mut"]
    return Summary(tuple(result), tuple(borrowed))
