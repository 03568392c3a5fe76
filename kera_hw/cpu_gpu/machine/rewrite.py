"""Code over the machine's registers: operands replaced, spilled ones fetched and put back."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kera_hw.cpu_gpu.machine.allocate import Allocation, RegisterFile, replaced, touched
from kera_hw.cpu_gpu.machine.code import Code, Fixed, Inst, Item, Mark, Reg, VReg


@dataclass(frozen=True, slots=True)
class RewriteStep:
    """An item as it was (``before``) with what it became; or a move between a slot and a scratch register.

    ``kind``: "inst", "mark", "fetch" (slot to register) or "put" (register to slot). ``moved`` names the
    virtual register that a fetch or put is about.
    """

    kind: str
    before: Item | None
    after: Inst | None
    moved: VReg | None = None
    register: Fixed | None = None


def rewritten(code: Code, allocation: Allocation, files: RegisterFile) -> Iterator[RewriteStep]:
    """Every item in order. A move whose ends share a register is kept: the machine's printer drops it."""
    for item in code.items:
        if isinstance(item, Mark):
            yield RewriteStep("mark", item, None)
            continue
        by = dict[VReg, Reg]()
        spilled: list[VReg] = []
        for vreg in touched(item):
            number = allocation.registers.get(vreg)
            if number is None:
                number = files.scratch[vreg.cls][sum(other.cls is vreg.cls for other in spilled)]
                spilled.append(vreg)
            by[vreg] = Fixed(number, vreg.cls)
        roles = _roles(item) if spilled else {}
        for vreg in spilled:
            if roles[vreg] != "w":
                yield RewriteStep("fetch", None, None, vreg, _fixed(by[vreg]))
        operands = tuple([replaced(operand, by) for operand in item.operands])
        yield RewriteStep("inst", item, Inst(item.op, operands, item.roles, item.size_bits, place=item.place))
        for vreg in spilled:
            if roles[vreg] != "r":
                yield RewriteStep("put", None, None, vreg, _fixed(by[vreg]))


def _fixed(register: Reg) -> Fixed:
    assert isinstance(register, Fixed)
    return register


def _roles(inst: Inst) -> dict[VReg, str]:
    """Of a register that is read here and written there: both."""
    found: dict[VReg, str] = {}
    for register, role in inst.accesses:
        if isinstance(register, VReg):
            before = found.get(register)
            found[register] = role if before in (None, role) else "m"
    return found


def written_registers(steps: list[RewriteStep]) -> set[Fixed]:
    """Registers of the machine that the code writes."""
    return {
        register
        for step in steps if step.after is not None
        for register, role in step.after.accesses
        if role != "r" and isinstance(register, Fixed)
    } | {step.register for step in steps if step.register is not None}
