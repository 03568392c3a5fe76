"""Checks an allocation without trust in what made it: every read finds the value that the code meant.

It follows which virtual register's value lies in each register and slot. Checked, along all paths:
- an instruction reads each virtual register from where its value is;
- at labels and at the ends of loops, values that are read later lie in one place whichever way was taken, as
  what differs between ways is forgotten there;
- a fetch reads the slot that holds the value, and nothing is kept in a scratch register;
- where code itself names a register of the machine, or an instruction reads one that it does not name, that
  holds no virtual register's value, as it would if one had been fetched there in between.
Not checked: that the instructions themselves are right.

After the checker of Cranelift's register allocator, for code that is structured.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from kera_hw.cpu_gpu.machine.allocate import Allocation
from kera_hw.cpu_gpu.machine.code import Fixed, Inst, Label, Mark, VReg
from kera_hw.cpu_gpu.machine.rewrite import RewriteStep

Place = Fixed | int
"""A register, or a slot by its number."""
Held = dict[Place, VReg]


@dataclass(frozen=True, slots=True)
class Unnamed:
    """Registers that an instruction reads and writes without their being among its operands."""

    reads: tuple[Fixed, ...] = ()
    writes: tuple[Fixed, ...] = ()


@dataclass(frozen=True, slots=True)
class _Accesses:
    """What an instruction reads, which value from which register; and what it leaves in which."""

    reads: tuple[tuple[VReg | None, Fixed], ...]
    writes: tuple[tuple[VReg | None, Fixed], ...]


class _State:
    """Whose value lies in each place, and where each value lies."""

    def __init__(self, held: Held) -> None:
        self.held = dict(held)
        self._places: dict[VReg, set[Place]] = {}
        for place, value in held.items():
            self._places.setdefault(value, set()).add(place)

    def put(self, place: Place, value: VReg | None) -> None:
        """In place of what was there; None is nothing that anybody may read."""
        before = self.held.pop(place, None)
        if before is not None:
            self._places[before].discard(place)
        if value is not None:
            self.held[place] = value
            self._places.setdefault(value, set()).add(place)

    def forget(self, value: VReg) -> None:
        """Wherever it was."""
        for place in self._places.pop(value, ()):
            del self.held[place]


class _Fault(Exception):
    pass


def check_allocation(
    steps: Sequence[RewriteStep], allocation: Allocation, jumps: Mapping[str, bool],
    unnamed: Mapping[str, Unnamed] = MappingProxyType({}),
) -> str | None:
    """What is wrong, or None. ``jumps``: instructions that go to a label; whether they may also not."""
    check = _Check(steps, allocation, jumps, unnamed)
    try:
        while check.changes():
            pass
    except _Fault as fault:
        return str(fault)
    return None


class _Check:
    def __init__(
        self, steps: Sequence[RewriteStep], allocation: Allocation, jumps: Mapping[str, bool],
        unnamed: Mapping[str, Unnamed],
    ) -> None:
        self._steps = steps
        self._slots = allocation.slots
        self._jumps = jumps
        self._accesses = [
            _accesses(step.before, step.after, unnamed) if isinstance(step.before, Inst) else None
            for step in steps
        ]
        self._at_labels: dict[Label, Held] = {}

    def changes(self) -> bool:
        """Goes through the code once; whether a label that lies behind has lost a value since, so that what
        follows it is to be seen again. States only lose values, so they settle."""
        state: _State | None = _State({})
        behind: set[Label] = set()
        changed = False
        for number, (step, accessed) in enumerate(zip(self._steps, self._accesses)):
            if accessed is not None:
                if state is None:
                    continue  # nothing gets here
                assert isinstance(step.before, Inst)
                _instruction(step.before, accessed, state, number)
                if step.before.op in self._jumps:
                    (label,) = (operand for operand in step.before.operands if isinstance(operand, Label))
                    changed |= self._meet(label, state) and label in behind
                    state = state if self._jumps[step.before.op] else None
            elif isinstance(step.before, Mark):
                label = step.before.label
                if step.before.kind == "label" and label is not None:
                    if state is not None:
                        self._meet(label, state)
                    held = self._at_labels.get(label)
                    state = None if held is None else _State(held)
                    behind.add(label)
            elif state is not None:
                self._move(step, state, number)
        return changed

    def _move(self, step: RewriteStep, state: _State, number: int) -> None:
        """Between a register and a slot."""
        assert step.moved is not None and step.register is not None
        slot = self._slots[step.moved]
        source, target = (slot, step.register) if step.kind == "fetch" else (step.register, slot)
        if state.held.get(source) != step.moved:
            raise _Fault(f"step {number}: {source} does not hold {step.moved}")
        state.put(target, step.moved)

    def _meet(self, label: Label, state: _State) -> bool:
        """One more way to a label; whether other values are told to lie in places there than before."""
        known = self._at_labels.get(label)
        if known is None:
            self._at_labels[label] = dict(state.held)
            return True
        held = state.held
        lost = [at for at, one in known.items() if (other := held.get(at)) is not one and other != one]
        for at in lost:
            del known[at]
        return bool(lost)


def _accesses(before: Inst, after: Inst | None, unnamed: Mapping[str, Unnamed]) -> _Accesses:
    assert after is not None
    reads: list[tuple[VReg | None, Fixed]] = []
    writes: list[tuple[VReg | None, Fixed]] = []
    more = unnamed.get(before.op)
    if more is not None:
        reads += [(None, register) for register in more.reads]
        writes += [(None, register) for register in more.writes]
    for (meant, role), (register, _) in zip(before.accesses, after.accesses, strict=True):
        value = meant if isinstance(meant, VReg) else None
        assert isinstance(register, Fixed)
        if role != "w" and (value is not None or before.operands.count(meant) == 1):  # else it is `x ^ x`
            reads.append((value, register))
        if role != "r":
            writes.append((value, register))
    return _Accesses(tuple(reads), tuple(writes))


def _instruction(inst: Inst, accessed: _Accesses, state: _State, number: int) -> None:
    for value, register in accessed.reads:
        found = state.held.get(register)
        if found is not value and found != value:
            what = f"{value} from {register}, which holds another" if value is not None else \
                f"{register}, where {found} was fetched to"
            raise _Fault(f"step {number}: {inst.op} reads {what}")
    for written, register in accessed.writes:
        if written is not None:
            state.forget(written)  # older values of the same name are gone, wherever they were
        state.put(register, written)
