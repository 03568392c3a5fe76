"""NumPy's functions that mean on a traced value what Kera has, by name; everything else is refused."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from kera_hw.driver.tracing.tracer import Symbol

_OPERATORS: Mapping[str, str] = {
    "add": "__add__", "subtract": "__sub__", "multiply": "__mul__", "true_divide": "__truediv__",
    "divide": "__truediv__", "floor_divide": "__floordiv__", "remainder": "__mod__", "bitwise_and": "__and__",
    "bitwise_or": "__or__", "bitwise_xor": "__xor__", "left_shift": "__lshift__", "right_shift": "__rshift__",
    "equal": "__eq__", "not_equal": "__ne__", "less": "__lt__", "less_equal": "__le__", "greater": "__gt__",
    "greater_equal": "__ge__", "logical_and": "__and__", "logical_or": "__or__", "logical_xor": "__xor__",
    "matmul": "__matmul__", "negative": "__neg__", "positive": "__pos__", "invert": "__invert__",
    "logical_not": "__invert__", "absolute": "__abs__",
}
_SWAPPED: Mapping[str, str] = {
    "__eq__": "__eq__", "__ne__": "__ne__", "__lt__": "__gt__", "__le__": "__ge__", "__gt__": "__lt__",
    "__ge__": "__le__",
}
_BUILTINS: Mapping[str, str] = {
    "sqrt": "sqrt", "exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "sin": "sin", "cos": "cos",
    "tanh": "tanh", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "round", "sign": "sign",
    "copysign": "copysign", "reciprocal": "recip", "minimum": "min", "maximum": "max", "isnan": "is_nan",
    "isfinite": "is_finite",
}


def _reduction(name: str) -> Callable[..., Any]:
    def call(own: Any, x: Any, axis: int | None = None) -> Any:
        return own.call(name, x, **({} if axis is None else {"axis": axis}))

    return call


def _where(own: Any, c: Any, a: Any, b: Any) -> Any:
    return own.call("select", c, a, b)


def _clip(own: Any, x: Any, low: Any, high: Any) -> Any:
    return own.call("clamp", x, low, high)


def _dot(own: Any, a: Any, b: Any) -> Any:
    return own.call("dot", a, b)


def _concatenate(own: Any, parts: Sequence[Any], axis: int = 0) -> Any:
    return reduce(lambda a, b: own.call("concat", a, b, axis=axis), parts)


def _reshape(_: Any, x: Any, shape: int | tuple[int, ...]) -> Any:
    return x.reshape(shape)


def _transpose(_: Any, x: Any, axes: tuple[int, ...] = ()) -> Any:
    return x.transpose(*axes)


_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    np.sum: _reduction("sum"), np.prod: _reduction("prod"), np.mean: _reduction("mean"),
    np.any: _reduction("any"), np.all: _reduction("all"), np.argmin: _reduction("argmin"),
    np.argmax: _reduction("argmax"), np.min: _reduction("min"), np.max: _reduction("max"),
    np.where: _where, np.clip: _clip, np.dot: _dot, np.concatenate: _concatenate, np.reshape: _reshape,
    np.transpose: _transpose,
}


def ufunc_on(own: Any, ufunc: Any, method: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """A ufunc with a traced value among its inputs. Raises KeraError (K0918) for one that Kera lacks."""
    name: str = ufunc.__name__
    if method != "__call__" or options:
        called = f"np.{name}.{method}" if method != "__call__" else f"np.{name} with {', '.join(options)}"
        own.tracer.fail(f"`{called}` has no meaning on a traced value.")
    operator = _OPERATORS.get(name)
    if operator is not None:
        first, *rest = inputs
        if isinstance(first, Symbol) or not rest:
            return getattr(first, operator)(*rest)
        swapped = _SWAPPED.get(operator, operator.replace("__", "__r", 1))
        return getattr(rest[0], swapped)(first)
    if name in _BUILTINS:
        return own.call(_BUILTINS[name], *inputs)
    return _refuse(own, name)


def function_on(own: Any, function: Any, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """A function of NumPy's with a traced value among its arguments. Raises KeraError (K0918)."""
    found = _FUNCTIONS.get(function)
    if found is None:
        return _refuse(own, function.__name__)
    try:
        inspect.signature(found).bind(own, *inputs, **options)
    except TypeError as fault:
        own.tracer.fail(f"`np.{function.__name__}` of a traced value: {fault}.")
    return found(own, *inputs, **options)


def _refuse(own: Any, name: str) -> Any:
    own.tracer.fail(f"`np.{name}` is not known on traced values.", notes=(
        "`kera_hw.fn` has Kera's built-ins; `kera_hw.kera(\"..\")` takes any expression of Kera.",))
