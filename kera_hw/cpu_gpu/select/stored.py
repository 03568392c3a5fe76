"""What is known of temporaries in straight code: vectors that were stored, and are loaded again.

A processor hands on what is stored to a load of the same bytes, some cycles later; where a load asks for a
part of them, it is later still.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.cpu_gpu.machine.code import VReg


@dataclass(frozen=True, slots=True)
class StoredLanes:
    """Elements from ``first`` on lie in a register, ``lanes`` of them; 1 of a scalar."""

    first: int
    lanes: int
    register: VReg


class Stored:
    """By name of a buffer what was stored last, as far as it is known where."""

    def __init__(self) -> None:
        self._known: dict[str, list[StoredLanes]] = {}

    def clear(self) -> None:
        self._known.clear()

    def note(self, buffer: str, first: int | None, lanes: int, register: VReg) -> None:
        """From an element on; None where it is not known from which."""
        if first is None:
            self._known.pop(buffer, None)
            return
        others = [item for item in self._known.get(buffer, ())
                  if item.first + item.lanes <= first or first + lanes <= item.first]
        self._known[buffer] = [*others, StoredLanes(first, lanes, register)]

    def find(self, buffer: str, first: int, lanes: int) -> StoredLanes | None:
        """The register that holds all of these elements."""
        return next((item for item in self._known.get(buffer, ())
                     if item.first <= first and first + lanes <= item.first + item.lanes), None)
