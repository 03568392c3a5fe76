"""Random and hand-made cell netlists for the scheduler's tests."""
from __future__ import annotations

import random

from kera_hw.schedule.fpga.bits import Bits, bits_width, cell_bits, concat, const_bits, slice_bits
from kera_hw.schedule.fpga.cells import Add, Cell, Input, Lut, Mul, Mux, Rom, StateOut
from kera_hw.schedule.fpga.netlist import Netlist, Output, StateReg

EXPRESSIONS = (
    ("xor", ("in", 0), ("in", 1), ("in", 2)),
    ("mux", ("in", 0), ("in", 1), ("not", ("in", 2))),
    ("or", ("and", ("in", 0), ("in", 1)), ("in", 2)),
)


class Builder:
    """Collects cells; every method returns the new cell's bits."""

    def __init__(self) -> None:
        self.cells: list[Cell] = []
        self.states: list[StateReg] = []

    def add(self, cell: Cell) -> Bits:
        self.cells.append(cell)
        return cell_bits(len(self.cells) - 1, cell.width)

    def input(self, bus: str, width: int) -> Bits:
        return self.add(Input(width=width, bus=bus))

    def sum(self, a: Bits, b: Bits) -> Bits:
        return self.add(Add(width=bits_width(a), a=a, inputs=(b,)))

    def netlist(self, outputs: tuple[Output, ...], name: str = "net") -> Netlist:
        buses = tuple((c.bus, c.width) for c in self.cells if isinstance(c, Input))
        return Netlist(name, buses, tuple(self.cells), outputs, tuple(self.states))


def random_netlist(seed: int, size: int, state_count: int = 0, window: int = 40) -> Netlist:
    """Some ``size`` cells of all kinds, each reading bits of the last ``window`` ones."""
    rng = random.Random(seed)
    build = Builder()
    for k in range(rng.randint(1, 6)):
        build.input(f"x{k}", rng.choice((1, 7, 16, 70)))
    reads = []
    for k in range(state_count):
        reads.append(len(build.cells))
        build.add(StateOut(width=rng.choice((1, 8, 16)), state=k))
    while len(build.cells) < size:
        _random_cell(rng, build, window)
    for k, out in enumerate(reads):
        width = build.cells[out].width
        after = _pick(rng, build, width, size)
        build.states.append(StateReg(f"s{k}", width, rng.getrandbits(width), out, after))
    read = {s.cell for cell in build.cells for bits in cell.operands() for s in bits}
    read |= {s.cell for state in build.states for s in state.next}
    loose = [cell_bits(k, cell.width) for k, cell in enumerate(build.cells) if k not in read]
    outputs = loose or [const_bits(1, 1)]
    return build.netlist(tuple(Output(f"out_{k}", bits) for k, bits in enumerate(outputs)))


def _random_cell(rng: random.Random, build: Builder, window: int) -> None:
    width = rng.choice((1, 3, 8, 16, 24))

    def pick(bits: int) -> Bits:
        return _pick(rng, build, bits, window)

    kind = rng.random()
    if kind < 0.4:
        single = rng.random() < 0.3
        operands = (pick(1 if single else width), pick(width), pick(width))
        build.add(Lut(width=width, inputs=operands, expr=rng.choice(EXPRESSIONS)))
    elif kind < 0.7:
        carry = rng.random() < 0.5
        build.add(Add(
            width=width + carry, a=pick(width), inputs=(pick(width), pick(1), pick(width)),
            expr=rng.choice(EXPRESSIONS), carry_in=pick(1) if rng.random() < 0.3 else (), carry_out=carry,
        ))
    elif kind < 0.85:
        choices = tuple(pick(width) for _ in range(rng.randint(2, 5)))
        build.add(Mux(width=width, select=pick(2), choices=choices))
    elif kind < 0.92:
        contents = tuple(rng.getrandbits(width) for _ in range(rng.randint(1, 40)))
        build.add(Rom(width=width, address=pick(6), contents=contents))
    else:
        build.add(Mul(
            width=width, a=pick(min(18, width)), b=pick(min(9, width)), a_signed=rng.random() < 0.5,
            b_signed=rng.random() < 0.5, latency_cycles=rng.choice((0, 2, 3)),
        ))


def _pick(rng: random.Random, build: Builder, width: int, window: int) -> Bits:
    """``width`` bits from a recent cell, padded with a constant where that is narrower."""
    if rng.random() < 0.05:
        return const_bits(rng.getrandbits(width), width)
    cell = rng.randrange(max(0, len(build.cells) - window), len(build.cells))
    low = rng.randrange(build.cells[cell].width)
    part = slice_bits(cell_bits(cell, build.cells[cell].width), low, width)
    return concat([part, const_bits(0, width - bits_width(part))])
