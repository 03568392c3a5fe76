"""Sums and the like: as many chains side by side as a processor can add at once, and in registers.

A sum in lanes adds rows of values to a row of sums, which would lie in memory. Turned round, each sum goes
through all rows in a register. Several vectors of sums then share a loop, since each addition waits for the
one before. What may be joined in any order (minima, maxima, integers) is cut into lanes first.
"""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

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
    Var,
    blocks_of,
    statements,
)
from kera_hw.loops.transforms.plan import Step, apply_step
from kera_hw.loops.transforms.planner import Planned
from kera_hw.loops.transforms.reason import Refused
from kera_hw.schedule.software.tiling import Registers
from kera_hw.schedule.software.vector_loops import flat_terms
from kera_hw.types import FloatType, IntType

_VECTORS = 4
"""Side by side: an addition's time until the next one on the same sum."""
_MOST_PASSES = 2
"""Through all rows, until every sum of a row is done."""
_NEAR = 256
"""Elements from row to row within which a sum may go through all rows at once."""
_MOST_ROUNDS, _MOST_UNROLLED = 32, 128
"""Rounds, and the statements of all of them, of an inner loop that is written out."""


def chains_in_registers(program: LoopProgram, registers: Registers) -> Planned:
    """The program with its chains side by side, and the steps that this took."""
    planner = _Planner(program, registers)
    for loop in [item for item in statements(program.body) if isinstance(item, For)]:
        planner.cut(loop)
    for loop in [item for item in statements(planner.program.body) if isinstance(item, For)]:
        planner.turn(loop)
    for loop in [item for item in statements(planner.program.body) if isinstance(item, For)]:
        planner.jam(loop)
    return Planned(program, planner.program, tuple(planner.steps))


def constants_ahead(program: LoopProgram) -> LoopProgram:
    """Questions about counters within a chain asked before it, from the inside out."""
    planner = _Planner(program)
    loops = [item for item in statements(program.body) if isinstance(item, For) and item.carried]
    for loop in reversed(loops):
        if any(isinstance(item, Op) and item.opcode.startswith("compare.") for item in loop.body.body):
            planner.attempt("it is the same in all rounds", "hoist", loop.var.name)
    return planner.program


