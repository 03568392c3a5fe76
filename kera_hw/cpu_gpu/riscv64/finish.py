"""Registers, frames and encoding of RISC-V, as finishing a function asks for them.

RISC-V ABIs Specification, chapter 1. Vectors on the stack are as long as the machine's: their places are
counted in its own lengths from the frame's pointer down, and those of scalars up.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kera_hw.cpu_gpu.machine.allocate import RegisterFile
from kera_hw.cpu_gpu.machine.check import Unnamed
from kera_hw.cpu_gpu.machine.code import Fixed, Inst, Label, Mem, RegClass
from kera_hw.cpu_gpu.machine.finish import Fixup, Frame
from kera_hw.cpu_gpu.machine.words import WORD_BYTES
from kera_hw.cpu_gpu.riscv64.encoder import TABLE, halves, resolve
from kera_hw.cpu_gpu.riscv64.machine import (
    CALLEE_SAVED,
    CALLEE_SAVED_FLOATS,
    FAR,
    FP,
    KEPT,
    MOVES,
    NEAR,
    RA,
    SP,
    ZERO,
    files,
    instruction,
    jumps,
    number_instructions,
)

_SLOT_BYTES = 8
_ALIGNMENT_BYTES = 16
_SHORT = range(-2048, 2048)
_FAR = "far"
_TURNED = {"beq": "bne", "bne": "beq", "bltu": "bgeu", "bgeu": "bltu"}
_VECTOR_BYTES = 128
"""A function's stack is counted for vectors of so many."""


@dataclass(frozen=True, slots=True)
class RiscvBackend:
    """Implements ``machine.finish.Backend``."""

    @property
    def jumps(self) -> Mapping[str, bool]:
        return jumps()

    @property
    def unnamed(self) -> Mapping[str, Unnamed]:
        return {}

    def files(self, spilling: bool) -> RegisterFile:
        return files(spilling)

    def is_nothing(self, inst: Inst) -> bool:
        return inst.op == KEPT or (inst.op in MOVES and inst.operands[0] == inst.operands[1])

    def fetch(self, register: Fixed, slot: int, slots: int) -> Sequence[Inst]:
        return _at_slot("l", register, slot)

    def put(self, register: Fixed, slot: int, slots: int) -> Sequence[Inst]:
        return _at_slot("s", register, slot)

    def frame(self, written: frozenset[Fixed], slots: int) -> Frame:
        """From below: slots of vectors, the frame's pointer, slots of scalars, what is the caller's."""
        saved = [Fixed(number, RegClass.GENERAL) for number in CALLEE_SAVED]
        saved += [Fixed(number, RegClass.FLOAT) for number in CALLEE_SAVED_FLOATS]
        saved = [*([FP] if slots else []), *(one for one in saved if one in written)]
        room_bytes = _aligned(len(saved) * _SLOT_BYTES)
        entry = _moved(-room_bytes) + [_saved("s", one, k) for k, one in enumerate(saved)]
        leaving = [_saved("l", one, k) for k, one in enumerate(saved)] + _moved(room_bytes)
        if slots:
            scalars_bytes = _aligned(slots * _SLOT_BYTES)
            entry += [
                *_moved(-scalars_bytes), instruction("mv", FP, SP),
                *_lengths(slots), instruction("sub", SP, SP, NEAR),
            ]
            leaving = [instruction("mv", SP, FP), *_moved(scalars_bytes), *leaving]
            room_bytes += scalars_bytes + slots * _VECTOR_BYTES
        return Frame(entry, [*leaving, instruction("jalr", ZERO, 0, RA)], room_bytes)

    def encode(self, inst: Inst, far: bool) -> tuple[bytes, Sequence[Fixup]]:
        match inst.op:
            case "mv":
                return _words(instruction("addi", *inst.operands, 0)), ()
            case "fmv":
                target, source = inst.operands
                return _words(instruction("fsgnj.d", target, source, source)), ()
            case "constant":
                target, place = inst.operands
                assert isinstance(target, Fixed) and isinstance(place, Mem) and place.label is not None
                pair = instruction("auipc", target, 0), instruction("ld", target, 0, target)
                return _words(*pair), [Fixup(0, 0, place.label, _FAR)]
            case _:
                return _far(inst) if far else (_words(inst), _near(inst))

    def resolve(self, content: bytearray, fixup: Fixup, distance: int) -> bool:
        if fixup.form != _FAR:
            return resolve(content, fixup.place, fixup.form, distance)
        high, low = halves(distance)
        for place, shift, value in ((fixup.place, 12, high), (fixup.place + WORD_BYTES, 20, low & 0xFFF)):
            whole = int.from_bytes(content[place : place + WORD_BYTES], "little") | value << shift
            content[place : place + WORD_BYTES] = whole.to_bytes(WORD_BYTES, "little")
        return -(1 << 31) <= distance < 1 << 31


def _words(*insts: Inst) -> bytes:
    words = (TABLE.word(TABLE.row_of(inst.op, inst.operands), inst.operands) for inst in insts)
    return b"".join(word.to_bytes(WORD_BYTES, "little") for word in words)


def _near(inst: Inst) -> list[Fixup]:
    labels = (operand for operand in inst.operands if isinstance(operand, Label))
    return [Fixup(0, 0, label.number, inst.op) for label in labels]


def _far(inst: Inst) -> tuple[bytes, Sequence[Fixup]]:
    """A jump of 32 bits; what may not be taken goes over it if it is not."""
    *given, label = inst.operands
    assert isinstance(label, Label)
    jump = _words(instruction("auipc", FAR, 0), instruction("jalr", ZERO, 0, FAR))
    over = bytearray()
    if inst.op != "j":
        turned = _TURNED[inst.op]
        over += _words(instruction(turned, *given, label))
        resolve(over, 0, turned, WORD_BYTES + len(jump))
    return bytes(over) + jump, [Fixup(len(over), len(over), label.number, _FAR)]


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


def _lengths(count: int) -> list[Inst]:
    """So many of the machine's vectors in bytes."""
    made = number_instructions(FAR, count)
    assert made is not None
    return [instruction("vlenb", NEAR), *made, instruction("mul", NEAR, NEAR, FAR)]


def _at_slot(verb: str, register: Fixed, slot: int) -> list[Inst]:
    if register.cls is RegClass.VECTOR:
        op = "vl1" if verb == "l" else "vs1"
        return [*_lengths(slot + 1), instruction("sub", NEAR, FP, NEAR), instruction(op, register, NEAR)]
    op = f"{'f' if register.cls is RegClass.FLOAT else ''}{verb}d"
    offset = slot * _SLOT_BYTES
    if offset in _SHORT:
        return [instruction(op, register, offset, FP)]
    made = number_instructions(FAR, offset)
    assert made is not None
    return [*made, instruction("add", FAR, FAR, FP), instruction(op, register, 0, FAR)]


def _saved(verb: str, register: Fixed, k: int) -> Inst:
    op = f"{'f' if register.cls is RegClass.FLOAT else ''}{verb}d"
    return instruction(op, register, _SLOT_BYTES * k, SP)


def _moved(by: int) -> list[Inst]:
    """The stack's end."""
    if by in _SHORT:
        return [instruction("addi", SP, SP, by)] if by else []
    made = number_instructions(FAR, by)
    assert made is not None
    return [*made, instruction("add", SP, SP, FAR)]
