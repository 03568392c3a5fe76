"""Writes native statements: the emitter of loop programs, held to the operations of a machine."""
from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

import numpy as np

from kera_hw.legal.native import Domain, Native, Signature, unsigned
from kera_hw.loops.program import Buffer, Literal, Op, Operand, Statement, Var
from kera_hw.lower.emitter import Emitter, bits_of, literal
from kera_hw.ops.intervals import OpShape, apply_rule
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import AttrValue
from kera_hw.types import FloatType, IntType, Type, numpy_dtype

Number = Operand | int | float


class NativeEmitter(Emitter):
    """Operations on operands of native types; a number beside an operand is a constant of its type."""

    def __init__(self, native: Native, taken: Iterable[str] = ()) -> None:
        """``taken``: names that are not to be given."""
        super().__init__()
        self.native = native
        self._taken = frozenset(taken)
        self._results: dict[tuple[object, ...], Type] = {}

    def outputs(
        self, opcode: str, operands: Sequence[Operand], attrs: dict[str, AttrValue]
    ) -> list[Operand]:
        kinds = tuple(operand.type for operand in operands)
        result = self.fresh(self._result(opcode, kinds, attrs))
        self.append(Op((result,), opcode, tuple(operands), tuple(attrs.items()), self.place))
        if isinstance(result.type, IntType):
            spans = [self.range(operand) for operand in operands]
            self._ranges[result] = apply_rule(opcode, spans, OpShape(kinds, result.type, attrs))
        return [result]

    def _result(self, opcode: str, kinds: tuple[Type, ...], attrs: dict[str, AttrValue]) -> Type:
        """The type of a native operation's result, which is its only one."""
        key = (opcode, kinds, attrs.get("type"))
        if key not in self._results:
            (kind,) = OPS[opcode].infer(kinds, attrs)
            signature = Signature(opcode, kinds, kind)
            assert signature in self.native, f"`{signature}` is not native"
            self._results[key] = kind
        return self._results[key]

    def is_total(self, opcode: str, operands: tuple[Type, ...], result: Type) -> bool:
        """Whether the machine does what the registry says, on all operands."""
        return self.native.get(Signature(opcode, operands, result)) is Domain.TOTAL

    # Names and statements as they are

    def name(self, stem: str) -> str:
        while True:
            self._count += 1
            found = f"{stem}{self._count}"
            if found not in self._taken:
                return found

    def fresh(self, kind: Type, stem: str = "v") -> Var:
        return Var(self.name(stem), kind)

    def constant(self, element: Type, shape: tuple[int, ...], data: bytes) -> Buffer:
        key = (element, shape, data)
        if key not in self.constants:
            self.constants[key] = Buffer(self.name("c"), element, shape, "const", data)
        return self.constants[key]

    def counter(self, count: int) -> Var:
        return self._counter(count)

    def append(self, statement: Statement) -> None:
        self._body.append(statement)

    @contextmanager
    def block(self) -> Generator[list[Statement], None, None]:
        """What is written within goes to the list."""
        with self._block() as body:
            yield body

    # Constants

    def number(self, kind: Type, value: Number) -> Operand:
        if isinstance(value, int | float):
            if isinstance(kind, FloatType):
                return Literal(kind, bits_of(kind, np.array(value).astype(numpy_dtype(kind))))
            assert isinstance(value, int)
            return literal(kind, value)
        return value

    # Arithmetic of the operands' family

    def _two(self, verb: str, a: Operand, b: Number) -> Operand:
        family = "floating" if isinstance(a.type, FloatType) else "integer"
        return self.op(f"{family}.{verb}", a, self.number(a.type, b))

    def add(self, a: Operand, b: Number) -> Operand:
        return self._two("add", a, b)

    def sub(self, a: Operand, b: Number) -> Operand:
        return self._two("sub", a, b)

    def mul(self, a: Operand, b: Number) -> Operand:
        return self._two("mul", a, b)

    def least(self, a: Operand, b: Number) -> Operand:
        """Of integers."""
        return self.op("integer.min", a, self.number(a.type, b))

    def most(self, a: Operand, b: Number) -> Operand:
        return self.op("integer.max", a, self.number(a.type, b))

    def neg(self, a: Operand) -> Operand:
        return self.op("floating.neg" if isinstance(a.type, FloatType) else "integer.neg", a)

    def abs(self, a: Operand) -> Operand:
        return self.op("floating.abs" if isinstance(a.type, FloatType) else "integer.abs", a)

    # Bits

    def both(self, a: Operand, b: Number) -> Operand:
        return self.op("bits.and", a, self.number(a.type, b))

    def either(self, a: Operand, b: Number) -> Operand:
        return self.op("bits.or", a, self.number(a.type, b))

    def differing(self, a: Operand, b: Number) -> Operand:
        return self.op("bits.xor", a, self.number(a.type, b))

    def inverse(self, a: Operand) -> Operand:
        return self.op("bits.not", a)

    def shl(self, a: Operand, amount: Number) -> Operand:
        return self._shift("shl", a, amount)

    def shr(self, a: Operand, amount: Number) -> Operand:
        return self._shift("shr", a, amount)

    def _shift(self, verb: str, a: Operand, amount: Number) -> Operand:
        """By an amount below the width, of any unsigned type."""
        assert isinstance(a.type, IntType)
        word = unsigned(a.type.width_bits)
        if isinstance(amount, int):
            assert amount < word.width_bits
        by = self.number(word, amount)
        return self.op(f"bits.{verb}", a, self.cast(by, word))

    def bits(self, a: Operand) -> Operand:
        """A float's bits as an unsigned word; those of a NaN as they happen to be."""
        assert isinstance(a.type, FloatType)
        return self.op("convert.bitcast", a, type=unsigned(a.type.width_bits))

    def floating(self, a: Operand, kind: FloatType) -> Operand:
        """The float of an unsigned word."""
        return self.op("convert.bitcast", a, type=kind)

    def as_type(self, a: Operand, kind: Type) -> Operand:
        """An integer's bits as the integer type of the same width."""
        return a if a.type == kind else self.op("convert.bitcast", a, type=kind)

    # Choices

    def is_equal(self, a: Operand, b: Number) -> Operand:
        return self.op("compare.eq", a, self.number(a.type, b))

    def is_other(self, a: Operand, b: Number) -> Operand:
        return self.op("compare.ne", a, self.number(a.type, b))

    def is_less(self, a: Operand, b: Number) -> Operand:
        return self.op("compare.lt", a, self.number(a.type, b))

    def is_most(self, a: Operand, b: Number) -> Operand:
        """a <= b."""
        return self.op("compare.le", a, self.number(a.type, b))

    def is_greater(self, a: Operand, b: Number) -> Operand:
        return self.op("compare.gt", a, self.number(a.type, b))

    def is_least(self, a: Operand, b: Number) -> Operand:
        """a >= b."""
        return self.op("compare.ge", a, self.number(a.type, b))

    def choose(self, condition: Operand, then: Number, otherwise: Number) -> Operand:
        """One of two values, of which at least one is an operand that gives the type."""
        kind = next(item.type for item in (then, otherwise) if not isinstance(item, int | float))
        return self.select(condition, self.number(kind, then), self.number(kind, otherwise))


def word_of(kind: FloatType) -> IntType:
    """The unsigned type of a format's bits."""
    return unsigned(kind.width_bits)


def sign_bit(kind: FloatType) -> int:
    return 1 << (kind.width_bits - 1)


def infinity_bits(kind: FloatType) -> int:
    return ((1 << kind.exponent_bits) - 1) << kind.fraction_bits
