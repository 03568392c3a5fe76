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
from kera_hw.cpu_gpu.machine.rewrite import Step

Place = Fixed | int
"""A register, or a slot by its number."""
State = dict[Place, VReg]


class _Fault(Exception):
    pass


def check_allocation(
    steps: Sequence[Step], allocation: Allocation, jumps: Mapping[str, bool]
) -> str | None:
    """What is wrong, or None. ``jumps``: instructions that go to a label; whether they may also not."""
    at_labels: dict[Label, State] = {}
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
    steps: Sequence[Step], allocation: Allocation, jumps: Mapping[str, bool], at_labels: dict[Label, State]
) -> None:
    state: State | None = {}
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
        if state.get(source) != step.moved:
            raise _Fault(f"step {number}: {source} does not hold {step.moved}")
        state[target] = step.moved


def _met(at_labels: dict[Label, State], label: Label, state: State | None) -> State | None:
    """The state at a label, with one more way there; None where nothing has led there yet."""
    known = at_labels.get(label)
    if state is not None:
        same = {place: value for place, value in state.items() if known is None or known.get(place) == value}
        at_labels[label] = known = same
    return None if known is None else dict(known)


def _instruction(before: Inst, after: Inst, state: State, number: int) -> None:
    for (meant, role), (register, _) in zip(accesses(before), accesses(after), strict=True):
        if isinstance(meant, VReg) and role != "w":
            assert isinstance(register, Fixed)
            if state.get(register) != meant:
                raise _Fault(f"step {number}: {before.op} reads {meant} from {register}, which holds another")
    written = [
        (meant, register) for (meant, role), (register, _) in zip(accesses(before), accesses(after))
        if role != "r"
    ]
    for meant, register in written:
        assert isinstance(register, Fixed)
        for place in [place for place, value in state.items() if value == meant or place == register]:
            del state[place]  # older values of the same name are gone, wherever they were
        if isinstance(meant, VReg):
            state[register] = meant
