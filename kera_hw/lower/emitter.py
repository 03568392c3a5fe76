"""Writes statements: fresh names, the block at work, scalar operations, loops as contexts."""
from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import numpy as np

from kera_hw.graph.node import Origin
from kera_hw.loops.program import (
    COUNTER,
    Affine,
    Alloc,
    Block,
    Buffer,
    Carried,
    For,
    If,
    Index,
    Literal,
    Load,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    While,
    of_var,
)
from kera_hw.lower.options import PLAIN, LoweringOptions, TooLong
from kera_hw.numerics.arrays import Array
from kera_hw.ops.intervals import Interval, MaybeInterval, OpShape, apply_rule, type_interval
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import AttrValue
from kera_hw.types import BOOL, FixType, FloatType, IntType, Type, numpy_dtype

_LINEAR = frozenset({"integer.add", "integer.sub", "integer.mul", "convert.cast"})

Arm = Callable[[], Sequence[Operand]]
"""Writes one side of a branch and gives its values."""


def literal(kind: Type, value: int) -> Literal:
    """An integer, fixed-point (raw) or bool constant; a float by its bits."""
    width = getattr(kind, "width_bits", 1)
    return Literal(kind, value & ((1 << width) - 1))


def bits_of(kind: Type, value: Array) -> int:
    """The bit pattern of one element in its storage type."""
    if isinstance(kind, FloatType):
        return int(value.view(np.dtype(f"u{kind.width_bits // 8}")))
    return int(value) & ((1 << getattr(kind, "width_bits", 1)) - 1)


