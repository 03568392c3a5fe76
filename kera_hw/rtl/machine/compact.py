"""A program whose long loops alone are loops: short ones within are written out, small arrays are scalars.

What an engineer does by hand: a round of the long loop is one piece of logic, and what it works on lies in
registers, not in memories that give an element a cycle. Loops are short by what they come to when they are
written out. Of the long ones, two that follow each other are joined where what is between them can go out of
the way, the rounds that one has more than the other written out.
"""
from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from kera_hw.loops.program import (
    Alloc,
    Block,
    Buffer,
    For,
    Load,
    LoopProgram,
    Op,
    Statement,
    Store,
    While,
    blocks_of,
    statements,
)
from kera_hw.loops.transforms.contracting import contract
from kera_hw.loops.transforms.fusing import fuse
from kera_hw.loops.transforms.meeting import clear
from kera_hw.loops.transforms.nests import split, unroll
from kera_hw.loops.transforms.plan import Step
from kera_hw.loops.transforms.reason import Refused
from kera_hw.loops.transforms.scalars import constant_indices, fold, promote
from kera_hw.rtl.lower import ports
from kera_hw.types import bit_width

MOST_STATEMENTS = 512
"""Statements that a short loop comes to at most."""
_MOST_IN_ALL = 8192
"""Statements of a program of which such a form is made: bounds the time of planning."""
_COPIED = 16
"""Elements of a memory that a round may copy."""
_MOST_PARTED = 2
"""Rounds that are written out so that a loop is as long as the one beside it."""


@dataclass(frozen=True, slots=True)
class Compact:
    """The program, the steps that led to it, and the arrays that became scalars."""

    program: LoopProgram
    steps: tuple[Step, ...]
    scalars: tuple[str, ...]


def compact(program: LoopProgram) -> Compact | None:
    """The program in this form; None where no loop stays, or no array of one becomes scalars."""
    form = _Form(program)
    form.fold()
    form.write_out()
    kept = [item for item in statements(form.program.body) if isinstance(item, For)]
    if not kept or sum(1 for _ in statements(form.program.body)) > _MOST_IN_ALL:
        return None
    within = {
        item.buffer for loop in kept for item in statements(loop.body) if isinstance(item, Load | Store)
    }
    form.fold()
    form.promote()
    if not within.intersection(form.scalars):
        return None
    while form.join():
        form.contract()
        form.promote()
    form.fold()
    return Compact(form.program, tuple(form.steps), tuple(form.scalars))


class _Form:
    def __init__(self, program: LoopProgram) -> None:
        self.program = program
        self.steps: list[Step] = []
        self.scalars: list[str] = []
        allocs = [item.buffer for item in statements(program.body) if isinstance(item, Alloc)]
        self._buffers = {buffer.name: buffer for buffer in (*program.buffers, *allocs)}

    def _take(self, change: Callable[..., LoopProgram], *arguments: str | int) -> None:
        self.program = change(self.program, *arguments)
        self.steps.append(Step(change.__name__, arguments))

    # Short loops

    def write_out(self) -> None:
        """Writes out short loops, those within others first."""
        for name in self._short(self.program.body):
            self._take(unroll, name)

    def _short(self, block: Block) -> list[str]:
        found: list[str] = []
        for statement in block.body:
            for inner in blocks_of(statement):
                found += self._short(inner)
            if isinstance(statement, For) and self._is_short(statement):
                found.append(statement.var.name)
        return found

    def _is_short(self, loop: For) -> bool:
        if size_of(loop) > MOST_STATEMENTS:
            return False
        inside = list(statements(loop.body))
        if any(isinstance(item, While) for item in inside):
            return False
        names = {item.buffer for item in inside if isinstance(item, Load | Store)}
        if all(self._is_small(self._buffers[name]) for name in names):
            return True
        # What lies in a memory may be copied, a few elements at once.
        rounds = loop.count * prod(item.count for item in inside if isinstance(item, For))
        computes = any(isinstance(item, Op) and item.opcode != "convert.cast" for item in inside)
        return rounds <= _COPIED and not computes

    def _is_small(self, buffer: Buffer) -> bool:
        return buffer.kind == "const" or is_small(buffer)

    # Small arrays

    def promote(self) -> None:
        """Makes scalars of small arrays."""
        names = [buffer.name for buffer in constant_indices(self.program) if is_small(buffer)]
        for name in names:
            self._take(promote, name)
        self.scalars += names
        self.fold()

    def fold(self) -> None:
        """Computes what is known by now."""
        with suppress(Refused):
            self._take(fold)

    def contract(self) -> None:
        """Leaves out what is handed on within a round."""
        for item in list(statements(self.program.body)):
            if isinstance(item, Alloc):
                try:
                    self._take(contract, item.buffer.name)
                except Refused:
                    continue

    # Loops beside each other

    def join(self) -> bool:
        """Joins the first two loops that can be joined."""
        for one, two in _neighbours(self.program.body):
            before, taken = self.program, len(self.steps)
            try:
                self._joined(one, two)
                return True
            except Refused:
                self.program = before
                del self.steps[taken:]
        return False

    def _joined(self, one: For, two: For) -> None:
        count = min(one.count, two.count)
        if max(one.count, two.count) - count > _MOST_PARTED or count < 2:
            raise Refused(f"`{one.var.name}` has {one.count} rounds and `{two.var.name}` {two.count}.")
        for loop in (one, two):
            if loop.count > count:
                known = {item.var.name for item in statements(self.program.body) if isinstance(item, For)}
                self._take(split, loop.var.name, count)
                (rest,) = (
                    item.var.name for item in self.program.body.body
                    if isinstance(item, For) and item.var.name not in known
                )
                self._take(unroll, rest)
        self._take(clear, one.var.name, two.var.name)
        self._take(fuse, one.var.name, two.var.name)


def is_small(buffer: Buffer) -> bool:
    """Whether a buffer may lie in registers."""
    return buffer.size * bit_width(buffer.element) <= ports.WIDEST_VALUE_BITS


def size_of(statement: Statement) -> int:
    """Statements that a statement comes to when its loops are written out."""
    inside = sum(size_of(item) for block in blocks_of(statement) for item in block.body)
    return statement.count * inside if isinstance(statement, For) else 1 + inside


def _neighbours(block: Block) -> list[tuple[For, For]]:
    """Loops of the outermost block that follow each other."""
    return list(pairwise(item for item in block.body if isinstance(item, For)))
