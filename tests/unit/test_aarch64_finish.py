"""What ARM64 reaches: jumps and constants in short forms and in long ones, slots near and far."""
from __future__ import annotations

import capstone
import pytest

from kera_hw.cpu_gpu.aarch64.encoder import resolve
from kera_hw.cpu_gpu.aarch64.finish import ArmBackend
from kera_hw.cpu_gpu.aarch64.machine import EQ, Emitter, instruction
from kera_hw.cpu_gpu.machine.code import Code, Fixed, Label, Operand, RegClass
from kera_hw.cpu_gpu.machine.finish import finish

X0, D0 = Fixed(0, RegClass.GENERAL), Fixed(0, RegClass.VECTOR)
_DISASSEMBLER = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)


def _shown(content: bytes) -> list[str]:
    return [f"{one.mnemonic} {one.op_str}" for one in _DISASSEMBLER.disasm(content, 0)]


def _with_constant_behind(other_bytes: int) -> list[str]:
    """A jump and a constant behind another one of some size."""
    emitter = Emitter(Code())
    label = emitter.code.label()
    emitter.code.constant(bytes(other_bytes))
    emitter.put("b.cond", EQ, label)
    emitter.put("ldr_d", D0, emitter.code.constant(b"constant"))
    emitter.code.place(label)
    return _shown(finish(emitter.code, ArmBackend()).code[:24])


def test_near_labels_take_one_instruction() -> None:
    assert _with_constant_behind(64)[:3] == ["b.eq #8", "ldr d0, #0x80", "ret "]


def test_far_constants_go_by_the_halves_of_their_distance() -> None:
    distance = 64 + (1 << 20) - 4
    assert _with_constant_behind(1 << 20) == [
        "b.eq #0x14", "adr x16, #4", f"mov x17, #{distance & 0xFFFF:#x}",
        f"movk x17, #{distance >> 16:#x}, lsl #16", "ldr d0, [x16, x17]", "ret ",
    ]


@pytest.mark.parametrize(
    "op, given, turned",
    [("b.cond", EQ, "b.ne #8"), ("cbz.w", X0, "cbnz w0, #8"), ("cbnz.w", X0, "cbz w0, #8")]
)
def test_far_jumps_go_over_a_jump(op: str, given: Operand, turned: str) -> None:
    backend, distance = ArmBackend(), 1 << 22
    near, (fixup,) = backend.encode(instruction(op, given, Label(1)), far=False)
    assert not backend.resolve(bytearray(near), fixup, distance)
    far, (fixup,) = backend.encode(instruction(op, given, Label(1)), far=True)
    content = bytearray(far)
    assert backend.resolve(content, fixup, distance - fixup.origin)
    assert _shown(bytes(content)) == [turned, f"b #{distance:#x}"]


@pytest.mark.parametrize("op, reach", [("b", 1 << 27), ("b.cond", 1 << 20), ("cbz.w", 1 << 20)])
def test_no_distance_is_cut_off(op: str, reach: int) -> None:
    tried = ((reach - 4, True), (-reach, True), (reach, False), (-reach - 4, False), (2, False))
    for distance, holds in tried:
        assert resolve(bytearray(4), 0, op, distance) == holds


def test_slots_and_frames_of_every_size() -> None:
    backend = ArmBackend()
    for slot, count in ((0, 1), (2047, 1), (2048, 2), (8000, 3)):
        assert len(backend.fetch(X0, slot, slot + 1)) == count
    saved = frozenset({Fixed(19, RegClass.GENERAL), Fixed(9, RegClass.VECTOR)})
    frame = backend.frame(saved, 300)
    assert frame.size_bytes == 300 * 16 + 16
    stored = [inst.operands[0] for inst in frame.entry if inst.op.startswith("st")]
    assert set(stored) == saved and len(frame.entry) == 5 and frame.exit[-1] == instruction("ret")
    assert instruction("b", Label(1)).roles == ("r",)
