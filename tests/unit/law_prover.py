"""Tries a law in every way in which it can be applied to values of small types, and compares both sides.

Integers run on the reference evaluator. Floats are of a format with 64 values, which no array type holds:
there MPFR and exact rationals are the evaluator.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from kera_hw.graph.laws import Law
from kera_hw.graph.laws.terms import Known, Literal, Op, Term, Var
from kera_hw.graph.node import Node, Ref
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.ops.intervals import Interval, MaybeInterval, OpShape, apply_rule, raw_interval, type_interval
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Array, AttrValue, TypeRuleError
from kera_hw.types import (
    BOOL,
    FixType,
    FloatType,
    IntType,
    TensorType,
    Type,
    element_type,
    numpy_dtype,
    shape_of,
)
from tests.unit.floatrtl_exact import value_of, word_of
from tests.unit.floatrtl_support import foreign

U3, I3, I4 = IntType(3, False), IntType(3, True), IntType(4, True)
INTEGERS: tuple[Type, ...] = (U3, I3, FixType(3, 1, True), FixType(3, 2, False), BOOL, IntType(1, True))
TENSORS: tuple[Type, ...] = tuple(
    TensorType(U3, shape) for shape in ((2,), (2, 1), (2, 3), (2, 1, 3), (0,), (0, 2))
)
TINY, TINY_WIDER, TINY_OTHER = FloatType("e3m2", 3, 2), FloatType("e4m3", 4, 3), FloatType("e2m3", 2, 3)
FLOATS: tuple[Type, ...] = (TINY,)

ATTRS: dict[str, list[dict[str, Any]]] = {
    "convert.cast": [
        {"type": kind}
        for kind in (*INTEGERS, I4, IntType(2, False), IntType(5, False), TINY, TINY_WIDER, TINY_OTHER)
    ],
    "convert.bitcast": [{"type": kind} for kind in INTEGERS],
    "tensor.reshape": [{"shape": shape} for shape in ((2,), (1, 2), (6,), (3, 2), (2, 3))],
    "tensor.broadcast": [{"shape": shape} for shape in ((2,), (2, 3), (0,), (3, 2))],
    "tensor.permute": [{"axes": axes} for axes in ((0,), (0, 1), (1, 0), (2, 0, 1), (0, 2, 1), (1, 2, 0))],
    "tensor.reverse": [{"axis": axis} for axis in range(2)],
}


def _attrs_of(opcode: str) -> list[dict[str, Any]]:
    return ATTRS.get(opcode, [{}] if not OPS[opcode].attrs else [])


class Trial:
    """A view of a store where each parameter has an interval of its own."""

    def __init__(self) -> None:
        self.store = Store()
        self.intervals: dict[Ref, Interval] = {}
        self.asked: set[Ref] = set()
        self._floats: dict[tuple[Type, int], Node] = {}

    def value(self, ref: Ref) -> int | None:
        if ref.node.opcode != "core.constant":
            return None
        data = ref.node.attr("value")
        assert isinstance(data, bytes)
        if isinstance(element_type(ref.type), FloatType):
            return int.from_bytes(data, "little")
        values = np.frombuffer(data, numpy_dtype(ref.type).newbyteorder("<"))
        return int(values[0]) if len(values) and (values == values[0]).all() else None

    def range(self, ref: Ref) -> MaybeInterval:
        if ref.node.opcode == "core.param":
            self.asked.add(ref)
            return self.intervals.get(ref, type_interval(ref.type))
        shape = OpShape(tuple(item.type for item in ref.node.inputs), ref.type, dict(ref.node.attrs))
        return apply_rule(ref.node.opcode, [self.range(item) for item in ref.node.inputs], shape)

    def op(self, opcode: str, /, *inputs: Ref, **attrs: AttrValue) -> Ref:
        return self.store.op(opcode, *inputs, **attrs)

    def const(self, kind: Type, value: int) -> Ref:
        if isinstance(kind, FloatType):
            attrs = (("type", kind), ("value", value.to_bytes(8, "little")))
            return Ref(self._floats.setdefault((kind, value), Node("core.constant", (kind,), (), attrs)), 0)
        return self.store.constant(kind, value)


def values_of(kind: Type) -> list[int]:
    """Every raw integer of a scalar type; of a float the bits, with the one NaN."""
    if isinstance(kind, FloatType):
        top = (1 << kind.exponent_bits) - 1 << kind.fraction_bits
        magnitudes = [*range(top + 1), kind.canonical_nan]
        sign = 1 << (kind.width_bits - 1)
        return [*magnitudes, *(sign | word for word in magnitudes[:-1])]
    full = raw_interval(kind)
    return list(range(full.low, full.high + 1))


def _leaves(term: Term) -> Iterator[Term]:
    if isinstance(term, Op):
        for arg in term.args or ():
            yield from _leaves(arg)
    else:
        yield term


def _operations(term: Term) -> Iterator[Op]:
    if isinstance(term, Op):
        yield term
        for arg in term.args or ():
            yield from _operations(arg)


class Refuted(AssertionError):
    """A law that does not hold."""


def prove(law: Law, pool: Sequence[Type]) -> int:
    """How often the law was applied; raises Refuted where its sides differ."""
    whole = Op(law.opcode, law.args)
    leaves = list(dict.fromkeys(leaf for leaf in _leaves(whole)))
    inner = [op for op in _operations(whole) if op is not whole]
    applied = 0
    for kinds in product(pool, repeat=len(leaves)):
        for attrs in product(_attrs_of(law.opcode), *(_attrs_of(op.opcode) for op in inner)):
            trial = Trial()
            chosen = dict(zip(leaves, kinds))
            known = [leaf for leaf in leaves if isinstance(leaf, Known)]
            if any(isinstance(chosen[leaf], TensorType) for leaf in known):
                continue
            for constants in product(*(values_of(chosen[leaf]) for leaf in known)):
                fixed: dict[Term, int] = dict(zip(known, constants))
                inputs = _instances(law, trial, chosen, fixed, dict(zip(map(id, inner), attrs[1:])))
                if inputs is None:
                    break
                applied += _try(law, trial, inputs, attrs[0])
    return applied


def _instances(
    law: Law, trial: Trial, kinds: Mapping[Term, Type], constants: Mapping[Term, int],
    attrs: Mapping[int, Mapping[str, Any]],
) -> tuple[Ref, ...] | None:
    """Operands that the law's patterns fit; None where there are none of the types."""
    params: dict[Term, Ref] = {}

    def build(term: Term) -> Ref:
        if isinstance(term, Op):
            args = [build(arg) for arg in term.args] if term.args is not None else [
                trial.store.param(20 + i, U3) for i in range(3)
            ]
            return trial.op(term.opcode, *args, **attrs[id(term)])
        if isinstance(term, Var):
            return params.setdefault(term, trial.store.param(len(params), kinds[term]))
        if isinstance(term, Literal):
            value = term.of(kinds[term]) if not isinstance(kinds[term], TensorType) else None
            if value is None:
                raise TypeRuleError("no such constant")
            return trial.const(kinds[term], value)
        return trial.const(kinds[term], constants[term])

    try:
        inputs = [build(arg) for arg in law.args]
        if law.rest:
            rank = len(shape_of(inputs[0].type))
            inputs += [trial.store.param(10 + i, U3) for i in range(rank)]
        return tuple(inputs)
    except TypeRuleError:
        return None


