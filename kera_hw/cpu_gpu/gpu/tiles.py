"""Products of matrices of bytes that fit the tiles of 8 by 8 results, 16 products at a time, of tensor cores.

A warp has a tile. Of each factor a thread has four bytes one after another, and of the results two beside
each other: thread 4 g + t has row g of the first factor and column g of the second, bytes 4 t to 4 t + 3, and
of row g the results 2 t and 2 t + 1 (PTX ISA, chapter 9.7.14, m8n8k16, which every GPU from sm_75 on has).
Sums are modulo 2^32, so that any order is right.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kera_hw.cpu_gpu.gpu.byte_products import WORD_BYTES, byte_products
from kera_hw.loops.program import Buffer, For, Load, Op, Operand, Statement, Store, Var
from kera_hw.schedule.software.grids import GridRegion
from kera_hw.schedule.software.vector_loops import ITEM, flat_terms
from kera_hw.types import Type

SIDE, DEPTH, WARP = 8, 16, 32


@dataclass(frozen=True, slots=True)
class Factor:
    """``stride`` in bytes from row to row; ``first`` is where row 0 begins."""

    buffer: str
    kind: Type
    stride: int
    first: int


@dataclass(frozen=True, slots=True)
class Tiles:
    """``rows`` by ``columns`` results of ``depth`` products. Strides of the result are in elements."""

    rows: int
    columns: int
    depth: int
    factors: tuple[Factor, Factor]
    result: str
    strides: tuple[int, int]
    first: int
    kind: Type

    @property
    def rounds(self) -> int:
        """Threads of an item."""
        return self.rows * self.columns // SIDE**2 * WARP


def tiles_of(region: GridRegion, buffers: Mapping[str, Buffer]) -> Tiles | str:
    """The tiles that a region is, or why it is none."""
    body = region.body.body
    loop = next((one for one in body if isinstance(one, For)), None)
    products = None if loop is None else byte_products(loop, buffers)
    if loop is None or products is None:
        return "no loop sums products of bytes that lie in words"
    if len(region.loops) != 2 or len(body) != 7 or not isinstance(body[-1], Store):
        return "there is more to a result than the products"
    store, (carried,) = body[-1], loop.carried
    outer = [one.var for one in region.loops]
    ahead = [one for one in body if isinstance(one, Load)]
    factors = [_factor(load, loop.var, outer, buffers, ahead) for load in products.factors]
    first, second = factors
    constant, terms = flat_terms(buffers[store.buffer], store.index)
    terms.pop(ITEM, None)
    same = store.value == carried.outer and set(terms) == set(outer) and _starts(body, carried.initial)
    if first is None or second is None or not same or first[0] == second[0]:
        return "a result is no row times a column"
    if first[0] == outer[1]:
        first, second = second, first
    (rows, columns), depth = (one.count for one in region.loops), loop.count + 1
    if rows % SIDE or columns % SIDE or depth % DEPTH:
        return f"{rows} by {columns} results of {depth} products are no tiles of 8 by 8 of 16"
    strides = terms[outer[0]], terms[outer[1]]
    kind = buffers[store.buffer].element
    return Tiles(rows, columns, depth, (first[1], second[1]), store.buffer, strides, constant, kind)


def _factor(
    load: Load, var: Var, outer: list[Var], buffers: Mapping[str, Buffer], ahead: Collection[Load]
) -> tuple[Var, Factor] | None:
    """Which loop a factor goes along with; its first element has to be loaded ahead of the products' loop."""
    constant, terms = _flat(load, buffers)
    terms.pop(var, None)
    if len(terms) != 1 or next(iter(terms)) not in outer or (constant - 1) % WORD_BYTES:
        return None
    if not any(one.buffer == load.buffer and _flat(one, buffers) == (constant - 1, terms) for one in ahead):
        return None
    ((along, stride),) = terms.items()
    return along, Factor(load.buffer, load.result.type, stride, constant - 1)


def _flat(load: Load, buffers: Mapping[str, Buffer]) -> tuple[int, dict[Var, int]]:
    constant, terms = flat_terms(buffers[load.buffer], load.index)
    terms.pop(ITEM, None)
    return constant, terms


def _starts(body: Sequence[Statement], initial: Operand) -> bool:
    """Whether the sum begins with the product of what is loaded ahead, one of each factor."""
    made = {one.results[0]: one for one in body if isinstance(one, Op)}
    loads = {one.result for one in body if isinstance(one, Load)}
    product = made.get(initial) if isinstance(initial, Var) else None
    if product is None or product.opcode != "integer.mul":
        return False
    casts = [made.get(one) for one in product.operands if isinstance(one, Var)]
    sources = {one.operands[0] for one in casts if one is not None and one.opcode == "convert.cast"}
    return len(sources) == 2 and sources == loads
