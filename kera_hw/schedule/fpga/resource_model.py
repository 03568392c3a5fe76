"""What the cells of a netlist and the registers of a plan take on a device, before synthesis.

LUTs are counted as LUT4 + 2 for each carry cell (ECP5) or as logic cells (iCE40); wide multiplexers take
what the family's multiplexer primitives leave. Bits that constants decide cost nothing.
"""
from __future__ import annotations

from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.netlist import Netlist


def read_masks(netlist: Netlist) -> list[int]:
    """For every cell the mask of its output bits that a cell, a state register or an output reads."""
    masks = [0] * len(netlist.cells)
    vectors = [bits for cell in netlist.cells for bits in cell.operands()]
    vectors += [bits for state in netlist.states for bits in state.operands()]
    vectors += [output.bits for output in netlist.outputs]
    for segment in (s for bits in vectors for s in bits):
        if segment.cell is not None:
            masks[segment.cell] |= (1 << segment.width) - 1 << segment.low
    return masks


def netlist_luts(netlist: Netlist, device: Device) -> int:
    """LUTs of all cells and units; independent of the schedule."""
    exact, shared = 0.0, 0.0
    for unit in netlist.units():
        if unit.keeps_luts(device):
            exact += unit.luts(device)
        else:
            shared += unit.luts(device)
    for cell, read in zip(netlist.cells, read_masks(netlist)):
        if cell.keeps_luts(device):
            exact += cell.luts(device, read)
        else:
            shared += cell.luts(device, read)
    return round(exact + device.area.lut_factor * shared)


def inner_ffs(netlist: Netlist) -> int:
    """Flip-flops inside cells and units."""
    parts = (*netlist.cells, *netlist.units())
    return sum(part.flip_flops() for part in parts)


def netlist_dsps(netlist: Netlist, device: Device) -> int:
    """DSP tiles of all cells and units."""
    return sum(part.dsps(device) for part in (*netlist.cells, *netlist.units()))


def netlist_brams(netlist: Netlist, device: Device) -> int:
    """Block RAMs of all units."""
    return sum(unit.brams(device) for unit in netlist.units())


def has_valid(netlist: Netlist, interface: str, initiation_interval: int) -> bool:
    """Whether items come with a valid bit: without a handshake, where something between two would matter."""
    kept = bool(netlist.states) or any(unit.keeps_items for unit in netlist.units())
    return interface != "none" or kept or initiation_interval > 1


def reset_ffs(reset_cycles: int) -> int:
    """Flip-flops that write memories' initial words after a reset: a counter, and whether it counts."""
    return (reset_cycles - 1).bit_length() + 1 if reset_cycles else 0


def reset_luts(reset_cycles: int) -> int:
    """LUTs for the same."""
    return (reset_cycles - 1).bit_length() + 12 if reset_cycles else 0


SHORT_INITIATION_INTERVAL = 4
"""Intervals up to this are counted by a bit for each cycle, longer ones in binary."""


def counter_spans(latency_cycles: int, initiation_interval: int) -> list[int]:
    """How many cycles each of the counters covers that follow an item through a pipeline without stalls.

    The first also tells when the next item may come, so it is one cycle short of the interval. Each holds one
    item at most.
    """
    spans, left = [initiation_interval - 1], latency_cycles - initiation_interval + 1
    while left > 0:
        spans.append(min(initiation_interval, left))
        left -= initiation_interval
    return spans


def handshake_ffs(netlist: Netlist, interface: str, latency_cycles: int, initiation_interval: int) -> int:
    """Flip-flops that an interface adds: one valid bit a stage, and a counter for intervals over 1.

    Where nothing stalls, counters do for both if the interval is long.
    """
    if not has_valid(netlist, interface, initiation_interval):
        return 0
    if interface == "none" and initiation_interval > SHORT_INITIATION_INTERVAL:
        return sum(span.bit_length() for span in counter_spans(latency_cycles, initiation_interval))
    return latency_cycles + (initiation_interval - 1).bit_length()
