"""How long cells and the wires between them take on a device.

A path within a stage starts at a register (``clk_to_q``), goes over a wire to a cell (``route``), through the
cell (``logic``), over a wire to the next, and ends in a register packed beside the last cell (``setup``).
Wire delay depends on the kind of cell it leads to and the fan-out of its driver. ``scale`` stretches every
wire: the flow raises it when routing came out slower than foreseen.
"""
from __future__ import annotations

from dataclasses import dataclass
from math import log2

from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.netlist import (
    Add,
    Bits,
    Cell,
    Fold,
    Lut,
    Mul,
    Mux,
    RegisterPin,
    Rom,
    WriteControl,
    is_leaf,
)
from kera_hw.schedule.fpga.resource_model import TILE_RANKS

_SHARING = 8  # flip-flops of a tile, which share the wire of a control
_LIKELY_DOUBLINGS = 7  # of near-critical end points, in a pipeline of some size


@dataclass(frozen=True, slots=True)
class DelayModel:
    """Delays of one device; ``scale`` is the stretch of its wires."""

    device: Device
    scale: float = 1.0

    def logic_ps(self, cell: Cell, position: int = 0) -> int:
        """Time through the cell alone until all its bits have settled; 0 for leaves.

        ``position``: the operand bit where a carry chain is entered. For ``Mul`` with registers the time is
        the setup of its inputs.
        """
        timing = self.device.timing
        if isinstance(cell, Lut):
            signals = sum(any(s.cell is not None for s in bits) for bits in cell.inputs)
            return self._wide_ps(signals - self.device.lut_inputs)
        if isinstance(cell, Add):
            carry_in = any(segment.cell is not None for segment in cell.carry_in)
            return round(self.carry_ps(cell.width - position) + (timing.carry_in_ps if carry_in else 0))
        if isinstance(cell, Mux):
            return self._wide_ps(_levels(len(cell.choices)) - 1)
        if isinstance(cell, Rom):
            if cell.latency_cycles:
                return round(max(0.0, timing.bram_setup_ps - timing.setup_ps))
            return self._wide_ps(_levels(len(cell.contents)) - self.device.lut_inputs)
        if isinstance(cell, Mul):
            if cell.latency_cycles:
                return round(max(0.0, timing.dsp_setup_ps - timing.setup_ps))
            return round(timing.dsp_ps + timing.dsp_tile_ps * _levels(self.dsp_tiles_a_side(cell)))
        if isinstance(cell, RegisterPin):
            setup = timing.reset_setup_ps if cell.reset else timing.enable_setup_ps
            return round(max(0.0, setup - timing.setup_ps))
        if isinstance(cell, Fold):  # the choice between the initial and the next value
            return round(timing.lut_ps)
        return 0

    def _wide_ps(self, doublings: int) -> int:
        """Time through a function that multiplexes 2^doublings LUTs."""
        timing = self.device.timing
        extra = timing.mux_level_ps * doublings + timing.mux_exit_ps if doublings > 0 else 0.0
        return round(timing.lut_ps + extra)

    def early_ps(self, cell: Cell, bit: int) -> int:
        """How much earlier than the whole cell its output bit ``bit`` settles: carries run upwards."""
        return round(self.device.timing.carry_bit_ps * (cell.width - 1 - bit)) if isinstance(cell, Add) else 0

    def through_ps(self, driver: Cell, low: int, sink: Cell, position: int, width: int) -> int:
        """What ``sink`` adds to ``driver`` settling when ``width`` bits from ``low`` enter at ``position``.

        May be negative: the low bits of a wide sum are there long before its highest.
        """
        ends = (0, width - 1)  # linear in between
        return max(self.logic_ps(sink, position + k) - self.early_ps(driver, low + k) for k in ends)

    def carry_ps(self, width_bits: int) -> float:
        """Time through a carry chain of that many bits."""
        return self.device.timing.carry_base_ps + self.device.timing.carry_bit_ps * width_bits

    def dsp_tiles_a_side(self, cell: Mul) -> int:
        """The larger of the tile counts that the two operands need."""
        from_a = sum(s.width for s in cell.a)
        from_b = sum(s.width for s in cell.b)
        return max(1, -(-max(from_a, from_b) // max(1, self.device.area.dsp_width)))

    def route_ps(self, sink: Cell, fanout: int) -> int:
        """Time over a wire from a driver with ``fanout`` loads to ``sink``."""
        timing = self.device.timing
        if isinstance(sink, Add):
            base = timing.route_carry_ps
        elif isinstance(sink, Mul):
            base = timing.route_dsp_ps
        else:
            base = timing.route_lut_ps
        return round(self.scale * (base + timing.route_fanout_ps * log2(max(1, fanout))))

    def clk_to_q_ps(self, cell: Cell) -> int:
        """Time from the clock edge until a register shows ``cell``'s value (``Mul``, ``Rom``: their own)."""
        timing = self.device.timing
        if isinstance(cell, WriteControl):  # one gate over registers of the control
            return round(timing.clk_to_q_ps + timing.lut_ps) + self.route_ps(cell, 1)
        if isinstance(cell, Rom) and cell.latency_cycles:
            return round(timing.bram_clk_to_q_ps)
        if not isinstance(cell, Mul) or cell.latency_cycles == 0 or cell.latency_cycles > TILE_RANKS:
            return round(timing.clk_to_q_ps)  # ranks beyond the tile's own are flip-flops
        if cell.latency_cycles == 1:  # input registers alone: the product follows in the same cycle
            return round(timing.dsp_ps + timing.dsp_tile_ps * _levels(self.dsp_tiles_a_side(cell)))
        return round(timing.dsp_clk_to_q_ps)

    @property
    def setup_ps(self) -> int:
        return round(self.device.timing.setup_ps)

    def cell_delay(self, cell: Cell, fanout: int = 1) -> int:
        """Time a cell adds to a path, the wire to it from a driver with ``fanout`` loads included (ps)."""
        if is_leaf(cell):
            return 0
        return self.route_ps(cell, fanout) + self.logic_ps(cell)

    def usable_ps(self, clock_ps: int) -> int:
        """The part of a clock period to plan for when many paths will be about as long."""
        return round(clock_ps / (1 + self.device.timing.crowd * _LIKELY_DOUBLINGS))

    def max_carry_bits(self, clock_ps: int, lut_levels: int = 0, fanout: int = 2) -> int:
        """The widest ``Add`` for a stage of its own beside that many LUT levels; 0 when not one bit fits.

        Some of the clock is left for routing many such stages.
        """
        timing = self.device.timing
        clock_ps = self.usable_ps(clock_ps)
        probe = Lut(width=1, inputs=(), expr=("const", 0))
        adder = Add(width=1, a=(), inputs=())
        spare = clock_ps - timing.clk_to_q_ps - timing.setup_ps - timing.carry_base_ps
        spare -= self.route_ps(adder, fanout) + lut_levels * self.cell_delay(probe, fanout)
        return max(0, int(spare / timing.carry_bit_ps))


def loads(cell: Cell) -> list[tuple[Bits, int]]:
    """Each operand with the number of loads that one of its bits sees in this cell."""
    if isinstance(cell, Lut):
        return [(bits, cell.width if _is_single(bits) else 1) for bits in cell.inputs]
    if isinstance(cell, Add):
        spread = [(bits, cell.width if _is_single(bits) else 1) for bits in cell.inputs]
        return [(cell.a, cell.width if _is_single(cell.a) else 1), *spread, (cell.carry_in, 1)]
    if isinstance(cell, Mux):
        per_bit = max(1, len(cell.choices) // 4)
        return [(cell.select, cell.width * per_bit), *((bits, 1) for bits in cell.choices)]
    if isinstance(cell, Rom) and not cell.latency_cycles:
        return [(cell.address, cell.width * max(1, len(cell.contents) // 16))]
    if isinstance(cell, RegisterPin):
        return [(cell.bits, -(-cell.registers // _SHARING))]
    return [(bits, 1) for bits in cell.operands()]


def _is_single(bits: Bits) -> bool:
    return len(bits) == 1 and bits[0].width == 1


def _levels(count: int) -> int:
    """ceil(log2(count)), 0 for one."""
    return max(0, (count - 1).bit_length())
