"""Values while flattening: a scalar is one reference, a tensor a row-major list of them, or memories."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kera_hw.graph.node import Ref
from kera_hw.ops.spec import Array
from kera_hw.types import Type


@dataclass(frozen=True, slots=True)
class Tensor:
    """Elements of a tensor in row-major order."""

    shape: tuple[int, ...]
    items: tuple[Ref, ...]

    def indices(self) -> Array:
        """The position of every element, in the tensor's shape: what structural operations rearrange."""
        return np.arange(len(self.items)).reshape(self.shape)

    def take(self, positions: Array) -> Tensor:
        """The tensor of the elements at ``positions``, in that array's shape."""
        return Tensor(positions.shape, tuple(map(self.items.__getitem__, positions.ravel().tolist())))


@dataclass(frozen=True, slots=True)
class Stored:
    """A version of a tensor that is kept as memories, one for each bank of its ``axes`` leading axes."""

    name: str
    shape: tuple[int, ...]
    element: Type
    axes: int
    versions: tuple[Ref, ...]

    def at(self, versions: tuple[Ref, ...]) -> Stored:
        """The same tensor at other versions."""
        return replace(self, versions=versions)


class Unkept(Exception):
    """A tensor can't be kept as it was meant to be: why, and where an axis is no axis of banks, which."""

    def __init__(self, name: str, reason: str, axis: int | None = None) -> None:
        super().__init__(f"{name}: {reason}")
        self.name, self.reason, self.axis = name, reason, axis


Value = Ref | Tensor | Stored


def items_of(value: Value) -> tuple[Ref, ...]:
    """The scalars of a value, in order. Raises Unkept for memories."""
    if isinstance(value, Stored):
        raise Unkept(value.name, "it is moved as a whole")
    return value.items if isinstance(value, Tensor) else (value,)


def rebuild(items: Sequence[Ref], shape: tuple[int, ...], tensor: bool) -> Value:
    """A value of the given form from its scalars."""
    return Tensor(shape, tuple(items)) if tensor else items[0]


def elementwise(function: Callable[..., Ref], args: Sequence[Value]) -> Value:
    """Apply a scalar function per element; scalars mix with tensors of one shape."""
    shaped = next((arg for arg in args if isinstance(arg, Tensor)), None)
    if shaped is None:
        return function(*args)
    count = len(shaped.items)
    columns = [arg.items if isinstance(arg, Tensor) else items_of(arg) * count for arg in args]
    return Tensor(shaped.shape, tuple(function(*row) for row in zip(*columns)))
