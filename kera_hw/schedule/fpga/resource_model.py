"""What the cells of a netlist and the registers of a plan take on a device, before synthesis.

LUTs are counted as LUT4 + 2 for each carry cell (ECP5) or as logic cells (iCE40); wide multiplexers take
what the family's multiplexer primitives leave. Bits that constants decide cost nothing.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import cast

from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.netlist import Add, BitExpr, Bits, Cell, Fold, Lut, Mul, Mux, Netlist, Rom

Constants = tuple[int | None, ...]  # per operand the constant 0 or 1, or None for a signal


def truth_table(expr: BitExpr, columns: tuple[int, ...], ones: int) -> int:
    """``expr`` evaluated bitwise over integers: operand k is ``columns[k]``, true is ``ones``."""
    head, *arguments = expr
    if head == "in":
        return columns[_number(arguments[0])]
    if head == "const":
        return ones if arguments[0] else 0
    values = [truth_table(_expression(a), columns, ones) for a in arguments]
    if head == "not":
        return values[0] ^ ones
    if head == "mux":
        return values[0] & values[1] | (values[0] ^ ones) & values[2]
    result = values[0]
    for value in values[1:]:
        if head == "and":
            result &= value
        elif head == "or":
            result |= value
        elif head == "xor":
            result ^= value
        else:
            raise ValueError(f"unknown bit expression {head!r}")
    return result


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def _expression(value: object) -> BitExpr:
    assert isinstance(value, tuple)
    return cast("BitExpr", value)


@cache
def input_column(position: int, count: int) -> int:
    """The truth table of input ``position`` among ``count`` inputs: bit i is bit ``position`` of i."""
    block = ((1 << (1 << position)) - 1) << (1 << position)
    table = 0
    for start in range(0, 1 << count, 2 << position):
        table |= block << start
    return table


@cache
def support_size(expr: BitExpr, constants: Constants) -> int:
    """How many operands ``expr`` depends on when some are constant (0 or 1; None: a signal)."""
    signals = [k for k, constant in enumerate(constants) if constant is None]
    count = len(signals)
    ones = (1 << (1 << count)) - 1
    columns = [ones if constant else 0 for constant in constants]
    for place, k in enumerate(signals):
        columns[k] = input_column(place, count)
    table = truth_table(expr, tuple(columns), ones)
    return table_support(table, count)


def table_support(table: int, count: int) -> int:
    """How many of its ``count`` inputs a truth table depends on."""
    used = 0
    for place in range(count):
        high = input_column(place, count)
        used += (table & high) >> (1 << place) != table & ~high & ((1 << (1 << count)) - 1)
    return used


def luts_of_function(inputs: int, device: Device) -> int:
    """LUTs for one bit of a function of that many signals (one signal: absorbed by neighbours)."""
    if inputs <= 1:
        return 0
    return 1 << max(0, inputs - device.lut_inputs)


def cell_luts(cell: Cell, device: Device, read: int = -1) -> float:
    """LUTs that one cell asks for, before synthesis shares and merges across cells.

    ``read`` is the mask of output bits that somebody reads: the others are left out, and carry chains end at
    the highest of them.
    """
    if isinstance(cell, Lut):
        return sum(
            (read >> low & (1 << width) - 1).bit_count()
            * luts_of_function(support_size(cell.expr, constants), device)
            for low, width, constants in constant_runs(cell.inputs, cell.width)
        )
    if isinstance(cell, Add):
        area = device.area
        width = (read & (1 << cell.width) - 1).bit_length()
        # A carry that comes from a signal enters an iCE40 chain through a position of its own.
        extra = area.carry_bits_per_cell == 1 and any(s.cell is not None for s in cell.carry_in)
        return -(-(width + extra) // area.carry_bits_per_cell) * area.luts_per_carry_cell if width else 0
    if isinstance(cell, Mux):
        return _mux_luts(cell, device, read)
    if isinstance(cell, Rom):
        return _rom_luts(cell, device, read)
    if isinstance(cell, Fold):
        return netlist_luts(cell.step, device) + _loading_luts(cell)
    if isinstance(cell, Mul) and not device.area.dsp_width:
        return sum(s.width for s in cell.a) * sum(s.width for s in cell.b)
    return 0


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


def constant_runs(operands: tuple[Bits, ...], width: int) -> Iterator[tuple[int, int, Constants]]:
    """Runs of bits for which every operand is a signal or one constant: (low, width, constants)."""
    rows = [list(_constants(bits, width)) for bits in operands]
    position = 0
    while position < width:
        column = tuple(row[position] for row in rows)
        end = position + 1
        while end < width and all(row[end] == value for row, value in zip(rows, column)):
            end += 1
        yield position, end - position, column
        position = end


def _constants(bits: Bits, width: int) -> Sequence[int | None]:
    """One entry a bit: 0 or 1 for constants, None for signals; single bits spread to the width."""
    row: list[int | None] = []
    for segment in bits:
        if segment.cell is None:
            row += [segment.low >> i & 1 for i in range(segment.width)]
        else:
            row += [None] * segment.width
    return row * width if len(row) == 1 else row


def _mux_luts(cell: Mux, device: Device, read: int) -> int:
    rows = [list(_constants(bits, cell.width)) for bits in cell.choices]
    total = 0
    for bit in range(cell.width):
        column = [row[bit] for row in rows]
        if not read >> bit & 1 or all(v is not None and v == column[0] for v in column):
            continue
        choices = len(column)
        total += choices - 1 if device.family == "ice40" or choices == 2 else -(-choices // 2)
    return total


def _rom_luts(cell: Rom, device: Device, read: int) -> int:
    """Different tables of one LUT's inputs over all output bits, and the multiplexers behind them."""
    address = sum(s.width for s in cell.address)
    if cell.latency_cycles:
        return 0
    inputs = min(device.lut_inputs, address)
    size = 1 << inputs
    blocks = -(-len(cell.contents) // size)
    tables: set[int] = set()
    muxes = 0
    for bit in (b for b in range(cell.width) if read >> b & 1):
        column = [value >> bit & 1 for value in cell.contents]
        own = {sum(v << i for i, v in enumerate(column[k * size : (k + 1) * size])) for k in range(blocks)}
        tables |= {table for table in own if table_support(table, inputs) > 1}
        muxes += max(0, len(own) - 1)
    return len(tables) + (muxes if device.family == "ice40" else 0)


def cell_dsps(cell: Cell, device: Device) -> int:
    """DSP tiles that one cell takes."""
    side = device.area.dsp_width
    if not isinstance(cell, Mul) or not side:
        return 0
    return -(-sum(s.width for s in cell.a) // side) * -(-sum(s.width for s in cell.b) // side)


DEEPEST = 2048
"""Entries beyond which a table is several."""


def block_shape(entries: int, device: Device) -> tuple[int, int]:
    """Words, and bits a word, of one block RAM for a table of that many entries; (0, 0) if there is none."""
    area = device.area
    if not area.bram_bits or entries > DEEPEST:
        return 0, 0
    depth = max(area.bram_bits // area.bram_width, 1 << (entries - 1).bit_length())
    least = (area.bram_bits // area.bram_width).bit_length()
    return depth, max(1, area.bram_width >> depth.bit_length() - least)


def cell_brams(cell: Cell, device: Device) -> int:
    """Block RAMs that one cell takes."""
    if not isinstance(cell, Rom) or not cell.latency_cycles:
        return 0
    _, width = block_shape(len(cell.contents), device)
    return -(-cell.width // width)


def netlist_luts(netlist: Netlist, device: Device) -> int:
    """LUTs of all cells; independent of the schedule."""
    exact = shared = 0.0
    for cell, read in zip(netlist.cells, read_masks(netlist)):
        if isinstance(cell, Add) or (device.area.keeps_luts and isinstance(cell, Lut | Mux)):
            exact += cell_luts(cell, device, read)
        else:
            shared += cell_luts(cell, device, read)
    return round(exact + device.area.lut_factor * shared)


TILE_RANKS = 3
"""Register ranks inside a DSP tile: input, pipeline, output. Further ranks of a product are flip-flops."""


def _loading_luts(cell: Fold) -> int:
    """Multiplexers between initial and next values: a constant is loaded by a register's reset."""
    pairs = zip(cell.registers, cell.initial)
    moving = [bits for register, bits in pairs if register.follow is not None]
    return sum(s.width for bits in moving for s in bits if s.cell is not None)


def inner_ffs(netlist: Netlist) -> int:
    """Flip-flops inside cells: of folded loops, and of products with more ranks than a tile holds."""
    loops = sum(cell.width for cell in netlist.cells if isinstance(cell, Fold))
    muls = (cell for cell in netlist.cells if isinstance(cell, Mul))
    return loops + sum(cell.width * max(0, cell.latency_cycles - TILE_RANKS) for cell in muls)


def netlist_dsps(netlist: Netlist, device: Device) -> int:
    return sum(cell_dsps(cell, device) for cell in netlist.cells)


def netlist_brams(netlist: Netlist, device: Device) -> int:
    """Block RAMs of all cells."""
    return sum(cell_brams(cell, device) for cell in netlist.cells)


def has_valid(netlist: Netlist, interface: str, interval: int) -> bool:
    """Whether items come with a valid bit: without a handshake, where something between two would matter."""
    return interface != "none" or bool(netlist.states) or interval > 1


SHORT_INTERVAL = 4
"""Intervals up to this are counted by a bit for each cycle, longer ones in binary."""


def counter_spans(latency_cycles: int, interval: int) -> list[int]:
    """How many cycles each of the counters covers that follow an item through a pipeline without stalls.

    The first also tells when the next item may come, so it is one cycle short of the interval. Each holds one
    item at most.
    """
    spans, left = [interval - 1], latency_cycles - interval + 1
    while left > 0:
        spans.append(min(interval, left))
        left -= interval
    return spans


def handshake_ffs(netlist: Netlist, interface: str, latency_cycles: int, interval: int) -> int:
    """Flip-flops that an interface adds: one valid bit a stage, and a counter for intervals over 1.

    Where nothing stalls, counters do for both if the interval is long.
    """
    if not has_valid(netlist, interface, interval):
        return 0
    if interface == "none" and interval > SHORT_INTERVAL:
        return sum(span.bit_length() for span in counter_spans(latency_cycles, interval))
    return latency_cycles + (interval - 1).bit_length()
