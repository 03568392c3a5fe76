"""Sums of products of neighbours: two products at once where a machine multiplies lanes in pairs.

A filter adds products of neighbouring elements, of 8 or 16 bits, and factors that are the same in all rounds.
Machines multiply 16 bits by 16 and add each two neighbouring products, exactly but for sums that wrap at 32
bits, as these do. What lies at an element and at the next one are then sums of every other round.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kera_hw.loops.program import (
    Block,
    Buffer,
    Literal,
    Load,
    LoopProgram,
    Op,
    Operand,
    Store,
    Var,
    statements,
)
from kera_hw.schedule.software.uses import Uses
from kera_hw.schedule.software.vector_loops import VectorLoop, flat_terms
from kera_hw.types import IntType, Type

_SUM_BITS = 32
_FACTOR_BITS = 16


@dataclass(frozen=True, slots=True)
class Term:
    """An element times a factor."""

    load: Load
    factor: Operand
    product: Var


@dataclass(frozen=True, slots=True)
class Pair:
    """Two terms whose elements are neighbours."""

    first: Term
    second: Term


@dataclass(frozen=True, slots=True)
class PairedSum:
    """What is added up: pairs, and scalars beside them."""

    pairs: tuple[Pair, ...]
    others: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class PairedSums:
    """Sums by the scalar that they give, and scalars that nothing else reads."""

    sums: Mapping[Var, PairedSum] = field(default_factory=dict[Var, PairedSum])
    inside: frozenset[Var] = frozenset()


NO_PAIRS = PairedSums()


def fits_factor(kind: Type) -> bool:
    """Whether all values of a type are factors as machines multiply them."""
    if not isinstance(kind, IntType):
        return False
    return kind.width_bits + (not kind.signed) <= _FACTOR_BITS


def short_numbers(program: LoopProgram) -> frozenset[Var]:
    """Scalars that have become wider, and hold what a factor does."""
    return frozenset(
        item.results[0] for item in statements(program.body)
        if isinstance(item, Op) and item.opcode == "convert.cast" and fits_factor(item.operands[0].type)
    )


def paired_sums(
    block: Block, loop: VectorLoop, buffers: Mapping[str, Buffer], uses: Uses, short: frozenset[Var]
) -> PairedSums:
    """Those of a block whose rounds lie side by side."""
    search = _Search(block, loop, buffers, uses, short)
    sums = {var: found for var, found in search.found() if found.pairs}
    return PairedSums(sums, frozenset(search.inside(sums))) if sums else NO_PAIRS


class _Search:
    def __init__(
        self, block: Block, loop: VectorLoop, buffers: Mapping[str, Buffer], uses: Uses, short: frozenset[Var]
    ) -> None:
        self._loop, self._buffers, self._uses, self._short = loop, buffers, uses, short
        self._stored = {item.buffer for item in block.body if isinstance(item, Store)}
        self._ops = {item.results[0]: item for item in block.body if isinstance(item, Op)}
        self._loads = {item.result: item for item in block.body if isinstance(item, Load)}

    def found(self) -> Iterator[tuple[Var, PairedSum]]:
        roots = [var for var, op in self._ops.items() if self._is_sum(op) and not self._is_inner(var)]
        for root in roots:
            terms, others = list[Term](), list[Operand]()
            for operand in self._addends(root):
                term = self._term(operand)
                if term is not None:
                    terms.append(term)
                elif not isinstance(operand, Literal) or operand.bits:
                    others.append(operand)
            pairs = tuple(self._pairs(terms))
            paired = {one.product for pair in pairs for one in (pair.first, pair.second)}
            others += [term.product for term in terms if term.product not in paired]
            yield root, PairedSum(pairs, tuple(others))

    def _is_sum(self, op: Op) -> bool:
        kind = op.results[0].type
        wraps = isinstance(kind, IntType) and kind.width_bits == _SUM_BITS
        return wraps and op.opcode == "integer.add" and op.results[0] in self._loop.varying

    def _reader(self, var: Var) -> Op | None:
        """The one operation, of this block, that reads it."""
        readers = self._uses.readers(var)
        reader = readers[0] if len(readers) == 1 else None
        return reader if isinstance(reader, Op) and self._ops.get(reader.results[0]) is reader else None

    def _is_inner(self, var: Var) -> bool:
        """Whether a sum is but part of another one."""
        reader = self._reader(var)
        return reader is not None and self._is_sum(reader)

    def _addends(self, root: Var) -> Iterator[Operand]:
        waiting: list[Operand] = [*reversed(self._ops[root].operands)]
        while waiting:
            operand = waiting.pop()
            op = self._ops.get(operand) if isinstance(operand, Var) else None
            if op is not None and self._is_sum(op) and self._is_inner(op.results[0]):
                waiting += reversed(op.operands)
            else:
                yield operand

    def _term(self, operand: Operand) -> Term | None:
        if not isinstance(operand, Var) or self._reader(operand) is None:
            return None
        op = self._ops.get(operand)
        if op is None or op.opcode != "integer.mul":
            return None
        for element, factor in (op.operands, op.operands[::-1]):
            load = self._element(element)
            if load is not None and self._is_factor(factor):
                return Term(load, factor, operand)
        return None

    def _is_factor(self, operand: Operand) -> bool:
        if isinstance(operand, Literal):
            short, whole = (IntType(bits, True).wrap(operand.bits) for bits in (_FACTOR_BITS, _SUM_BITS))
            return short == whole
        return operand in self._short and operand not in self._loop.varying

    def _element(self, operand: Operand) -> Load | None:
        """What is loaded for a lane each, and made wider."""
        cast = self._ops.get(operand) if isinstance(operand, Var) else None
        if cast is None or cast.opcode != "convert.cast" or not fits_factor(cast.operands[0].type):
            return None
        value = cast.operands[0]
        load = self._loads.get(value) if isinstance(value, Var) else None
        if load is None or load.buffer in self._stored or load.buffer in self._loop.private:
            return None
        _, terms = flat_terms(self._buffers[load.buffer], load.index)
        moving = {var: step for var, step in terms.items() if var in self._loop.varying}
        return load if moving == {self._loop.var: 1} else None

    def _pairs(self, terms: Iterable[Term]) -> Iterator[Pair]:
        """Each term in one pair at most, in the order in which elements lie."""
        rows: dict[object, dict[int, list[Term]]] = {}
        for term in terms:
            place, moving = flat_terms(self._buffers[term.load.buffer], term.load.index)
            key = term.load.buffer, frozenset(moving.items()), isinstance(term.factor, Literal)
            rows.setdefault(key, {}).setdefault(place, []).append(term)
        for row in rows.values():
            for place in sorted(row):
                while row[place] and row.get(place + 1):
                    yield Pair(row[place].pop(0), row[place + 1].pop(0))

    def inside(self, sums: Mapping[Var, PairedSum]) -> Iterator[Var]:
        """What is part of sums alone: inner sums, products and elements."""
        gone = set[int]()
        others = {operand for found in sums.values() for operand in found.others}
        for root in sums:
            waiting: list[Operand] = list(self._ops[root].operands)
            while waiting:
                operand = waiting.pop()
                op = self._ops.get(operand) if isinstance(operand, Var) else None
                if op is not None and op.results[0] not in others and self._is_inner(op.results[0]):
                    gone.add(id(op))
                    waiting += op.operands
                    yield op.results[0]
        for var, op in reversed(self._ops.items()):
            if op.opcode == "convert.cast" and var not in others and self._is_read_by(var, gone):
                gone.add(id(op))
                yield var
        yield from (var for var in self._loads if var not in others and self._is_read_by(var, gone))

    def _is_read_by(self, var: Var, gone: set[int]) -> bool:
        """Whether lanes are read by these alone."""
        readers = self._uses.readers(var)
        return var in self._loop.varying and bool(readers) and all(id(reader) in gone for reader in readers)
