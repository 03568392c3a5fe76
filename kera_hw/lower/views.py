"""Tensors while lowering: a buffer seen through an affine map of indices.

Slices, rows, transposes, reversals and broadcasts of a buffer cost nothing: they are other maps onto it.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kera_hw.loops.program import Affine, Buffer, Index, Operand
from kera_hw.types import Type


@dataclass(frozen=True, slots=True)
class Axis:
    """One index of the buffer: ``base`` plus the view's own indices times coefficients."""

    base: Affine
    steps: tuple[tuple[int, int], ...]  # (axis of the view, coefficient)

    def at(self, index: Sequence[Affine]) -> Affine:
        found = self.base
        for axis, coefficient in self.steps:
            found = found + index[axis] * coefficient
        return found


@dataclass(frozen=True, slots=True)
class View:
    """A tensor value. ``owned``: its buffer may be overwritten once nobody else looks at it."""

    buffer: Buffer
    shape: tuple[int, ...]
    axes: tuple[Axis, ...]
    owned: bool = False

    @property
    def element(self) -> Type:
        return self.buffer.element

    @property
    def size(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def at(self, index: Sequence[Affine]) -> Index:
        """Where an element lies in the buffer."""
        assert len(index) == len(self.shape)
        return tuple(axis.at(index) for axis in self.axes)

    @property
    def is_whole(self) -> bool:
        """Whether it is the buffer itself, index for index."""
        return self.shape == self.buffer.shape and self.axes == _identity(len(self.shape))

    def row(self, position: Affine) -> View:
        """The tensor at one index of axis 0."""
        return self._mapped(self.shape[1:], [position, *(None for _ in self.shape[1:])])

    def window(self, starts: Sequence[Affine], sizes: Sequence[int]) -> View:
        axes = tuple(replace(axis, base=axis.at(starts)) for axis in self.axes)
        return replace(self, shape=tuple(sizes), axes=axes, owned=False)

    def permuted(self, order: Sequence[int]) -> View:
        """Axis k of the result is axis ``order[k]``."""
        places = {axis: k for k, axis in enumerate(order)}
        return self._renamed(tuple(self.shape[axis] for axis in order), places)

    def reversed(self, axis: int) -> View:
        last = self.shape[axis] - 1
        axes = tuple(
            Axis(
                part.base + sum(c for k, c in part.steps if k == axis) * last,
                tuple((k, -c if k == axis else c) for k, c in part.steps),
            )
            for part in self.axes
        )
        return replace(self, axes=axes, owned=False)

    def broadcast(self, shape: tuple[int, ...]) -> View:
        """Stretched to a shape, trailing axes aligned; axes of extent 1 repeat."""
        lead = len(shape) - len(self.shape)
        places = {axis: axis + lead for axis, extent in enumerate(self.shape) if extent == shape[axis + lead]}
        return self._renamed(shape, places)

    def _renamed(self, shape: tuple[int, ...], places: dict[int, int]) -> View:
        """With view axes under other numbers; those without one stay at 0."""
        axes = tuple(
            Axis(part.base, tuple((places[k], c) for k, c in part.steps if k in places)) for part in self.axes
        )
        return replace(self, shape=shape, axes=axes, owned=False)

    def _mapped(self, shape: tuple[int, ...], fixed: Sequence[Affine | None]) -> View:
        """With some axes held at an index; the others keep their order."""
        places = {axis: k for k, axis in enumerate(a for a, at in enumerate(fixed) if at is None)}
        axes: list[Axis] = []
        for part in self.axes:
            base = part.base
            for axis, coefficient in part.steps:
                held = fixed[axis]
                if held is not None:
                    base = base + held * coefficient
            axes.append(Axis(base, tuple((places[k], c) for k, c in part.steps if k in places)))
        return replace(self, shape=shape, axes=tuple(axes), owned=False)


def _identity(rank: int) -> tuple[Axis, ...]:
    return tuple(Axis(Affine(), ((k, 1),)) for k in range(rank))


def whole(buffer: Buffer, owned: bool = False) -> View:
    """A buffer as the tensor it is."""
    return View(buffer, buffer.shape, _identity(len(buffer.shape)), owned)


Value = Operand | View
