"""Ranges of floats that were clamped, so that ``t[clamp(x, 0.0, 7.0) as u8]`` is proved.

Only bounds that constants give are known. They say nothing of NaN, which converts to 0.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from kera_hw.frontend.sema.ranges.symbol import Symbol
from kera_hw.ops.intervals import Interval, type_interval
from kera_hw.types import FloatType, IntType, Type, is_scalar

Bounds = tuple[float, float]

_DEPTH = 12
_ANY: Bounds = (-math.inf, math.inf)
_ROUNDED: dict[str, Callable[[float], float]] = {
    "floating.floor": lambda x: x if math.isinf(x) else float(math.floor(x)),
    "floating.ceil": lambda x: x if math.isinf(x) else float(math.ceil(x)),
    "floating.round": lambda x: x if math.isinf(x) else float(round(x)),
    "floating.trunc": lambda x: x if math.isinf(x) else float(math.trunc(x)),
}


def converted(symbol: Symbol, target: Type) -> Interval | None:
    """The range of a float as an integer of a type: toward zero, saturating, NaN as 0."""
    full = type_interval(target)
    if not isinstance(target, IntType) or full is None:
        return None
    low, high = _bounds(symbol, _DEPTH)
    ends = [_saturated(end, full) for end in (low, high)]
    return Interval(min(0, *ends), max(0, *ends))


def _saturated(value: float, full: Interval) -> int:
    if math.isinf(value):
        return full.high if value > 0 else full.low
    return max(full.low, min(full.high, math.trunc(value)))


def _bounds(symbol: Symbol, depth: int) -> Bounds:
    """Bounds of a value that is no NaN. All numbers in them are values of the format, so exact in f64."""
    if depth == 0 or not isinstance(symbol.kind, FloatType) or not is_scalar(symbol.kind):
        return _ANY
    if symbol.value is not None:
        value = float(symbol.value)
        return _ANY if math.isnan(value) else (value, value)
    if symbol.name == "phi":
        (a, b), (c, d) = (_bounds(arm, depth - 1) for arm in symbol.args[1:])
        return min(a, c), max(b, d)
    if not symbol.name.startswith("floating."):
        return _ANY
    return _operation(symbol.name, [_bounds(arg, depth - 1) for arg in symbol.args])


def _operation(name: str, args: list[Bounds]) -> Bounds:
    if name in ("floating.min", "floating.max"):
        pick = min if name == "floating.min" else max
        (a, b), (c, d) = args
        return pick(a, c), pick(b, d)
    if name in _ROUNDED:
        (low, high) = args[0]
        return _ROUNDED[name](low), _ROUNDED[name](high)
    if name == "floating.relu":
        return max(args[0][0], 0.0), max(args[0][1], 0.0)
    if name == "floating.neg":
        return -args[0][1], -args[0][0]
    if name == "floating.abs":
        low, high = args[0]
        return max(low, -high, 0.0), max(abs(low), abs(high))
    if name == "floating.sigmoid":
        return 0.0, 1.0
    return (-1.0, 1.0) if name in ("floating.tanh", "floating.erf", "floating.sin", "floating.cos") else _ANY
