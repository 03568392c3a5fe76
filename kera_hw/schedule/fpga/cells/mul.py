"""Products on DSP tiles."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from kera_hw.schedule.fpga.bits import Bits, bits_width
from kera_hw.schedule.fpga.cells.cell import Cell, Look, levels
from kera_hw.schedule.fpga.device import Device, Timing
from kera_hw.schedule.fpga.values import Value, narrow, signed, widen

TILE_STAGES = 3
"""Pipeline registers inside a DSP tile: input, pipeline, output. Further ones of a product are flip-flops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mul(Cell):
    """out = a * b modulo 2^width (operands sign- or zero-extended as said).

    ``latency_cycles`` pipeline registers are inside; 0: combinational.
    """

    a: Bits
    b: Bits
    a_signed: bool
    b_signed: bool
    latency_cycles: int = 0

    near: ClassVar[bool] = False

    def look(self) -> Look:
        return Look("product", "product", "mul")

    def describe(self) -> str:
        return f"{bits_width(self.a)}×{bits_width(self.b)}-bit multiplication"

    def operands(self) -> tuple[Bits, ...]:
        return (self.a, self.b)

    def with_operands(self, moved: Callable[[Bits], Bits]) -> Self:
        return replace(self, a=moved(self.a), b=moved(self.b))

    def inner_stages(self) -> int:
        return self.latency_cycles

    def logic_ps(self, device: Device, position: int = 0) -> int:
        timing = device.timing
        if self.latency_cycles:
            return round(max(0.0, timing.dsp_setup_ps - timing.setup_ps))
        return self._product_ps(device)

    def wire_ps(self, timing: Timing) -> float:
        return timing.route_dsp_ps

    def clk_to_q_ps(self, device: Device, wire_ps: int) -> int:
        if not 0 < self.latency_cycles <= TILE_STAGES:
            return round(device.timing.clk_to_q_ps)
        if self.latency_cycles == 1:  # input registers alone: the product follows in the same cycle
            return self._product_ps(device)
        return round(device.timing.dsp_clk_to_q_ps)

    def from_block(self, device: Device) -> bool:
        return 0 < self.latency_cycles <= TILE_STAGES and self.dsps(device) > 0

    def _product_ps(self, device: Device) -> int:
        widest = max(bits_width(self.a), bits_width(self.b))
        tiles_a_side = max(1, -(-widest // max(1, device.area.dsp_width)))
        return round(device.timing.dsp_ps + device.timing.dsp_tile_ps * levels(tiles_a_side))

    def luts(self, device: Device, read: int = -1) -> float:
        return 0 if device.area.dsp_width else bits_width(self.a) * bits_width(self.b)

    def flip_flops(self) -> int:
        return self.width * max(0, self.latency_cycles - TILE_STAGES)

    def dsps(self, device: Device) -> int:
        side = device.area.dsp_width
        return -(-bits_width(self.a) // side) * -(-bits_width(self.b) // side) if side else 0

    def evaluate(self, operands: Sequence[Value]) -> Value:
        a, b = map(widen, operands)
        a = signed(a, self.a) if self.a_signed else a
        b = signed(b, self.b) if self.b_signed else b
        return narrow(a * b & (1 << self.width) - 1, self.width)
