"""What a program says of loops and buffers beyond their meaning, proved again: the verifier's second half.

Checked:
- rounds that run at once (vector, threads, grid, block) are parallel, and nest as machines allow;
- a vector's rounds do the same statements: no `while` within, no store under a condition, no other vector;
- a FIFO is written once in order and read within its window (``access_order``);
- banks split an axis, and neither lanes of a vector nor rounds of a pipelined loop meet in one of them;
- an initiation interval gives every recurrence the cycles that its latencies take (``recurrences``);
- units are enough for all operations of a round within its interval;
- memories hold what they can hold, and only what a round or an item has of its own has copies.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kera_hw.loops.access_order import OutOfOrder, window_of
from kera_hw.loops.banks import lane_conflict, port_conflict
from kera_hw.loops.program import (
    ANYWHERE,
    IN_ORDER,
    Alloc,
    Block,
    Buffer,
    For,
    LoopProgram,
    Op,
    Store,
    While,
    blocks_of,
    statements,
    with_condition,
)
from kera_hw.loops.recurrences import NoPipeline, check_interval


def claims(program: LoopProgram) -> list[str]:
    """What is claimed and does not hold, each a sentence."""
    if not has_claims(program):
        return []
    check = _Claims(program)
    for buffer in program.buffers:
        check.storage(buffer, _Around())
    check.block(program.body, _Around())
    return check.faults


def has_claims(program: LoopProgram) -> bool:
    """Whether anything is claimed at all."""
    return any(buffer.storage != ANYWHERE for buffer in program.buffers) or any(
        (isinstance(item, For) and item.schedule != IN_ORDER)
        or (isinstance(item, Alloc) and item.buffer.storage != ANYWHERE)
        for item in statements(program.body)
    )


@dataclass(frozen=True, slots=True)
class _Around:
    """The loops around: those that run at once, and whether there is any."""

    on: tuple[str, ...] = ()
    in_loop: bool = False


class _Claims:
    def __init__(self, program: LoopProgram) -> None:
        self.program = program
        self.faults: list[str] = []
        declared = [item.buffer for item in statements(program.body) if isinstance(item, Alloc)]
        self.buffers = {buffer.name: buffer for buffer in (*program.buffers, *declared)}

    def fault(self, message: str) -> None:
        self.faults.append(message)

    def block(self, block: Block, around: _Around) -> None:
        for statement in block.body:
            match statement:
                case Alloc(buffer=buffer):
                    self.storage(buffer, around)
                case For():
                    self.loop(statement, around)
                case _:
                    inside = replace(around, in_loop=around.in_loop or isinstance(statement, While))
                    for inner in blocks_of(statement):
                        self.block(inner, inside)

    # Buffers

    def storage(self, buffer: Buffer, around: _Around) -> None:
        name, storage = buffer.name, buffer.storage
        is_local = buffer.kind == "temp"
        if storage.copies < 1 or (storage.copies > 1 and not is_local):
            self.fault(f"`{name}` has {storage.copies} copies, but no round or item has one of its own.")
        if (storage.memory == "fifo") != (storage.window > 0):
            self.fault(f"`{name}` has a window of {storage.window} elements, which is for a FIFO.")
        self._banks(buffer)
        match storage.memory:
            case "fifo":
                self._fifo(buffer)
            case "lut_ram" | "block_ram" if not buffer.shape:
                self.fault(f"`{name}` is a single element, which is no memory.")
            case "shared" if not is_local or "grid" not in around.on:
                self.fault(f"`{name}` is shared, but is no temporary of a loop on a grid.")
            case "host" | "device" if is_local and around.in_loop:
                self.fault(f"`{name}` of every round of a loop does not lie on the {storage.memory}.")
            case "register" | "lut_ram" | "block_ram" if buffer.kind in ("param", "result"):
                self.fault(f"`{name}` is a {buffer.kind}, which comes from outside; pack it first.")
            case _:
                pass

    def _banks(self, buffer: Buffer) -> None:
        name, axes = buffer.name, [bank.axis for bank in buffer.storage.banks]
        for bank in buffer.storage.banks:
            extent = buffer.shape[bank.axis] if 0 <= bank.axis < len(buffer.shape) else 0
            if not 1 <= bank.count <= extent:
                self.fault(f"`{name}` has no {bank.count} banks on axis {bank.axis}.")
                self.buffers.pop(name, None)  # who meets in them is no question
        if len(set(axes)) < len(axes):
            self.fault(f"`{name}` is banked twice on an axis.")

    def _fifo(self, buffer: Buffer) -> None:
        if buffer.storage.banks:
            self.fault(f"`{buffer.name}` is a FIFO, which has no banks.")
        try:
            window = window_of(self.program, buffer.name)
        except OutOfOrder as error:
            self.fault(str(error))
            return
        if window > buffer.storage.window:
            self.fault(f"`{buffer.name}` is read {window} elements back, of {buffer.storage.window} kept.")

    # Loops

    def loop(self, loop: For, around: _Around) -> None:
        schedule, name = loop.schedule, loop.var.name
        if schedule.on is not None:
            self._at_once(loop, around)
        if schedule.initiation_interval:
            self._pipelined(loop)
        elif schedule.latencies:
            self.fault(f"`{name}` has latencies, but rounds that do not overlap.")
        for problem in _unit_faults(loop):
            self.fault(problem)
        on = (*around.on, schedule.on) if schedule.on is not None else around.on
        self.block(loop.body, _Around(on, True))

    def _at_once(self, loop: For, around: _Around) -> None:
        name, on = loop.var.name, loop.schedule.on
        if not loop.parallel:
            self.fault(f"Rounds of `{name}` run on {on} at once, but are not parallel.")
        if loop.schedule.initiation_interval:
            self.fault(f"Rounds of `{name}` run at once, and start one after another.")
        wanted = {"grid": ((),), "threads": ((),), "block": (("grid",),)}.get(on or "")
        if wanted is not None and around.on not in wanted:
            self.fault(f"The loop `{name}` on {on} stands within {' and '.join(around.on) or 'nothing'}.")
        if on == "vector":
            self._vector(loop, around)

    def _vector(self, loop: For, around: _Around) -> None:
        name = loop.var.name
        if "vector" in around.on:
            self.fault(f"The vector `{name}` stands within another.")
        for statement, condition in with_condition(loop.body):
            if isinstance(statement, While):
                self.fault(f"Lanes of `{name}` go round a `while` for numbers of rounds of their own.")
            if isinstance(statement, Store) and condition:
                self.fault(f"Lanes of `{name}` store to `{statement.buffer}` under a condition.")
        for problem in lane_conflict(loop, self.buffers):
            self.fault(problem)

    def _pipelined(self, loop: For) -> None:
        if loop.schedule.initiation_interval < 1:
            self.fault(f"`{loop.var.name}` starts a round every {loop.schedule.initiation_interval} cycles.")
            return
        try:
            check_interval(loop)
        except NoPipeline as error:
            self.fault(str(error))
            return
        for problem in port_conflict(loop, self.buffers):
            self.fault(problem)


def _unit_faults(loop: For) -> Iterator[str]:
    """Units that are too few for the operations of a round, or have nothing to do."""
    if not loop.schedule.units:
        return
    used = Counter(item.opcode for item in statements(loop.body) if isinstance(item, Op))
    interval = loop.schedule.initiation_interval
    for opcode, units in loop.schedule.units:
        if not used[opcode] or units < 1:
            yield f"`{loop.var.name}` has {units} units for {used[opcode]} operations `{opcode}`."
        elif interval and used[opcode] > units * interval:
            yield (
                f"{units} units do {used[opcode]} operations `{opcode}` of a round of `{loop.var.name}` in "
                f"no fewer than {-(-used[opcode] // units)} cycles, not in {interval}."
            )
