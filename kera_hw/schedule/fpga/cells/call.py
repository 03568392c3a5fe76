"""Units: parts of the circuit that stand for themselves, and the cells that give them work.

A unit has its own latency and initiation interval, and serves one cell or several: a memory, a set of
registers that iterates a step. What a unit is made of may hold netlists, so the concrete classes stand above
them, in ``schedule.fpga.units``. Cells name their unit by value: calls of equal units share one circuit,
units that differ in nothing but their name are two circuits of one definition.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from kera_hw.schedule.fpga.bits import Bits
from kera_hw.schedule.fpga.cells.cell import Cell, Look
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.values import Value

_ENTRY_BITS = 20
"""Operands of a call enter so many bits apart, which tells them apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit(ABC):
    """Base of all units; ``name`` is unique in a netlist.

    A call's operands enter in its stage, its result appears ``latency_cycles`` stages later and lasts for
    one. The next call may enter ``initiation_interval`` cycles after it.
    """

    name: str

    timed_by_items: ClassVar[bool] = False
    """Whether it must know when an item is in the stage of a call."""
    keeps_items: ClassVar[bool] = False
    """Whether what an item leaves in it lasts beyond the item."""

    @property
    @abstractmethod
    def latency_cycles(self) -> int: ...

    @property
    @abstractmethod
    def initiation_interval(self) -> int: ...

    @property
    @abstractmethod
    def width(self) -> int:
        """Bits of its result."""

    def definition(self) -> Self:
        """What it shares with units of the same make."""
        return replace(self, name="")

    @abstractmethod
    def look(self) -> Look: ...

    @abstractmethod
    def describe(self) -> str: ...

    @abstractmethod
    def setup_ps(self, device: Device, operand: int = 0) -> int:
        """Time that an operand of a call takes inside before the registers that take it up."""

    @abstractmethod
    def clk_to_q_ps(self, device: Device) -> int: ...

    @abstractmethod
    def luts(self, device: Device) -> float: ...

    def keeps_luts(self, device: Device) -> bool:
        """Whether its LUTs are counted as synthesis leaves them."""
        return False

    @abstractmethod
    def operand_luts(self, operands: Sequence[Bits]) -> int:
        """LUTs that a call's operands ask for besides."""

    @abstractmethod
    def flip_flops(self) -> int: ...

    @abstractmethod
    def brams(self, device: Device) -> int: ...

    def dsps(self, device: Device) -> int:
        """DSP tiles that it takes."""
        return 0

    def from_block(self, device: Device) -> bool:
        """Whether its result comes out of a DSP block; see ``Cell.from_block``."""
        return False

    @abstractmethod
    def evaluate(self, operands: Sequence[Value]) -> Value: ...

    def act(self, operands: Sequence[int], kept: dict[str, Any]) -> int:
        """The result of a call of a unit that ``keeps_items``, and what becomes of that, kept by name."""
        raise TypeError(f"{type(self).__name__} keeps nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Cell):
    """Work for a unit: its operands, and its result as the output."""

    unit: Unit
    arguments: tuple[Bits, ...]

    near: ClassVar[bool] = False

    def look(self) -> Look:
        return self.unit.look()

    def describe(self) -> str:
        return self.unit.describe()

    def operands(self) -> tuple[Bits, ...]:
        return self.arguments

    def with_operands(self, moved: Callable[[Bits], Bits]) -> Self:
        return replace(self, arguments=tuple(map(moved, self.arguments)))

    def inner_stages(self) -> int:
        return self.unit.latency_cycles

    def entry(self, operand: int) -> int:
        return operand << _ENTRY_BITS

    def logic_ps(self, device: Device, position: int = 0) -> int:
        return self.unit.setup_ps(device, position >> _ENTRY_BITS)

    def clk_to_q_ps(self, device: Device, wire_ps: int) -> int:
        return self.unit.clk_to_q_ps(device)

    def from_block(self, device: Device) -> bool:
        return self.unit.from_block(device)

    def luts(self, device: Device, read: int = -1) -> float:
        """Those beside the unit's own, which count once however many calls it has."""
        return self.unit.operand_luts(self.arguments)

    def keeps_luts(self, device: Device) -> bool:
        return self.unit.keeps_luts(device)

    def evaluate(self, operands: Sequence[Value]) -> Value:
        return self.unit.evaluate(operands)
