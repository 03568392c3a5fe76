"""The netlists that device tables are fitted on: single kinds of cells by width and fan-out, and mixtures.

Every sample is made from its name alone, so that stored measurements can be set against new models.
"""
from __future__ import annotations

import random
from collections.abc import Callable

from kera_hw.schedule.fpga.bits import Bits, bits_width, cell_bits, concat, slice_bits
from kera_hw.schedule.fpga.cells import Add, Cell, Input, Lut, Mul, Mux, Rom
from kera_hw.schedule.fpga.netlist import Netlist, Output

XOR3 = ("xor", ("in", 0), ("in", 1), ("in", 2))
MIX4 = ("xor", ("and", ("in", 0), ("in", 1)), ("or", ("in", 2), ("in", 3)))


class Maker:
    """Collects the cells of one sample."""

    def __init__(self, seed: str) -> None:
        self.cells: list[Cell] = []
        self.rng = random.Random(seed)

    def add(self, cell: Cell) -> Bits:
        self.cells.append(cell)
        return cell_bits(len(self.cells) - 1, cell.width)

    def input(self, width: int) -> Bits:
        return self.add(Input(width=width, bus=f"x{sum(isinstance(c, Input) for c in self.cells)}"))

    def sum(self, a: Bits, b: Bits) -> Bits:
        return self.add(Add(width=bits_width(a), a=a, inputs=(b,)))

    def lut(self, *operands: Bits) -> Bits:
        width = max(bits_width(bits) for bits in operands)
        return self.add(Lut(width=width, inputs=operands, expr=XOR3 if len(operands) == 3 else MIX4))

    def shuffled(self, bits: Bits) -> Bits:
        """The same bits in random order."""
        order = list(range(bits_width(bits)))
        self.rng.shuffle(order)
        return concat([slice_bits(bits, k, 1) for k in order])

    def netlist(self, name: str, outputs: list[Bits]) -> Netlist:
        buses = tuple((c.bus, c.width) for c in self.cells if isinstance(c, Input))
        ports = tuple(Output(f"out_{k}", bits) for k, bits in enumerate(outputs))
        return Netlist("sample_" + name.replace("-", "_"), buses, tuple(self.cells), ports)


def adders(make: Maker, width: int, copies: int, before: int, after: int) -> list[Bits]:
    """Independent adders with LUT levels before and after them."""
    outputs: list[Bits] = []
    for _ in range(copies):
        a, b = make.input(width), make.input(width)
        for _ in range(before):
            a = make.lut(make.shuffled(a), a, make.shuffled(b), b)
        total = make.sum(a, b)
        for _ in range(after):
            total = make.lut(make.shuffled(total), total, a, make.shuffled(b))
        outputs.append(total)
    return outputs


def adder_chain(make: Maker, width: int, count: int) -> list[Bits]:
    total = make.input(width)
    for _ in range(count):
        total = make.sum(total, make.input(width))
    return [total]


def lut_levels(make: Maker, width: int, levels: int) -> list[Bits]:
    """Randomly wired levels of four-input functions."""
    rows = [make.input(width) for _ in range(4)]
    for _ in range(levels):
        rows = [make.lut(*(make.shuffled(row) for row in rows[k:] + rows[:k])) for k in range(4)]
    return rows


def fanned_out(make: Maker, width: int, select: int) -> list[Bits]:
    """One register bit that drives ``width`` LUTs, ``select`` times."""
    return [make.lut(make.input(1), make.input(width), make.input(width)) for _ in range(select)]


def muxes(make: Maker, width: int, choices: int) -> list[Bits]:
    select = make.input((choices - 1).bit_length())
    rows = tuple(make.input(width) for _ in range(choices))
    return [make.add(Mux(width=width, select=select, choices=rows))]


def roms(make: Maker, width: int, entries: int) -> list[Bits]:
    contents = tuple(make.rng.getrandbits(width) for _ in range(entries))
    address = make.input((entries - 1).bit_length())
    return [make.add(Rom(width=width, address=address, contents=contents))]


def products(make: Maker, width: int, stages: int, adds: int) -> list[Bits]:
    """Multipliers, their products summed behind them ``adds`` times."""
    rows = []
    for _ in range(adds + 1):
        a, b = make.input(width), make.input(width)
        mul = Mul(width=2 * width, a=a, b=b, a_signed=True, b_signed=True, latency_cycles=stages)
        rows.append(make.add(mul))
    total = rows[0]
    for row in rows[1:]:
        total = make.sum(total, row)
    return [total]