def _try(law: Law, trial: Trial, inputs: tuple[Ref, ...], attrs: Mapping[str, Any]) -> int:
    try:
        whole = trial.op(law.opcode, *inputs, **attrs)
    except TypeRuleError:
        return 0
    params = _params(whole)
    trial.asked.clear()
    trial.intervals.clear()
    law.apply(trial, inputs, attrs)
    asked = [ref for ref in params if ref in trial.asked and type_interval(ref.type) is not None]
    applied = 0
    compared: dict[Ref, tuple[list[Array], Array]] = {}
    for intervals in product(*(_intervals(ref.type) for ref in asked)):
        trial.intervals = dict(zip(asked, intervals))
        made = law.apply(trial, inputs, attrs)
        if made is None:
            continue
        if made.type != whole.type:
            raise Refuted(f"{law} gives {made.type} for {whole.type}")
        if made not in compared:
            columns = _grid(params)
            same = _evaluate(trial, whole, params, columns) == _evaluate(trial, made, params, columns)
            compared[made] = columns, same.reshape(len(same), -1).all(axis=1)
        columns, same = compared[made]
        inside = np.ones(len(same), bool)
        for ref, (low, high) in trial.intervals.items():
            column = columns[params.index(ref)].reshape(len(same), -1).astype(int)
            inside &= ((low <= column) & (column <= high)).all(axis=1)
        if not same[inside].all():
            row = int(np.flatnonzero(inside & ~same)[0])
            case = {str(ref.type): column[row] for ref, column in zip(params, columns)}
            raise Refuted(f"{law} fails on {case}")
        applied += 1
    return applied


def _params(whole: Ref) -> list[Ref]:
    found: dict[Ref, None] = {}
    pending = [whole]
    while pending:
        ref = pending.pop()
        if ref.node.opcode == "core.param":
            found[ref] = None
        pending += ref.node.inputs
    return list(found)


