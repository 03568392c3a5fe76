"""Which number types hold all values of which others, and the least that holds those of several."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kera_hw.types import BF16, F16, F32, F64, BoolType, FixType, FloatType, IntType, Type

_FLOATS = (F16, BF16, F32, F64)
_ROUND_WIDTHS = (8, 16, 32, 64)


class _Digits(NamedTuple):
    """Of a number in binary: bits before and after the point, and whether it may be negative."""

    whole: int
    fraction: int
    signed: bool


def _digits(kind: Type) -> _Digits | None:
    if isinstance(kind, IntType):
        return _Digits(kind.width_bits - kind.signed, 0, kind.signed)
    if isinstance(kind, FixType):
        return _Digits(kind.width_bits - kind.fraction_bits - kind.signed, kind.fraction_bits, kind.signed)
    return None


def holds(target: Type, source: Type) -> bool:
    """Whether `as` to the target keeps every value of the source."""
    if isinstance(source, BoolType):
        return isinstance(target, (IntType, BoolType))
    if isinstance(target, FloatType) and isinstance(source, FloatType):
        return target.exponent_bits >= source.exponent_bits and target.fraction_bits >= source.fraction_bits
    have = _digits(source)
    if have is None:
        return False
    if isinstance(target, FloatType):
        largest = (1 << (target.exponent_bits - 1)) - 1
        exact = have.whole + have.fraction <= target.fraction_bits + 1
        return exact and have.whole <= largest and have.fraction < largest + target.fraction_bits
    room = _digits(target)
    if room is None:
        return False
    signs = room.signed or not have.signed
    return signs and room.whole >= have.whole and room.fraction >= have.fraction


def common_type(kinds: Sequence[Type]) -> Type | None:
    """The least type that holds all values of all: one of them if possible, else an integer of a round width,
    a format of as many digits, or a float. None where there is none."""
    for kind in kinds:
        if all(holds(kind, other) for other in kinds):
            return kind
    digits = [_digits(kind) for kind in kinds]
    known = [item for item in digits if item is not None]
    if len(known) == len(kinds):
        signed = any(item.signed for item in known)
        whole, fraction = max(item.whole for item in known), max(item.fraction for item in known)
        width = whole + fraction + signed
        if fraction:
            return FixType(width, fraction, signed) if fraction <= width <= 64 else None
        return next((IntType(round_, signed) for round_ in _ROUND_WIDTHS if round_ >= width), None)
    return next((kind for kind in _FLOATS if all(holds(kind, other) for other in kinds)), None)


def factor_types(a: Type, b: Type) -> tuple[Type, Type] | None:
    """Formats of one signedness that hold the values of two factors, one of them fixed point; None where
    there are none, or where their product has more than 64 bits."""
    found = _digits(a), _digits(b)
    if found[0] is None or found[1] is None:
        return None
    signed = found[0].signed or found[1].signed
    widths = [item.whole + item.fraction + signed for item in found if item is not None]
    if sum(widths) > 64:
        return None
    return FixType(widths[0], found[0].fraction, signed), FixType(widths[1], found[1].fraction, signed)


def loss(target: Type, source: Type) -> str:
    """What `as` does to values of the source that the target does not hold, for messages."""
    if isinstance(target, IntType) and isinstance(source, IntType):
        if target.width_bits < source.width_bits:
            return f"would keep the low {target.width_bits} bits alone"
        if source.signed and not target.signed:
            return "would turn negative values into large ones"
        return f"would turn values above {target.max} into negative ones"
    if isinstance(target, IntType) and isinstance(source, FloatType):
        return f"would drop the fraction, and end at {target.min} and {target.max}"
    if isinstance(target, FloatType):
        return "would round what it does not hold exactly"
    return "would not keep every value"
