"""Scalars of any type in native operands, and what is not yet done to them.

A scalar is *settled* when its operand shows exactly the value: an i13 sign-extended in an i16, an f16 on its
grid in an f32, a NaN the canonical one. It need not be: a sum of i13 may have anything above bit 12, an f16
may be an f32 that rounds to it, a NaN may be any. It is settled where something looks (``demand``), once.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kera_hw.legal.native import Native, Signature, unsigned
from kera_hw.loops.program import Buffer, Operand
from kera_hw.ops.intervals import MaybeInterval
from kera_hw.types import BF16, BOOL, F16, F32, BoolType, FixType, FloatType, IntType, TensorType, Type


@dataclass(slots=True)
class Value:
    """A scalar of a source type. ``span``: all values that it has; ``packed``: an f16 or bf16 as its bits."""

    type: Type
    operand: Operand
    span: MaybeInterval
    settled: bool
    packed: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A constant tensor that an expansion reads."""

    buffer: Buffer

    @property
    def type(self) -> Type:
        return TensorType(self.buffer.element, self.buffer.shape)


class Call(NamedTuple):
    """An operation to be written: what a rule is asked about."""

    opcode: str
    args: tuple[Value, ...]
    types: tuple[Type, ...]
    attrs: Mapping[str, Any]
    span: MaybeInterval

    @property
    def type(self) -> Type:
        return self.types[0]

    @property
    def verb(self) -> str:
        return self.opcode.split(".")[1]


def container(kind: IntType) -> IntType:
    """The native integer that a narrower one lives in: the next of 8, 16, 32 and 64 bits."""
    assert kind.width_bits <= 64, f"{kind} is one of circuits alone"
    width_bits = next(width for width in (8, 16, 32, 64) if kind.width_bits <= width)
    return IntType(width_bits, kind.signed)


def is_odd(kind: IntType) -> bool:
    """Whether the native integer has bits to spare."""
    return container(kind) != kind


def raw(kind: Type) -> IntType:
    """The integer type behind an integer or fixed-point number."""
    if isinstance(kind, FixType):
        return kind.raw
    assert isinstance(kind, IntType)
    return kind


class Forms:
    """Which native type holds scalars of a type while they are computed with, and which in memory."""

    def __init__(self, native: Native) -> None:
        self._own = frozenset(
            kind for kind in (F16, BF16) if Signature("floating.add", (kind, kind), kind) in native
        )

    def is_small(self, kind: Type) -> bool:
        """Whether a float is computed with in f32: f16 and bf16, unless the machine has their arithmetic."""
        return isinstance(kind, FloatType) and kind.width_bits < 32 and kind not in self._own

    def may_be_loose(self, kind: Type) -> bool:
        """Whether scalars of the type can be unsettled: a bool cannot, nor an integer that fills its word."""
        return isinstance(kind, FloatType) or (not isinstance(kind, BoolType) and is_odd(raw(kind)))

    def working(self, kind: Type) -> Type:
        if isinstance(kind, FloatType):
            return F32 if self.is_small(kind) else kind
        return BOOL if isinstance(kind, BoolType) else container(raw(kind))

    def stored(self, kind: Type) -> Type:
        if isinstance(kind, FloatType):
            return kind if kind.width_bits >= 32 else unsigned(kind.width_bits)
        return unsigned(8) if isinstance(kind, BoolType) else container(raw(kind))
