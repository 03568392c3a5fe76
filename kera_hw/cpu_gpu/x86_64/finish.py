"""From code over virtual registers to bytes: allocation, its check, the frame, labels and constants."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kera_hw.cpu_gpu.machine.allocate import allocate
from kera_hw.cpu_gpu.machine.check import check_allocation
from kera_hw.cpu_gpu.machine.coalesce import coalesce
from kera_hw.cpu_gpu.machine.code import Code, Fixed, Inst, Mark, Mem, RegClass, VReg
from kera_hw.cpu_gpu.machine.rewrite import RewriteStep, rewritten, used_registers
from kera_hw.cpu_gpu.x86_64.encoder import Fixup, encode, form
from kera_hw.cpu_gpu.x86_64.machine import CALLEE_SAVED, RSP, Level, jumps

_POOL_ALIGNMENT_BYTES = 64


@dataclass(frozen=True, slots=True)
class Machine:
    """A finished function: ``code`` with its constants behind it, position independent.

    ``instructions`` are (offset, instruction) in order; ``slots`` were needed for what found no register, of
    ``stack_bytes`` in all.
    """

    code: bytes
    instructions: tuple[tuple[int, Inst], ...]
    slots: int
    stack_bytes: int


def finish(code: Code, level: Level) -> Machine:
    """Assigns registers, checks that, and encodes."""
    coalesce(code, level.moves)
    files = level.files(spilling=False)
    allocation = allocate(code, files)
    if any(register.cls is not RegClass.GENERAL for register in allocation.slots):
        files = level.files(spilling=True)
        allocation = allocate(code, files)
    steps = list(rewritten(code, allocation, files))
    fault = check_allocation(steps, allocation, jumps())
    if fault is not None:
        raise AssertionError(f"the allocation is wrong: {fault}")
    saved = sorted(used_registers(steps, RegClass.GENERAL) & set(CALLEE_SAVED))
    frame_bytes = allocation.slot_count * (level.vector_bits // 8)
    body = [item for step in steps for item in _items(step, allocation.slots, level)]
    whole = [*_entry(saved, frame_bytes), *body, *_exit(saved, frame_bytes)]
    return _encoded(whole, code, len(allocation.slots), frame_bytes)


def _put(op: str, *operands: Fixed | Mem | int, size_bits: int = 64) -> Inst:
    return Inst(op, operands, form(op, operands).roles, size_bits)


def _items(step: RewriteStep, slots: Mapping[VReg, int], level: Level) -> list[Inst | Mark]:
    if step.kind == "mark":
        assert isinstance(step.before, Mark)
        return [step.before] if step.before.kind == "label" else []
    if step.kind == "inst":
        assert step.after is not None
        same = step.after.op in level.moves and step.after.operands[0] == step.after.operands[1]
        # A move of 32 bits within a register clears its upper half, so it is none.
        return [] if same and (step.after.op != "mov" or step.after.size_bits == 64) else [step.after]
    assert step.moved is not None and step.register is not None
    place = Mem(RSP, offset=slots[step.moved] * (level.vector_bits // 8))
    op, size = {
        RegClass.GENERAL: ("mov", 64), RegClass.MASK: ("kmovq", 64),
        RegClass.VECTOR: (level.called("vmovdqu"), level.vector_bits),
    }[step.register.cls]
    if step.kind == "fetch":
        return [_put(op, step.register, place, size_bits=size)]
    return [_put(op, place, step.register, size_bits=size)]


def _entry(saved: list[int], frame_bytes: int) -> list[Inst]:
    found = [_put("push", Fixed(number, RegClass.GENERAL)) for number in saved]
    return [*found, _put("subi", RSP, frame_bytes)] if frame_bytes else found


def _exit(saved: list[int], frame_bytes: int) -> list[Inst]:
    found = [_put("addi", RSP, frame_bytes)] if frame_bytes else []
    found += [_put("pop", Fixed(number, RegClass.GENERAL)) for number in reversed(saved)]
    return [*found, _put("vzeroupper"), _put("ret")]


def _encoded(items: list[Inst | Mark], code: Code, slots: int, stack_bytes: int) -> Machine:
    out = bytearray()
    labels: dict[int, int] = {}
    fixups: list[Fixup] = []
    instructions: list[tuple[int, Inst]] = []
    for item in items:
        if isinstance(item, Mark):
            assert item.label is not None
            labels[item.label.number] = len(out)
            continue
        content, more = encode(item, len(out))
        instructions.append((len(out), item))
        out += content
        fixups += more
    for label, contents in code.pool.items():
        out += bytes(-len(out) % _POOL_ALIGNMENT_BYTES)
        labels[label] = len(out)
        out += contents
    for one in fixups:
        out[one.place : one.place + 4] = (labels[one.label] - one.end).to_bytes(4, "little", signed=True)
    return Machine(bytes(out), tuple(instructions), slots, stack_bytes)
