"""Registers for virtual registers: a linear scan over live intervals, the least used spilled.

An interval reaches from the first mention of a register to the last; where one that was made before a loop is
mentioned within, to the loop's end. Intervals that a register file can't hold live in stack slots, and are
fetched into scratch registers for each instruction that reads or writes them; a slot serves others after.
What a move copies gets the same register where their intervals only touch.

Poletto and Sarkar, "Linear scan register allocation", 1999.
"""
from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kera_hw.cpu_gpu.machine.code import (
    Code,
    Inst,
    Item,
    Mark,
    Mem,
    Operand,
    Part,
    Reg,
    RegClass,
    VReg,
)

_LOOP_WEIGHT = 8.0
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class RegisterFile:
    """``free``: registers of a class that may be given; ``scratch``: for spilled operands, never given."""

    free: Mapping[RegClass, tuple[int, ...]]
    scratch: Mapping[RegClass, tuple[int, ...]]
    moves: frozenset[str]
    """Instructions that copy their second operand to the first."""


@dataclass(slots=True)
class Interval:
    """Items from ``first`` to ``last`` in which a register's value must stay."""

    reg: VReg
    first: int
    last: int
    weight: float = 0.0
    hint: VReg | None = None


@dataclass(frozen=True, slots=True)
class Allocation:
    """``registers`` by virtual register; ``slots`` for those on the stack."""

    registers: Mapping[VReg, int]
    slots: Mapping[VReg, int]
    slot_count: int


@dataclass(slots=True)
class _Loop:
    begin: int
    around: _Loop | None
    end: int = 0


def intervals(items: Sequence[Item], moves: frozenset[str]) -> list[Interval]:
    """Of all virtual registers, in order of their first mention."""
    found: dict[VReg, Interval] = {}
    latest: dict[VReg, _Loop | None] = {}  # the loop that a register was last mentioned in
    loop: _Loop | None = None
    depth = 0
    worth = 1.0
    for place, item in enumerate(items):
        if isinstance(item, Mark):
            if item.kind == "loop":
                loop, depth = _Loop(place, loop), depth + 1
            elif item.kind == "end":
                assert loop is not None
                loop.end = place
                loop, depth = loop.around, depth - 1
            worth = _LOOP_WEIGHT ** min(depth, _DEEPEST)
            continue
        for register, _ in item.accesses:
            if isinstance(register, VReg):
                one = found.get(register)
                if one is None:
                    one = found[register] = Interval(register, place, place)
                one.last = place
                one.weight += worth
                latest[register] = loop
        if item.op in moves:
            target, source = item.operands[:2]
            if isinstance(target, VReg) and isinstance(source, VReg) and found[target].hint is None:
                found[target].hint = source
    for one in found.values():
        around = latest[one.reg]
        while around is not None and one.first < around.begin:
            one.last, around = around.end, around.around
    return sorted(found.values(), key=lambda one: one.first)


@dataclass
class _Scan:
    files: RegisterFile
    registers: dict[VReg, int] = field(default_factory=dict[VReg, int])
    spilled: list[Interval] = field(default_factory=list[Interval])
    active: dict[RegClass, dict[int, Interval]] = field(default_factory=dict[RegClass, dict[int, Interval]])
    """By their registers, in the order of their beginnings."""

    def visit(self, one: Interval) -> None:
        cls = one.reg.cls
        active = self.active.setdefault(cls, {})
        # An interval that ends where this one begins is read there before this one is written.
        for number in [number for number, other in active.items() if other.last <= one.first]:
            del active[number]
        hinted = self.registers.get(one.hint) if one.hint is not None else None
        every = self.files.free[cls]
        if hinted is None or hinted in active or hinted not in every:
            hinted = next((number for number in every if number not in active), None)
        if hinted is not None:
            self._give(one, hinted)
            return
        lightest = min([*active.values(), one], key=lambda item: item.weight / (item.last - item.first + 1))
        if lightest is not one:
            number = self.registers.pop(lightest.reg)
            del active[number]
            self._give(one, number)
        self.spilled.append(lightest)

    def _give(self, one: Interval, number: int) -> None:
        self.registers[one.reg] = number
        self.active[one.reg.cls][number] = one


def allocate(code: Code, files: RegisterFile) -> Allocation:
    """A register or a slot for every virtual register."""
    scan = _Scan(files)
    for one in intervals(code.items, files.moves):
        scan.visit(one)
    slots, count = _slots(scan.spilled)
    return Allocation(scan.registers, slots, count)


def _slots(spilled: Sequence[Interval]) -> tuple[dict[VReg, int], int]:
    """A slot for each, which is another's from where the interval ends; and how many there are."""
    slots: dict[VReg, int] = {}
    held: list[tuple[int, int]] = []  # where its interval ends, slot
    count = 0
    for one in sorted(spilled, key=lambda item: item.first):
        if held and held[0][0] <= one.first:
            _, slot = heapq.heappop(held)
        else:
            slot, count = count, count + 1
        slots[one.reg] = slot
        heapq.heappush(held, (one.last, slot))
    return slots, count


def touched(inst: Inst) -> list[VReg]:
    """The virtual registers of an instruction, each once."""
    return list(dict.fromkeys([reg for reg, _ in inst.accesses if isinstance(reg, VReg)]))


def replaced(operand: Operand, by: Mapping[VReg, Reg]) -> Operand:
    """An operand with registers of the machine in place of virtual ones."""
    if isinstance(operand, VReg):
        return by[operand]
    if isinstance(operand, Part):
        return replace(operand, reg=by[operand.reg]) if isinstance(operand.reg, VReg) else operand
    if isinstance(operand, Mem):
        base = by[operand.base] if isinstance(operand.base, VReg) else operand.base
        index = by[operand.index] if isinstance(operand.index, VReg) else operand.index
        return Mem(base, index, operand.scale, operand.offset, operand.label)
    return operand
