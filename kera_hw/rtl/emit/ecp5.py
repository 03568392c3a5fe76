"""ECP5's own cells: adders with their operand's logic in CCU2C, multipliers on MULT18X18D with its registers.

CCU2C forms P = A ^ f(B, C, D) from a 16-bit table and passes on A where P = 0, but takes that A from the
table's lowest nibble, that is, with C = D = 0. So f must vanish there: f(B, 0, 0) = 0 for both values of B.
With at most two operands D is tied to 1 and any f will do. When A is 0 everywhere and f has three operands,
A's pin carries one of them and the cell only propagates (lowest byte 0, D = 1).
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from kera_hw.rtl.emit.cells import PLAIN_CELLS, CellWriter, Site, registered, write_add, write_mul
from kera_hw.rtl.emit.ecp5_lut import write_lut
from kera_hw.rtl.emit.ecp5_mux import write_mux
from kera_hw.rtl.emit.ecp5_table import write_rom
from kera_hw.rtl.emit.text import constant, declared_range, vector
from kera_hw.schedule.fpga.bits import Bits, bits_width, concat, const_bits
from kera_hw.schedule.fpga.cells import Add, Cell, Chain, Lut, Mul, Mux, Rom
from kera_hw.schedule.fpga.cells.mul import TILE_STAGES
from kera_hw.schedule.fpga.expressions import BitExpr, evaluate

_GENERATE_ONLY = 0x00AA  # with D = 1: P = 0, so the bit's A goes into the chain as its carry
_PINS = "abcd"
DSP_OPERAND_BITS = 18


@dataclass(frozen=True, slots=True)
class CarryFunction:
    """How an adder's operand fits the carry cell: the table, and what each of the pins a-d shows.

    ``pins`` holds an operand's position, -1 for the adder's own ``a``, or None for a constant: 0, but 1 on
    pin d with ``d_tied_high``.
    """

    init: int
    pins: tuple[int | None, int | None, int | None, int | None]
    d_tied_high: bool


def fit_carry_cell(expr: BitExpr, operands: int, a_is_zero: bool) -> CarryFunction | None:
    """The table for a + expr(...), or None when the carry cell cannot hold it."""
    if operands <= 2:
        high = _table(lambda a, b, c: a ^ evaluate(expr, (b, c), 1))
        pins = (-1, 0 if operands else None, 1 if operands > 1 else None, None)
        return CarryFunction(high << 8 | 0xAA, pins, d_tied_high=True)
    if operands != 3:
        return None
    for order in permutations(range(3)):  # operand order[k] sits on pin "bcd"[k]
        def value(b: int, c: int, d: int, order: tuple[int, ...] = order) -> int:
            shown = dict(zip(order, (b, c, d)))
            return evaluate(expr, (shown[0], shown[1], shown[2]), 1)
        if value(0, 0, 0) == value(1, 0, 0) == 0:
            halves = [_table(lambda a, b, c, d=d: a ^ value(b, c, d)) for d in (0, 1)]
            pins = (-1, order[0], order[1], order[2])
            return CarryFunction(halves[1] << 8 | halves[0], pins, d_tied_high=False)
    if a_is_zero:
        high = _table(lambda a, b, c: evaluate(expr, (a, b, c), 1))
        return CarryFunction(high << 8, (0, 1, 2, None), d_tied_high=True)
    return None


def _table(function: Callable[[int, int, int], int]) -> int:
    """The byte whose bit 4c + 2b + a is ``function(a, b, c)``."""
    return sum(function(k & 1, k >> 1 & 1, k >> 2) << k for k in range(8))


def is_zero(bits: Bits) -> bool:
    """Whether a vector is the constant 0."""
    return all(segment.cell is None and not segment.low for segment in bits)


@dataclass(frozen=True, slots=True)
class CarryChain:
    """A chain of ``slices`` carry cells: the helper ``module``, its tables by parameter as (bits, value), the
    vectors on its pins, and the bit of its sum where the result begins."""

    module: str
    slices: int
    tables: dict[str, tuple[int, int]]
    pins: dict[str, Bits]
    low: int


def carry_chain(cell: Add) -> CarryChain | None:
    """The chain for an adder, or None where plain operators are as good or the cell cannot hold it."""
    if isinstance(cell, Chain):
        return _with_own_tables(cell)
    width = cell.sum_width
    fit = fit_carry_cell(cell.expr, len(cell.inputs), is_zero(cell.a))
    plain = cell.expr == ("in", 0) and is_zero(cell.carry_in)
    if fit is None or (plain and cell.width <= 2):  # two LUT4 are smaller and faster than a carry cell
        return None
    columns = [_column(cell, pin, operand, fit, width) for pin, operand in zip(_PINS, fit.pins)]
    slices, pins, low = _laid(cell, columns)
    tables = {"INIT": (16, fit.init), "FIRST": (16, _GENERATE_ONLY if low else fit.init)}
    return CarryChain("kera_ecp5_add", slices, tables, pins, low)


def _with_own_tables(cell: Chain) -> CarryChain:
    slices, pins, low = _laid(cell, (cell.a, *cell.inputs))
    tables = [_GENERATE_ONLY] * low + [table for count, table in cell.tables for _ in range(count)]
    packed = sum(table << 16 * k for k, table in enumerate(tables))  # 0 beyond: such a bit shows the carry
    return CarryChain("kera_ecp5_chain", slices, {"TABLES": (32 * slices, packed)}, pins, low)


def _laid(cell: Add, columns: Sequence[Bits]) -> tuple[int, dict[str, Bits], int]:
    """Slices, pins and the result's lowest bit for an adder with these vectors on pins a to d."""
    carry_bit = const_bits(0, 1) if is_zero(cell.carry_in) else cell.carry_in
    as_data = carry_bit[0].cell is not None and cell.width % 2 == 1  # the odd bit would be left over
    slices = (cell.width + as_data + 1) // 2
    pads = const_bits(0, 2 * slices - as_data - cell.sum_width)
    pins = {"cin": const_bits(0, 1) if as_data else carry_bit}
    for pin, column in zip(_PINS, columns):
        pins[pin] = concat([_below(pin, carry_bit) if as_data else (), column, pads])
    return slices, pins, int(as_data)


