"""A native loop program as a function of machine code, by the System V calling convention.

``run(items, ports, arena)``: ``ports`` points to the addresses of parameter leaves, then result leaves, at
each of which the items' elements follow one another; ``arena`` to the memory of constants, states and
temporaries.
"""
from __future__ import annotations

from kera_hw.cpu_gpu.machine.code import Code, Mem, RegClass, VReg
from kera_hw.cpu_gpu.select.body import Body
from kera_hw.cpu_gpu.x86_64.finish import Machine, finish
from kera_hw.cpu_gpu.x86_64.isa import X86
from kera_hw.cpu_gpu.x86_64.machine import RAX, RCX, RDI, RDX, RSI, Level
from kera_hw.loops.program import LoopProgram
from kera_hw.schedule.software.layout import Layout
from kera_hw.schedule.software.vector_loops import ITEM, Plan

_POINTER_BYTES = 8


def write_function(program: LoopProgram, layout: Layout, plan: Plan, level: Level) -> Machine:
    """The function's code."""
    isa = X86(Code(), level)
    code = isa.code
    items, table, arena = (code.vreg(RegClass.GENERAL) for _ in range(3))
    # By way of registers that are never given to anything, so that no argument is overwritten unread.
    isa.put("mov", RAX, RDI)
    isa.put("mov", RCX, RSI)
    for register, given in ((items, RAX), (table, RCX), (arena, RDX)):
        isa.copy(register, given)
    ports = [*program.of_kind("param"), *program.of_kind("result")]
    places = {
        buffer.name: isa.gives("mov", Mem(table, offset=_POINTER_BYTES * k)) for k, buffer in enumerate(ports)
    }
    body = Body(isa, program, layout, plan, arena, places)
    loop = plan.get(id(program))
    first = isa.number(0)

    def items_from(first: VReg, end: VReg, step: int) -> None:
        """Items up to ``end``, if any are left."""
        some, out = code.label(), code.label()
        isa.branch_below(first, end, some)
        isa.jump(out)
        code.place(some)
        body.rounds(ITEM, first, end, step, lambda: body.block(program.body))
        code.place(out)

    widths = body.widths(loop, program.body) if loop is not None else ()
    for copies in widths:
        assert loop is not None
        step = loop.count * copies
        whole = isa.changed("andi", items, -step)
        with body.lanes(loop), body.side_by_side(copies):
            items_from(first, whole, step)
        first = whole
    items_from(first, items, 1)
    return finish(code, level)
