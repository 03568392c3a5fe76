"""Plain Verilog for each kind of cell: operators that every synthesis tool and simulator understands."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kera_hw.rtl.emit.naming import escaped
from kera_hw.rtl.emit.text import Reader, constant, declared_range, expression, part, vector
from kera_hw.schedule.fpga.bits import Bits, bits_width, const_bits, slice_bits
from kera_hw.schedule.fpga.cells import (
    Add,
    Cell,
    Chain,
    Input,
    Lut,
    Moves,
    Mul,
    Mux,
    RegisterPin,
    Restart,
    Rom,
    StateNext,
    StateOut,
    Unit,
)
from kera_hw.schedule.fpga.expressions import BitExpr


@dataclass(frozen=True, slots=True)
class Around:
    """What a cell may ask of the pipeline around it, in its stage.

    ``buses`` maps names to widths, ``moves`` says that the stage holds an item which goes on, ``reset`` is
    the design's; ``module_of`` names the module of a unit's definition.
    """

    buses: Mapping[str, int]
    moves: str
    reset: str
    module_of: Callable[[Unit], str]


@dataclass(frozen=True, slots=True)
class Site:
    """Where a cell is written: the wire it drives, how its operands read, and what enables its registers.

    ``fresh`` makes a further name unique in the module; ``enable`` is empty when every cycle counts. There is
    nothing ``around`` in the step of a unit.
    """

    wire: str
    read: Reader
    fresh: Callable[[str], str]
    enable: str
    around: Around | None = None

    @property
    def pipeline(self) -> Around:
        """What is around, for cells that are never part of a step."""
        assert self.around is not None
        return self.around


CellWriter = Callable[[Any, Site], list[str]]
"""Lines that drive ``site.wire`` with what a cell of one class computes."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a call begins: its ``arguments``, as vectors for the site's reader, and what is high in its stage.

    ``valid`` is empty for units that are not timed by items.
    """

    arguments: tuple[Bits, ...]
    valid: str


UnitWriter = Callable[[Any, Start, Site], list[str]]
"""Lines that drive ``site.wire`` with the result of a unit of one class."""


@dataclass(frozen=True, slots=True)
class ModuleRule:
    """How units of a class get a module for each definition: what it is called, and its lines.

    ``write`` takes the definition, the module's name, whether it can stall, and the rules for what is inside.
    """

    part: str
    write: Callable[[Any, str, bool, Writers], list[str]]


@dataclass(frozen=True, slots=True)
class Writers:
    """The rules of one style, by class of cells and of units."""

    cells: Mapping[type[Cell], CellWriter]
    units: Mapping[type[Unit], UnitWriter]
    modules: Mapping[type[Unit], ModuleRule] = field(default_factory=dict[type[Unit], ModuleRule])

    def cell(self, cell: Cell, site: Site) -> list[str]:
        """Lines of one cell; none for state registers, which the pipeline clocks."""
        return self.cells[type(cell)](cell, site)


def write_lut(cell: Lut, site: Site) -> list[str]:
    """The expression."""
    return [f"assign {site.wire} = {expression(cell.expr, cell.inputs, cell.width, site.read)};"]


def write_add(cell: Add, site: Site) -> list[str]:
    """``a + f(...) + carry_in``, with the carry-out as the sum's next bit."""
    width, total = cell.sum_width, cell.width
    lines: list[str] = []
    term = expression(cell.expr, cell.inputs, width, site.read)
    if cell.expr != ("in", 0):
        name = site.fresh(site.wire + "_b")
        lines.append(f"wire {declared_range(width)}{name} = {term};")
        term = name
    terms = [_extended(vector(cell.a, site.read), width, total), _extended(term, width, total)]
    if cell.carry_in and cell.carry_in != const_bits(0, 1):
        terms.append(_extended(vector(cell.carry_in, site.read), 1, total))
    lines.append(f"assign {site.wire} = {' + '.join(terms)};")
    return lines


@dataclass(frozen=True, slots=True)
class ChainRun:
    """Bits of a chain with one table: operands, when a bit passes the carry on, and what it gives else."""

    width: int
    operands: tuple[Bits, ...]
    propagates: BitExpr
    generates: BitExpr

    def text(self, which: Literal["propagates", "generates"], read: Reader) -> str:
        """One of the two as Verilog."""
        chosen = self.propagates if which == "propagates" else self.generates
        return expression(chosen, self.operands, self.width, read)


def chain_runs(cell: Chain) -> list[ChainRun]:
    """The runs of a chain, the lowest first. With x = p | g and y = ~p & g, x + y + carry is its sum."""
    runs: list[ChainRun] = []
    for low, count, table in cell.runs():
        operands = tuple(slice_bits(bits, low, count) for bits in (cell.a, *cell.inputs))
        runs.append(ChainRun(count, operands, _of_table(table, 4), _of_table(table & 15, 2)))
    return runs


