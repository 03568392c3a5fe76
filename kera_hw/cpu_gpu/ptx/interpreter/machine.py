"""Runs kernels: lanes as arrays, those of the lowest statement first, barriers that all have to reach.

Blocks run in groups, one lane a thread. Lanes that have gone different ways are at different statements;
those at the lowest go on until they meet others. At a barrier a lane waits for all of its block.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NoReturn

import numpy as np

from kera_hw.cpu_gpu.ptx.interpreter.meanings import MEANINGS, Stop, dtype_of
from kera_hw.cpu_gpu.ptx.interpreter.memory import Space, Who
from kera_hw.cpu_gpu.ptx.interpreter.text import (
    SPECIAL,
    Address,
    Entry,
    Module,
    Operand,
    Statement,
    read_module,
)
from kera_hw.cpu_gpu.ptx.table import width_bits
from kera_hw.numerics.arrays import Array
from kera_hw.numerics.host import check_host, ieee
from kera_hw.support import Diagnostic, KeraError

MOST_STEPS = 50_000_000
"""Statements that a launch may run, each counted once for all lanes that are at it."""
MOST_REGISTER_BYTES = 1 << 27
MOST_LANES = 1 << 16
GLOBAL_BASE = 1 << 20


class Course(IntEnum):
    """What a lane is about."""

    RUNS = 0
    WAITS = 1
    IS_DONE = 2


class Machine:
    """A GPU with a module on it. What is in its memory stays from launch to launch."""

    def __init__(self, text: str, most_steps: int = MOST_STEPS) -> None:
        check_host()
        self.module: Module = read_module(text)
        self._most_steps = most_steps
        self._memory = Space("global", base=GLOBAL_BASE)
        variables = list(self.module.variables.values())
        addresses = self._memory.place([(one.size_bytes, one.align) for one in variables])
        self.symbols = {one.name: address for one, address in zip(variables, addresses)}
        for one, address in zip(variables, addresses):
            data = np.frombuffer(one.data.ljust(one.size_bytes, b"\0"), np.uint8)
            self._memory.write(address, data)

    def allocate(self, size_bytes: int) -> int:
        """The address of so many bytes, which hold nothing yet."""
        return self._memory.place([(max(size_bytes, 1), 256)])[0]

    def free(self, address: int) -> None:
        self._memory.free(address)

    def upload(self, address: int, data: Array) -> None:
        self._memory.write(address, np.ascontiguousarray(data).reshape(-1).view(np.uint8))

    def download(self, address: int, size_bytes: int) -> Array:
        try:
            return self._memory.read(address, size_bytes)
        except Stop as stop:
            raise KeraError([Diagnostic("K0708", f"The kernels are at fault: {stop}.")]) from None

    def launch(self, name: str, grid: tuple[int, int], threads: int, args: Sequence[int]) -> None:
        """One launch, which ends before this returns. Raises KeraError (K0708)."""
        entry = self.module.entries[name]
        assert entry.threads in (None, threads) and len(args) == len(entry.params)
        blocks = grid[0] * grid[1]
        if blocks * threads > 1:
            self._memory.watched()
        else:
            self._memory.watch = None
        size = sum(width_bits(kind) // 8 or 1 for kind in entry.registers.values())
        lanes = max(threads, min(MOST_LANES, MOST_REGISTER_BYTES // max(size, 1)))
        group = max(1, lanes // threads)
        steps = self._most_steps
        for first in range(0, blocks, group):
            run = _Run(self, entry, grid, threads, range(first, min(first + group, blocks)), args)
            steps = run.go(steps)

    @property
    def memory(self) -> Space:
        return self._memory


Reader = Callable[[Array | None], Array]
"""An operand's values in the lanes given, or in all."""