class Emitter:
    """The program being written. ``place`` is credited with every statement until it changes."""

    def __init__(self, options: LoweringOptions = PLAIN) -> None:
        self.options = options
        self.constants: dict[tuple[Type, tuple[int, ...], bytes], Buffer] = {}
        self.place: Origin | None = None
        self._body: list[Statement] = []
        self._count = 0
        self._ranges: dict[Var, MaybeInterval] = {}
        self._counters: set[Var] = set()
        self._affine: dict[Var, Affine] = {}

    # What is known of integers

    def range(self, operand: Operand) -> MaybeInterval:
        """All values an operand can have; None for floats."""
        if isinstance(operand, Var):
            found = self._ranges.get(operand)
            return found if found is not None else type_interval(operand.type)
        raw = raw_type(operand.type)
        if isinstance(raw, FloatType):
            return None
        value = raw.wrap(operand.bits) if isinstance(raw, IntType) else operand.bits
        return Interval(value, value)

    def affine(self, operand: Operand) -> Affine:
        """An integer as an index expression: what it was computed from, where nothing wrapped.

        Where loops are unrolled that is worth while for counters alone.
        """
        if isinstance(operand, Literal):
            found = self.range(operand)
            assert found is not None
            return Affine(found.low)
        exact = self._affine.get(operand)
        if exact is None:
            return of_var(operand)
        if self.options.unrolled and any(var not in self._counters for var, _ in exact.terms):
            return of_var(operand)
        return exact

    def _note(
        self, result: Var, opcode: str, operands: Sequence[Operand], attrs: dict[str, AttrValue]
    ) -> None:
        kind = result.type
        shape = OpShape(tuple(operand.type for operand in operands), kind, attrs)
        self._ranges[result] = apply_rule(opcode, [self.range(operand) for operand in operands], shape)
        if isinstance(kind, IntType) and opcode in _LINEAR:
            kinds = [operand.type for operand in operands]
            if all(isinstance(operand, IntType) for operand in kinds):
                self._note_linear(result, opcode, operands)

    def _note_linear(self, result: Var, opcode: str, operands: Sequence[Operand]) -> None:
        """The exact expression, if its range shows that the operation did not wrap."""
        parts = [self.affine(operand) for operand in operands]
        match opcode:
            case "integer.add":
                exact = parts[0] + parts[1]
            case "integer.sub":
                exact = parts[0] - parts[1]
            case "integer.mul" if not parts[1].terms:
                exact = parts[0] * parts[1].constant
            case "integer.mul" if not parts[0].terms:
                exact = parts[1] * parts[0].constant
            case "convert.cast":
                exact = parts[0]
            case _:
                return
        span, full = self.span(exact), type_interval(result.type)
        if span is not None and full is not None and span.within(full):
            self._affine[result] = exact

    def span(self, expression: Affine) -> Interval | None:
        """All values of an index expression."""
        low = high = expression.constant
        for var, coefficient in expression.terms:
            found = self.range(var)
            if found is None:
                return None
            ends = sorted((found.low * coefficient, found.high * coefficient))
            low, high = low + ends[0], high + ends[1]
        return Interval(low, high)

    # Names and storage

    def fresh(self, kind: Type, stem: str = "v") -> Var:
        self._count += 1
        if self.options.most is not None and self._count > self.options.most:
            raise TooLong
        return Var(f"{stem}{self._count}", kind)

    def temp(self, element: Type, shape: tuple[int, ...]) -> Buffer:
        self._count += 1
        buffer = Buffer(f"t{self._count}", element, shape)
        self._body.append(Alloc(buffer))
        return buffer

    def constant(self, element: Type, shape: tuple[int, ...], data: bytes) -> Buffer:
        """A constant buffer, one for equal contents."""
        key = (element, shape, data)
        if key not in self.constants:
            self.constants[key] = Buffer(f"c{len(self.constants)}", element, shape, "const", data)
        return self.constants[key]

    # Scalars

    def op(self, opcode: str, *operands: Operand, **attrs: AttrValue) -> Operand:
        """The result of an operation that has one."""
        return self.outputs(opcode, operands, attrs)[0]

    def outputs(
        self, opcode: str, operands: Sequence[Operand], attrs: dict[str, AttrValue]
    ) -> list[Operand]:
        spec = OPS[opcode]
        types = spec.infer(tuple(operand.type for operand in operands), attrs)
        results = tuple(self.fresh(kind) for kind in types)
        ordered = tuple((key, attrs[key]) for key in spec.attrs)
        self._body.append(Op(results, opcode, tuple(operands), ordered, self.place))
        if len(results) == 1:
            self._note(results[0], opcode, operands, attrs)
        return list(results)

    def load(self, buffer: Buffer, index: Index) -> Operand:
        assert len(index) == len(buffer.shape), f"{buffer} takes no {len(index)} indices"
        result = self.fresh(buffer.element)
        self._body.append(Load(result, buffer.name, index, self.place))
        return result

    def store(self, buffer: Buffer, index: Index, value: Operand) -> None:
        assert len(index) == len(buffer.shape) and value.type == buffer.element, (buffer, value)
        self._body.append(Store(buffer.name, index, value, self.place))

    def cast(self, value: Operand, kind: Type) -> Operand:
        return value if value.type == kind else self.op("convert.cast", value, type=kind)

    def select(self, condition: Operand, then: Operand, otherwise: Operand) -> Operand:
        return self.op("control.select", condition, then, otherwise)

    def count(self, value: int) -> Literal:
        return literal(COUNTER, value)

    def of_affine(self, expression: Affine) -> Operand:
        """The value of an index expression as a scalar."""
        total: Operand | None = None
        for var, coefficient in expression.terms:
            term = self.cast(var, COUNTER)
            if coefficient != 1:
                term = self.op("integer.mul", term, self.count(coefficient))
            total = term if total is None else self.op("integer.add", total, term)
        if total is None:
            return self.count(expression.constant)
        if expression.constant:
            total = self.op("integer.add", total, self.count(expression.constant))
        return total

    def clamped(self, index: Operand, last: int) -> Affine:
        """An index of any integer type, held within 0 to ``last``; itself where that is known."""
        kind, known = index.type, self.span(self.affine(index))
        assert isinstance(kind, IntType) and known is not None
        if known.low >= 0 and known.high <= last:
            return self.affine(index)
        # In the index's own type as far as it goes: a cast of a large u64 would turn it negative.
        if known.high > last:
            index = self.op("integer.min", index, literal(kind, last))
        if known.low < 0:
            index = self.op("integer.max", index, literal(kind, 0))
        return self.affine(index)

    # Structure

    def _counter(self, count: int) -> Var:
        var = self.fresh(COUNTER, "i")
        self._ranges[var] = Interval(0, max(count - 1, 0))
        self._counters.add(var)
        return var

    @contextmanager
    def _block(self) -> Generator[list[Statement], None, None]:
        outside, self._body = self._body, []
        try:
            yield self._body
        finally:
            self._body = outside

    @contextmanager
    def nest(self, shape: Sequence[int], parallel: bool = True) -> Generator[list[Var], None, None]:
        """Loops over all indices of a shape, outermost first, without carried values."""
        variables, place = [self._counter(extent) for extent in shape], self.place
        with self._block() as body:
            yield variables
        statements, self.place = tuple(body), place
        for var, extent in zip(reversed(variables), reversed(shape)):
            statements = (For(var, extent, (), Block(statements), parallel, place),)
        self._body.extend(statements)

    @contextmanager
    def loop(self, count: int, initial: Sequence[Operand]) -> Generator[Round, None, None]:
        """A loop with carried values: set ``next`` inside; ``Round.results`` afterwards."""
        round_ = Round(self._counter(count), [self.fresh(value.type) for value in initial])
        place = self.place
        with self._block() as body:
            yield round_
        self.place = place
        carried = self._carried(round_, initial)
        block = Block(tuple(body), tuple(round_.next))
        self._body.append(For(round_.index, count, carried, block, False, place))

    def _carried(self, round_: Round, initial: Sequence[Operand]) -> tuple[Carried, ...]:
        assert [value.type for value in round_.next] == [value.type for value in initial]
        outer = [self.fresh(value.type) for value in initial]
        round_.results = list(outer)
        return tuple(map(Carried, round_.inner, initial, outer))

    @contextmanager
    def loop_while(self, most: int, initial: Sequence[Operand]) -> Generator[WhileRound, None, None]:
        """A bounded loop: write the condition within ``with round.condition()``, then the body."""
        round_ = WhileRound(self._counter(most), [self.fresh(value.type) for value in initial], self)
        place = self.place
        with self._block() as body:
            yield round_
        self.place = place
        assert round_.test is not None, "a while loop needs its condition"
        carried = self._carried(round_, initial)
        block = Block(tuple(body), tuple(round_.next))
        self._body.append(While(most, carried, round_.test, block, place))

    def branch(
        self, condition: Operand, types: Sequence[Type], then: Arm, otherwise: Arm
    ) -> list[Operand]:
        """Either arm's statements; both give values of ``types``."""
        blocks: list[Block] = []
        place = self.place
        for arm in (then, otherwise):
            with self._block() as body:
                values = arm()
            self.place = place
            assert [value.type for value in values] == list(types)
            blocks.append(Block(tuple(body), tuple(values)))
        results = tuple(self.fresh(kind) for kind in types)
        self._body.append(If(condition, blocks[0], blocks[1], results, place))
        return list(results)

    def finish(self) -> Block:
        return Block(tuple(self._body))


