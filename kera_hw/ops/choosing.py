"""Random choices of types, and what a random operation looks like before it has operands.

Randomness comes from the caller: a function that gives an integer below its argument.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from kera_hw.support import Encoder, content_hash
from kera_hw.types import (
    BOOL,
    FORMATS,
    BoolType,
    FixType,
    FloatType,
    IntType,
    TensorType,
    Type,
)

T = TypeVar("T")
Types = tuple[Type, ...]

WIDTHS = (1, 2, 3, 4, 7, 8, 9, 13, 16, 17, 24, 31, 32, 33, 48, 53, 63, 64)
FLOATS = FORMATS
MAX_RANK = 3
MAX_EXTENT = 4


@dataclass(frozen=True, slots=True)
class RegionWanted:
    """A region the caller must build: it stands in an attribute where the region will go."""

    params: Types
    result_types: Types

    @property
    def hash(self) -> bytes:
        out = Encoder()
        for kind in (*self.params, *self.result_types):
            out.raw(kind.hash)
        return content_hash("wanted", out.finish())


@dataclass(frozen=True, slots=True)
class Sample:
    """Operand types and attributes that the operation's typing rule accepts."""

    types: Types
    attrs: dict[str, Any]


class Chooser:
    """Random choices: ``below(n)`` gives an integer in [0, n).

    ``pool`` holds types to prefer, such as those of values a growing graph already has. Without ``floats``
    an operation that takes other numbers too is sampled on those alone. ``longest``: the largest extent of a
    tensor with one axis.
    """

    def __init__(
        self, below: Callable[[int], int], pool: Sequence[Type] = (), floats: bool = True,
        longest: int = MAX_EXTENT,
    ) -> None:
        self.below = below
        self.pool = pool
        self.floats = floats
        self.longest = longest

    def allowed(self, kinds: Sequence[type[Type]]) -> Sequence[type[Type]]:
        """The kinds, less floating point where it is not wanted and something else is left."""
        return kinds if self.floats else [kind for kind in kinds if kind is not FloatType] or kinds

    def between(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def coin(self) -> bool:
        return self.below(2) == 1

    def integer(self, low: int = 1, high: int = 64, signed: bool | None = None) -> IntType:
        """An integer type of ``low`` to ``high`` bits."""
        fitting = [
            kind for kind in self.pool
            if isinstance(kind, IntType) and low <= kind.width_bits <= high and signed in (None, kind.signed)
        ]
        if fitting and self.below(4):
            return self.pick(fitting)
        width_bits = self.pick([width for width in WIDTHS if low <= width <= high] or [low])
        return IntType(width_bits, self.coin() if signed is None else signed)

    def fixed(self, low: int = 1, high: int = 64) -> FixType:
        """A fixed-point format of ``low`` to ``high`` bits."""
        fitting = [k for k in self.pool if isinstance(k, FixType) and low <= k.width_bits <= high]
        if fitting and self.below(4):
            return self.pick(fitting)
        width_bits = self.pick([width for width in WIDTHS if low <= width <= high] or [low])
        return FixType(width_bits, self.below(width_bits + 1), self.coin())

    def whole_bytes(self) -> IntType:
        """An integer type of 8, 16, ... 64 bits."""
        return IntType(8 * self.between(1, 8), self.coin())

    def scalar(self, kinds: Sequence[type[Type]], low: int = 1) -> Type:
        """A scalar type of one of the kinds; integers have ``low`` bits or more."""
        kind = self.pick(self.allowed(kinds))
        if kind is BoolType:
            return BOOL
        if kind is FixType:
            return self.fixed()
        return self.pick(FLOATS) if kind is FloatType else self.integer(low)

    def shape(self, rank: int | None = None, least: int = 0) -> tuple[int, ...]:
        """A small shape; an extent is 0 now and then where ``least`` allows."""
        low = least if least or self.below(16) == 0 else 1
        count = self.between(1, MAX_RANK) if rank is None else rank
        most = self.longest if count == 1 else MAX_EXTENT
        return tuple(self.between(low, most) for _ in range(count))

    def tensor(self, kinds: Sequence[type[Type]], rank: int | None = None, least: int = 0) -> TensorType:
        """A small tensor type; from the pool where it has one that fits."""
        wanted = tuple(self.allowed(kinds))
        fitting = [
            kind for kind in self.pool
            if isinstance(kind, TensorType) and isinstance(kind.element, wanted)
            and rank in (None, len(kind.shape)) and min(kind.shape) >= least
        ]
        if fitting and self.coin():
            return self.pick(fitting)
        return TensorType(self.scalar(kinds), self.shape(rank, least))

    def mixed(self, elements: Sequence[Type]) -> Types:
        """Operands of an element-wise operation: all scalars, or some of them tensors of one shape."""
        if self.below(3):
            return tuple(elements)
        shape = self.shape()
        return tuple(TensorType(kind, shape) if self.coin() else kind for kind in elements)
