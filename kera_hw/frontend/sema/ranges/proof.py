"""The index proof: every index must lie in its axis whatever the inputs, or K0301 says where it may not.

Each function instance is executed abstractly, once, with its parameters anything of their types; so callers'
facts do not flow in, while what a function can return flows out. A stream's state starts at its initial value
and is anything that its own steps can make of that.
"""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.frontend.sema.ranges import calls as ranges_call
from kera_hw.frontend.sema.ranges import expressions as ranges_expr
from kera_hw.frontend.sema.ranges import statements as ranges_stmt
from kera_hw.frontend.sema.ranges.core import ExprRule, ProofContext, Prover, Scope, StmtRule, Summary
from kera_hw.frontend.sema.ranges.linear import known
from kera_hw.frontend.sema.ranges.loops import checked_round, solve
from kera_hw.frontend.sema.ranges.state import State
from kera_hw.frontend.sema.ranges.symbol import Known
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.walk import Part, walk
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
    hir.Call: ranges_call.call,
    hir.PlaceExpr: ranges_expr.place_expr,
    hir.StreamApply: ranges_call.stream_apply,
    hir.StreamStep: ranges_call.stream_step,
    hir.HigherOrder: ranges_call.higher_order,
}

STMT_RULES: dict[type, StmtRule] = {
    hir.Let: ranges_stmt.let,
    hir.Assign: ranges_stmt.assign,
    hir.ExprStmt: ranges_stmt.expr_stmt,
    hir.For: ranges_stmt.for_loop,
    hir.While: ranges_stmt.while_loop,
    hir.AssertEq: ranges_stmt.assert_eq,
    hir.Assert: ranges_stmt.assert_true,
    hir.Observe: ranges_stmt.assert_true,
}


def prove_indices(program: hir.CheckedProgram) -> list[Diagnostic]:
    """A K0301 for every index of the program, its tests and constants included, that may leave its axis.

    What has no index, and is called by nothing that has, is not looked at.
    """
    shells = _shells(program)
    wanted: set[hir.Function] = set()
    for function in reversed((*program.functions, *shells)):  # callers come after what they call
        inside = list(walk(_body(function)))
        if function in wanted or any(map(_has_index, inside)):
            wanted.add(function)
            wanted.update(called for part in inside if (called := _called(part)) is not None)
    return _proved([item for item in program.functions if item in wanted],
                   [item for item in shells if item in wanted]).diagnostics


def analysed(program: hir.CheckedProgram) -> Prover:
    """With what is claimed of each function's results as well."""
    return _proved(program.functions, _shells(program))


def _proved(functions: Sequence[hir.Function], shells: Sequence[hir.Function]) -> Prover:
    prover = Prover(EXPR_RULES, STMT_RULES)
    for function in functions:
        prover.summaries[function] = _prove_function(prover, function)
    for shell in shells:
        _prove_function(prover, shell)
    return prover


def _shells(program: hir.CheckedProgram) -> list[hir.Function]:
    """Tests, and constants that were evaluated, as functions without parameters."""
    tests = [
        hir.Function(test.name, "fn", (), test.body.type, (), test.file, test.span, body=test.body)
        for test in program.tests
    ]
    constants = [
        hir.Function(
            "", "fn", (), tree.type, (), file, tree.span, body=hir.Block(tree.type, tree.span, (), tree)
        )
        for tree, file in program.constants
    ]
    return [*tests, *constants]


def _body(function: hir.Function) -> hir.Block:
    assert function.body is not None
    return function.body


def _has_index(part: Part) -> bool:
    """Whether something in the part itself may leave an axis."""
    if isinstance(part, hir.Assign | hir.PlaceExpr):
        return any(isinstance(step, hir.IndexStep) for step in part.place.path)
    gathers = isinstance(part, hir.Op | hir.Structural) and part.name.endswith("gather")
    return gathers or isinstance(part, hir.Index)


def _called(part: Part) -> hir.Function | None:
    """What the part itself calls."""
    if isinstance(part, hir.Call):
        return part.function
    return part.stream if isinstance(part, hir.StreamApply | hir.StreamStep) else None


def _prove_function(prover: Prover, function: hir.Function) -> Summary:
    body = _body(function)
    entry = State()
    for param in function.params:
        entry.values[param.var] = prover.store.of_type(param.var.type)
    for held in function.states:
        entry.values[held.var] = prover.expr(entry, held.initial)
    for instance in function.instances:
        entry.values[instance.var] = ()
    results: list[Known] = []

    def item(head: State) -> None:
        result = prover.block(head, body)
        results[:] = [known(head, symbol) for symbol in result]

    leaves = [(held.var, leaf) for held in function.states for leaf in range(len(entry.values[held.var]))]
    with prover.scoped(Scope(function)), prover.within(ProofContext()):
        if leaves:
            end = checked_round(prover, solve(prover, entry, leaves, item, function), item)
        else:
            end = entry
            item(end)
    borrowed = [
        tuple(known(end, symbol) for symbol in end.values[param.var])
        for param in function.params if param.borrow == "&mut"
    ]
    return Summary(tuple(results), tuple(borrowed))
