"""The items that a net is made of while it grows: frozen, equal when they compute the same from the same.

Every class is one kind of item, with what it needs beside its operands as typed fields. ``finish`` makes
cells of them, by a table.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kera_hw.schedule.fpga.bits import Bits
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.units.iterative import Register


@dataclass(frozen=True, slots=True)
class Item:
    """Base of all: the output's ``width`` and the vectors it reads."""

    width: int
    ins: tuple[Bits, ...]

    delay: ClassVar[int] = 0
    """Rough delay in units of 0.1 ns: only the order in which sums are joined depends on it."""
    levels: ClassVar[int] = 0
    """LUT levels that it counts for in the depth of gates and sums behind it."""


@dataclass(frozen=True, slots=True)
class Gate(Item):
    """A bitwise function of its operands: bit i of ``table`` is its value where they show i."""

    table: int

    delay: ClassVar[int] = 12


@dataclass(frozen=True, slots=True)
class Sum(Item):
    """a + f(operands) + carry: ``ins`` are a, the operands of f = ``table``, the carry or () for none."""

    table: int

    delay: ClassVar[int] = 28

    @property
    def a(self) -> Bits:
        return self.ins[0]

    @property
    def operands(self) -> tuple[Bits, ...]:
        return self.ins[1:-1]

    @property
    def carry(self) -> Bits:
        return self.ins[-1]


@dataclass(frozen=True, slots=True)
class Product(Item):
    """The product of two operands, in a multiplier with pipeline registers inside."""

    a_signed: bool
    b_signed: bool
    latency_cycles: int

    delay: ClassVar[int] = 70


@dataclass(frozen=True, slots=True)
class Choice(Item):
    """One of several words: ``ins`` are the select and the choices, the last for a select past the end."""

    delay: ClassVar[int] = 16
    levels: ClassVar[int] = 1

    @property
    def select(self) -> Bits:
        return self.ins[0]

    @property
    def choices(self) -> tuple[Bits, ...]:
        return self.ins[1:]


@dataclass(frozen=True, slots=True)
class Table(Item):
    """``contents[address]`` from LUTs."""

    contents: tuple[int, ...]

    delay: ClassVar[int] = 18
    levels: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Stored(Item):
    """``contents[address]`` from block RAM with pipeline registers inside."""

    contents: tuple[int, ...]
    latency_cycles: int

    delay: ClassVar[int] = 30


@dataclass(frozen=True, slots=True)
class Iteration(Item):
    """All registers of an iterative unit after ``count`` steps from the values of ``ins``."""

    registers: tuple[Register, ...]
    step: Netlist
    count: int

    delay: ClassVar[int] = 5


@dataclass(frozen=True, slots=True)
class Turn(Item):
    """The call of operator ``number``, of those that are shared, which has this ``turn``.

    ``ins`` are two factors; an accumulator's are the product, the sum before (() for none), and whether there
    is one, a bit. Calls are not equal, even where operands are: each has a turn of its own.
    """

    number: int
    turn: int

    delay: ClassVar[int] = 70


@dataclass(frozen=True, slots=True)
class Reading(Item):
    """A word of a memory, by its index: as it is after that many writes of the item; ``port`` is its own."""

    memory: int
    writes: int
    port: int

    delay: ClassVar[int] = 30

    @property
    def order(self) -> tuple[int, int]:
        """Its place among the accesses to its memory."""
        return self.writes, 1


@dataclass(frozen=True, slots=True)
class Writing(Item):
    """Write ``number`` into a memory, from 1: ``ins`` are address, word and condition. It has no width."""

    memory: int
    number: int

    @property
    def order(self) -> tuple[int, int]:
        """Its place among the accesses to its memory."""
        return self.number, 0


@dataclass(frozen=True, slots=True)
class Parameter(Item):
    """Bits of an input bus."""

    bus: str
    low: int


@dataclass(frozen=True, slots=True)
class StateItem(Item):
    """Something of a state, by its index."""

    state: int


@dataclass(frozen=True, slots=True)
class Present(StateItem):
    """The value of a state."""


@dataclass(frozen=True, slots=True)
class Left(StateItem):
    """What an item has left in a state."""


@dataclass(frozen=True, slots=True)
class Moves(StateItem):
    """Whether the stage that writes a state holds an item which goes on."""

    levels: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Restart(StateItem):
    """The design's reset, in the stage that writes a state."""
