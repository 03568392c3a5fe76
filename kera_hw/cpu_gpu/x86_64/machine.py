"""Registers of x86-64, and short ways to append instructions."""
from __future__ import annotations

from dataclasses import replace
from functools import cache

from kera_hw.cpu_gpu.machine.allocate import RegisterFile
from kera_hw.cpu_gpu.machine.code import Code, Fixed, Inst, Mem, Operand, RegClass, VReg
from kera_hw.cpu_gpu.x86_64.encoder import form, table

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = (Fixed(number, RegClass.GENERAL) for number in range(8))
CALLEE_SAVED = (3, 5, 12, 13, 14, 15)
"""Of the System V application binary interface, section 3.2.1; no vector register is."""

# rax, rcx and rdx are what divisions and counts of shifts are fixed to; spilled operands pass through them.
FILES = RegisterFile(
    free={RegClass.GENERAL: (6, 7, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15), RegClass.VECTOR: tuple(range(12))},
    scratch={RegClass.GENERAL: (0, 1, 2), RegClass.VECTOR: (12, 13, 14, 15)},
    moves=frozenset({"mov", "vmovaps"}),
)
ALL_VECTORS = replace(
    FILES, free={**FILES.free, RegClass.VECTOR: tuple(range(16))},
    scratch={**FILES.scratch, RegClass.VECTOR: ()},
)
"""For code that keeps no vector on the stack."""


@cache
def jumps() -> dict[str, bool]:
    """Instructions that go to a label; whether they may also not."""
    return {name: name != "jmp" for name, rows in table().items() if any("rel" in row.kinds for row in rows)}


class Emitter:
    """Appends instructions of the table to ``code``."""

    vector_bits: int

    def __init__(self, code: Code) -> None:
        self.code = code

    def put(self, op: str, *operands: Operand, size_bits: int = 64) -> None:
        """An instruction on operands that there are."""
        roles = form(op, operands).roles
        self.code.items.append(Inst(op, operands, roles, size_bits))

    def general(self) -> VReg:
        return self.code.vreg(RegClass.GENERAL)

    def vector_register(self) -> VReg:
        return self.code.vreg(RegClass.VECTOR)

    def gives(self, op: str, *operands: Operand, size_bits: int = 64) -> VReg:
        """A new general register with an instruction's result, which is its first operand."""
        found = self.general()
        self.put(op, found, *operands, size_bits=size_bits)
        return found

    def vgives(self, op: str, *operands: Operand, size_bits: int = 128) -> VReg:
        """A new vector register with an instruction's result."""
        found = self.vector_register()
        self.put(op, found, *operands, size_bits=size_bits)
        return found

    def changed(self, op: str, register: Operand, *operands: Operand, size_bits: int = 64) -> VReg:
        """A copy of a general register, changed in place."""
        found = self.gives("mov", register, size_bits=size_bits)
        self.put(op, found, *operands, size_bits=size_bits)
        return found

    def constant(self, value: int, size_bytes: int) -> Mem:
        """A constant beside the code."""
        return self.code.constant(value.to_bytes(size_bytes, "little"))

    def repeated(self, bits: int, width_bits: int) -> Mem:
        """A constant in every lane of the longest vector; shorter ones are its beginning."""
        lane = (bits & ((1 << width_bits) - 1)).to_bytes(width_bits // 8, "little")
        return self.code.constant(lane * (self.vector_bits // width_bits))
