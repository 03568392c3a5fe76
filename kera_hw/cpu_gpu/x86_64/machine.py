"""Registers of x86-64, and short ways to append instructions."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from kera_hw.cpu_gpu.machine.allocate import RegisterFile
from kera_hw.cpu_gpu.machine.check import Unnamed
from kera_hw.cpu_gpu.machine.code import Code, Fixed, Inst, Mem, Operand, RegClass, VReg
from kera_hw.cpu_gpu.machine.level import Level
from kera_hw.cpu_gpu.select.emitter import AnyEmitter
from kera_hw.cpu_gpu.x86_64.encoder import form, table
from kera_hw.cpu_gpu.x86_64.sse2 import SHIFTS, write_in_sse2

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = (Fixed(number, RegClass.GENERAL) for number in range(8))
CALLEE_SAVED = (3, 5, 12, 13, 14, 15)
"""Of the System V application binary interface, section 3.2.1; no vector register is."""

# rax, rcx and rdx are what divisions and counts of shifts are fixed to; spilled operands pass through them.
_GENERAL = (6, 7, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15)
_GENERAL_SCRATCH = (0, 1, 2)
_VECTOR_SCRATCH, _MASK_SCRATCH = 4, 3
_MASKS = 8
"""Of which the first can't be named where a vector goes by one."""


@dataclass(frozen=True, slots=True)
class X86Level(Level):
    """``vex``: with instructions of three operands; ``evex``: with 32 vector registers of 512 bits, and with
    registers for masks."""

    vex: bool = True
    evex: bool = False

    @property
    def moves(self) -> frozenset[str]:
        return frozenset({"mov", self.called("vmovaps"), *(["kmovq"] if self.evex else [])})

    def called(self, op: str) -> str:
        """An instruction of the table by the name of the form that this level takes."""
        if self.evex and f"{op}.z" in table():
            return f"{op}.z"
        return op if self.vex or f"{op}.s" not in table() else f"{op}.s"

    def files(self, spilling: bool) -> RegisterFile:
        """``spilling``: with registers set aside through which vectors and masks on the stack pass."""
        vectors = tuple(range(self.vector_registers))
        masks = tuple(range(1, _MASKS)) if self.evex else ()
        kept = len(vectors) - _VECTOR_SCRATCH if spilling else len(vectors)
        some = len(masks) - _MASK_SCRATCH if spilling and masks else len(masks)
        return RegisterFile(
            free={RegClass.GENERAL: _GENERAL, RegClass.VECTOR: vectors[:kept], RegClass.MASK: masks[:some]},
            scratch={
                RegClass.GENERAL: _GENERAL_SCRATCH, RegClass.VECTOR: vectors[kept:],
                RegClass.MASK: masks[some:],
            },
            moves=self.moves,
        )


SSE2 = X86Level(
    "x86-64-sse2", "x86-64", ("sse2",), ("minimum", "rotations"),
    vector_bits=128, vector_registers=16, vex=False,
)
AVX2 = X86Level(
    "x86-64-avx2", "x86-64", ("avx2", "bmi1", "bmi2", "fma", "abm", "popcnt", "pclmulqdq"),
    ("bit-counts", "carry-less", "fma", "minimum", "rotations"),
    vector_bits=256, vector_registers=16,
)
AVX512 = X86Level(
    "x86-64-avx512", "x86-64",
    (*AVX2.features, "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512_vnni", "vpclmulqdq"),
    AVX2.capabilities,
    vector_bits=512, vector_registers=32, evex=True,
)
LEVELS = (SSE2, AVX2, AVX512)
"""From the least to the most."""

UNNAMED: Mapping[str, Unnamed] = {
    **dict.fromkeys(("rolcl", "rorcl", *SHIFTS.values()), Unnamed(reads=(RCX,))),
    **dict.fromkeys(("div", "idiv"), Unnamed((RAX, RDX), (RAX, RDX))),
    "mul": Unnamed((RAX,), (RAX, RDX)), "cdq": Unnamed((RAX,), (RDX,)),
}
"""What instructions touch beside their operands."""


@cache
def jumps() -> dict[str, bool]:
    """Instructions that go to a label; whether they may also not."""
    return {name: name != "jmp" for name, rows in table().items() if any("rel" in row.kinds for row in rows)}


class Emitter(AnyEmitter[X86Level]):
    """Appends instructions of the table to ``code``."""

    def __init__(self, code: Code, level: X86Level = AVX2) -> None:
        super().__init__(code, level)

    def put(self, op: str, *operands: Operand, size_bits: int = 64) -> None:
        """An instruction on operands that there are."""
        if not self.level.vex and (op[0] == "v" or op in SHIFTS):
            write_in_sse2(self, op, operands, size_bits)
        else:
            self.plain(self.level.called(op), *operands, size_bits=size_bits)

    def plain(self, op: str, *operands: Operand, size_bits: int = 64) -> None:
        """An instruction of the table as it is."""
        self.code.items.append(Inst(op, operands, form(op, operands).roles, size_bits))

    def mask_register(self) -> VReg:
        return self.code.vreg(RegClass.MASK)

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

    def mgives(self, op: str, *operands: Operand, size_bits: int = 64) -> VReg:
        """A new mask register with an instruction's result."""
        found = self.mask_register()
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
