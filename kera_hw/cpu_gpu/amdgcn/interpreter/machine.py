"""Runs kernels: waves of 64 lanes in step, those of the lowest statement first, with a mask of lanes each.

What is loaded may not be touched before the wave has waited for it, and a wave comes to a barrier with all of
its accesses done. Registers hold rubbish until they are written, and may not be read before.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np

from kera_hw.cpu_gpu.amdgcn.interpreter.meanings import MEANINGS
from kera_hw.cpu_gpu.amdgcn.interpreter.text import (
    Constant,
    Entry,
    Module,
    Operand,
    Register,
    Relative,
    Statement,
    read_module,
)
from kera_hw.cpu_gpu.gpu.interpreter import host
from kera_hw.cpu_gpu.gpu.interpreter.host import Host
from kera_hw.cpu_gpu.gpu.interpreter.lockstep import MOST_STEPS, Lockstep, Some, each
from kera_hw.cpu_gpu.gpu.interpreter.memory import Space, Who
from kera_hw.cpu_gpu.gpu.interpreter.stop import Stop
from kera_hw.numerics.arrays import Array
from kera_hw.support import Diagnostic, KeraError

WAVE = 64
_RUBBISH = 0xA5A5_5A5A
_ARGUMENTS_AT, _CODE_AT = 1 << 12, 1 << 44
_WORD = np.uint64(0xFFFF_FFFF)


class Machine(Host):
    """A GPU with a module on it. What is in its memory stays from launch to launch."""

    def __init__(self, text: str, most_steps: int = MOST_STEPS) -> None:
        self.module: Module = read_module(text)
        super().__init__(self.module.variables.values(), most_steps)

    def launch(self, name: str, grid: tuple[int, int], threads: int, args: Sequence[int]) -> None:
        """One launch, which ends before this returns. Raises KeraError (K0708)."""
        entry = self.module.entries[name]
        assert threads <= entry.threads and 8 * len(args) == entry.settings["kernarg_size"]
        blocks = grid[0] * grid[1]
        self.watch(blocks * threads)
        waves = -(-threads // WAVE)
        size = 4 * entry.settings["next_free_vgpr"] * WAVE * waves
        group = max(1, min(host.MOST_LANES // (waves * WAVE), host.MOST_REGISTER_BYTES // size))
        self.in_groups(blocks, group, lambda some: _Run(self, entry, grid, threads, some, args))


class _Run(Lockstep):
    """Some blocks of a launch."""

    who = "waves"

    def __init__(
        self, machine: Machine, entry: Entry, grid: tuple[int, int], threads: int, blocks: range,
        args: Sequence[int],
    ) -> None:
        of_a_block = -(-threads // WAVE)
        waves = len(blocks) * of_a_block
        super().__init__(waves, of_a_block, len(entry.statements))
        self._entry, self._code, self._args = entry, entry.statements, list(args)
        block = np.repeat(np.arange(blocks.start, blocks.stop, dtype=np.int64), of_a_block)
        first = np.tile(np.arange(of_a_block, dtype=np.int64) * WAVE, len(blocks))
        thread = (first[:, None] + np.arange(WAVE)).reshape(-1)
        self._lanes = waves * WAVE
        self._wave_of = np.repeat(np.arange(waves), WAVE)
        self._block_of = np.repeat(block, WAVE)
        self._thread = (self._block_of * of_a_block * WAVE + thread).astype(np.int32)
        self._vectors: dict[str, Array] = {"v0": thread.astype(np.uint32)}
        given = np.full(waves, _ARGUMENTS_AT), np.zeros(waves), block % grid[0], block // grid[0]
        self._scalars = {f"s{k}": values.astype(np.uint32) for k, values in enumerate(given)}
        self._exec, self._vcc = thread < threads, np.zeros(self._lanes, np.bool_)
        self._vcc_set, self._scc = False, np.zeros(waves, np.bool_)
        shared = Space("shared", len(blocks))
        if entry.settings["group_segment_fixed_size"]:
            shared.place([(entry.settings["group_segment_fixed_size"], 64)])
        if threads > 1:
            shared.watched()
        self._spaces = {"global": machine.memory, "ds": shared}
        self._copies = {
            "global": np.zeros(self._lanes, np.int64), "ds": self._block_of - blocks.start,
        }
        self._symbols: Mapping[str, int] = machine.symbols
        self._issued = {name: np.zeros(waves, np.int64) for name in ("vmcnt", "lgkmcnt")}
        self._done = {name: np.zeros(waves, np.int64) for name in ("vmcnt", "lgkmcnt")}
        self._coming: dict[str, tuple[str, Array]] = {}
        self._active: tuple[Some, Array] | None = None

    def fault(self, at: int, message: str) -> NoReturn:
        statement = self._code[at]
        where = f"In the kernel `{self._entry.name}`, line {statement.line} (`{statement.row.name}`)"
        raise KeraError([Diagnostic("K0708", f"{where}: {message}.")])

    # The course of waves

    def step(self, at: int, some: Some) -> int | None:
        statement = self._code[at]
        name = statement.row.name
        self._check_waits(statement, some)
        if name.startswith("v_"):
            self._vector(statement, self._lanes_of(some))
        elif statement.row.is_memory:
            self._memory(statement, some)
        elif name == "s_waitcnt":
            for counter, most in statement.counts.items():
                done, issued = self._done[counter][each(some)], self._issued[counter][each(some)]
                self._done[counter][each(some)] = np.maximum(done, issued - most)
        elif statement.row.kinds == ("label",):
            return self._branch(statement, at, some)
        elif name == "s_endpgm":
            self.end(some, some, at)
            return None
        elif name == "s_barrier":
            if any((self._done[one] < self._issued[one])[each(some)].any() for one in self._done):
                raise Stop("a wave comes to a barrier before its accesses to memory are done")
            self.wait(some, some, at)
            return None
        elif name != "s_nop":
            self._scalar(statement, at, some)
        return at + 1

    def _branch(self, statement: Statement, at: int, some: Some) -> int | None:
        target = self._entry.labels[str(statement.operands[0])]
        waves = np.arange(self.count) if some is None else some
        match statement.row.name:
            case "s_branch":
                return target
            case "s_cbranch_scc0" | "s_cbranch_scc1":
                taken = self._scc[waves] == (statement.row.name == "s_cbranch_scc1")
            case "s_cbranch_execz":
                taken = ~self._exec.reshape(-1, WAVE)[waves].any(axis=1)
            case _:
                if not self._vcc_set:
                    raise Stop("vcc is read before anything is in it")
                taken = ~self._vcc.reshape(-1, WAVE)[waves].any(axis=1)
        if taken.all() or not taken.any():
            return target if taken.all() else at + 1
        self.send(some, waves[taken], at, target)
        return None

    def _lanes_of(self, some: Some) -> Array:
        """The lanes that run, by number."""
        if self._active is None or self._active[0] is not some:
            running = self._exec
            if some is not None:
                chosen = np.zeros(self.count, np.bool_)
                chosen[some] = True
                running = running & chosen[self._wave_of]
            self._active = (some, np.flatnonzero(running))
        return self._active[1]

    def _check_waits(self, statement: Statement, some: Some) -> None:
        if not self._coming:
            return
        for operand in statement.operands:
            for name in _names(operand):
                coming = self._coming.get(name)
                if coming is not None and (coming[1] > self._done[coming[0]])[each(some)].any():
                    raise Stop(f"{name} is touched before the wave has waited for what it loads")

    def _issue(self, counter: str, some: Some, loads: Sequence[str]) -> None:
        self._issued[counter][each(some)] += 1
        for name in loads:
            old = self._coming.get(name)
            numbers = np.zeros(self.count, np.int64) if old is None or old[0] != counter else old[1].copy()
            numbers[each(some)] = self._issued[counter][each(some)]
            self._coming[name] = (counter, numbers)

    # Values of lanes

    def _words(self, register: Register, lanes: Array) -> list[Array]:
        found: list[Array] = []
        for name in _names(register):
            if register.file == "s":
                found.append(self._scalar_word(name)[self._wave_of[lanes]])
            else:
                values = self._vectors.get(name)
                if values is None:
                    raise Stop(f"{name} is read before anything is in it")
                found.append(values[lanes])
        return found

    def _value(self, operand: Operand, kind: str, lanes: Array) -> Array:
        """As words, or as 64 bits."""
        wide = kind.endswith("2")
        match operand:
            case Register():
                words = self._words(operand, lanes)
                if not wide:
                    return words[0]
                whole = words[0].astype(np.uint64) | words[1].astype(np.uint64) << np.uint64(32)
                return whole ^ np.uint64(operand.negative << 63)
            case Constant(bits=value):
                return np.full(len(lanes), value & (2**64 - 1), np.uint64) if wide else np.full(
                    len(lanes), value & 0xFFFF_FFFF, np.uint32
                )
            case str():
                return np.full(len(lanes), float(operand), np.float64).view(np.uint64)
            case _:
                raise AssertionError(operand)

    def _put(self, register: Operand, values: Array, lanes: Array) -> None:
        assert isinstance(register, Register)
        words = [values]
        if register.size == 2:
            words = [(values & _WORD).astype(np.uint32), (values >> np.uint64(32)).astype(np.uint32)]
        for name, word in zip(_names(register), words, strict=True):
            held = self._vectors.get(name)
            if held is None:
                held = self._vectors[name] = np.full(self._lanes, _RUBBISH, np.uint32)
            held[lanes] = word

    def _vector(self, statement: Statement, lanes: Array) -> None:
        row, operands = statement.row, statement.operands
        pairs = list(zip(row.kinds, operands))[row.written :]
        args = [self._value(one, kind, lanes) for kind, one in pairs if kind != "vcc"]
        carry = self._read_vcc(lanes) if row.kinds[-1] == "vcc" and row.written < len(row.kinds) else None
        if row.kinds[0] == "vcc":
            self._set_vcc(MEANINGS[row.name](*args), lanes)
        elif row.name == "v_cndmask_b32":
            assert carry is not None
            self._put(operands[0], np.where(carry, args[1], args[0]), lanes)
        elif "co_u32" in row.name:
            values, out = _carried(row.name, args, carry)
            self._put(operands[0], values, lanes)
            self._set_vcc(out, lanes)
        else:
            self._put(operands[0], MEANINGS[row.name](*args), lanes)
            if row.kinds[1] == "vcc":
                self._vcc_set = False  # a carry of 64 bits, which nothing here reads

    def _read_vcc(self, lanes: Array) -> Array:
        if not self._vcc_set:
            raise Stop("vcc is read before anything is in it")
        return self._vcc[lanes]

    def _set_vcc(self, values: Array, lanes: Array) -> None:
        """Lanes of a wave that don't run have 0."""
        if len(lanes):
            waves = np.zeros(self.count, np.bool_)
            waves[self._wave_of[lanes]] = True
            self._vcc[waves[self._wave_of]] = False
        self._vcc[lanes] = values
        self._vcc_set = True

    # Values of waves

    def _scalar_word(self, name: str) -> Array:
        values = self._scalars.get(name)
        if values is None:
            raise Stop(f"{name} is read before anything is in it")
        return values

    def _scalar_value(self, operand: Operand, kind: str) -> Array:
        """In each wave: a word, or 64 bits."""
        wide = kind.endswith("2")
        dtype = np.dtype(np.uint64 if wide else np.uint32)
        match operand:
            case Register():
                words = [self._scalar_word(name) for name in _names(operand)]
                if not wide:
                    return words[0]
                return words[0].astype(np.uint64) | words[1].astype(np.uint64) << np.uint64(32)
            case Constant(bits=value):
                return np.full(self.count, value & ((1 << 8 * dtype.itemsize) - 1), dtype)
            case Relative(symbol=symbol, at=at, upper=upper):
                distance = self._symbols[symbol] - _place(at) & (1 << 64) - 1
                return np.full(self.count, distance >> 32 if upper else distance & 0xFFFF_FFFF, dtype)
            case _:
                lanes = self._exec if operand == "exec" else self._vcc
                if operand == "vcc" and not self._vcc_set:
                    raise Stop("vcc is read before anything is in it")
                return np.packbits(lanes.reshape(-1, WAVE), axis=1, bitorder="little").view("<u8").reshape(-1)

    def _scalar_put(self, operand: Operand, values: Array, some: Some) -> None:
        if operand == "exec":
            lanes = np.unpackbits(values.astype("<u8").view(np.uint8), bitorder="little").astype(np.bool_)
            self._exec.reshape(-1, WAVE)[each(some)] = lanes.reshape(-1, WAVE)[each(some)]
            self._active = None
            return
        assert isinstance(operand, Register)
        words = [values] if operand.size == 1 else [values & _WORD, values >> np.uint64(32)]
        for name, word in zip(_names(operand), words, strict=True):
            held = self._scalars.setdefault(name, np.full(self.count, _RUBBISH, np.uint32))
            held[each(some)] = word.astype(np.uint32)[each(some)]

    def _scalar(self, statement: Statement, at: int, some: Some) -> None:
        row, operands = statement.row, statement.operands
        sources = list(zip(row.kinds, operands))[row.written :]
        args = [self._scalar_value(one, kind) for kind, one in sources]
        match row.name:
            case "s_mov_b32" | "s_mov_b64":
                result = args[0]
            case "s_add_u32" | "s_addc_u32":
                whole = args[0].astype(np.uint64) + args[1]
                whole += self._scc if row.name == "s_addc_u32" else np.uint64(0)
                self._scc[each(some)] = (whole > _WORD)[each(some)]
                result = whole & _WORD
            case "s_cmp_lg_u32" | "s_cmp_eq_u64":
                equal = args[0] == args[1]
                self._scc[each(some)] = (equal == (row.name == "s_cmp_eq_u64"))[each(some)]
                return
            case "s_and_b64" | "s_andn2_b64":
                result = args[0] & (args[1] if row.name == "s_and_b64" else ~args[1])
                self._scc[each(some)] = (result != 0)[each(some)]
            case "s_and_saveexec_b64":
                before = self._scalar_value("exec", "s2")
                self._scalar_put(operands[0], before, some)
                self._scc[each(some)] = ((before & args[0]) != 0)[each(some)]
                self._scalar_put("exec", before & args[0], some)
                return
            case "s_getpc_b64":
                result = np.full(self.count, _place(at + 1), np.uint64)
            case _:
                result = self._argument(args)
                self._scalar_put(operands[0], result, some)
                self._issue("lgkmcnt", some, _names(operands[0]))
                return
        self._scalar_put(operands[0], result, some)

    def _argument(self, args: list[Array]) -> Array:
        """What the kernel was launched with, at an address."""
        places = {int(place) for place in args[0] + args[1] - np.uint64(_ARGUMENTS_AT)}
        (place,) = places
        if place % 8 or not 0 <= place // 8 < len(self._args):
            raise Stop(f"there is no argument at offset {place}")
        return np.full(self.count, self._args[place // 8], np.uint64)

    # Memory

    def _memory(self, statement: Statement, some: Some) -> None:
        row, operands = statement.row, statement.operands
        kind = row.name.partition("_")[0]
        lanes = self._lanes_of(some)
        load = bool(row.written)
        pointer = operands[1] if load else operands[0]
        address = self._value(pointer, row.kinds[1] if load else row.kinds[0], lanes).astype(np.uint64)
        if kind == "ds" and (address + np.uint64(statement.offset) > _WORD).any():
            raise Stop("an address and its offset are more than 32 bits")
        address = address + np.uint64(statement.offset & (1 << 64) - 1)
        copies = self._copies[kind][lanes]
        epoch = self.epoch[self._wave_of[lanes]]
        who = Who(self._thread[lanes], self._block_of[lanes].astype(np.int32), epoch)
        space, dtype = self._spaces[kind], _dtype(row.name)
        counter = "vmcnt" if kind == "global" else "lgkmcnt"
        if load:
            if len(lanes):
                found = space.load(address, copies, dtype, who)
                wide = found if dtype.itemsize == 8 else found.astype(
                    np.int32 if dtype.kind == "i" else np.uint32
                ).view(np.uint32)
                self._put(operands[0], wide, lanes)
            self._issue(counter, some, _names(operands[0]))
        else:
            if len(lanes):
                values = self._value(operands[1], row.kinds[1], lanes).astype(dtype)
                space.store(address, copies, values, who)
            self._issue(counter, some, ())


def _place(at: int) -> int:
    """The address of a statement."""
    return _CODE_AT + 8 * at


def _names(operand: Operand) -> list[str]:
    """Registers, one by one."""
    if not isinstance(operand, Register):
        return []
    return [f"{operand.file}{operand.first + k}" for k in range(operand.size)]


def _carried(name: str, args: list[Array], carry: Array | None) -> tuple[Array, Array]:
    """A sum or a difference of words with what is carried in, and what is carried out."""
    a, b = (arg.astype(np.int64) for arg in args)
    if name == "v_subbrev_co_u32":
        a, b = b, a
    more = np.int64(0) if carry is None else carry.astype(np.int64)
    whole = a + b + more if name.startswith("v_add") else a - b - more
    return (whole & 0xFFFF_FFFF).astype(np.uint32), (whole < 0) | (whole > 0xFFFF_FFFF)


_DTYPES = {
    "ubyte": "u1", "sbyte": "i1", "ushort": "u2", "sshort": "i2", "dword": "u4", "dwordx2": "u8",
    "byte": "u1", "short": "u2", "u8": "u1", "i8": "i1", "u16": "u2", "i16": "i2", "b8": "u1", "b16": "u2",
    "b32": "u4", "b64": "u8",
}


def _dtype(name: str) -> np.dtype[np.generic]:
    """Of what a memory instruction moves."""
    return np.dtype(_DTYPES[name.rpartition("_")[2]])
