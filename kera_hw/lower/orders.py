"""Reductions written out in their defined order: what starts a sum, what adds to it, what joins two.

The sequences are those of the reference (``numerics.orders``): lanes, sequential and tree.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kera_hw.loops.program import Affine, Buffer, Operand, of_var
from kera_hw.lower.emitter import Emitter
from kera_hw.numerics.orders import BLOCK, LANES
from kera_hw.types import F64, U32, FixType, FloatType, Type

Term = Sequence[Operand]
"""One value, or the two factors of a product."""
Terms = Callable[[Affine], Term]
"""Term k of a sum."""


@dataclass(frozen=True, slots=True)
class Chain:
    """How terms accumulate, in values of ``kind``; ``finish`` gives the result."""

    kind: Type
    first: Callable[[Term], Operand]
    step: Callable[[Operand, Term], Operand]
    combine: Callable[[Operand, Operand], Operand]
    finish: Callable[[Operand], Operand]


def _same(value: Operand) -> Operand:
    return value


def family(kind: Type) -> str:
    return "floating" if isinstance(kind, FloatType) else "fixed" if isinstance(kind, FixType) else "integer"


def folding(emit: Emitter, kind: Type, opcode: str) -> Chain:
    """Values joined by one operation."""

    def join(a: Operand, b: Operand) -> Operand:
        return emit.op(opcode, a, b)

    return Chain(kind, lambda term: term[0], lambda acc, term: join(acc, term[0]), join, _same)


def products(emit: Emitter, kind: Type, mul: str) -> Chain:
    """Products of pairs added: exact modulo 2^W on integers, as ``mul`` says on floats.

    ``wide``: products of two f32 are exact in f64, in which the sum is kept to the end.
    """
    wide = mul == "wide"
    name, working = family(kind), F64 if wide else kind

    def product(term: Term) -> Operand:
        a, b = (emit.cast(value, working) for value in term)
        return emit.op(f"{name}.mul", a, b)

    def add(a: Operand, b: Operand) -> Operand:
        return emit.op(f"{name}.add", a, b)

    def step(acc: Operand, term: Term) -> Operand:
        if mul == "fused":
            return emit.op("floating.fma", term[0], term[1], acc)
        return add(acc, product(term))

    return Chain(working, product, step, add, lambda value: emit.cast(value, kind))


def reduce(emit: Emitter, chain: Chain, order: str, count: int, terms: Terms) -> Operand:
    """``count`` terms, one or more, taken together."""
    if order == "lanes":
        return chain.finish(_lanes(emit, chain, count, terms))
    if order == "tree":
        level = emit.temp(chain.kind, (count,))
        with emit.nest([count]) as (k,):
            emit.store(level, (of_var(k),), chain.first(terms(of_var(k))))
        return chain.finish(_tree(emit, chain, level, count))
    return chain.finish(sequential(emit, chain, count, terms))


def sequential(emit: Emitter, chain: Chain, count: int, terms: Terms) -> Operand:
    """From term 0 on, one after another."""
    first = chain.first(terms(Affine(0)))
    if count == 1:
        return first
    with emit.loop(count - 1, [first]) as round_:
        round_.next = [chain.step(round_.inner[0], terms(of_var(round_.index) + 1))]
    return round_.results[0]


def _lanes(emit: Emitter, chain: Chain, count: int, terms: Terms) -> Operand:
    """64 lanes in blocks of 4096, lanes folded by halves, blocks combined as a tree."""
    blocks, rest = divmod(count, BLOCK)
    if not blocks:
        return _block(emit, chain, rest, terms, Affine())
    parts = emit.temp(chain.kind, (blocks + bool(rest),))
    with emit.nest([blocks]) as (b,):
        emit.store(parts, (of_var(b),), _block(emit, chain, BLOCK, terms, of_var(b) * BLOCK))
    if rest:
        emit.store(parts, (Affine(blocks),), _block(emit, chain, rest, terms, Affine(blocks * BLOCK)))
    return _tree(emit, chain, parts, blocks + bool(rest))


def _block(emit: Emitter, chain: Chain, count: int, terms: Terms, start: Affine) -> Operand:
    """One block's terms from ``start``: lane l takes every 64th from l on."""
    lanes = min(count, LANES)
    acc = emit.temp(chain.kind, (lanes,))
    with emit.nest([lanes]) as (lane,):
        emit.store(acc, (of_var(lane),), chain.first(terms(start + of_var(lane))))
    rows, last = divmod(count - lanes, LANES)
    if rows:
        with emit.nest([rows], parallel=False) as (row,):
            _add_row(emit, chain, acc, LANES, terms, start + of_var(row) * LANES + LANES)
    if last:
        _add_row(emit, chain, acc, last, terms, start + (rows + 1) * LANES)
    return _halves(emit, chain, acc, lanes)


def _add_row(
    emit: Emitter, chain: Chain, acc: Buffer, lanes: int, terms: Terms, start: Affine
) -> None:
    with emit.nest([lanes]) as (lane,):
        where = (of_var(lane),)
        emit.store(acc, where, chain.step(emit.load(acc, where), terms(start + of_var(lane))))


def _halves(emit: Emitter, chain: Chain, acc: Buffer, lanes: int) -> Operand:
    """Lane l with lane l + 32, then l + 16, ... l + 1; one without a partner stays."""
    half = LANES // 2
    while half:
        partnered = lanes - half
        if partnered > 0:
            with emit.nest([partnered]) as (lane,):
                low, high = of_var(lane), of_var(lane) + half
                emit.store(acc, (low,), chain.combine(emit.load(acc, (low,)), emit.load(acc, (high,))))
            lanes = half
        half //= 2
    return emit.load(acc, (Affine(0),))


def _tree(emit: Emitter, chain: Chain, level: Buffer, count: int) -> Operand:
    """Neighbours in pairs, level by level, in place; an odd last one moves up as it is."""
    while count > 1:
        pairs = count // 2
        with emit.nest([pairs], parallel=False) as (k,):
            a, b = (emit.load(level, (of_var(k) * 2 + side,)) for side in (0, 1))
            emit.store(level, (of_var(k),), chain.combine(a, b))
        if count % 2:
            emit.store(level, (Affine(pairs),), emit.load(level, (Affine(count - 1),)))
        count = pairs + count % 2
    return emit.load(level, (Affine(0),))


def best_place(
    emit: Emitter, kind: Type, wins: Callable[[Operand, Operand], Operand], count: int, terms: Terms
) -> Operand:
    """The place of the best term as a tree: of two the later, if it ``wins``."""
    best, place = emit.temp(kind, (count,)), emit.temp(U32, (count,))
    with emit.nest([count]) as (k,):
        emit.store(best, (of_var(k),), terms(of_var(k))[0])
        emit.store(place, (of_var(k),), emit.cast(emit.of_affine(of_var(k)), U32))
    while count > 1:
        pairs = count // 2
        with emit.nest([pairs], parallel=False) as (k,):
            first, second = ((of_var(k) * 2 + side,) for side in (0, 1))
            value, rival = emit.load(best, first), emit.load(best, second)
            later = wins(rival, value)
            places = emit.load(place, first), emit.load(place, second)
            emit.store(best, (of_var(k),), emit.select(later, rival, value))
            emit.store(place, (of_var(k),), emit.select(later, places[1], places[0]))
        if count % 2:
            for level in (best, place):
                emit.store(level, (Affine(pairs),), emit.load(level, (Affine(count - 1),)))
        count = pairs + count % 2
    return emit.load(place, (Affine(0),))