class Round:
    """One round of a loop while its body is written."""

    def __init__(self, index: Var, inner: list[Var]) -> None:
        self.index = index
        self.inner = inner
        self.next: list[Operand] = list(inner)
        self.results: list[Operand] = []


class WhileRound(Round):
    """A round whose condition is written first."""

    def __init__(self, index: Var, inner: list[Var], emitter: Emitter) -> None:
        super().__init__(index, inner)
        self.test: Block | None = None
        self._emitter = emitter

    @contextmanager
    def condition(self) -> Generator[list[Operand], None, None]:
        """Append the condition's value to the list given."""
        found: list[Operand] = []
        with self._emitter._block() as body:  # pyright: ignore[reportPrivateUsage] - its other half
            yield found
        assert [value.type for value in found] == [BOOL]
        self.test = Block(tuple(body), tuple(found))


def storage_bytes(kind: Type, values: Array) -> bytes:
    """Elements as constants hold them: in the storage type, little-endian, row-major."""
    dtype = numpy_dtype(kind)
    return np.ascontiguousarray(values).astype(dtype, copy=False).astype(dtype.newbyteorder("<")).tobytes()


def raw_type(kind: Type) -> Type:
    """The integer type of a fixed-point format; any other type itself."""
    return kind.raw if isinstance(kind, FixType) else kind