class _Run:
    """Some blocks of a launch."""

    def __init__(
        self, machine: Machine, entry: Entry, grid: tuple[int, int], threads: int, blocks: range,
        args: Sequence[int],
    ) -> None:
        self._entry, self._machine = entry, machine
        count = len(blocks) * threads
        block = np.repeat(np.arange(blocks.start, blocks.stop, dtype=np.int64), threads)
        thread = np.tile(np.arange(threads, dtype=np.int64), len(blocks))
        self._count, self._threads = count, threads
        self._thread, self._block = (block * threads + thread).astype(np.int32), block.astype(np.int32)
        self._epoch = np.zeros(count, np.int32)
        self._special = dict(zip(SPECIAL, (
            thread, np.full(count, threads), block % grid[0], np.full(count, grid[0]), block // grid[0],
            np.full(count, grid[1]),
        )))
        self._registers: dict[str, Array] = {}
        self._params = dict(zip(entry.params, args))
        self._spaces, self._symbols = self._own_memory(len(blocks))
        self._copies: Mapping[str, Array] = {
            "global": np.zeros(count, np.int64), "shared": block - blocks.start,
            "local": np.arange(count, dtype=np.int64),
        }
        self._at = np.zeros(count, np.int64)
        self._course = np.full(count, Course.RUNS, np.int8)
        self._code = entry.statements

    def _own_memory(self, blocks: int) -> tuple[dict[str, Space], dict[str, int]]:
        """Shared and local memory, as the kernel declares it."""
        spaces, symbols = {"global": self._machine.memory}, dict(self._machine.symbols)
        for name, copies in (("shared", blocks), ("local", self._count)):
            variables = [one for one in self._entry.variables.values() if one.space == name]
            spaces[name] = Space(name, copies)
            places = spaces[name].place([(one.size_bytes, one.align) for one in variables])
            symbols |= {one.name: place for one, place in zip(variables, places)}
        if self._threads > 1:
            spaces["shared"].watched()
        return spaces, symbols

    # The course of lanes

    @ieee
    def go(self, steps: int) -> int:
        """To the end of all lanes; how many steps are left."""
        while True:
            running = self._course == Course.RUNS
            if not running.any():
                if not (self._course == Course.WAITS).any():
                    return steps
                self._release()
                continue
            low = int(self._at[running].min())
            together = running & (self._at == low)
            others = self._at[running & ~together]
            limit = int(others.min()) if len(others) else len(self._code)
            lanes = None if together.all() else np.flatnonzero(together)
            steps = self._straight(low, limit, lanes, steps)

    def _straight(self, at: int, limit: int, lanes: Array | None, steps: int) -> int:
        """From statement ``at`` on, until lanes part, wait or end, or come to where others are."""
        everyone = slice(None) if lanes is None else lanes
        while at < limit:
            statement = self._code[at]
            steps -= 1
            if steps < 0:
                self._fault(statement, "the launch has not ended within the steps that it may take")
            try:
                next_ = self._step(statement, at, lanes)
            except Stop as stop:
                self._fault(statement, str(stop))
            if next_ is None:
                return steps
            at = next_
        self._at[everyone] = at
        return steps

    def _fault(self, statement: Statement, message: str) -> NoReturn:
        where = f"In the kernel `{self._entry.name}`, line {statement.line} (`{statement.instruction.name}`)"
        raise KeraError([Diagnostic("K0708", f"{where}: {message}.")])

    def _step(self, statement: Statement, at: int, lanes: Array | None) -> int | None:
        """One statement; the next one, or None where lanes were left where they are to be."""
        chosen, none = self._guarded(statement, lanes)
        name = statement.instruction.name
        if name in ("bra", "bra.uni", "ret", "bar.sync"):
            return self._turn(statement, at, lanes, chosen, none)
        if not none:
            self._carry_out(statement, chosen)
        return at + 1

    def _guarded(self, statement: Statement, lanes: Array | None) -> tuple[Array | None, bool]:
        """The lanes whose guard holds, and whether there are none."""
        if statement.guard is None:
            return lanes, False
        name, wanted = statement.guard
        holds = self._register(name, lanes) == wanted
        if holds.all():
            return lanes, False
        own = np.arange(self._count) if lanes is None else lanes
        return own[holds], not holds.any()

    def _turn(
        self, statement: Statement, at: int, lanes: Array | None, chosen: Array | None, none: bool
    ) -> int | None:
        if none:
            return at + 1
        everyone = slice(None) if lanes is None else lanes
        taken = slice(None) if chosen is None else chosen
        name = statement.instruction.name
        split = chosen is not lanes
        if name.startswith("bra"):
            target = self._entry.labels[str(statement.operands[0])]
            if not split:
                return target
            if name == "bra.uni":
                raise Stop("threads part at a branch that is said to be taken by all")
            self._at[everyone], self._at[taken] = at + 1, target
            return None
        self._at[everyone] = at + 1
        if name == "ret":
            self._course[taken] = Course.IS_DONE
        else:
            if not 0 <= int(self._value(statement.operands[0], "u32", None)[0]) <= 15:
                raise Stop("there is no such barrier")
            self._course[taken], self._at[taken] = Course.WAITS, at
        return None

    def _release(self) -> None:
        """Every block goes on behind its barrier, if all of its threads are there."""
        course = self._course.reshape(-1, self._threads)
        at = self._at.reshape(-1, self._threads)
        waits = course == Course.WAITS
        there = waits.any(axis=1)
        first = at[np.arange(len(at)), waits.argmax(axis=1)]
        bad = there & ~(waits & (at == first[:, None])).all(axis=1)
        if bad.any():
            which = int(np.flatnonzero(bad)[0])
            come = int((waits[which] & (at[which] == first[which])).sum())
            statement = self._code[int(first[which])]
            self._fault(statement, f"{come} of {self._threads} threads of a block come to this barrier")
        moving = np.repeat(there, self._threads)
        self._course[moving] = Course.RUNS
        self._at[moving] += 1
        self._epoch[moving] += 1

    # Values

    def _register(self, name: str, lanes: Array | None) -> Array:
        values = self._registers.get(name)
        if values is None:
            raise Stop(f"{name} is read before anything is in it")
        return values if lanes is None else values[lanes]

    def _value(self, operand: Operand, kind: str, lanes: Array | None) -> Array:
        """In each lane, or one for all where that is the same."""
        dtype = dtype_of(kind)
        if isinstance(operand, str):
            if operand in self._symbols:
                values = np.array([self._symbols[operand]], np.uint64)
            elif operand in self._special:
                values = self._special[operand].astype(np.uint32)
                values = values if lanes is None else values[lanes]
            else:
                values = self._register(operand, lanes)
                if values.dtype.itemsize > dtype.itemsize:
                    values = values.astype(np.dtype(f"u{dtype.itemsize}"))
            return values.view(dtype)
        if isinstance(operand, int):
            return np.array([operand], f"u{dtype.itemsize}").view(dtype)
        assert not isinstance(operand, Address)
        return operand.view(dtype)

    def _set(self, name: str, values: Array, lanes: Array | None) -> None:
        """Arrays are never changed, since registers may share one."""
        declared = self._entry.registers[name]
        dtype = dtype_of(declared if declared[0] not in "us" else f"b{declared[1:]}")
        if values.dtype.itemsize < dtype.itemsize:  # extended by its own sign
            values = values.astype(np.dtype(f"{values.dtype.kind}{dtype.itemsize}"))
        values = values.view(dtype)
        if lanes is None and len(values) != self._count:
            values = np.broadcast_to(values, (self._count,))
        if lanes is not None:
            old = self._registers.get(name)
            whole = np.zeros(self._count, dtype) if old is None else old.copy()
            whole[lanes] = values
            values = whole
        self._registers[name] = values

    def _carry_out(self, statement: Statement, lanes: Array | None) -> None:
        row = statement.instruction
        operands = statement.operands
        if row.row.startswith("st."):
            address, value = operands
            values, space = self._value(value, row.operands[1].kind, lanes), row.chosen["space"]
            places = self._addresses(address, lanes), self._copy(space, lanes)
            self._spaces[space].store(*places, values, self._who(lanes))
            return
        result = str(operands[0])
        if row.row == "ld.param.type":
            assert isinstance(operands[1], Address)
            value = np.array([self._params[operands[1].base]], np.uint64)
            self._set(result, value.astype(dtype_of(row.kind)), lanes)
        elif row.row.startswith("ld."):
            space = row.chosen["space"]
            places = self._addresses(operands[1], lanes), self._copy(space, lanes)
            found = self._spaces[space].load(*places, dtype_of(row.kind), self._who(lanes))
            self._set(result, found, lanes)
        else:
            args = [
                self._value(operand, one.kind, lanes) for one, operand in zip(row.operands[1:], operands[1:])
            ]
            self._set(result, MEANINGS[row.row](row, args), lanes)

    def _addresses(self, operand: object, lanes: Array | None) -> Array:
        assert isinstance(operand, Address)
        found = self._value(operand.base, "u64", lanes) + np.uint64(operand.offset & ((1 << 64) - 1))
        count = self._count if lanes is None else len(lanes)
        return found if len(found) == count else np.broadcast_to(found, (count,))

    def _copy(self, space: str, lanes: Array | None) -> Array:
        own = self._copies[space]
        return own if lanes is None else own[lanes]

    def _who(self, lanes: Array | None) -> Who:
        if lanes is None:
            return Who(self._thread, self._block, self._epoch)
        return Who(self._thread[lanes], self._block[lanes], self._epoch[lanes])
