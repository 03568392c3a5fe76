"""How long cells and the wires between them take on a device.

A path within a stage starts at a register (``clk_to_q``), goes over a wire to a cell (``route``), through the
cell (``logic``), over a wire to the next, and ends in a register packed beside the last cell (``setup``).
Wire delay depends on the kind of cell it leads to and the fan-out of its driver. ``scale`` stretches every
wire: the flow raises it when routing came out slower than foreseen.

DSP blocks and block RAMs stand in columns and rows across the device: the more a design has of them, the
longer is the way from one to the logic that joins them.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from math import log2

from kera_hw.schedule.fpga.cells import Add, Cell, Lut
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.netlist import Netlist

_SMALL = 64  # LUTs of the circuits that shares of wires are told for
_LIKELY_DOUBLINGS = 7  # of near-critical end points, in a pipeline of some size


@dataclass(frozen=True, slots=True)
class DelayModel:
    """Delays of one device; ``scale`` is the stretch of its wires, ``spread`` counts blocks in the design.

    A block RAM counts twice: it has no neighbour of its kind beside it.
    """

    device: Device
    scale: float = 1.0
    spread: int = 0

    def among(self, netlist: Netlist) -> DelayModel:
        """The same for the cells of a netlist, beside all its blocks."""
        device = self.device
        products = sum(cell.dsps(device) for cell in netlist.cells)
        return replace(self, spread=products + 2 * sum(unit.brams(device) for unit in netlist.units()))

    def logic_ps(self, cell: Cell, position: int = 0) -> int:
        """Time through the cell alone; see ``Cell.logic_ps``."""
        return cell.logic_ps(self.device, position)

    def early_ps(self, cell: Cell, bit: int) -> int:
        """How much earlier than the whole cell one output bit settles; see ``Cell.early_ps``."""
        return cell.early_ps(self.device, bit)

    def through_ps(self, driver: Cell, low: int, sink: Cell, position: int, width: int) -> int:
        """What ``sink`` adds to ``driver`` settling when ``width`` bits from ``low`` enter at ``position``.

        May be negative: the low bits of a wide sum are there long before its highest.
        """
        device = self.device
        ends = (0, width - 1)  # linear in between
        return max(sink.logic_ps(device, position + k) - driver.early_ps(device, low + k) for k in ends)

    def route_ps(self, sink: Cell, fanout: int) -> int:
        """Time over a wire from a driver with ``fanout`` loads to ``sink``."""
        timing = self.device.timing
        return round(self.scale * (sink.wire_ps(timing) + timing.route_fanout_ps * log2(max(1, fanout))))

    def near_share(self, luts: int) -> float:
        """Of the wires to LUTs on the slowest path what placement leaves, in a circuit of so many LUTs.

        Plans do not count on it: which path will be the slowest, and be looked after, nobody knows.
        """
        timing = self.device.timing
        share = timing.near_share + timing.near_share_doubling * log2(max(luts, _SMALL) / _SMALL)
        return min(1.0, share + timing.near_share_block * self.spread)

    def clk_to_q_ps(self, cell: Cell) -> int:
        """Time from the clock edge until a register shows ``cell``'s value."""
        settled = cell.clk_to_q_ps(self.device, self.route_ps(cell, 1))
        if not cell.from_block(self.device):
            return settled
        timing = self.device.timing
        far = min(timing.block_spread_ps * self.spread, timing.block_farthest_ps)
        return settled + round(self.scale * far)

    @property
    def setup_ps(self) -> int:
        return round(self.device.timing.setup_ps)

    def cell_delay(self, cell: Cell, fanout: int = 1) -> int:
        """Time a cell adds to a path, the wire to it from a driver with ``fanout`` loads included (ps)."""
        if cell.leaf:
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


def stretch(dsp: int, bram: int, device: Device) -> float:
    """Of all wires in a design of so many blocks, its logic spread out between them: 1 if they are few."""
    beyond = max(0, dsp + 2 * bram - device.timing.blocks_near)
    return 1 + device.timing.block_stretch * beyond


def stall_mhz(dsp: int, bram: int, device: Device) -> float:
    """The clock at which a design of so many blocks can be stopped.

    From a register through the gates of the ports and of a stage to the farthest flip-flop.
    """
    timing = device.timing
    far = min(timing.block_spread_ps * (dsp + 2 * bram), timing.block_across_ps)
    gates = 2 * (timing.route_lut_ps + timing.lut_ps)
    return round(1e6 / (timing.clk_to_q_ps + gates + max(timing.route_lut_ps, far) + timing.setup_ps), 1)
