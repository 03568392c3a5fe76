"""Moves that only give a value another name, gone before registers are assigned.

``move A, B`` at the end of a stretch without control, where B is made within the stretch and named nowhere
else, and A is not named in between: B is A from where it is made. That is how a loop's body hands over the
next value of what it carries, so that an accumulator is changed in place.
"""
from __future__ import annotations

from bisect import bisect_right

from kera_hw.cpu_gpu.machine.allocate import replaced, touched
from kera_hw.cpu_gpu.machine.code import Code, Inst, Item, Label, Mark, Reg, RegClass, VReg


def coalesce(code: Code, moves: frozenset[str]) -> None:
    """Takes such moves out. ``moves``: instructions that copy their second operand to the first."""
    found = _Coalescing(code.items)
    gone = {
        place for place, item in enumerate(code.items)
        if isinstance(item, Inst) and item.op in moves and found.is_one(item, place)
    }
    if gone:
        code.items = [
            found.renamed(item) if k in found.changed else item
            for k, item in enumerate(code.items) if k not in gone
        ]


class _Coalescing:
    def __init__(self, items: list[Item]) -> None:
        self._items = items
        self._named = _places(items)
        self._ends = [k for k, item in enumerate(items) if _is_control(item)]
        self._names: dict[VReg, VReg] = {}
        self.changed: set[int] = set()
        """Where registers are named that have another name now."""

    def _name(self, register: VReg) -> VReg:
        while register in self._names:
            register = self._names[register]
        return register

    def is_one(self, move: Inst, place: int) -> bool:
        """Whether both sides of a move can be one register; from then on they are."""
        target, source = move.operands[:2]
        if not (isinstance(target, VReg) and isinstance(source, VReg)) or target.cls is not source.cls:
            return False
        if target.cls is RegClass.GENERAL and move.size_bits < 64:
            return False  # it clears the upper half
        target, source = self._name(target), self._name(source)
        made, last = self._named[source][0], self._named[source][-1]
        if target == source or last != place or self._stretch(made) != self._stretch(place):
            return False
        maker = self._items[made]
        assert isinstance(maker, Inst)
        roles = [role for register, role in maker.accesses if self._is(register, source)]
        # What makes the source may read the target, for the last time.
        named = self._named[target]
        if roles != ["w"] or named[bisect_right(named, made)] != place:
            return False
        places = self._named.pop(source)
        self.changed.update(places)
        self._named[target] = sorted({*named, *places} - {place})
        self._names[source] = target
        return True

    def _is(self, register: Reg, named: VReg) -> bool:
        return isinstance(register, VReg) and self._name(register) == named

    def _stretch(self, place: int) -> int:
        """The number of the stretch without control that an item belongs to."""
        return bisect_right(self._ends, place)

    def renamed(self, item: Item) -> Item:
        if isinstance(item, Mark):
            return item
        by = {register: self._name(register) for register in touched(item)}
        operands = tuple([replaced(operand, by) for operand in item.operands])
        return Inst(item.op, operands, item.roles, item.size_bits, item.comment, item.place)


def _places(items: list[Item]) -> dict[VReg, list[int]]:
    """Where each register is named."""
    found: dict[VReg, list[int]] = {}
    for place, item in enumerate(items):
        if isinstance(item, Inst):
            for register in touched(item):
                found.setdefault(register, []).append(place)
    return found


def _is_control(item: Item) -> bool:
    return isinstance(item, Mark) or any(isinstance(operand, Label) for operand in item.operands)
