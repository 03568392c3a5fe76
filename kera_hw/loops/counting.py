"""How often a loop program executes each of its operations, and how wide they are: what unrolling would make.

No loop is unrolled for it. What is known without an item, since it depends on counters and constants alone,
costs nothing when unrolled and is not counted. Everything else is counted as it is written: of equal
operations, and of those whose results nobody needs, unrolling makes fewer. It is an estimate for people, not
a bound.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kera_hw.graph.node import Origin
from kera_hw.loops.program import (
    Alloc,
    Block,
    Buffer,
    Carried,
    For,
    If,
    Literal,
    Load,
    LoopProgram,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    While,
)
from kera_hw.ops.intervals import Interval, MaybeInterval, OpShape, apply_rule, type_interval
from kera_hw.types import FixType, FloatType, IntType, Type

_WIRES = frozenset({"convert.cast", "convert.bitcast", "bits.extract", "bits.test", "memory.transfer"})


@dataclass(frozen=True, slots=True)
class Nest:
    """The loops around an operation, from the outside in: their places, and how often each runs."""

    places: tuple[Origin | None, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def rounds(self) -> int:
        found = 1
        for count in self.counts:
            found *= count
        return found

    def within(self, place: Origin | None, count: int) -> Nest:
        return Nest((*self.places, place), (*self.counts, count))


@dataclass(frozen=True, slots=True)
class Counted:
    """An operation of the program in its loops. ``bits``: what its operands need, constants 0."""

    opcode: str
    type: Type
    bits: tuple[int, ...]
    nest: Nest
    place: Origin | None


def count_operations(program: LoopProgram) -> Counter[Counted]:
    """The operations that depend on an item, each with how often it would be made."""
    walk = _Walk(program)
    walk.block(program.body, Nest())
    walk.settle()
    walk.block(program.body, Nest())
    return walk.found


class _Walk:
    """One pass over the program; the second knows what the first saw stored in every buffer."""

    def __init__(self, program: LoopProgram) -> None:
        self.found: Counter[Counted] = Counter()
        self._buffers = {buffer.name: buffer for buffer in program.buffers}
        self._ranges: dict[Var, MaybeInterval] = {}
        self._known: set[Var] = set()
        self._stored: dict[str, list[MaybeInterval]] = defaultdict(list)
        self._varying = {b.name for b in program.buffers if b.kind in ("param", "state")}
        self._contents: dict[str, MaybeInterval] = {}

    def settle(self) -> None:
        """Take what was stored in a temporary for all that it can hold, and begin again."""
        for name, ranges in self._stored.items():
            if self._buffers[name].kind == "temp":
                self._contents[name] = _union(ranges)
        self.found.clear()

    def block(self, block: Block, nest: Nest) -> None:
        for statement in block.body:
            self._statement(statement, nest)

    def _statement(self, statement: Statement, nest: Nest) -> None:
        match statement:
            case Op():
                self._op(statement, nest)
            case Load(result, name, index, _):
                buffer = self._buffers[name]
                at = [var for axis in index for var, _ in axis.terms]
                self._name(result, self._content(buffer), name not in self._varying and self._all_known(at))
            case Store(name, index, value, _):
                self._stored[name].append(self._range(value))
                if not self._all_known([value, *(var for axis in index for var, _ in axis.terms)]):
                    self._varying.add(name)
            case Alloc(buffer):
                self._buffers[buffer.name] = buffer
            case For(var, count, carried, body, _, place):
                self._name(var, Interval(0, max(count - 1, 0)), True)
                self._rounds(carried, (body,), nest.within(place, count))
            case While(most, carried, condition, body, place):
                self._rounds(carried, (condition, body), nest.within(place, most))
            case If(condition, then, otherwise, results, _):
                self._branch(condition, then, otherwise, results, nest)

    def _op(self, op: Op, nest: Nest) -> None:
        ranges = [self._range(operand) for operand in op.operands]
        known = self._all_known(op.operands)
        first = op.results[0].type
        kinds = tuple(operand.type for operand in op.operands)
        single = len(op.results) == 1
        range_ = apply_rule(op.opcode, ranges, OpShape(kinds, first, dict(op.attrs))) if single else None
        for result in op.results:
            self._name(result, range_ if single else type_interval(result.type), known)
        if not known and op.opcode not in _WIRES:
            bits = tuple(
                0 if self._all_known([operand]) else _bits(range_, operand.type)
                for operand, range_ in zip(op.operands, ranges)
            )
            self.found[Counted(op.opcode, first, bits, nest, op.place)] += nest.rounds

    def _rounds(self, carried: Sequence[Carried], blocks: Sequence[Block], nest: Nest) -> None:
        """A loop's body, once; again where a carried value turns out to depend on an item."""
        known = [self._all_known([item.initial]) for item in carried]
        before = self.found.copy()
        while True:
            for item, is_known in zip(carried, known):
                self._name(item.inner, type_interval(item.inner.type), is_known)
            for block in blocks:
                self.block(block, nest)
            after = [self._all_known([value]) for value in blocks[-1].yields]
            if all(now or not was for was, now in zip(known, after)):
                break
            known = [was and now for was, now in zip(known, after)]
            self.found = before.copy()
        for item, is_known in zip(carried, known):
            self._name(item.outer, type_interval(item.outer.type), is_known)

    def _branch(
        self, condition: Operand, then: Block, otherwise: Block, results: Sequence[Var], nest: Nest
    ) -> None:
        """Both sides, whose results are selected between; the larger one where unrolling knows which."""
        counts: list[Counter[Counted]] = []
        outside = self.found
        for side in (then, otherwise):
            self.found = Counter()
            self.block(side, nest)
            counts.append(self.found)
        self.found = outside
        known = self._all_known([condition])
        for count in [max(counts, key=lambda item: item.total())] if known else counts:
            self.found.update(count)
        for result, *values in zip(results, then.yields, otherwise.yields):
            self._name(result, _union(map(self._range, values)), known and self._all_known(values))
            if not known:
                bits = (1, *(_bits(self._range(value), value.type) for value in values))
                self.found[Counted("control.select", result.type, bits, nest, None)] += nest.rounds

    # What is known of values

    def _name(self, var: Var, range_: MaybeInterval, known: bool) -> None:
        self._ranges[var] = range_
        (self._known.add if known else self._known.discard)(var)

    def _range(self, operand: Operand) -> MaybeInterval:
        if isinstance(operand, Var):
            return self._ranges[operand]
        raw = operand.type.raw if isinstance(operand.type, FixType) else operand.type
        if isinstance(raw, FloatType):
            return None
        value = raw.wrap(operand.bits) if isinstance(raw, IntType) else operand.bits
        return Interval(value, value)

    def _content(self, buffer: Buffer) -> MaybeInterval:
        return self._contents.get(buffer.name, type_interval(buffer.element))

    def _all_known(self, operands: Sequence[Operand]) -> bool:
        return all(isinstance(operand, Literal) or operand in self._known for operand in operands)


def _union(ranges: Sequence[MaybeInterval] | map[MaybeInterval]) -> MaybeInterval:
    found = list(ranges)
    known = [item for item in found if item is not None]
    if len(known) < len(found) or not known:
        return None
    return Interval(min(item.low for item in known), max(item.high for item in known))


def _bits(range_: MaybeInterval, kind: Type) -> int:
    """Bits that hold every value of a range, with a sign where there are negative ones."""
    if range_ is None:
        return getattr(kind, "width_bits", 1)
    if range_.low >= 0:
        return max(1, range_.high.bit_length())
    return 1 + max(range_.high.bit_length(), (-range_.low - 1).bit_length())
