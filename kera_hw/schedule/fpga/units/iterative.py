"""Iterative units: registers around one step's logic, which works once a cycle until the result is there."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from kera_hw.schedule.fpga.bits import Bits
from kera_hw.schedule.fpga.cells.call import Unit
from kera_hw.schedule.fpga.cells.cell import Look
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.resource_model import netlist_luts
from kera_hw.schedule.fpga.simulate import simulate_netlist
from kera_hw.schedule.fpga.values import Value, array, batch_size, unpacked


@dataclass(frozen=True, slots=True)
class Register:
    """One register of an iterative unit: its bus in the step, and those of its next value and its enable.

    ``follow`` None: the value is only kept. ``enable`` None: it changes in every step, else in those where
    the enabling bit is ``enabled_by``.
    """

    bus: str
    follow: str | None
    enable: str | None
    enabled_by: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class IterativeUnit(Unit):
    """In the stage of a call the registers load its operands, then step ``count`` times.

    ``step`` is a netlist without states or registers inside: inputs are the registers' buses, outputs the
    buses of next values and of enables (one bit). The result joins all registers, the first lowest. It holds
    for one stage, in which the next call may load.
    """

    registers: tuple[Register, ...]
    step: Netlist
    count: int

    timed_by_items: ClassVar[bool] = True

    @property
    def latency_cycles(self) -> int:
        """One cycle to load, one for each step."""
        return self.count + 1

    @property
    def initiation_interval(self) -> int:
        return self.count + 1

    @property
    def width(self) -> int:
        return sum(self.register_widths())

    def register_widths(self) -> tuple[int, ...]:
        """Bits of every register."""
        widths = dict(self.step.inputs)
        return tuple(widths[register.bus] for register in self.registers)

    def look(self) -> Look:
        return Look("loop", "loop", "state")

    def describe(self) -> str:
        return f"loop of {self.count} steps"

    def setup_ps(self, device: Device, operand: int = 0) -> int:
        """The choice between the initial and the next value."""
        return round(device.timing.lut_ps)

    def clk_to_q_ps(self, device: Device) -> int:
        return round(device.timing.clk_to_q_ps)

    def luts(self, device: Device) -> float:
        return netlist_luts(self.step, device)

    def keeps_luts(self, device: Device) -> bool:
        """Those of its step are counted as they will be, and a choice of a bit is one where LUTs stay."""
        return device.area.keeps_luts

    def operand_luts(self, operands: Sequence[Bits]) -> int:
        """Multiplexers between initial and next values: a constant is loaded by a register's reset."""
        moving = (bits for register, bits in zip(self.registers, operands) if register.follow is not None)
        return sum(s.width for bits in moving for s in bits if s.cell is not None)

    def flip_flops(self) -> int:
        return self.width

    def brams(self, device: Device) -> int:
        return 0

    def evaluate(self, operands: Sequence[Value]) -> Value:
        count = batch_size(operands)
        present = {r.bus: unpacked(value, count or 1) for r, value in zip(self.registers, operands)}
        for _ in range(self.count):
            present = self._stepped(present)
        joined = [0] * (count or 1)
        position = 0
        for register, width in zip(self.registers, self.register_widths()):
            joined = [total | value << position for total, value in zip(joined, present[register.bus])]
            position += width
        return joined[0] if count is None else array(joined, self.width)

    def _stepped(self, present: dict[str, list[int]]) -> dict[str, list[int]]:
        """All registers after one step, item by item."""
        found = simulate_netlist(self.step, present)
        following: dict[str, list[int]] = {}
        for register in self.registers:
            old = present[register.bus]
            new = old if register.follow is None else found[register.follow]
            if register.enable is not None:
                enables = [e == register.enabled_by for e in found[register.enable]]
                new = [n if e else o for n, o, e in zip(new, old, enables)]
            following[register.bus] = new
        return following
