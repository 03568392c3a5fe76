"""Checks an allocation without trust in what made it: every read finds the value that the code meant.

It follows which virtual register's value lies in each register and slot. Checked, along all paths:
- an instruction reads each virtual register from where its value is;
- at labels and at the ends of loops, values that are read later lie in one place whichever way was taken, as
  what differs between ways is forgotten there;
- a fetch reads the slot that holds the value, and nothing is kept in a scratch register.
Not checked: that the instructions themselves are right.

After the checker of Cranelift's register allocator, for code that is structured.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from kera_hw.cpu_gpu.machine.allocate import Allocation
from kera_hw.cpu_gpu.machine.code import Fixed, Inst, Label, Mark, VReg, accesses
from kera_hw.cpu_gpu.machine.rewrite import RewriteStep

Place = Fixed | int
"""A register, or a slot by its number."""
Held = dict[Place, VReg]


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
    steps: Sequence[RewriteStep], allocation: Allocation, jumps: Mapping[str, bool]
) -> str | None:
    """What is wrong, or None. ``jumps``: instructions that go to a label; whether they may also not."""
    at_labels: dict[Label, Held] = {}
    for _ in range(len(steps) + 2):
        before = {label: dict(state) for label, state in at_labels.items()}
        try:
            _pass(steps, allocation, jumps, at_labels)
        except _Fault as fault:
            return str(fault)
        if before == at_labels:
            return None
    raise AssertionError("states only lose values, so they settle")


def _pass(
    steps: Sequence[RewriteStep], allocation: Allocation, jumps: Mapping[str, bool],
    at_labels: dict[Label, Held],
) -> None:
    state: _State | None = _State({})
    for number, step in enumerate(steps):
        if isinstance(step.before, Mark):
            if step.before.kind == "label" and step.before.label is not None:
                state = _met(at_labels, step.before.label, state)
            continue
        if state is None:
            continue  # nothing gets here
        if step.kind == "inst":
            assert isinstance(step.before, Inst) and step.after is not None
            _instruction(step.before, step.after, state, number)
            if step.before.op in jumps:
                (label,) = (operand for operand in step.before.operands if isinstance(operand, Label))
                _met(at_labels, label, state)
                state = state if jumps[step.before.op] else None
            continue
        assert step.moved is not None and step.register is not None
        slot = allocation.slots[step.moved]
        source, target = (slot, step.register) if step.kind == "fetch" else (step.register, slot)
        if state.held.get(source) != step.moved:
            raise _Fault(f"step {number}: {source} does not hold {step.moved}")
        state.put(target, step.moved)


def _met(at_labels: dict[Label, Held], label: Label, state: _State | None) -> _State | None:
    """The state at a label, with one more way there; None where nothing has led there yet."""
    known = at_labels.get(label)
    if state is not None:
        held = state.held
        same = dict(held) if known is None else {at: one for at, one in known.items() if held.get(at) == one}
        at_labels[label] = known = same
    return None if known is None else _State(known)


def _instruction(before: Inst, after: Inst, state: _State, number: int) -> None:
    pairs = list(zip(accesses(before), accesses(after), strict=True))
    for (meant, role), (register, _) in pairs:
        if isinstance(meant, VReg) and role != "w":
            assert isinstance(register, Fixed)
            if state.held.get(register) != meant:
                raise _Fault(f"step {number}: {before.op} reads {meant} from {register}, which holds another")
    for (meant, role), (register, _) in pairs:
        if role != "r":
            assert isinstance(register, Fixed)
            if isinstance(meant, VReg):
                state.forget(meant)  # older values of the same name are gone, wherever they were
            state.put(register, meant if isinstance(meant, VReg) else None)
