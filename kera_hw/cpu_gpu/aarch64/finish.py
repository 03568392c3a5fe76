"""Registers, frames and encoding of ARM64, as finishing a function asks for them.

Procedure Call Standard for the Arm 64-bit Architecture (AAPCS64), sections 6.1 and 6.4.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kera_hw.cpu_gpu.aarch64 import encoder
from kera_hw.cpu_gpu.aarch64.machine import (
    CALLEE_SAVED,
    CALLEE_SAVED_VECTORS,
    FAR,
    MOVES,
    NEAR,
    SP,
    files,
    instruction,
    jumps,
    number_instructions,
)
from kera_hw.cpu_gpu.machine.allocate import RegisterFile
from kera_hw.cpu_gpu.machine.check import Unnamed
from kera_hw.cpu_gpu.machine.code import Fixed, Inst, Label, RegClass
from kera_hw.cpu_gpu.machine.finish import Fixup, Frame
from kera_hw.cpu_gpu.machine.words import WORD_BYTES

_SLOT_BYTES = 16
_SAVED_BYTES = 8
_ALIGNMENT_BYTES = 16
_MOST_IMMEDIATE = (1 << 12) - 1
_OVER_JUMP_BYTES = 8
_FAR_CONSTANT = "far"


@dataclass(frozen=True, slots=True)
class ArmBackend:
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
        return inst.op in MOVES and inst.operands[0] == inst.operands[1]

    def fetch(self, register: Fixed, slot: int, slots: int) -> Sequence[Inst]:
        return _at_slot("ld", register, slot)

    def put(self, register: Fixed, slot: int, slots: int) -> Sequence[Inst]:
        return _at_slot("st", register, slot)

    def frame(self, written: frozenset[Fixed], slots: int) -> Frame:
        """Slots below, what is the caller's above them."""
        saved = [
            Fixed(number, cls)
            for cls, numbers in (
                (RegClass.GENERAL, CALLEE_SAVED), (RegClass.VECTOR, CALLEE_SAVED_VECTORS),
            )
            for number in numbers
            if Fixed(number, cls) in written
        ]
        room_bytes = -(-len(saved) * _SAVED_BYTES // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        slot_bytes = slots * _SLOT_BYTES
        entry = [*_moved("sub", room_bytes), *_saved("st", saved), *_moved("sub", slot_bytes)]
        leaving = [*_moved("add", slot_bytes), *_saved("ld", saved), *_moved("add", room_bytes)]
        return Frame(entry, [*leaving, instruction("ret")], slot_bytes + room_bytes)

    def encode(self, inst: Inst, far: bool) -> tuple[bytes, Sequence[Fixup]]:
        return _far(inst) if far else encoder.encode(inst)

    def resolve(self, content: bytearray, fixup: Fixup, distance: int) -> bool:
        if fixup.form == _FAR_CONSTANT:
            made = _far_load(distance)
            content[: len(made)] = made
            return True
        return encoder.resolve(content, fixup.place, fixup.form, distance)


def _at_slot(verb: str, register: Fixed, slot: int) -> list[Inst]:
    kind, size_bytes = ("m64", 8) if register.cls is RegClass.GENERAL else ("v128", 16)
    offset = slot * _SLOT_BYTES
    if offset // size_bytes <= _MOST_IMMEDIATE:
        return [instruction(f"{verb}.{kind}", register, SP, offset)]
    return [*number_instructions(FAR, offset), instruction(f"{verb}_at.{kind}", register, SP, FAR)]


def _saved(verb: str, saved: Sequence[Fixed]) -> list[Inst]:
    return [
        instruction(f"{verb}.{'m' if one.cls is RegClass.GENERAL else 'v'}64", one, SP, _SAVED_BYTES * k)
        for k, one in enumerate(saved)
    ]


def _moved(verb: str, size_bytes: int) -> list[Inst]:
    """The stack's end: 12 bits at once, in two places."""
    upper, lower = divmod(size_bytes, _MOST_IMMEDIATE + 1)
    found = [instruction(f"{verb}i_12.x", SP, SP, upper)] if upper else []
    return [*found, instruction(f"{verb}i.x", SP, SP, lower)] if lower else found


def _far(inst: Inst) -> tuple[bytes, Sequence[Fixup]]:
    """Over a jump that goes the other way; constants by a distance of 32 bits."""
    if inst.op in jumps():
        *given, label = inst.operands
        assert isinstance(label, Label) and inst.op != "b"
        turned = {"cbz.w": "cbnz.w", "cbnz.w": "cbz.w"}.get(inst.op, inst.op)
        if inst.op == "b.cond":
            (condition,) = given
            assert isinstance(condition, int)
            given = [condition ^ 1]
        content = bytearray(encoder.encode(instruction(turned, *given, label))[0])
        assert encoder.resolve(content, 0, turned, _OVER_JUMP_BYTES)
        jump = encoder.encode(instruction("b", label))[0]
        word_bytes = WORD_BYTES
        return bytes(content) + jump, [Fixup(word_bytes, word_bytes, label.number, "b")]
    target = inst.operands[0]
    assert isinstance(target, Fixed)
    size = {"ldr_s": "v32", "ldr_d": "v64", "ldr_q": "v128"}[inst.op]
    load, _ = encoder.encode(instruction(f"ld_at.{size}", target, NEAR, FAR))
    (near,) = encoder.encode(inst)[1]
    return _far_load(0) + load, [replace(near, form=_FAR_CONSTANT)]


def _far_load(distance: int) -> bytes:
    """The two addresses whose sum it is; constants lie behind all code."""
    assert 0 <= distance < 1 << 31
    made = [
        instruction("adr", NEAR, Label(0)), instruction("movz.x", FAR, distance & 0xFFFF, 0),
        instruction("movk.x", FAR, distance >> 16, 16),
    ]
    return b"".join(encoder.encode(inst)[0] for inst in made)
