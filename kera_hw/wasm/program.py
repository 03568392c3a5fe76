"""A loop program in native operations as a module of WebAssembly.

The module exports its memory and two functions. ``run(items, pointers...)`` computes a batch: one pointer for
each parameter leaf, then each result leaf, at each of which the items' elements follow one another,
row-major, in native types. ``reset()`` puts a stream's state back to its beginning, where it is at first.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.loops.program import Buffer, LoopProgram
from kera_hw.schedule.software.layout import Data, Layout, aligned, element_bytes, lay_out
from kera_hw.schedule.software.vector_loops import ITEM, Plan, plan_vectors
from kera_hw.support import Diagnostic, KeraError
from kera_hw.wasm.body import Body, widths
from kera_hw.wasm.code import Code, Mark
from kera_hw.wasm.module import MOST_PAGES, PAGE_BYTES, Function, Module, ValueType, write_module
from kera_hw.wasm.vectors import VECTOR_BITS

SECTION = "kera.fingerprint"
"""The custom section that names the graph."""
# What engines take (the JavaScript interface's limits, which wasmtime and browsers keep).
MOST_CODE_BYTES = 7_654_321
MOST_LOCALS = 50_000
MOST_PARAMETERS = 1_000
MOST_BYTES = 1 << 31
MOST_BYTES_WITH_AN_ITEM = PAGE_BYTES * MOST_PAGES


@dataclass(frozen=True, slots=True)
class WasmModule:
    """``binary`` and how to call it: ``params`` and ``results`` in the order of the pointers; a batch may lie
    from address ``room`` on. ``vector_loops``: how many loops run several rounds at once. ``marks``: from
    which byte of the module on its code is for what.
    """

    name: str
    binary: bytes
    params: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    room: int
    stateful: bool
    vector_loops: int
    marks: tuple[tuple[int, Mark], ...]


def build_module(program: LoopProgram, vectors: bool = True, fingerprint: str = "") -> WasmModule:
    """The module of a program in native operations; without ``vectors``, one round at a time.

    Raises KeraError (K0705) where it would be larger than engines take.
    """
    plan: Plan = plan_vectors(program, VECTOR_BITS) if vectors else {}
    private = frozenset(name for loop in plan.values() for name in loop.private)
    layout = lay_out(program, private, VECTOR_BITS // 8)
    params, results = program.of_kind("param"), program.of_kind("result")
    run, marks = _run(program, layout, plan, [*params, *results])
    reset = _reset(layout)
    pages = -(-layout.end // PAGE_BYTES)
    ports = sum(aligned(one.size * element_bytes(one.element)) for one in (*params, *results))
    for what, count, most in (
        ("bytes of code", len(run.code), MOST_CODE_BYTES), ("local values", len(run.locals), MOST_LOCALS),
        ("parameters and results", len(run.params), MOST_PARAMETERS),
        ("bytes of memory", layout.end, MOST_BYTES),
        ("bytes of memory with an item", layout.end + ports, MOST_BYTES_WITH_AN_ITEM),
    ):
        if count > most:
            message = f"As a WebAssembly module, `{program.name}` has {count:,} {what}; {most:,} is the most."
            raise KeraError([Diagnostic("K0705", message)])
    named = ((SECTION, fingerprint.encode()),) if fingerprint else ()
    data = _beginnings(layout)
    held = {address: name for name, address in layout.addresses.items()}
    names = tuple(held.get(one.address, "") for one in data)
    written = write_module(Module(program.name, (run, reset), data, max(pages, 1), named, names))
    stateful = bool(layout.resets)
    placed = tuple((written.starts[0] + offset, mark) for offset, mark in marks)
    return WasmModule(
        program.name, written.binary, tuple(params), tuple(results), layout.end, stateful, len(plan), placed
    )


def _beginnings(layout: Layout) -> tuple[Data, ...]:
    """The memory at the start: constants, and states twice, of which one copy stays."""
    begin = {data.address: data for data in layout.data}
    states = (Data(state, begin[first].contents) for state, first, _ in layout.resets if first in begin)
    return (*layout.data, *states)


def _reset(layout: Layout) -> Function:
    code = Code(())
    for state, first, size_bytes in layout.resets:
        for number in (state, first, size_bytes):
            code.number(number)
        code.op("memory.copy")
    return Function("reset", (), (), (), code.finish())


def _run(
    program: LoopProgram, layout: Layout, plan: Plan, ports: list[Buffer]
) -> tuple[Function, list[tuple[int, Mark]]]:
    """Item by item, or several at once and then the rest one by one; and what its code is for."""
    params = (ValueType.I32,) * (1 + len(ports))
    code = Code(params)
    items = 0
    bases = {buffer.name: 1 + k for k, buffer in enumerate(ports)}
    pointers = {name: code.new_local(ValueType.I32, f"{name}@item") for name in bases}
    body = Body(code, program, layout, plan, pointers)
    item = code.new_local(ValueType.I32, "item")
    body.hold_counter(ITEM, item)
    loop = plan.get(id(program))

    def rounds(step: int) -> None:
        """While ``step`` items are left."""
        code.begin("block")
        code.begin("loop")
        code.get(item)
        code.number(step)
        code.op("i32.add")
        code.get(items)
        code.op("i32.gt_u")
        code.op("br_if", 1)
        for buffer in ports:
            code.get(item)
            code.number(buffer.size * element_bytes(buffer.element))
            code.op("i32.mul")
            code.get(bases[buffer.name])
            code.op("i32.add")
            code.set(pointers[buffer.name])
        body.block(program.body)
        code.get(item)
        code.number(step)
        code.op("i32.add")
        code.set(item)
        code.op("br", 0)
        code.end()
        code.end()

    if loop is not None:
        for copies in widths(loop, program.body):
            with body.hoisted(loop, program.body, copies):
                rounds(loop.count * copies)
    rounds(1)
    names = {0: "items", **{1 + k: buffer.name for k, buffer in enumerate(ports)}, **code.local_names}
    run = Function("run", params, (), code.locals, code.finish(), True, names, tuple(code.labels))
    return run, code.marks
