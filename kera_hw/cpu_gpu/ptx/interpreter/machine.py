"""Runs kernels: lanes as arrays, those of the lowest statement first, barriers that all have to reach.

Blocks run in groups, one lane a thread.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np

from kera_hw.cpu_gpu.gpu.interpreter import host
from kera_hw.cpu_gpu.gpu.interpreter.host import Host
from kera_hw.cpu_gpu.gpu.interpreter.lockstep import MOST_STEPS, Lockstep, Some
from kera_hw.cpu_gpu.gpu.interpreter.memory import Space, Who
from kera_hw.cpu_gpu.gpu.interpreter.stop import Stop
from kera_hw.cpu_gpu.ptx.interpreter.meanings import MEANINGS, dtype_of
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
from kera_hw.support import Diagnostic, KeraError

WARP = 32
"""Threads that some instructions take together."""


class Machine(Host):
    """A GPU with a module on it. What is in its memory stays from launch to launch."""

    def __init__(self, text: str, most_steps: int = MOST_STEPS) -> None:
        self.module: Module = read_module(text)
        super().__init__(self.module.variables.values(), most_steps)

    def launch(self, name: str, grid: tuple[int, int], threads: int, args: Sequence[int]) -> None:
        """One launch, which ends before this returns. Raises KeraError (K0708)."""
        entry = self.module.entries[name]
        assert entry.threads in (None, threads) and len(args) == len(entry.params)
        blocks = grid[0] * grid[1]
        self.watch(blocks * threads)
        size = sum(width_bits(kind) // 8 or 1 for kind in entry.registers.values())
        lanes = max(threads, min(host.MOST_LANES, host.MOST_REGISTER_BYTES // max(size, 1)))
        group = max(1, lanes // threads)
        self.in_groups(blocks, group, lambda some: _Run(self, entry, grid, threads, some, args))


class _Run(Lockstep):
    """Some blocks of a launch."""

    def __init__(
        self, machine: Machine, entry: Entry, grid: tuple[int, int], threads: int, blocks: range,
        args: Sequence[int],
    ) -> None:
        self._entry, self._machine = entry, machine
        count = len(blocks) * threads
        super().__init__(count, threads, len(entry.statements))
        block = np.repeat(np.arange(blocks.start, blocks.stop, dtype=np.int64), threads)
        thread = np.tile(np.arange(threads, dtype=np.int64), len(blocks))
        self._count, self._threads = count, threads
        self._thread, self._block = (block * threads + thread).astype(np.int32), block.astype(np.int32)
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

    def fault(self, at: int, message: str) -> NoReturn:
        statement = self._code[at]
        where = f"In the kernel `{self._entry.name}`, line {statement.line} (`{statement.instruction.name}`)"
        raise KeraError([Diagnostic("K0708", f"{where}: {message}.")])

    def step(self, at: int, some: Some) -> int | None:
        statement = self._code[at]
        chosen, none = self._guarded(statement, some)
        name = statement.instruction.name
        if name in ("bra", "bra.uni", "ret", "bar.sync"):
            return self._turn(statement, at, some, chosen, none)
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
        name = statement.instruction.name
        if name.startswith("bra"):
            target = self._entry.labels[str(statement.operands[0])]
            if chosen is lanes:
                return target
            if name == "bra.uni":
                raise Stop("threads part at a branch that is said to be taken by all")
            self.send(lanes, chosen, at, target)
        elif name == "ret":
            self.end(lanes, chosen, at)
        else:
            if not 0 <= int(self._value(statement.operands[0], "u32", None)[0]) <= 15:
                raise Stop("there is no such barrier")
            self.wait(lanes, chosen, at)
        return None

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
                values = np.array([self._symbols[operand]], f"u{dtype.itemsize}")
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
            dtype = dtype_of(row.kind)
            self._set(result, value.astype(f"u{dtype.itemsize}").view(dtype), lanes)
        elif row.row.startswith("ld."):
            space = row.chosen["space"]
            places = self._addresses(operands[1], lanes), self._copy(space, lanes)
            found = self._spaces[space].load(*places, dtype_of(row.kind), self._who(lanes))
            self._set(result, found, lanes)
        elif row.row.startswith("mma."):
            self._tile(statement, lanes)
        else:
            args = [
                self._value(operand, one.kind, lanes) for one, operand in zip(row.operands[1:], operands[1:])
            ]
            self._set(result, MEANINGS[row.row](row, args), lanes)

    def _tile(self, statement: Statement, lanes: Array | None) -> None:
        """Of whole warps: row g of the first factor and column g of the second lie in threads 4 g and on."""
        threads = self._thread if lanes is None else self._thread[lanes]
        warps = threads // WARP
        whole = len(warps) % WARP == 0 and (warps.reshape(-1, WARP) == warps[::WARP, None]).all()
        if self._threads % WARP or not whole:
            raise Stop("not all threads of a warp are at an instruction that takes them together")
        first, second, *totals = (self._value(one, "b32", lanes) for one in statement.operands[2:])
        kinds = (statement.instruction.chosen[name] for name in ("atype", "btype"))
        a, b = (
            np.ascontiguousarray(word).view(dtype_of(kind)).astype(np.int64).reshape(-1, 8, 16)
            for word, kind in zip((first, second), kinds)
        )
        found = a @ b.transpose(0, 2, 1) + np.stack(totals, axis=1).astype(np.int64).reshape(-1, 8, 8)
        pairs = (found & 0xFFFF_FFFF).astype(np.uint32).reshape(-1, 2)
        for k, result in enumerate(statement.operands[:2]):
            self._set(str(result), np.ascontiguousarray(pairs[:, k]), lanes)

    def _addresses(self, operand: object, lanes: Array | None) -> Array:
        assert isinstance(operand, Address)
        declared = self._entry.registers.get(operand.base, "b64")
        base = self._value(operand.base, f"u{width_bits(declared)}", lanes).astype(np.uint64)
        found = base + np.uint64(operand.offset & ((1 << 64) - 1))
        count = self._count if lanes is None else len(lanes)
        return found if len(found) == count else np.broadcast_to(found, (count,))

    def _copy(self, space: str, lanes: Array | None) -> Array:
        own = self._copies[space]
        return own if lanes is None else own[lanes]

    def _who(self, lanes: Array | None) -> Who:
        if lanes is None:
            return Who(self._thread, self._block, self.epoch)
        return Who(self._thread[lanes], self._block[lanes], self.epoch[lanes])
