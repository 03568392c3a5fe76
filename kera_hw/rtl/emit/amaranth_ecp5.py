"""ECP5's own cells in Amaranth: instances of the helper modules, with what ``ecp5`` and its kin decide."""
from __future__ import annotations

from collections.abc import Mapping

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Signal, Value

from kera_hw.rtl.emit.amaranth_cells import (
    PLAIN_CELLS,
    CellBuilder,
    Place,
    Start,
    build_add,
    build_lut,
    build_mul,
    build_mux,
    registered,
    vector,
)
from kera_hw.rtl.emit.ecp5 import carry_chain, tile_operands
from kera_hw.rtl.emit.ecp5_lut import lut_runs
from kera_hw.rtl.emit.ecp5_memory import BLOCK_BITS, memory_blocks
from kera_hw.rtl.emit.ecp5_mux import mux_tree
from kera_hw.schedule.fpga.bits import bits_width, cell_bits
from kera_hw.schedule.fpga.cells import Add, Cell, Chain, Lut, Mul, Mux
from kera_hw.schedule.fpga.cells.mul import TILE_STAGES
from kera_hw.schedule.fpga.units import Memory

_PRODUCT_BITS = 36


def _instance(place: Place, suffix: str, module: str, **ports: Value | int) -> None:
    """An instance of a helper module; keywords as Amaranth's own ``Instance`` takes them."""
    instance = Instance(module, **ports)
    place.module.submodules[place.fresh(place.target.name + suffix)] = instance


def _clocked(place: Place) -> dict[str, Value]:
    """Clock and enable of a helper module."""
    return {"i_clk": ClockSignal(), "i_ce": Const(1, 1) if place.enable is None else place.enable}


def _build_add(cell: Add, place: Place) -> None:
    chain = carry_chain(cell)
    if chain is None:
        build_add(cell, place)
        return
    total = place.signal("_chain", 2 * chain.slices)
    _instance(
        place, "_add", chain.module, p_SLICES=chain.slices,
        **{f"p_{name}": Const(value, bits) for name, (bits, value) in chain.tables.items()},
        **{f"i_{pin}": place.vector(bits) for pin, bits in chain.pins.items()}, o_s=total,
    )
    place.drive(total[chain.low : chain.low + cell.width])


def _build_mul(cell: Mul, place: Place) -> None:
    operands = tile_operands(cell)
    if operands is None:
        build_mul(cell, place)
        return
    tile = place.signal("_tile", _PRODUCT_BITS)
    inside = min(cell.latency_cycles, TILE_STAGES)
    a, b = (place.vector(bits) for bits in operands)
    _instance(
        place, "_mul", "kera_ecp5_mul", p_A_SIGNED=Const(int(cell.a_signed), 1),
        p_B_SIGNED=Const(int(cell.b_signed), 1), p_STAGES=inside, i_a=a, i_b=b, o_p=tile, **_clocked(place),
    )
    value: Value = tile
    if cell.width > _PRODUCT_BITS:
        value = tile.as_signed() if cell.a_signed or cell.b_signed else tile
    # Those beyond the tile's own are in the fabric, to shorten the way from it.
    outside = range(inside + 1, cell.latency_cycles + 1)
    place.drive(registered(value, "_p", outside, cell.width, place))


def _build_lut(cell: Lut, place: Place) -> None:
    runs = lut_runs(cell)
    if runs is None:
        build_lut(cell, place)
        return
    parts: list[Value] = []
    for run in runs:
        if not run.operands:
            parts.append(Const(run.fixed_value(), run.width))
        elif len(run.operands) == 1:
            value = place.vector(run.operands[0])
            parts.append(value if run.table == 0b10 else ~value)
        else:
            out = place.target if run.width == cell.width else place.signal("_lut", run.width)
            made = run.instance()
            pins = {f"i_{pin}": place.vector(bits) for pin, bits in made.pins.items()}
            settings = {f"p_{key}": value for key, value in made.settings.items()}
            _instance(
                place, "_luts", made.module, p_WIDTH=run.width, **settings,
                p_INIT=Const(made.init, made.init_bits), **pins, o_z=out,
            )
            parts.append(out)
    if parts[0] is not place.target:
        place.drive(Cat(*parts))


def _build_mux(cell: Mux, place: Place) -> None:
    tree = mux_tree(cell)
    if tree is None:
        build_mux(cell, place)
        return
    select, width = place.vector(cell.select), bits_width(cell.select)
    if width > tree.levels:  # bits above, when set, take the last choice
        whole = select
        select = place.signal("_sel", tree.levels)
        past = whole[tree.levels :].any().replicate(tree.levels)
        place.module.d.comb += select.eq(whole[: tree.levels] | past)
    _instance(
        place, "_mux", "kera_ecp5_mux", p_WIDTH=cell.width, p_LEVELS=tree.levels,
        i_choices=place.vector(tree.choices), i_select=select, o_z=place.target,
    )


def build_blocks(unit: Memory, start: Start, place: Place) -> None:
    """A ``kera_ecp5_rom`` for each block."""
    (address,) = start.arguments
    table = memory_blocks(unit, cell_bits(0, len(address)))
    whole = vector(table.address, lambda segment: [address[segment.low : segment.low + segment.width]])
    words: list[Value] = []
    for data, count in table.blocks:
        word: Signal = place.signal("_word", table.width)
        _instance(
            place, "_rom", "kera_ecp5_rom", p_WIDTH=table.width, p_DEPTH_BITS=table.depth_bits,
            p_DATA=Const(data, BLOCK_BITS), i_address=whole, o_q=word, **_clocked(place),
        )
        words.append(word[:count])
    place.drive(Cat(*words))


ECP5_CELLS: Mapping[type[Cell], CellBuilder] = {
    **PLAIN_CELLS, Lut: _build_lut, Add: _build_add, Chain: _build_add, Mul: _build_mul, Mux: _build_mux,
}
"""Vendor cells where they gain, plain operators elsewhere."""
