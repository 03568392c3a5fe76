"""Ranges of floats that were clamped, so that ``t[clamp(x, 0.0, 7.0) as u8]`` is proved.

Only bounds that constants give are known. They say nothing of NaN, which converts to 0.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from kera_hw.frontend.sema import hir
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


def converted(expr: hir.Expr, target: Type, lets: Mapping[hir.Var, hir.Let]) -> Interval | None:
    """The range of a float as an integer of a type: toward zero, saturating, NaN as 0."""
    full = type_interval(target)
    if not isinstance(target, IntType) or full is None:
        return None
    low, high = _bounds(expr, lets, _DEPTH)
    ends = [_saturated(end, full) for end in (low, high)]
    return Interval(min(0, *ends), max(0, *ends))


def _saturated(value: float, full: Interval) -> int:
    if math.isinf(value):
        return full.high if value > 0 else full.low
    return max(full.low, min(full.high, math.trunc(value)))


def _bounds(expr: hir.Expr, lets: Mapping[hir.Var, hir.Let], depth: int) -> Bounds:
    """Bounds of a value that is no NaN. All numbers in them are values of the format, so exact in f64."""
    if depth == 0 or not isinstance(expr.type, FloatType) or not is_scalar(expr.type):
        return _ANY
    if isinstance(expr, hir.Const):
        value = float(expr.value)
        return _ANY if math.isnan(value) else (value, value)
    if isinstance(expr, hir.Local):
        # An immutable local keeps the value it was given, whatever changes after.
        let = lets.get(expr.var)
        plain = let is not None and isinstance(let.pattern, hir.Binding)
        return _bounds(let.value, lets, depth - 1) if let is not None and plain else _ANY
    if isinstance(expr, hir.Block) and expr.result is not None and not expr.stmts:
        return _bounds(expr.result, lets, depth)
    if not isinstance(expr, hir.Op):
        return _ANY
    args = [_bounds(arg, lets, depth - 1) for arg in expr.args]
    return _operation(expr.name, args)


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