def _write_add(cell: Add, site: Site) -> list[str]:
    chain = carry_chain(cell)
    if chain is None:
        return write_add(cell, site)
    result = site.fresh(site.wire + "_chain")
    pins = ", ".join(f".{name}({vector(bits, site.read)})" for name, bits in chain.pins.items())
    tables = [f".{name}({bits}'h{value:0{bits // 4}x})" for name, (bits, value) in chain.tables.items()]
    setting = ", ".join([f".SLICES({chain.slices})", *tables])
    return [
        f"wire {declared_range(2 * chain.slices)}{result};",
        f"{chain.module} #({setting}) {site.fresh(site.wire + '_add')} ({pins}, .s({result}));",
        f"assign {site.wire} = {result}[{chain.low + cell.width - 1}:{chain.low}];",
    ]


def _below(pin: str, carry: Bits) -> Bits:
    """The extra lowest bit that turns ``carry`` into the chain's carry."""
    return carry if pin == "a" else const_bits(1 if pin == "d" else 0, 1)


def _column(cell: Add, pin: str, operand: int | None, fit: CarryFunction, width: int) -> Bits:
    if operand is None:
        return const_bits((1 << width) - 1 if pin == "d" and fit.d_tied_high else 0, width)
    bits = cell.a if operand == -1 else cell.inputs[operand]
    return concat([bits] * width) if bits_width(bits) == 1 else bits


def _write_mul(cell: Mul, site: Site) -> list[str]:
    operands = tile_operands(cell)
    if operands is None:
        return write_mul(cell, site)
    product = site.fresh(site.wire + "_tile")
    signs = f".A_SIGNED({constant(int(cell.a_signed), 1)}), .B_SIGNED({constant(int(cell.b_signed), 1)})"
    a, b = (vector(bits, site.read) for bits in operands)
    ports = f".clk(clk), .ce({site.enable or constant(1, 1)}), .a({a}), .b({b}), .p({product})"
    if cell.width > 36:
        sign = f"{product}[35]" if cell.a_signed or cell.b_signed else constant(0, 1)
        value = "{{" + f"{cell.width - 36}{{{sign}}}" + "}, " + product + "}"
    else:
        value = product if cell.width == 36 else f"{product}[{cell.width - 1}:0]"
    name = site.fresh(site.wire + "_mul")
    inside = min(cell.latency_cycles, TILE_STAGES)
    lines = [f"wire [35:0] {product};", f"kera_ecp5_mul #({signs}, .STAGES({inside})) {name} ({ports});"]
    # Those beyond the tile's own are in the fabric, to shorten the way from it.
    outside = range(inside + 1, cell.latency_cycles + 1)
    return [*lines, *registered(value, "_p", outside, cell.width, site)]


def tile_operands(cell: Mul) -> tuple[Bits, Bits] | None:
    """Both factors as wide as the multiplier's ports; None for factors that are wider."""
    if max(bits_width(cell.a), bits_width(cell.b)) > DSP_OPERAND_BITS:
        return None
    return _operand(cell.a, cell.a_signed), _operand(cell.b, cell.b_signed)


def _operand(bits: Bits, signed: bool) -> Bits:
    missing = DSP_OPERAND_BITS - bits_width(bits)
    if not missing:
        return bits
    if not signed:
        return concat([bits, const_bits(0, missing)])
    last = bits[-1]
    sign = const_bits(last.low >> (last.width - 1), 1) if last.cell is None else _top_bit(bits)
    return concat([bits, *([sign] * missing)])


def _top_bit(bits: Bits) -> Bits:
    last = bits[-1]
    return (type(last)(last.cell, last.low + last.width - 1, 1),)


ECP5_CELLS: Mapping[type[Cell], CellWriter] = {
    **PLAIN_CELLS, Lut: write_lut, Add: _write_add, Chain: _write_add, Mul: _write_mul, Mux: write_mux,
    Rom: write_rom,
}
"""Vendor cells where they gain, plain operators elsewhere."""
