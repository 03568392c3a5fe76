"""Registers, frames and encoding of x86-64, as finishing a function asks for them.

System V Application Binary Interface, AMD64 supplement, section 3.2.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kera_hw.cpu_gpu.machine.allocate import RegisterFile
from kera_hw.cpu_gpu.machine.check import Unnamed
from kera_hw.cpu_gpu.machine.code import Fixed, Inst, Mem, RegClass
from kera_hw.cpu_gpu.machine.finish import Fixup, Frame
from kera_hw.cpu_gpu.x86_64.encoder import encode, form
from kera_hw.cpu_gpu.x86_64.machine import CALLEE_SAVED, RSP, UNNAMED, X86Level, jumps


@dataclass(frozen=True, slots=True)
class X86Backend:
    """Implements ``machine.finish.Backend``."""

    level: X86Level

    @property
    def jumps(self) -> Mapping[str, bool]:
        return jumps()

    @property
    def unnamed(self) -> Mapping[str, Unnamed]:
        return UNNAMED

    def files(self, spilling: bool) -> RegisterFile:
        return self.level.files(spilling)

    def is_nothing(self, inst: Inst) -> bool:
        """A move of 32 bits within a register clears its upper half, so it is none."""
        same = inst.op in self.level.moves and inst.operands[0] == inst.operands[1]
        return same and (inst.op != "mov" or inst.size_bits == 64)

    @property
    def _slot_bytes(self) -> int:
        return self.level.vector_bits // 8

    def _move(self, register: Fixed) -> tuple[str, int]:
        """The instruction between a register and memory, and its size."""
        if register.cls is RegClass.VECTOR:
            return self.level.called("vmovdqu"), self.level.vector_bits
        return "kmovq" if register.cls is RegClass.MASK else "mov", 64

    def fetch(self, register: Fixed, slot: int, slots: int) -> Sequence[Inst]:
        op, size = self._move(register)
        return [_put(op, register, Mem(RSP, offset=slot * self._slot_bytes), size_bits=size)]

    def put(self, register: Fixed, slot: int, slots: int) -> Sequence[Inst]:
        op, size = self._move(register)
        return [_put(op, Mem(RSP, offset=slot * self._slot_bytes), register, size_bits=size)]

    def frame(self, written: frozenset[Fixed], slots: int) -> Frame:
        every = (Fixed(number, RegClass.GENERAL) for number in CALLEE_SAVED)
        saved = [register for register in every if register in written]
        size_bytes = slots * self._slot_bytes
        entry = [_put("push", register) for register in saved]
        leaving = [_put("pop", register) for register in reversed(saved)]
        if size_bytes:
            entry.append(_put("subi", RSP, size_bytes))
            leaving.insert(0, _put("addi", RSP, size_bytes))
        if self.level.vex:
            leaving.append(_put("vzeroupper"))
        return Frame(entry, [*leaving, _put("ret")], size_bytes)

    def encode(self, inst: Inst, far: bool) -> tuple[bytes, Sequence[Fixup]]:
        return encode(inst)

    def resolve(self, content: bytearray, fixup: Fixup, distance: int) -> bool:
        content[fixup.place : fixup.place + 4] = distance.to_bytes(4, "little", signed=True)
        return True


def _put(op: str, *operands: Fixed | Mem | int, size_bits: int = 64) -> Inst:
    return Inst(op, operands, form(op, operands).roles, size_bits)
