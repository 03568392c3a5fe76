"""A native loop program as a function of machine code, by the System V calling convention.

``run(items, ports, arena)``: ``ports`` points to the addresses of parameter leaves, then result leaves, at
each of which the items' elements follow one another; ``arena`` to the memory of constants, states and
temporaries.
"""
from __future__ import annotations

from kera_hw.cpu_gpu.machine.code import Code, Mem, RegClass
from kera_hw.cpu_gpu.select.body import Body
from kera_hw.cpu_gpu.x86_64.finish import Machine, finish
from kera_hw.cpu_gpu.x86_64.isa import Avx2
from kera_hw.cpu_gpu.x86_64.machine import RAX, RCX, RDI, RDX, RSI
from kera_hw.loops.program import LoopProgram
from kera_hw.schedule.software.layout import Layout
from kera_hw.schedule.software.vector_loops import ITEM, Plan

_POINTER_BYTES = 8


def write_function(program: LoopProgram, layout: Layout, plan: Plan) -> Machine:
    """The function's code."""
    isa = Avx2(Code())
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
    first, out = isa.number(0), code.label()
    if loop is not None:
        few = code.label()
        whole = isa.changed("andi", items, -loop.count)
        started = code.vreg(RegClass.GENERAL)
        isa.copy(started, whole)
        isa.branch_below(whole, 1, few)
        with body.lanes(loop):
            body.rounds(ITEM, first, whole, loop.count, lambda: body.block(program.body))
        code.place(few)
        first = started
    some = code.label()
    isa.branch_below(first, items, some)
    isa.jump(out)
    code.place(some)
    body.rounds(ITEM, first, items, 1, lambda: body.block(program.body))
    code.place(out)
    return finish(code)