@dataclass
class _Planner:
    program: LoopProgram
    registers: Registers = Registers(1, 8)
    steps: list[Step] = field(default_factory=list[Step])
    _known: LoopProgram | None = None
    _buffers: dict[str, Buffer] = field(default_factory=dict[str, Buffer])
    """Of the program that is known."""

    def _take(self, reason: str, transform: str, *arguments: str | int) -> None:
        step = Step(transform, arguments, reason)
        self.program = apply_step(self.program, step, claimed=False)
        self.steps.append(step)

    def _lanes(self, body: Block) -> int:
        """Of the widest type in a loop's body."""
        kinds = [item.result.type for item in statements(body) if isinstance(item, Load)]
        kinds += [kind for item in statements(body) if isinstance(item, Op)
                  for kind in (*(one.type for one in item.operands), *(one.type for one in item.results))]
        widths = [kind.width_bits for kind in kinds if isinstance(kind, IntType | FloatType)]
        return self.registers.bits // max(widths, default=self.registers.bits)

    def cut(self, loop: For) -> None:
        """A long chain over neighbouring elements into lanes, where its order is free."""
        if len(loop.carried) != 1 or loop.count < 2 * _VECTORS:
            return
        lanes = self._lanes(loop.body)
        chains = _VECTORS * lanes
        if lanes < 2 or loop.count < 2 * chains or not self._is_along(loop):
            return
        self.attempt(f"{_VECTORS} vectors of {lanes} chains at once", "regroup", loop.var.name, chains)

    def _is_along(self, loop: For) -> bool:
        loads = [item for item in loop.body.body if isinstance(item, Load)]
        steps = {self._step(item, loop.var) for item in loads}
        return 1 in steps and steps <= {0, 1}

    def _step(self, item: Load | Store, var: Var) -> int:
        """How far an access moves with a loop."""
        if self._known is not self.program:
            self._known = self.program
            self._buffers = {buffer.name: buffer for buffer in self.program.buffers}
            made = (one for one in statements(self.program.body) if isinstance(one, Alloc))
            self._buffers |= {one.buffer.name: one.buffer for one in made}
        _, terms = flat_terms(self._buffers[item.buffer], item.index)
        return terms.get(var, 0)

    def turn(self, rows: For) -> None:
        """Rows added to sums in memory, so that each sum goes through all rows in a register."""
        lanes = rows.body.body[-1] if rows.body.body else None
        if not isinstance(lanes, For) or not lanes.parallel:
            return
        if rows.parallel or rows.carried or rows.count < 2:
            return
        if lanes.carried or not all(isinstance(item, Load | Op | Store) for item in lanes.body.body):
            return
        loads = [item for item in rows.body.body + lanes.body.body if isinstance(item, Load)]
        far = max((abs(self._step(item, rows.var)) for item in loads), default=0)
        if far > _NEAR:
            return  # in rows after each other memory is read as it lies
        passes = lanes.count > _MOST_PASSES * _VECTORS * self._lanes(lanes.body)
        if passes and far * rows.count > _NEAR:  # rows of a filter overlap, and are read once
            return  # most of what a pass reads would be lost from the cache before the next one
        kept = [name for name in _changed(lanes.body) if self._stays(lanes.body, name, rows.var)]
        before = self.program, list(self.steps)
        try:
            self._turn(rows, lanes, kept)
        except Refused:
            self.program, self.steps = before

    def _stays(self, body: Block, buffer: str, var: Var) -> bool:
        places = {item.index for item in body.body
                  if isinstance(item, Load | Store) and item.buffer == buffer}
        return len(places) == 1 and all(var not in dict(part.terms) for place in places for part in place)

    def _turn(self, rows: For, lanes: For, kept: list[str]) -> None:
        if not kept:
            raise Refused("nothing stays in place")
        if _only(rows) is None:
            self._take("then its body is one loop", "sink", rows.var.name)
        self._take("a sum goes through all rows", "interchange", rows.var.name)
        whole = lanes.var.name
        before, after = _neighbours(self.program.body, whole)
        if before is not None:
            self.attempt("a sum begins in the same round", "fuse", before, whole)
            whole = before if before in self._loops() and whole not in self._loops() else whole
        if after is not None:
            self.attempt("a sum is used in the same round", "fuse", whole, after)
        for name in kept:
            self._take(f"what is summed up in `{name}` is in a register", "carry", rows.var.name, name)
            if any(isinstance(item, Alloc) and item.buffer.name == name
                   for item in statements(self.program.body)):
                self.attempt(f"`{name}` is read as it was written", "contract", name)

    def attempt(self, reason: str, transform: str, *arguments: str | int) -> None:
        with suppress(Refused):
            self._take(reason, transform, *arguments)

    def _loops(self) -> list[str]:
        """All loops, each before those within it."""
        return [item.var.name for item in statements(self.program.body) if isinstance(item, For)]

    def jam(self, loop: For) -> None:
        """A parallel loop around one that carries: the inner one written out, or vectors side by side."""
        inner = [item for item in loop.body.body if isinstance(item, For)]
        plain = all(isinstance(item, Load | Op | Store | For) for item in loop.body.body)
        if not loop.parallel or loop.carried or len(inner) != 1 or not plain or len(inner[0].carried) != 1:
            return
        if not all(isinstance(item, Load | Op) for item in inner[0].body.body):
            return
        if not self._moves_by_one(loop):
            return
        before = self.program, list(self.steps)
        try:
            self._jam(loop, inner[0])
        except Refused:
            self.program, self.steps = before

    def _moves_by_one(self, loop: For) -> bool:
        accesses = [item for item in statements(loop.body) if isinstance(item, Load | Store)]
        steps = {self._step(item, loop.var) for item in accesses}
        return 1 in steps and steps <= {0, 1}

    def _jam(self, loop: For, inner: For) -> None:
        if inner.count <= _MOST_ROUNDS and inner.count * len(inner.body.body) <= _MOST_UNROLLED:
            self._take("a short chain is written out", "unroll", inner.var.name)
            self.attempt("it is the same in all rounds", "hoist", loop.var.name)
            return
        lanes = self._lanes(loop.body)
        pieces, rest = divmod(loop.count, lanes)
        if lanes < 2 or rest or pieces < 2:
            return
        before = self._loops()
        self._take(f"vectors of {lanes}", "tile", loop.var.name, lanes)
        outer = next(name for name in self._loops() if name not in before)
        self._take("all vectors have the same lanes", "interchange", outer)
        self._take("an addition waits for the one before", "unroll_and_jam", outer, min(pieces, _VECTORS))


def _only(loop: For) -> For | None:
    """The loop that is another one's whole body."""
    body = loop.body.body
    return body[0] if len(body) == 1 and isinstance(body[0], For) else None


def _changed(body: Block) -> list[str]:
    """Buffers that are loaded and stored."""
    loaded = {item.buffer for item in body.body if isinstance(item, Load)}
    return list(dict.fromkeys(
        item.buffer for item in body.body if isinstance(item, Store) and item.buffer in loaded
    ))


def _named(found: Sequence[Statement]) -> str | None:
    """With a loop that is not parallel the joined one would not be."""
    return next((item.var.name for item in found if isinstance(item, For) and item.parallel), None)


def _neighbours(block: Block, loop: str) -> tuple[str | None, str | None]:
    """The parallel loops right before and right after one, declarations aside."""
    body = [item for item in block.body if not isinstance(item, Alloc)]
    for place, item in enumerate(body):
        if isinstance(item, For) and item.var.name == loop:
            before, after = body[:place][-1:], body[place + 1 : place + 2]
            return _named(before), _named(after)
        for inner in blocks_of(item):
            found = _neighbours(inner, loop)
            if found != (None, None):
                return found
    return None, None