def mixture(make: Maker, size: int, share_of_adders: int) -> list[Bits]:
    """A random network of some ``size`` cells, ``share_of_adders`` per cent adders."""
    for _ in range(6):
        make.input(make.rng.choice((8, 16, 24)))

    def pick(width: int) -> Bits:
        first = max(0, len(make.cells) - 40)
        cell = make.rng.randrange(first, len(make.cells))
        low = make.rng.randrange(max(1, make.cells[cell].width - width + 1))
        part = slice_bits(cell_bits(cell, make.cells[cell].width), low, width)
        return slice_bits(concat([part] * width), 0, width)  # repeated: constants would make false paths

    while len(make.cells) < size:
        width = make.rng.choice((4, 8, 12, 16, 24))
        kind = make.rng.randrange(100)
        if kind < share_of_adders:
            make.sum(pick(width), pick(width))
        elif kind < 85:
            make.lut(pick(width), pick(width), pick(width), pick(1 if kind % 3 == 0 else width))
        else:
            make.add(Mux(width=width, select=pick(2), choices=tuple(pick(width) for _ in range(4))))
    read = {s.cell for cell in make.cells for bits in cell.operands() for s in bits}
    return [cell_bits(k, cell.width) for k, cell in enumerate(make.cells) if k not in read]


def trees(make: Maker, width: int, copies: int, leaves: int) -> list[Bits]:
    """Balanced adder trees over shared, rotated inputs: many paths, all equally critical."""
    inputs = [make.input(width) for _ in range(leaves)]
    outputs: list[Bits] = []
    for _ in range(copies):
        rows = [slice_bits(concat([x, x]), make.rng.randrange(width), width) for x in inputs]
        while len(rows) > 1:
            rows = [make.sum(a, b) for a, b in zip(rows[::2], rows[1::2])]
        outputs += rows
    return outputs


def xors(make: Maker, width: int, levels: int) -> list[Bits]:
    """Levels of four-input functions, each bit wired at random over the whole width, as in checksums."""
    word = make.input(width)
    bits = [slice_bits(word, k, 1) for k in range(width)]
    for _ in range(levels):
        bits = [make.lut(*make.rng.sample(bits, 4)) for _ in range(width)]
    return [concat(bits)]


KINDS: dict[str, Callable[..., list[Bits]]] = {
    "adders": adders, "chain": adder_chain, "luts": lut_levels, "fanout": fanned_out,
    "muxes": muxes, "roms": roms, "products": products, "mixture": mixture, "trees": trees, "xors": xors,
}


def sample_netlist(name: str) -> Netlist:
    """The sample called ``kind-argument-...``; a last part ``@MHZ`` is the planner's clock."""
    kind, *arguments = name.split("@")[0].split("-")
    make = Maker(name.split("@")[0])
    outputs = KINDS[kind](make, *(int(a) for a in arguments))
    return make.netlist(name.split("@")[0], outputs)


SINGLE = (
    "adders-16-1-0-0", "adders-32-1-0-0", "adders-64-1-0-0", "adders-24-8-0-0", "adders-16-2-1-0",
    "adders-32-2-0-1", "adders-16-2-1-1", "chain-16-2", "chain-32-2", "chain-16-4",
    "luts-8-1", "luts-8-2", "luts-8-4", "luts-16-3", "fanout-32-1", "fanout-128-1",
    "muxes-8-4", "muxes-8-16", "roms-8-32", "roms-8-256",
)
DSP = ("products-16-2-0", "products-16-3-3@250", "products-18-0-0")
MIXED = (
    "mixture-25-40@250", "mixture-25-20@200", "mixture-40-60@200", "mixture-40-20@150", "mixture-80-40@250",
    "mixture-40-40@100", "mixture-80-60@150",
    "trees-12-8-8@300", "trees-16-16-8@250", "trees-16-4-8@150", "xors-64-4@350", "xors-64-6@220",
    "xors-128-3@300",
)
# For iCE40, where synthesis merges sums of one stage into carry-save trees: none of those.
SLOW = (
    "adders-16-1-0-0", "adders-32-1-0-0", "adders-16-2-1-0", "adders-24-8-0-0",
    "luts-8-1", "luts-8-2", "luts-8-4",
    "fanout-32-1", "muxes-8-4", "muxes-8-16", "roms-8-32",
    "mixture-25-20@80", "mixture-40-40@50", "xors-64-4@120",
)
