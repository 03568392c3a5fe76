"""Reductions of floats in a stated order: `lanes`, `sequential` and `tree`, over the last array axis.

A chain says what starts an accumulation, what adds a term to it and what joins two; an order says in which
sequence that happens. Every step rounds on its own, on all rows at once.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kera_hw.numerics import exact, floats
from kera_hw.numerics.arrays import Array
from kera_hw.numerics.host import ieee
from kera_hw.numerics.rounding import is_small, narrow, widen
from kera_hw.numerics.units import Unit, unit_of
from kera_hw.types import FloatType

LANES = 64
BLOCK = 4096

Binary = Callable[[Array, Array], Array]


@dataclass(frozen=True, slots=True)
class Chain:
    """How terms accumulate, on working arrays. A term is one array, or the pair that a product takes.

    ``running`` is the host's strict left fold with all partial results, where it computes the same.
    """

    load: Callable[[Array], Array]
    first: Callable[..., Array]  # of the first term
    step: Callable[..., Array]  # of the accumulator and a term
    combine: Binary
    finish: Callable[[Array], Array]
    running: np.ufunc | None = None


def _identity(values: Array) -> Array:
    return values


def sums(kind: FloatType) -> Chain:
    """Terms added."""
    unit = unit_of(kind)
    running = None if is_small(kind) else np.add
    return Chain(unit.load, _identity, unit.add, unit.add, unit.store, running)


def factors(kind: FloatType) -> Chain:
    """Terms multiplied."""
    unit = unit_of(kind)
    running = None if is_small(kind) else np.multiply
    return Chain(unit.load, _identity, unit.mul, unit.mul, unit.store, running)


def products(kind: FloatType, mul: str) -> Chain:
    """Products of pairs added: `fused` in one rounding, `unfused` in two, `wide` in f64 to the end."""
    unit = unit_of(kind)
    if mul == "wide":
        return Chain(
            lambda values: widen(values, kind), np.multiply, _wide_step, np.add,
            lambda values: narrow(values, kind),
        )
    step = _fused_step(unit) if mul == "fused" else _unfused_step(unit)
    return Chain(unit.load, unit.mul, step, unit.add, unit.store)


def _wide_step(acc: Array, a: Array, b: Array) -> Array:
    return acc + a * b


def _fused_step(unit: Unit) -> Callable[..., Array]:
    def step(acc: Array, a: Array, b: Array) -> Array:
        return unit.fma(a, b, acc)

    return step


def _unfused_step(unit: Unit) -> Callable[..., Array]:
    def step(acc: Array, a: Array, b: Array) -> Array:
        return unit.add(acc, unit.mul(a, b))

    return step


# ---------------------------------------------------------------- orders


def fold_lanes(chain: Chain, *terms: Array) -> Array:
    """64 lanes in blocks of 4096, lanes folded by halves, blocks combined as a tree."""
    count = terms[0].shape[-1]
    whole = count // BLOCK * BLOCK
    parts: list[Array] = []
    if whole:
        cut = [term[..., :whole].reshape(*term.shape[:-1], -1, BLOCK // LANES, LANES) for term in terms]
        acc = chain.first(*(term[..., 0, :] for term in cut))
        for row in range(1, BLOCK // LANES):
            acc = chain.step(acc, *(term[..., row, :] for term in cut))
        parts.append(_halves(chain, acc))
    if count > whole:
        parts.append(_partial_block(chain, [term[..., whole:] for term in terms])[..., np.newaxis])
    return fold_tree(chain.combine, np.concatenate(parts, axis=-1))


def _partial_block(chain: Chain, terms: list[Array]) -> Array:
    """A block of fewer elements: lanes without any take no part."""
    count = terms[0].shape[-1]
    acc = chain.first(*(term[..., :LANES] for term in terms))
    for low in range(LANES, count, LANES):
        row = [term[..., low : low + LANES] for term in terms]
        taken = row[0].shape[-1]
        stepped = chain.step(acc[..., :taken], *row)
        acc = stepped if taken == LANES else np.concatenate([stepped, acc[..., taken:]], axis=-1)
    return _halves(chain, acc)


def _halves(chain: Chain, acc: Array) -> Array:
    """Lane l with lane l + 32, then l + 16, ... l + 1; one without a partner stays."""
    half = LANES // 2
    while half:
        partnered = acc.shape[-1] - half
        if partnered > 0:
            joined = chain.combine(acc[..., :partnered], acc[..., half:])
            acc = np.concatenate([joined, acc[..., partnered:half]], axis=-1)
        half //= 2
    return acc[..., 0]


def fold_tree(combine: Binary, values: Array) -> Array:
    """Neighbours in pairs, level by level; an odd last one moves up as it is."""
    while values.shape[-1] > 1:
        even = values.shape[-1] // 2 * 2
        joined = combine(values[..., 0:even:2], values[..., 1:even:2])
        values = np.concatenate([joined, values[..., even:]], axis=-1)
    return values[..., 0]


def fold_sequential(chain: Chain, *terms: Array) -> Array:
    """From element 0 on, one after another."""
    if chain.running is not None:
        return chain.running.accumulate(terms[0], axis=-1)[..., -1]
    acc = chain.first(*(term[..., 0] for term in terms))
    for k in range(1, terms[0].shape[-1]):
        acc = chain.step(acc, *(term[..., k] for term in terms))
    return acc


def _fold(chain: Chain, order: str, *terms: Array) -> Array:
    loaded = [chain.load(term) for term in terms]
    if order == "lanes":
        return chain.finish(fold_lanes(chain, *loaded))
    if order == "tree":
        return chain.finish(fold_tree(chain.combine, chain.first(*loaded)))
    assert order == "sequential", order
    return chain.finish(fold_sequential(chain, *loaded))


# ---------------------------------------------------------------- reductions


def _filled(values: Array, value: int, kind: FloatType) -> Array:
    return floats.from_integer(np.full(values.shape[:-1], value, np.int32), kind)


@ieee
def total(values: Array, axis: int, order: str, kind: FloatType) -> Array:
    """Sum along an array axis; +0 where it is empty."""
    values = np.moveaxis(values, axis, -1)
    if values.shape[-1] == 0:
        return _filled(values, 0, kind)
    return exact.total(values, kind) if order == "exact" else _fold(sums(kind), order, values)


@ieee
def product(values: Array, axis: int, order: str, kind: FloatType) -> Array:
    """Product along an array axis; 1 where it is empty."""
    values = np.moveaxis(values, axis, -1)
    if values.shape[-1] == 0:
        return _filled(values, 1, kind)
    return exact.product(values, kind) if order == "exact" else _fold(factors(kind), order, values)


@ieee
def mean(values: Array, axis: int, order: str, kind: FloatType) -> Array:
    """The sum divided by the count, which is first converted to the format."""
    sums_found = total(values, axis, order, kind)
    count = floats.from_integer(np.full(sums_found.shape, values.shape[axis], np.int64), kind)
    return floats.div(sums_found, count, kind)


@ieee
def dot(a: Array, b: Array, mul: str, order: str, kind: FloatType) -> Array:
    """Inner product over the last axis; +0 where it is empty."""
    if a.shape[-1] == 0:
        return _filled(a, 0, kind)
    return exact.dot(a, b, kind) if order == "exact" else _fold(products(kind, mul), order, a, b)


def least(values: Array, axis: int, kind: FloatType) -> Array:
    """IEEE 754-2019 minimum along an array axis that is not empty."""
    return floats.from_ordered(np.minimum.reduce(_nan_below(values, kind), axis=axis), kind)


def greatest(values: Array, axis: int, kind: FloatType) -> Array:
    """IEEE 754-2019 maximum along an array axis that is not empty."""
    return floats.from_ordered(np.maximum.reduce(_nan_above(values, kind), axis=axis), kind)


def first_least(values: Array, axis: int, kind: FloatType) -> Array:
    """The first index of the least element by `<`, as u32; zeros tie, the first NaN wins."""
    return np.argmin(_one_zero(_nan_below(values, kind)), axis=axis).astype(np.uint32)


def first_greatest(values: Array, axis: int, kind: FloatType) -> Array:
    """The first index of the greatest element by `<`, as u32; zeros tie, the first NaN wins."""
    return np.argmax(_one_zero(_nan_above(values, kind)), axis=axis).astype(np.uint32)


def _nan_below(values: Array, kind: FloatType) -> Array:
    keys = floats.ordered(values, kind)
    return np.where(floats.is_nan(values, kind), np.iinfo(keys.dtype).min, keys).astype(keys.dtype)


def _nan_above(values: Array, kind: FloatType) -> Array:
    keys = floats.ordered(values, kind)
    return np.where(floats.is_nan(values, kind), np.iinfo(keys.dtype).max, keys).astype(keys.dtype)


def _one_zero(keys: Array) -> Array:
    """-0, whose key is -1, as +0."""
    return np.where(keys == -1, keys.dtype.type(0), keys)
