"""Cells that show what comes from elsewhere: parameters, state registers, the control around the pipeline."""
from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from kera_hw.schedule.fpga.cells.cell import Cell, Look
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.values import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Cell, ABC):
    """A leaf: no logic; its values are the simulation's own business."""

    leaf: ClassVar[bool] = True
    free: ClassVar[bool] = True

    def logic_ps(self, device: Device, position: int = 0) -> int:
        return 0

    def luts(self, device: Device, read: int = -1) -> float:
        return 0

    def evaluate(self, operands: Sequence[Value]) -> Value:
        raise TypeError(f"{type(self).__name__} is a leaf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Input(Source):
    """A leaf of the parameters: ``bus`` names the port, bits [low, low + width) of it."""

    bus: str
    low: int = 0

    def look(self) -> Look:
        return Look("in", "input", "input")

    def describe(self) -> str:
        return f"input `{self.bus}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOut(Source):
    """Present value of state register ``state`` (index into ``Netlist.states``)."""

    state: int

    def look(self) -> Look:
        return Look("state", "state", "state")

    def describe(self) -> str:
        return "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateNext(Source):
    """State register ``state`` in the stage after the one that writes it: the item's own next value.

    It is that of the item which left it, until a later item writes, just when this one moves on. So the
    register serves the results too; nothing but outputs reads it.
    """

    state: int

    def look(self) -> Look:
        return Look("value", "state", "state")

    def describe(self) -> str:
        return "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteControl(Source, ABC):
    """A signal of the control around the pipeline, in the stage that writes state register ``state``.

    ``for_items`` is its value while items pass.
    """

    state: int
    for_items: ClassVar[int]

    def describe(self) -> str:
        return "flow control"

    def clk_to_q_ps(self, device: Device, wire_ps: int) -> int:
        """One gate over registers of the control."""
        return round(device.timing.clk_to_q_ps + device.timing.lut_ps) + wire_ps


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves(WriteControl):
    """Whether that stage holds an item, and the pipeline moves: 1 for every item, once."""

    for_items: ClassVar[int] = 1

    def look(self) -> Look:
        return Look("moves", "control", "state")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart(WriteControl):
    """The design's reset: 0 while items pass."""

    for_items: ClassVar[int] = 0

    def look(self) -> Look:
        return Look("restart", "control", "state")
