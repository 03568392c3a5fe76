"""How a caller's values stand in messages."""

from __future__ import annotations

from numbers import Integral, Real

_LONGEST_SHOWN = 40


def shown(value: object) -> str:
    """A value in a message: text and numbers as they are, other things by their type."""
    if isinstance(value, str):
        short = value if len(value) <= _LONGEST_SHOWN else value[: _LONGEST_SHOWN - 1] + "…"
        return f"`{short if short.isprintable() else short.encode('unicode_escape').decode()}`"
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, Integral):
        number = int(value)
        return f"{number:,}" if number.bit_length() <= 64 else f"a number of {number.bit_length():,} bits"
    if isinstance(value, Real):
        try:
            return f"{float(value):g}"
        except OverflowError:
            return "a number beyond all limits"
    return f"a value of the type {type(value).__name__}"
