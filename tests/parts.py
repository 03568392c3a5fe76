"""Loop programs run by flat designs of their parts: each outer loop round by round, what is between at once.

Every buffer that is no constant is a memory, so that nothing but memories and scalars goes from part to part.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kera_hw.graph import Store
from kera_hw.interp import run_region
from kera_hw.loops.contents import defined, indexing, used
from kera_hw.loops.program import (
    Alloc,
    Block,
    Buffer,
    For,
    Literal,
    LoopProgram,
    Operand,
    Statement,
    Var,
    statements,
)
from kera_hw.numerics.arrays import Array
from kera_hw.ops.intervals import Interval
from kera_hw.rtl.lower import FlatDesign
from kera_hw.rtl.lower.builder import width_of
from kera_hw.rtl.lower.storage import memories_of, words_of
from kera_hw.types import IntType, TensorType, Type, numpy_dtype
from tests.flat_blocks import Carried, Given, flatten_block


class Parts:
    """``tables``: constants are read by address too."""

    def __init__(self, program: LoopProgram, tables: bool = False) -> None:
        inside = [item.buffer for item in statements(program.body) if isinstance(item, Alloc)]
        self.buffers = {buffer.name: buffer for buffer in (*program.buffers, *inside)}
        self.kept = [name for name, buffer in self.buffers.items() if tables or buffer.kind != "const"]
        self.program = program
        self.designs: list[FlatDesign] = []
        self._made: dict[int, FlatDesign] = {}
        self._bits: dict[str, int] = {}
        self._words: dict[str, list[int]] = {
            memory.name: list(memory.initial or [0] * memory.entries)
            for name in self.kept if self.buffers[name].kind != "const"
            for memory in memories_of(self.buffers[name])
        }

    def item(self, args: Sequence[Array]) -> None:
        """One item: what the program does with these parameters."""
        for buffer, array in zip(self.program.of_kind("param"), args):
            self._put(buffer, array)
        straight: list[Statement] = []
        for statement in self.program.body.body:
            if isinstance(statement, For):
                self._at_once(straight)
                self._rounds(statement)
                straight = []
            else:
                straight.append(statement)
        self._at_once(straight)

    def contents(self, buffer: Buffer) -> list[int]:
        """The words of a buffer's elements, from whatever banks they lie in."""
        found = [0] * buffer.size
        for memory, places in _layout(buffer):
            for place, word in zip(places, self._words[memory]):
                if place is not None:
                    found[place] = word
        return found

    def _put(self, buffer: Buffer, array: Array) -> None:
        words = words_in(buffer, array)
        for memory, places in _layout(buffer):
            self._words[memory] = [0 if place is None else words[place] for place in places]

    # Parts

    def _at_once(self, body: Sequence[Statement]) -> None:
        if body:
            results = tuple(var for statement in body for var in _results(statement))
            design = self._design(body[0], Block(tuple(body), results), (), [var.name for var in results])
            outputs, _ = self._step(design, ())
            self._bits.update(zip((var.name for var in results), outputs))

    def _rounds(self, loop: For) -> None:
        states = [Carried(item.inner.name, item.inner, 0) for item in loop.carried]
        carried = [self._operand(item.initial) for item in loop.carried]
        for count in range(loop.count):
            limit = {loop.var: Interval(0, loop.count - 1)}
            design = self._design(loop, loop.body, states, [], limit)
            self._bits[loop.var.name] = count
            _, carried = self._step(design, carried)
        self._bits.update(zip((item.outer.name for item in loop.carried), carried))

    def _operand(self, operand: Operand) -> int:
        return operand.bits if isinstance(operand, Literal) else self._bits[operand.name]

    def _design(
        self, part: Statement, block: Block, states: Sequence[Carried], outputs: Sequence[str],
        ranges: dict[Var, Interval] | None = None,
    ) -> FlatDesign:
        found = self._made.get(id(part))
        if found is None:
            own = {*defined(block), *(item.var.name for item in states)}
            free = sorted((used(block) | indexing(block)), key=lambda var: var.name)
            inputs = [Given(v.name, v, (ranges or {}).get(v)) for v in free if v.name not in own]
            made = flatten_block(
                "part", block, inputs, states, outputs, Store(), buffers=self.buffers, memories=self.kept
            )
            assert isinstance(made, FlatDesign)
            check_memories(made)
            found = self._made[id(part)] = made
            self.designs.append(made)
        return found

    def _step(self, design: FlatDesign, carried: Sequence[int]) -> tuple[list[int], list[int]]:
        """One round: the outputs, and what is carried to the next one."""
        scalars = [*(self._bits[leaf.bus] for leaf in design.inputs), *carried]
        args = [_array(kind, bits) for kind, bits in zip(design.region.params, scalars)]
        args += [
            np.array([self._words[memory.name]], numpy_dtype(memory.type.element))
            for memory in design.memories
        ]
        results = [np.asarray(value)[0] for value in run_region(design.region, args, 1)]
        count, there = len(design.outputs), len(design.outputs) + len(design.states)
        given = [_bits(value, kind) for value, kind in zip(results[:there], design.region.result_types)]
        for memory, value in zip(design.memories, results[there:]):
            self._words[memory.name] = [int(word) for word in value]
        return given[:count], given[count:]


def check_memories(design: FlatDesign) -> None:
    """Memories are tensors of words that reads, writes and conditions alone touch, in one chain each."""
    scalars = len(design.region.params) - len(design.memories)
    assert list(design.region.params[scalars:]) == [memory.type for memory in design.memories]
    for memory, last in zip(reversed(design.memories), reversed(design.region.results)):
        assert last.type == memory.type
    continued: set[object] = set()
    for node in design.region.nodes():
        if node.opcode == "tensor.update":
            assert node.inputs[0] not in continued, "two writes continue one version"
            continued.add(node.inputs[0])
        tensors = any(isinstance(kind, TensorType) for kind in node.types)
        allowed = ("core.param", "core.constant", "control.select", "tensor.update")
        assert not tensors or node.opcode in allowed, node


def words_in(buffer: Buffer, array: Array) -> list[int]:
    """Elements as the words that a memory holds."""
    dtype = numpy_dtype(buffer.element)
    data = np.ascontiguousarray(array).astype(dtype, copy=False).astype(dtype.newbyteorder("<")).tobytes()
    return words_of(replace(buffer, data=data))


def _layout(buffer: Buffer) -> list[tuple[str, list[int | None]]]:
    """By memory, which element each of its words is; None where it is none."""
    marks = b"".join((place + 1).to_bytes(4, "little") for place in range(buffer.size))
    marked = replace(buffer, kind="state", element=IntType(32, False), data=marks)
    return [
        (memory.name, [mark - 1 if mark else None for mark in memory.initial or ()])
        for memory in memories_of(marked)
    ]


def _results(statement: Statement) -> list[Var]:
    """The scalars that a statement defines for those after it."""
    found: list[Var] = [*getattr(statement, "results", ())]
    found += [item.outer for item in getattr(statement, "carried", ())]
    return [*found, *([statement.result] if hasattr(statement, "result") else [])]  # type: ignore[union-attr]


def _array(kind: Type, bits: int) -> Array:
    return np.array([kind.wrap(bits) if isinstance(kind, IntType) else bits]).astype(numpy_dtype(kind))


def _bits(value: Array, kind: Type) -> int:
    return int(value) & ((1 << width_of(kind)) - 1)
