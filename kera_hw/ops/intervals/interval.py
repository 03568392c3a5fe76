"""An interval of integers, the interval of a type, and what a rule is."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from kera_hw.types import BoolType, FixType, FloatType, IntType, Type, element_type


class Interval(NamedTuple):
    """All integers from ``low`` to ``high``, both included; empty when ``low > high``."""

    low: int
    high: int

    def hull(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def meet(self, other: Interval) -> Interval:
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def within(self, other: Interval) -> bool:
        return other.low <= self.low and self.high <= other.high

    @property
    def empty(self) -> bool:
        return self.low > self.high

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"


MaybeInterval = Interval | None  # None: a float or token, which has no integer range

TRUTH = Interval(0, 1)


@lru_cache(maxsize=1024)
def type_interval(kind: Type) -> MaybeInterval:
    """The raw range of a type's elements; None for floats and tokens."""
    kind = element_type(kind)
    if isinstance(kind, BoolType):
        return TRUTH
    raw = kind.raw if isinstance(kind, FixType) else kind
    return Interval(raw.min, raw.max) if isinstance(raw, IntType) else None


def raw_interval(kind: Type) -> Interval:
    """All values of a scalar type as raw integers; those of a float are its bits."""
    full = type_interval(kind)
    if full is None:
        assert isinstance(kind, FloatType), f"{kind} is no scalar"
        return Interval(0, (1 << kind.width_bits) - 1)
    return full


def fitted(interval: MaybeInterval, kind: Type) -> MaybeInterval:
    """The interval after wrapping into the type: itself if it fits, else everything."""
    full = type_interval(kind)
    if full is None or interval is None or not interval.within(full):
        return full
    return interval


class OpShape(NamedTuple):
    """What a rule may ask about the operation beside its operands' intervals."""

    arg_types: tuple[Type, ...]
    result: Type
    attrs: Mapping[str, Any]


Rule = Callable[[Sequence[Interval], OpShape], MaybeInterval]
