"""What RISC-V reaches: jumps in short forms and in long ones, slots near and far, settings of lanes."""
from __future__ import annotations

from pathlib import Path

import pytest

from kera_hw.cpu_gpu.engine import compile_export
from kera_hw.cpu_gpu.machine.code import Code, Fixed, Label, Operand, RegClass, VReg
from kera_hw.cpu_gpu.machine.finish import finish
from kera_hw.cpu_gpu.riscv64.encoder import TABLE, halves
from kera_hw.cpu_gpu.riscv64.finish import RiscvBackend
from kera_hw.cpu_gpu.riscv64.machine import NEAR, RVV, ZERO, Emitter, instruction, without_repeats
from kera_hw.driver.session import load_program

X10, F8, V1 = Fixed(10, RegClass.GENERAL), Fixed(8, RegClass.FLOAT), Fixed(1, RegClass.VECTOR)


def _word(op: str, *operands: Operand) -> int:
    return TABLE.word(TABLE.row_of(op, operands), operands)


@pytest.mark.parametrize("op, turned", [("beq", "bne"), ("bltu", "bgeu"), ("j", None)])
def test_far_jumps_are_of_32_bits(op: str, turned: str | None) -> None:
    """What may not be taken goes over it."""
    given = [] if turned is None else [X10, Fixed(0, RegClass.GENERAL)]
    backend, distance = RiscvBackend(), 0x123_4804
    near, (fixup,) = backend.encode(instruction(op, *given, Label(1)), far=False)
    assert not backend.resolve(bytearray(near), fixup, distance)
    far, (fixup,) = backend.encode(instruction(op, *given, Label(1)), far=True)
    content = bytearray(far)
    assert backend.resolve(content, fixup, distance)
    words = [int.from_bytes(content[k : k + 4], "little") for k in range(0, len(content), 4)]
    high, low = halves(distance)
    t6, zero = Fixed(31, RegClass.GENERAL), Fixed(0, RegClass.GENERAL)
    assert words[-2:] == [_word("auipc", t6, high), _word("jalr", zero, low, t6)]
    if turned is not None:
        over = bytearray(_word(turned, *given, Label(1)).to_bytes(4, "little"))
        _, (short,) = backend.encode(instruction(turned, *given, Label(1)), far=False)
        assert backend.resolve(over, short, 12) and content[:4] == over and fixup.origin == 4


def test_slots_and_frames_of_every_size() -> None:
    """Scalars near and far; vectors at as many of the machine's lengths."""
    backend = RiscvBackend()
    for slot, count in ((0, 1), (255, 1), (256, 4)):
        assert len(backend.fetch(X10, slot, slot + 1)) == count
    assert [inst.op for inst in backend.put(V1, 3, 4)] == ["vlenb", "addi", "mul", "sub", "vs1"]
    saved = frozenset({Fixed(18, RegClass.GENERAL), F8})
    frame = backend.frame(saved, 4)
    stored = [inst.operands[0] for inst in frame.entry if inst.op in ("sd", "fsd")]
    assert stored == [Fixed(8, RegClass.GENERAL), Fixed(18, RegClass.GENERAL), F8]
    assert not backend.frame(frozenset(), 0).entry


def test_settings_that_are_as_they_were_are_left_out() -> None:
    emitter = Emitter(Code())
    for width in (32, 32, 64, 64):
        emitter.lanes(width, 2)
    emitter.code.place(emitter.code.label())
    emitter.lanes(64, 2)
    kept = [item for item in without_repeats(emitter.code.items) if getattr(item, "op", "") == "vseti"]
    assert len(kept) == 3


def test_a_wider_result_takes_no_register_of_its_source() -> None:
    """What the machine forbids: the source would be free where the result is made."""
    emitter = Emitter(Code())
    source = emitter.vgives("vmvi", 1)
    found = emitter.apart("vsext2", source)
    emitter.put("vse64", found, X10)
    made = finish(emitter.code, RiscvBackend()).instructions
    widening = next(inst for _, inst in made if inst.op == "vsext2")
    assert widening.operands[0] != widening.operands[1] and isinstance(found, VReg)


def test_a_loop_takes_as_many_rounds_as_there_are_lanes(tmp_path: Path) -> None:
    """One copy of its body, for vectors of any length and for what is left over."""
    path = tmp_path / "f.kera"
    path.write_text("pub fn f(x: [f32; 37], y: [f32; 37]) -> [f32; 37] { x * y + 1.5 }", encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None
    made = [inst for _, inst in compile_export(loaded.graph.exports[0], level=RVV).machine.instructions]
    assert [inst.op for inst in made if inst.op[:3] in ("vle", "vse")].count("vle32") == 2
    taken = [inst for inst in made if inst.op == "vset" and inst.operands[0] not in (ZERO, NEAR)]
    assert len(taken) == 1 and "vfmul" in [inst.op for inst in made]
    assert sum(inst.op == "vse32" for inst in made) == 1 and not any(inst.op == "flw" for inst in made)


def test_tables_are_looked_up_for_as_many_lanes_as_there_are(tmp_path: Path) -> None:
    """Functions by tables deal with no lane by its number."""
    path = tmp_path / "f.kera"
    path.write_text("pub fn f(x: [f32; 37]) -> [f32; 37] { exp(x) + log(x) }", encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None
    made = [inst.op for _, inst in compile_export(loaded.graph.exports[0], level=RVV).machine.instructions]
    assert "vluxei64" in made and made.count("vse32") == 1 and not {"vslideup", "vslidedown"} & set(made)