def _of_table(table: int, count: int) -> BitExpr:
    """A truth table over ``count`` operands as an expression."""
    size = 1 << count
    if table in (0, (1 << size) - 1):
        return ("const", table & 1)
    low, high = (_of_table(table >> shift & (1 << size // 2) - 1, count - 1) for shift in (0, size // 2))
    return low if low == high else ("mux", ("in", count - 1), high, low)


def write_chain(cell: Chain, site: Site) -> list[str]:
    width, runs = cell.sum_width, chain_runs(cell)
    names = [site.fresh(site.wire + "_p"), site.fresh(site.wire + "_g")]
    lines: list[str] = []
    texts = [[run.text("propagates", site.read) for run in reversed(runs)]]
    texts.append([run.text("generates", site.read) for run in reversed(runs)])
    for name, parts in zip(names, texts):
        lines.append(f"wire {declared_range(width)}{name} = {{{', '.join(parts)}}};")
    terms = [f"{names[0]} | {names[1]}", f"~{names[0]} & {names[1]}"]
    sums = [_extended(f"({term})" if width == cell.width else term, width, cell.width) for term in terms]
    if cell.carry_in and cell.carry_in != const_bits(0, 1):
        sums.append(_extended(vector(cell.carry_in, site.read), 1, cell.width))
    return [*lines, f"assign {site.wire} = {' + '.join(sums)};"]


def _extended(text: str, width: int, total: int) -> str:
    if width == total:
        return text
    return "{" + f"{constant(0, total - width)}, {text}" + "}"


def write_mul(cell: Mul, site: Site) -> list[str]:
    """A product of two operands made signed, then the cell's own pipeline registers."""
    a, b = site.fresh(site.wire + "_a"), site.fresh(site.wire + "_b")
    lines = [_signed_operand(a, cell.a, cell.a_signed, site), _signed_operand(b, cell.b, cell.b_signed, site)]
    if not cell.latency_cycles:
        return [*lines, *_product(site.wire, a, b)]
    value = site.fresh(site.wire + "_p0")
    lines += [f"wire {declared_range(cell.width)}{value};", *_product(value, a, b)]
    return [*lines, *registered(value, "_p", range(1, cell.latency_cycles + 1), cell.width, site)]


def registered(value: str, suffix: str, numbers: range, width: int, site: Site) -> list[str]:
    """``value`` through registers of the cell, one behind the other, to its wire."""
    lines: list[str] = []
    for number in numbers:
        register = site.fresh(f"{site.wire}{suffix}{number}")
        enabled = f"if ({site.enable}) " if site.enable else ""
        lines.append(f"reg {declared_range(width)}{register};")
        lines.append(f"always @(posedge clk) {enabled}{register} <= {value};")
        value = register
    return [*lines, f"assign {site.wire} = {value};"]


def _signed_operand(name: str, bits: Bits, signed: bool, site: Site) -> str:
    width = bits_width(bits)
    text = vector(bits, site.read)
    if not signed:  # a leading zero keeps its value in a signed product
        width, text = width + 1, "{" + f"1'd0, {text}" + "}"
    return f"wire signed {declared_range(width)}{name} = {text};"


def _product(wire: str, a: str, b: str) -> list[str]:
    # Verilog extends both operands to the width of the target; the linter wants each extension spelt out.
    return [
        "/* verilator lint_off WIDTH */",
        f"assign {wire} = {a} * {b};",
        "/* verilator lint_on WIDTH */",
    ]


def write_mux(cell: Mux, site: Site) -> list[str]:
    select = site.fresh(site.wire + "_sel")
    bits = bits_width(cell.select)
    lines = [f"wire {declared_range(bits)}{select} = {vector(cell.select, site.read)};"]
    choices = [vector(choice, site.read) for choice in cell.choices]
    tree = _choose(choices, select, bits, bits, "  ")
    return [*lines, f"assign {site.wire} = {tree};"]


def _choose(choices: list[str], select: str, bits: int, whole: int, indent: str) -> str:
    """A balanced tree of two-way choices, the highest select bit at its root."""
    if len(choices) == 1 or bits == 0:
        return choices[0]
    half = 1 << (bits - 1)
    if len(choices) <= half:  # the bit above decides between a choice and "past the end"
        low = _choose(choices, select, bits - 1, whole, indent + "  ")
        high = choices[-1]
    else:
        low = _choose(choices[:half], select, bits - 1, whole, indent + "  ")
        high = _choose(choices[half:], select, bits - 1, whole, indent + "  ")
    bit = select if whole == 1 else f"{select}[{bits - 1}]"
    return f"({bit} ?\n{indent}{high} :\n{indent}{low})" if low != high else low


def _write_rom(cell: Rom, site: Site) -> list[str]:
    address, data = site.fresh(site.wire + "_addr"), site.fresh(site.wire + "_data")
    bits = bits_width(cell.address)
    lines = [
        f"wire {declared_range(bits)}{address} = {vector(cell.address, site.read)};",
        f"reg {declared_range(cell.width)}{data};",
        f"always @* case ({address})",
    ]
    mask = (1 << cell.width) - 1
    for index, value in enumerate(cell.contents[: 1 << bits]):
        if value & mask:
            lines.append(f"  {constant(index, bits)}: {data} = {constant(value & mask, cell.width)};")
    lines += [f"  default: {data} = {constant(0, cell.width)};", "endcase"]
    return [*lines, f"assign {site.wire} = {data};"]


def _write_input(cell: Input, site: Site) -> list[str]:
    bus = part(escaped(cell.bus), cell.low, cell.width, site.pipeline.buses[cell.bus])
    return [f"assign {site.wire} = {bus};"]


def _write_state(cell: StateOut | StateNext, site: Site) -> list[str]:
    return []


def _write_moves(cell: Moves, site: Site) -> list[str]:
    return [f"assign {site.wire} = {site.pipeline.moves};"]


def _write_restart(cell: Restart, site: Site) -> list[str]:
    return [f"assign {site.wire} = {site.pipeline.reset};"]


def _write_pin(cell: RegisterPin, site: Site) -> list[str]:
    return [f"assign {site.wire} = {vector(cell.bits, site.read)};"]


PLAIN_CELLS: Mapping[type[Cell], CellWriter] = {
    Input: _write_input, Lut: write_lut, Add: write_add, Chain: write_chain, Mul: write_mul, Mux: write_mux,
    Rom: _write_rom, StateOut: _write_state, StateNext: _write_state, Moves: _write_moves,
    Restart: _write_restart, RegisterPin: _write_pin,
}
