"""Structured control: selection, calls, loops, branches, maps and scans over closed regions."""
from __future__ import annotations

from kera_hw.ops import running
from kera_hw.ops.rules import (
    SCALAR,
    Types,
    check_count,
    check_kind,
    check_least,
    check_same,
    fail,
    joint_shape,
    like,
    title,
)
from kera_hw.ops.spec import Attrs, EvaluateRule, InferRule, OpSpec, RegionLike, Trait
from kera_hw.types import BoolType, IntType, TensorType, Type, element_type, is_scalar


def _check_params(op: str, region: RegionLike, given: Types, what: str = "body") -> None:
    if region.params != given:
        fail(f"The {what} of {title(op)} takes {_list(region.params)}, but is given {_list(given)}.")


def _check_results(op: str, region: RegionLike, wanted: Types, what: str = "body") -> None:
    if region.result_types != wanted:
        fail(f"The {what} of {title(op)} gives {_list(region.result_types)}, but {_list(wanted)} is wanted.")


def _list(types: Types) -> str:
    return f"({', '.join(map(str, types))})"


def _check_carried(op: str, types: Types, carried: int, items: int = 0) -> None:
    if carried < 0 or items < 0 or carried + items > len(types):
        fail(f"{title(op)} carries {carried + items} operands, but has only {len(types)}.")


def _infer_select(types: Types, attrs: Attrs) -> Types:
    op = "control.select"
    check_count(op, types, 3)
    if not isinstance(element_type(types[0]), BoolType):
        fail(f"{title(op)} takes a bool as its condition, but got {types[0]}.")
    a, b = (check_kind(op, kind, SCALAR) for kind in types[1:])
    check_same(op, a, b)
    return (like(joint_shape(op, types), a),)


def _infer_call(types: Types, attrs: Attrs) -> Types:
    region: RegionLike = attrs["region"]
    _check_params("control.call", region, types, "callee")
    return region.result_types


def _infer_loop(types: Types, attrs: Attrs) -> Types:
    op = "control.loop"
    region, carried, index = attrs["region"], attrs["carried"], attrs["index_type"]
    _check_carried(op, types, carried)
    if not isinstance(index, IntType):
        fail(f"{title(op)} counts in an integer type, but got {index}.")
    count, start, step = attrs["count"], attrs["start"], attrs["step"]
    if count < 0:
        fail(f"{title(op)} runs 0 times or more, but got {count}.")
    if count > 0:
        for value in (start, start + (count - 1) * step):
            if not index.min <= value <= index.max:
                fail(f"The loop variable of type {index} cannot take the value {value}.")
    _check_params(op, region, (index, *types))
    _check_results(op, region, types[:carried])
    return types[:carried]


def _infer_while(types: Types, attrs: Attrs) -> Types:
    op = "control.while"
    carried = attrs["carried"]
    _check_carried(op, types, carried)
    if attrs["max"] < 0:
        fail(f"{title(op)} runs at most 0 times or more, but got {attrs['max']}.")
    _check_params(op, attrs["cond"], types, "condition")
    _check_results(op, attrs["cond"], (BoolType(),), "condition")
    _check_params(op, attrs["body"], types)
    _check_results(op, attrs["body"], types[:carried])
    return types[:carried]


def _infer_branch(types: Types, attrs: Attrs) -> Types:
    op = "control.branch"
    check_least(op, types, 1)
    regions: tuple[RegionLike, ...] = attrs["regions"]
    selector = types[0]
    if not (isinstance(selector, BoolType) or (isinstance(selector, IntType) and not selector.signed)):
        fail(f"{title(op)} selects by a bool or an unsigned integer, but got {selector}.")
    if not regions or (isinstance(selector, BoolType) and len(regions) != 2):
        fail(f"{title(op)} by {selector} does not fit {len(regions)} regions.")
    for region in regions:
        _check_params(op, region, types[1:], "region")
        _check_results(op, region, regions[0].result_types, "region")
    return regions[0].result_types


def _infer_map(types: Types, attrs: Attrs) -> Types:
    op = "control.map"
    region, arity = attrs["region"], attrs["arity"]
    if arity < 1:
        fail(f"{title(op)} takes at least one tensor.")
    _check_carried(op, types, arity)
    for kind in types[:arity]:
        if not isinstance(kind, TensorType):
            fail(f"{title(op)} takes tensors, but got {kind}.")
    model = joint_shape(op, types[:arity])
    assert model is not None
    _check_params(op, region, (*map(element_type, types[:arity]), *types[arity:]))
    return tuple(TensorType.tensor(_leaf(op, kind), model.shape, model.space) for kind in region.result_types)


def _leaf(op: str, kind: Type) -> Type:
    if not is_scalar(element_type(kind)):
        fail(f"The body of {title(op)} gives {kind}, which cannot be an element of a tensor.")
    return kind


def _infer_scan(types: Types, attrs: Attrs) -> Types:
    op = "control.scan"
    region, carried, items, length = attrs["region"], attrs["carried"], attrs["items"], attrs["length"]
    if length < 0:
        fail(f"{title(op)} runs over 0 items or more, but got {length}.")
    _check_carried(op, types, carried, items)
    rows: list[Type] = []
    space = "host"
    for kind in types[carried : carried + items]:
        if not isinstance(kind, TensorType) or kind.shape[0] != length:
            fail(f"{title(op)} takes tensors of {length} items, but got {kind}.")
        space = kind.space if not rows else space
        rows.append(TensorType(kind.element, kind.shape[1:], kind.space) if kind.shape[1:] else kind.element)
    _check_params(op, region, (*types[:carried], *rows, *types[carried + items:]))
    results = region.result_types
    if results[:carried] != types[:carried]:
        fail(f"The body of {title(op)} gives {_list(results)}, but must give {_list(types[:carried])} first.")
    outs = (TensorType.tensor(_leaf(op, kind), (length,), space) for kind in results[carried:])
    return (*types[:carried], *outs)


def _row(verb: str, doc: str, infer: InferRule, evaluate: EvaluateRule, *attrs: str) -> OpSpec:
    return OpSpec(f"control.{verb}", doc, infer, evaluate, frozenset({Trait.CONTROL}), attrs=attrs)


TABLE: tuple[OpSpec, ...] = (
    OpSpec(
        "control.select", "The second operand where the condition holds, else the third.",
        _infer_select, running.select, frozenset({Trait.ELEMENTWISE}),
    ),
    _row("call", "The results of a region on the operands.", _infer_call, running.call, "region"),
    _row(
        "loop",
        "Runs `region` `count` times on (index, carried, captures); the index goes from `start` by `step`.",
        _infer_loop, running.loop, "carried", "count", "index_type", "region", "start", "step",
    ),
    _row(
        "while", "Runs `body` while `cond` holds, at most `max` times; then gives the values it has.",
        _infer_while, running.while_, "body", "carried", "cond", "max",
    ),
    _row(
        "branch",
        "The results of one region: by a bool (false first), or by number, the last one from there on.",
        _infer_branch, running.branch, "regions",
    ),
    _row(
        "map", "`region` on every element of `arity` tensors of one shape; tensor results append axes.",
        _infer_map, running.map_, "arity", "region",
    ),
    _row(
        "scan",
        "Runs `region` on (carried, rows, captures) over axis 0; gives the carried values, then the outputs "
        "stacked.",
        _infer_scan, running.scan, "carried", "items", "length", "region",
    ),
)
