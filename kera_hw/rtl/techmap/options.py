"""What a device's cells can do, and what a build may spend."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kera_hw.rtl.techmap.product import DspKind
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import Device

Controls = Literal["shared", "enables", "own", "none"]
"""Which controls of flip-flops states may use: enables and resets, enables alone, or none. States with one
condition share one signal, which ties them to one stage, or have each its ``own``."""


@dataclass(frozen=True, slots=True)
class MapOptions:
    """One way to map. ``dsp``: multipliers that may be used (None: all the device has).

    ``far``: whether products take one more register, in the fabric (None: where the clock needs it).
    ``turns``: how many products may take turns in one multiplier.
    """

    dsp: int | None = None
    controls: Controls = "shared"
    far: bool | None = None
    turns: int = 1


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What mapping needs to know of a device at one clock."""

    lut_inputs: int
    fuses_logic: bool
    dsp: DspKind | None
    dsp_count: int
    bram_count: int
    model: DelayModel
    clock_ps: int
    turns: int = 1

    def chain_bits(self, fanout: int, after_dsp: bool) -> int:
        """The widest carry chain that fits a stage alone when its operands have ``fanout`` loads."""
        timing = self.model.device.timing
        # A product that ends in a flip-flop of the fabric comes like any other register's value.
        from_tile = after_dsp and self.dsp is not None and self.dsp.latency_cycles <= _ECP5_DSP_STAGES
        late_ps = max(0.0, timing.dsp_clk_to_q_ps - timing.clk_to_q_ps) if from_tile else 0.0
        return max(4, self.model.max_carry_bits(self.clock_ps - round(late_ps), 0, max(2, fanout)))


_ECP5_DSP_STAGES = 3
"""Input, pipeline and output registers of a MULT18X18D."""
_ECP5_FAR_PS = 4000
"""Clock period below which a product gets one more register in the fabric: wires from the tile are long."""


def needs_far_products(device: Device, clock_ps: int) -> bool:
    """Whether the way from a multiplier is too long for a stage: products take a register in the fabric."""
    return device.family == "ecp5" and clock_ps < _ECP5_FAR_PS


def capabilities(device: Device, clock_ps: int, options: MapOptions) -> Capabilities:
    """The device at a clock period of ``clock_ps``."""
    allowed = device.dsp if options.dsp is None else min(options.dsp, device.dsp)
    dsp: DspKind | None = None
    if allowed > 0:
        if device.family == "ecp5":
            far = needs_far_products(device, clock_ps) if options.far is None else options.far
            dsp = DspKind(18, 18, _ECP5_DSP_STAGES + far, signed_only=options.turns > 1)
        else:
            dsp = DspKind(16, 16, 0)
    model = DelayModel(device)
    return Capabilities(
        device.lut_inputs, device.carry_logic, dsp, allowed, device.bram, model, clock_ps, options.turns
    )
