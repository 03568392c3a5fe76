"""What the walk over a kernel asks of a GPU's language: scalars in registers, memory, and control.

Everything below speaks of one thread. A language without a course of its own for each thread (AMDGCN) keeps
the threads of a wave apart by a mask; one with it (PTX) branches.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, TypeVar
from typing import Literal as OneOf

from kera_hw.legal.native import Signature
from kera_hw.loops.program import Literal
from kera_hw.types import Type

R = TypeVar("R")
"""A register, as a language has them."""
Space = OneOf["global", "shared", "local"]
"""Memory of all threads, of a block, of one thread."""


@dataclass(frozen=True, slots=True)
class Held(Generic[R]):
    """A scalar in a register. What is narrower than a word may be *loose*, with anything above its width."""

    register: R
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Scalar(Generic[R]):
    """An operand: something held, or a constant."""

    type: Type
    held: Held[R] | Literal


@dataclass(frozen=True, slots=True)
class Place(Generic[R]):
    """Where a buffer begins: a register with an address in it, or the space's own beginning; bytes behind."""

    space: Space
    base: R | None
    offset: int = 0


Step = tuple[Scalar[R], int]
"""So many bytes for each that a scalar counts."""


class Writer(ABC, Generic[R]):
    """Writes one kernel. ``instructions``: how many there are."""

    instructions: int

    # Scalars

    @abstractmethod
    def compute(self, op: Signature, args: Sequence[Scalar[R]]) -> Held[R]:
        """A native operation."""

    @abstractmethod
    def register(self, kind: Type) -> R:
        """A register of its own, which may be given values more than once."""

    @abstractmethod
    def move(self, register: R, value: Scalar[R]) -> None:
        """A value into such a register, extended if it was loose."""

    has_byte_products = False

    def sum_of_products(
        self, total: Scalar[R], words: tuple[Held[R], Held[R]], kinds: tuple[Type, Type]
    ) -> Held[R]:
        """A sum and four products of bytes, which lie in two words; where there is an instruction."""
        raise NotImplementedError

    has_tiles = False

    def tile(
        self, totals: tuple[R, R], words: tuple[Held[R], Held[R]], kinds: tuple[Type, Type]
    ) -> tuple[R, R]:
        """A thread's share of a warp's tile (see ``tiles``), where there is an instruction for that."""
        raise NotImplementedError

    # Memory

    @abstractmethod
    def advance(self, base: R, steps: Sequence[Step[R]]) -> R:
        """A global address further on."""

    @abstractmethod
    def load(self, kind: Type, place: Place[R], steps: Sequence[Step[R]]) -> Held[R]: ...

    @abstractmethod
    def store(self, kind: Type, place: Place[R], steps: Sequence[Step[R]], value: Scalar[R]) -> None: ...

    @abstractmethod
    def parameter(self, name: str) -> R:
        """A number of 64 bits that the kernel is launched with."""

    @abstractmethod
    def pointer(self, name: str) -> R:
        """A parameter that is an address in global memory."""

    @abstractmethod
    def symbol(self, name: str) -> R:
        """The address of a variable of the module."""

    @abstractmethod
    def array(self, space: Space, size_bytes: int) -> Place[R]:
        """Memory that each block or each thread has."""

    # Threads

    @abstractmethod
    def thread(self) -> R:
        """The thread's number in its block, as a u32."""

    @abstractmethod
    def block(self, axis: OneOf["x", "y"]) -> R:
        """The block's number in the grid, as a u32."""

    @abstractmethod
    def barrier(self) -> None:
        """All threads of the block wait for each other, and see what all have stored."""

    # Control

    @abstractmethod
    def comment(self, text: str) -> None: ...

    @abstractmethod
    def either(self, condition: Scalar[R]) -> AbstractContextManager[Callable[[], None]]:
        """What follows is for threads with a true condition, and after a call for the others."""

    @abstractmethod
    def counted(self, count: int) -> AbstractContextManager[Held[R]]:
        """Rounds as many as that, all of them made by every thread; their counter."""

    @abstractmethod
    def repeated(self, most: int | None) -> AbstractContextManager[Callable[[Scalar[R]], None]]:
        """Rounds that a thread leaves where what it is called with is false, and after ``most``."""

    @abstractmethod
    def repeated_together(self) -> AbstractContextManager[Callable[[Scalar[R]], None]]:
        """The same where all threads of a block leave at once, so that barriers may stand within."""
