"""Streams whose states are inputs of earlier items: blocks of items as one loop, between items one by one.

The first items fill the states; of the others whole blocks go without them, as long as no result lies where a
window of inputs does; then the states are put as the items that are left expect them.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kera_hw.cpu_gpu.machine.code import Label, Mem, RegClass, VReg
from kera_hw.cpu_gpu.select.body import Body
from kera_hw.cpu_gpu.select.isa import Isa
from kera_hw.loops.program import Buffer, LoopProgram
from kera_hw.schedule.software.blocks import ITEMS, Blocks
from kera_hw.schedule.software.layout import Layout, element_bytes
from kera_hw.schedule.software.vector_loops import ITEM, Plan
from kera_hw.types import FloatType, IntType


@dataclass(frozen=True, slots=True)
class BlockCode:
    """Blocks of items with a place in memory and vectors of their own."""

    blocks: Blocks
    layout: Layout
    plan: Plan


@dataclass(frozen=True, slots=True)
class Stream:
    """The program of one item, and where parameters, results and what its layout places are."""

    program: LoopProgram
    layout: Layout
    arena: VReg
    places: Mapping[str, VReg]


def write_blocks(
    isa: Isa, code: BlockCode, stream: Stream, items: VReg, one_by_one: Callable[[VReg, VReg], None]
) -> VReg:
    """Items as blocks; the number of the first that is left. ``one_by_one``: items from a number below
    another, one at least."""
    blocks = code.blocks
    history = blocks.history
    first, over = isa.code.vreg(RegClass.GENERAL), isa.code.label()
    isa.copy(first, isa.number(0))
    isa.branch_below(items, history + ITEMS, over)
    _apart(isa, blocks, stream, items, over)
    one_by_one(first, isa.number(history))
    end = _moved(isa, isa.multiple_below(_moved(isa, items, -history), ITEMS), history)
    places = dict(stream.places)
    for name in blocks.windows:
        places[name] = _moved(isa, places[name], -history * element_bytes(_of(stream, name).element))
    body = Body(isa, blocks.program, code.layout, code.plan, stream.arena, places)
    body.item_elements = {
        name: _of(stream, name).size for name in (buffer.name for buffer in _ports(stream.program))
    }
    body.rounds(ITEM, isa.number(history), end, ITEMS, lambda: body.block(blocks.program.body))
    _put_states(isa, blocks, stream, end)
    isa.copy(first, end)
    isa.code.place(over)
    return first


def _ports(program: LoopProgram) -> list[Buffer]:
    return [*program.of_kind("param"), *program.of_kind("result")]


def _of(stream: Stream, name: str) -> Buffer:
    return next(buffer for buffer in stream.program.buffers if buffer.name == name)


def _moved(isa: Isa, register: VReg, distance: int) -> VReg:
    """A copy, and so much more."""
    found = isa.code.vreg(RegClass.GENERAL)
    isa.copy(found, register)
    isa.add_number(found, distance)
    return found


def _at(isa: Isa, stream: Stream, buffer: Buffer, item: VReg) -> VReg:
    """Where a leaf of an item is."""
    distance = isa.times(item, buffer.size * element_bytes(buffer.element))
    return isa.sum_of(stream.places[buffer.name], distance, 1, 0)


def _apart(isa: Isa, blocks: Blocks, stream: Stream, items: VReg, over: Label) -> None:
    """Goes there where a result is written over inputs that a later item looks back to."""
    for name in sorted(blocks.windows):
        window = _of(stream, name)
        for result in stream.program.of_kind("result"):
            meets, apart = isa.code.label(), isa.code.label()
            isa.branch_below(stream.places[result.name], _at(isa, stream, window, items), meets)
            isa.jump(apart)
            isa.code.place(meets)
            isa.branch_below(stream.places[name], _at(isa, stream, result, items), over)
            isa.code.place(apart)


def _put_states(isa: Isa, blocks: Blocks, stream: Stream, item: VReg) -> None:
    """What the states hold as an item begins; of inputs, which may be any NaN, the one that states may be."""
    for name, meant in sorted(blocks.windows.items()):
        window = _of(stream, name)
        kind, each = window.element, element_bytes(window.element)
        nan = _Nan.of(isa, meant) if isinstance(meant, FloatType) else None
        word = kind if nan is None else nan.word
        here = _at(isa, stream, window, item)
        for state, elements in blocks.states.items():
            for k, delayed in enumerate(elements):
                if delayed.param == name:
                    value = isa.load(word, Mem(here, offset=-delayed.items * each))
                    if nan is not None:
                        value = nan.settled(isa, value)
                    place = Mem(stream.arena, offset=stream.layout.addresses[state] + k * each)
                    isa.store(word, place, value)


@dataclass(frozen=True, slots=True)
class _Nan:
    """The words of NaNs are those from ``positive`` to the sign bit and from ``negative`` on."""

    word: IntType
    positive: VReg
    sign: VReg
    negative: VReg
    canonical: VReg

    @staticmethod
    def of(isa: Isa, kind: FloatType) -> _Nan:
        sign = 1 << kind.width_bits - 1
        infinity = sign - (1 << kind.fraction_bits)
        words = (infinity + 1, sign, (sign | infinity) + 1, kind.canonical_nan)
        return _Nan(IntType(kind.width_bits, False), *(isa.number(word) for word in words))

    def settled(self, isa: Isa, value: VReg) -> VReg:
        """A word, or that of the one NaN if it is any."""
        found, is_nan, is_number = isa.as_index(self.word, value), isa.code.label(), isa.code.label()
        isa.branch_below(found, self.positive, is_number)
        isa.branch_below(found, self.sign, is_nan)
        isa.branch_below(found, self.negative, is_number)
        isa.code.place(is_nan)
        isa.copy(found, self.canonical)
        isa.code.place(is_number)
        return found
