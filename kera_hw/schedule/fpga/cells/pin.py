"""Control pins of flip-flops."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from kera_hw.schedule.fpga.bits import Bits
from kera_hw.schedule.fpga.cells.cell import Cell, Look
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.values import Value

_SHARING = 8  # flip-flops of a tile, which share the wire of a control


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterPin(Cell):
    """One bit as the reset, else the enable, of ``registers`` flip-flops: no logic, a wire and a setup."""

    bits: Bits
    registers: int
    reset: bool = False

    free: ClassVar[bool] = True

    def look(self) -> Look:
        return Look("control", "control", "state")

    def describe(self) -> str:
        return f"{'reset' if self.reset else 'enable'} of {self.registers} flip-flops"

    def operands(self) -> tuple[Bits, ...]:
        return (self.bits,)

    def with_operands(self, moved: Callable[[Bits], Bits]) -> Self:
        return replace(self, bits=moved(self.bits))

    def loads(self) -> list[tuple[Bits, int]]:
        return [(self.bits, -(-self.registers // _SHARING))]

    def logic_ps(self, device: Device, position: int = 0) -> int:
        timing = device.timing
        setup = timing.reset_setup_ps if self.reset else timing.enable_setup_ps
        return round(max(0.0, setup - timing.setup_ps))

    def luts(self, device: Device, read: int = -1) -> float:
        return 0

    def evaluate(self, operands: Sequence[Value]) -> Value:
        return operands[0]
