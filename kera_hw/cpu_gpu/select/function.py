"""A native loop program as a function of machine code, by the calling convention of its machine.

``run(items, ports, arena)``: ``ports`` points to the addresses of parameter leaves, then result leaves, at
each of which the items' elements follow one another; ``arena`` to the memory of constants, states and
temporaries. Of a function that does some rounds of a loop, two words follow the addresses: the first of these
rounds, a multiple of as many as vectors side by side take at once, and the end of them.
"""
from __future__ import annotations

from kera_hw.cpu_gpu.machine.code import Mem, VReg
from kera_hw.cpu_gpu.select.body import Body, Part
from kera_hw.cpu_gpu.select.isa import Isa
from kera_hw.cpu_gpu.select.streams import BlockCode, Stream, write_blocks
from kera_hw.loops.program import For, LoopProgram
from kera_hw.schedule.software.layout import Layout
from kera_hw.schedule.software.vector_loops import ITEM, Plan
from kera_hw.types import IntType

_ADDRESS = IntType(64, False)
_ADDRESS_BYTES = 8


def select(
    isa: Isa, program: LoopProgram, layout: Layout, plan: Plan, divided: For | None = None,
    blocks: BlockCode | None = None,
) -> None:
    """Appends the function to the code of ``isa``; of the loop that is ``divided`` it does some rounds.
    ``blocks``: of items that need not go one by one."""
    items, table, arena = isa.arguments()
    ports = [*program.of_kind("param"), *program.of_kind("result")]
    places = {
        buffer.name: isa.load(_ADDRESS, Mem(table, offset=_ADDRESS_BYTES * k))
        for k, buffer in enumerate(ports)
    }
    body = Body(isa, program, layout, plan, arena, places)
    if divided is not None:
        first, end = (
            isa.load(_ADDRESS, Mem(table, offset=_ADDRESS_BYTES * (len(ports) + k))) for k in range(2)
        )
        body.part = Part(divided, first, end)
    loop = plan.get(id(program))
    first = isa.number(0)

    def items_from(first: VReg, end: VReg, step: int) -> None:
        with body.any_from(first, end):
            body.rounds(ITEM, first, end, step, lambda: body.block(program.body))

    if loop is not None and body.in_strips(loop, program.body):
        with body.any_from(first, items):
            body.strips(loop, first, items, program.body)
        return
    widths = body.widths(loop, program.body) if loop is not None else ()
    for side in widths:
        assert loop is not None
        step = loop.count * side.copies
        whole = isa.multiple_below(items, step)
        with body.lanes(loop), body.side_by_side(side):
            items_from(first, whole, step)
        first = whole
    if blocks is not None:
        stream = Stream(program, layout, arena, places)
        first = write_blocks(isa, blocks, stream, items, lambda start, end: items_from(start, end, 1))
    items_from(first, items, 1)
