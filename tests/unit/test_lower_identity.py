"""What lowering makes part of identity and what not: names, captures, constants, origins, effects."""
from __future__ import annotations

from kera_hw.frontend.sema.lowering.whole import lower_program
from kera_hw.frontend.sema.tree import hir
from kera_hw.graph import Graph, Node, regions_of
from kera_hw.types import U32, UNIT, TensorType, TupleType
from tests.unit.lower_builder import (
    SPAN,
    add,
    assign,
    block,
    const,
    function,
    index,
    let,
    loop,
    op,
    program,
    project,
    stmt,
    tup,
    use,
    var,
    when,
)

VEC = TensorType(U32, (8,))


def _graph(*functions: hir.Function) -> Graph:
    graph, diagnostics = lower_program(program(*functions))
    assert diagnostics == []
    return graph


def _loop_program(names: str, step: int) -> hir.Function:
    """A loop with captures, over locals with the given one-letter names; parameters keep theirs."""
    acc, item, bias, counter = names
    a, k = var("a", VEC), var("k")
    total, x, b, i = var(acc, mutable=True), var(item), var(bias), var(counter)
    body = [let(x, index(use(a), use(i))), assign(total, add(add(use(total), use(x)), use(b)))]
    return function("f", [a, k], block(
        let(b, add(use(k), const(step))), let(total, const(0)), loop(i, 8, *body), result=use(total),
    ))


def _only(graph: Graph, opcode: str) -> Node:
    (node,) = (n for n in graph.exports[0].region.nodes() if n.opcode == opcode)
    return node


def test_renaming_locals_keeps_the_fingerprint() -> None:
    assert _graph(_loop_program("txbi", 1)).fingerprint == _graph(_loop_program("pqrs", 1)).fingerprint


def test_changing_a_constant_changes_the_fingerprint_but_not_the_loop_body() -> None:
    first, second = _graph(_loop_program("txbi", 1)), _graph(_loop_program("txbi", 2))
    assert first.fingerprint != second.fingerprint
    bodies = [regions_of(_only(g, "control.loop"))[0].hash for g in (first, second)]
    assert bodies[0] == bodies[1]


def test_parameter_names_are_part_of_the_export() -> None:
    x, y = var("x"), var("y")
    first = _graph(function("f", [x], block(result=use(x))))
    second = _graph(function("f", [y], block(result=use(y))))
    assert first.exports[0].region.hash == second.exports[0].region.hash
    assert first.fingerprint != second.fingerprint


def test_captures_follow_carried_values_in_order_of_first_use() -> None:
    x, y, total, i = var("x"), var("y"), var("total", mutable=True), var("i")
    body = assign(total, add(op("integer.mul", use(y), use(total)), add(use(x), use(y))))
    graph = _graph(function("f", [x, y], block(let(total, const(0)), loop(i, 3, body), result=use(total))))
    node = _only(graph, "control.loop")
    assert [ref.node.opcode for ref in node.inputs] == ["core.constant", "core.param", "core.param"]
    assert [ref.node.attr("index") for ref in node.inputs[1:]] == [1, 0]


def test_constants_stand_inside_and_only_the_leaves_used_are_captured() -> None:
    pair = TupleType((U32, VEC))
    p, n, total, i = var("p", pair), var("n"), var("total", mutable=True), var("i")
    body = assign(total, add(use(total), add(use(n), project(use(p), 0))))
    graph = _graph(function("f", [p], block(
        let(n, const(5)), let(total, const(0)), loop(i, 3, body), result=use(total),
    )))
    node = _only(graph, "control.loop")
    assert [str(ref.type) for ref in node.inputs] == ["u32", "u32"]
    assert node.inputs[1].node.attr("index") == 0


def test_a_branch_returns_only_the_leaves_its_arms_assign() -> None:
    c, s = var("c"), var("s", TupleType((U32, VEC)), True)
    target = hir.Place(s, (hir.FieldStep(0),), U32, SPAN)
    cond = op("compare.lt", use(c), const(4))
    graph = _graph(function("f", [c], block(
        let(s, tup(const(1), const(2, VEC))), stmt(when(cond, block(assign(target, use(c))))), result=use(s),
    )))
    node = _only(graph, "control.branch")
    assert [str(kind) for kind in node.types] == ["u32"]


def test_arms_without_effect_leave_no_branch() -> None:
    c, unused = var("c"), var("unused")
    cond = op("compare.lt", use(c), const(4))
    graph = _graph(function("f", [c], block(
        stmt(when(cond, block(let(unused, use(c))))), result=use(c),
    )))
    assert [node.opcode for node in graph.exports[0].region.nodes()] == ["core.param"]


def test_functions_are_lowered_once_and_called_by_region() -> None:
    x = var("x")
    double = function("double", [x], block(result=add(use(x), use(x))))
    double.public_name = None
    y = var("y")

    def call(arg: hir.Expr) -> hir.Call:
        return hir.Call(U32, SPAN, double, (arg,), ("",))

    graph = _graph(double, function("f", [y], block(result=call(call(use(y))))))
    calls = [node for node in graph.exports[0].region.nodes() if node.opcode == "control.call"]
    assert len(calls) == 2
    assert regions_of(calls[0])[0] is regions_of(calls[1])[0]


def test_origins_carry_line_and_the_name_of_the_let() -> None:
    graph = _graph(_loop_program("txbi", 1))
    adds = [n for n in graph.exports[0].region.nodes() if n.opcode == "integer.add"]
    (origin,) = [graph.origins[node] for node in adds]
    assert (origin.path, origin.line, origin.name) == ("built.kera", 1, "b")
    assert graph.origins[_only(graph, "control.loop")].span == SPAN


def test_effects_without_lowering_are_refused_once_even_in_idle_loops() -> None:
    x, i = var("x"), var("i")
    shout = hir.Op(UNIT, SPAN, "effect.send", (use(x),), {"channel": "x"})
    noisy = function("noisy", [x], block(loop(i, 3, stmt(shout)), result=use(x)))
    y = var("y")
    caller = function("caller", [y], block(result=hir.Call(U32, SPAN, noisy, (use(y),), ("",))))
    silent = function("silent", [y], block(result=use(y)))
    graph, diagnostics = lower_program(program(noisy, caller, silent))
    assert [item.code for item in diagnostics] == ["K0502"]
    assert [export.name for export in graph.exports] == ["silent"]