def _intervals(kind: Type) -> list[Interval]:
    """Those from or to an edge or zero, and single values."""
    full = raw_interval(element_type(kind))
    edges = {full.low, full.high, 0}
    return [
        Interval(a, b) for a in range(full.low, full.high + 1) for b in range(a, full.high + 1)
        if a == b or a in edges or b in edges
    ]


def _grid(params: Sequence[Ref]) -> list[Array]:
    """All combinations of scalars; many random ones where there are tensors."""
    if any(isinstance(ref.type, TensorType) for ref in params):
        rng = np.random.default_rng(1)
        return [
            rng.choice(values_of(element_type(kind)), (64, *shape_of(kind))).astype(numpy_dtype(kind))
            for kind in (ref.type for ref in params)
        ]
    axes = [np.array(values_of(ref.type)) for ref in params]
    return [column.ravel() for column in np.meshgrid(*axes, indexing="ij")]


def _evaluate(trial: Trial, ref: Ref, params: Sequence[Ref], columns: Sequence[Array]) -> Array:
    rows = len(columns[0]) if columns else 1
    if any(isinstance(kind, FloatType) for kind in (*_types_below(ref), *(item.type for item in params))):
        return np.array(_by_rationals(ref, dict(zip(params, columns)), rows))
    region_params: list[Type] = [U3] * 24
    args: list[Array] = [np.zeros(rows, np.uint8)] * 24
    for param, column in zip(params, columns):
        index = param.node.attr("index")
        assert isinstance(index, int)
        region_params[index] = param.type
        args[index] = column.astype(numpy_dtype(param.type))
    return run_region(trial.store.region(region_params, [ref]), args, rows)[0]


def _types_below(ref: Ref) -> Iterator[Type]:
    yield ref.type
    for item in ref.node.inputs:
        yield from _types_below(item)


# Floats of any format


def _by_rationals(ref: Ref, given: Mapping[Ref, Array], rows: int) -> list[int]:
    """A value's bits, row by row."""
    if ref in given:
        return [int(word) for word in given[ref]]
    node = ref.node
    if node.opcode == "core.constant":
        data = node.attr("value")
        assert isinstance(data, bytes)
        return [int.from_bytes(data, "little")] * rows
    columns = [_by_rationals(item, given, rows) for item in node.inputs]
    verb = node.opcode.split(".")[1]
    if node.opcode.startswith("floating.") and verb in ("add", "sub", "mul", "div", "fma"):
        assert isinstance(ref.type, FloatType)
        return foreign(verb, ref.type, columns)
    source = node.inputs[-1].type
    rule = _SCALAR[node.opcode]
    return [rule(source, ref.type, row) for row in zip(*columns)]


def _is_nan(kind: FloatType, word: int) -> bool:
    return word == kind.canonical_nan


def _neg(kind: FloatType, word: int) -> int:
    return word if _is_nan(kind, word) else word ^ 1 << (kind.width_bits - 1)


def _abs(kind: FloatType, word: int) -> int:
    return word if _is_nan(kind, word) else word & ~(1 << (kind.width_bits - 1))


def _key(kind: FloatType, word: int) -> tuple[Any, bool]:
    """Zeros by their signs."""
    return value_of(kind, word), not word >> (kind.width_bits - 1)


def _extreme(kind: FloatType, row: Sequence[int], pick: Callable[..., int]) -> int:
    if any(_is_nan(kind, word) for word in row):
        return kind.canonical_nan
    return pick(row, key=partial(_key, kind))


def _convert(source: FloatType, target: FloatType, word: int) -> int:
    return word_of(target, value_of(source, word), bool(word >> (source.width_bits - 1)))


_SCALAR: dict[str, Callable[[Any, Any, Sequence[int]], int]] = {
    "floating.neg": lambda source, _, row: _neg(source, row[0]),
    "floating.abs": lambda source, _, row: _abs(source, row[0]),
    "floating.min": lambda source, _, row: _extreme(source, row, min),
    "floating.max": lambda source, _, row: _extreme(source, row, max),
    "compare.eq": lambda source, _, row: int(value_of(source, row[0]) == value_of(source, row[1])),
    "compare.ne": lambda source, _, row: int(value_of(source, row[0]) != value_of(source, row[1])),
    "compare.lt": lambda source, _, row: int(value_of(source, row[0]) < value_of(source, row[1])),
    "compare.gt": lambda source, _, row: int(value_of(source, row[0]) > value_of(source, row[1])),
    "convert.cast": lambda source, target, row: _convert(source, target, row[0]),
    "bits.not": lambda _, __, row: 1 - row[0],  # a comparison's
    "control.select": lambda _, __, row: row[1] if row[0] else row[2],
}
