"""Register allocation: random code by simulation, spilled and not; the checker catches what is planted."""
from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from kera_hw.cpu_gpu.machine.allocate import Allocation, RegisterFile, allocate
from kera_hw.cpu_gpu.machine.check import Unnamed, check_allocation
from kera_hw.cpu_gpu.machine.code import Code, Fixed, Inst, Mark, Operand, RegClass, VReg
from kera_hw.cpu_gpu.machine.rewrite import RewriteStep, rewritten

G = RegClass.GENERAL
JUMPS = {"jump": False, "branch": True}
_MASK = (1 << 64) - 1


def files(count: int) -> RegisterFile:
    return RegisterFile({G: tuple(range(3, 3 + count))}, {G: (0, 1, 2)}, frozenset({"mov"}))


class Machine:
    """Runs code over virtual or fixed registers: a tiny machine of our own, with slots."""

    def __init__(self) -> None:
        self.values: dict[object, int] = {}

    def run(self, items: Sequence[tuple[str, tuple[object, ...]]], most: int = 20_000) -> list[int]:
        labels = {operands[0]: k for k, (op, operands) in enumerate(items) if op == "label"}
        out: list[int] = []
        place = 0
        for _ in range(most):
            if place == len(items):
                return out
            op, operands = items[place]
            place += 1
            match op:
                case "set":
                    self.values[operands[0]] = int(operands[1])  # type: ignore[call-overload]
                case "mov":
                    self.values[operands[0]] = self.values[operands[1]]
                case "mix":
                    a, b = self.values[operands[1]], self.values[operands[2]]
                    self.values[operands[0]] = (a * 6364136223846793005 + b) & _MASK
                case "step":
                    self.values[operands[0]] = (self.values[operands[0]] - 1) & _MASK
                case "out":
                    out.append(self.values[operands[0]])
                case "branch":
                    place = labels[operands[1]] if self.values[operands[0]] else place
                case "jump":
                    place = labels[operands[0]]
                case _:
                    assert op == "label"
        raise AssertionError("the code does not end")


def _put(code: Code, op: str, roles: str, *operands: Operand) -> None:
    code.items.append(Inst(op, operands, tuple(roles)))


def random_code(seed: int) -> Code:
    """Straight lines, loops and branches; values from before loops are used and changed within."""
    below = random.Random(seed)
    code = Code()
    made: list[VReg] = []

    def fresh() -> VReg:
        made.append(code.vreg(G))
        return made[-1]

    def lines(count: int, depth: int) -> None:
        for _ in range(count):
            kind = below.random()
            if kind < 0.12 and depth < 3:
                counter = code.vreg(G)
                _put(code, "set", "wr", counter, below.randrange(1, 4))
                code.items.append(Mark("loop"))
                start = code.label()
                code.place(start)
                known = len(made)
                lines(below.randrange(1, 6), depth + 1)
                del made[known:]
                _put(code, "step", "m", counter)
                _put(code, "branch", "rr", counter, start)
                code.items.append(Mark("end"))
            elif kind < 0.2 and depth < 3:
                other, after = code.label(), code.label()
                _put(code, "branch", "rr", below.choice(made), other)
                known = len(made)
                lines(below.randrange(1, 4), depth + 1)
                del made[known:]
                _put(code, "jump", "r", after)
                code.place(other)
                lines(below.randrange(1, 4), depth + 1)
                del made[known:]
                code.place(after)
            elif kind < 0.35:
                _put(code, "mov", "wr", below.choice(made), below.choice(made))
            elif kind < 0.45:
                _put(code, "out", "r", below.choice(made))
            else:
                a, b = below.choice(made), below.choice(made)
                _put(code, "mix", "wrr", below.choice(made) if below.random() < 0.3 else fresh(), a, b)

    for k in range(below.randrange(2, 9)):
        _put(code, "set", "wr", fresh(), k + 1)
    lines(40, 0)
    for one in made:
        _put(code, "out", "r", one)
    return code


def meant(code: Code) -> list[tuple[str, tuple[object, ...]]]:
    """The code as it was written."""
    found: list[tuple[str, tuple[object, ...]]] = []
    for item in code.items:
        if isinstance(item, Inst):
            found.append((item.op, item.operands))
        elif item.kind == "label":
            found.append(("label", (item.label,)))
    return found


def made_of(steps: Sequence[RewriteStep], allocation: Allocation) -> list[tuple[str, tuple[object, ...]]]:
    """What it became."""
    found: list[tuple[str, tuple[object, ...]]] = []
    for step in steps:
        if isinstance(step.before, Mark):
            if step.before.kind == "label":
                found.append(("label", (step.before.label,)))
        elif step.kind == "inst":
            assert step.after is not None
            found.append((step.after.op, step.after.operands))
        else:
            assert step.moved is not None
            slot, register = allocation.slots[step.moved], step.register
            found.append(("mov", (register, slot) if step.kind == "fetch" else (slot, register)))
    return found


@pytest.mark.parametrize("count", [1, 2, 4, 9])
@pytest.mark.parametrize("seed", range(40))
def test_random_code(seed: int, count: int) -> None:
    """It computes what it computed, and the checker has nothing against it."""
    code = random_code(seed)
    allocation = allocate(code, files(count))
    steps = list(rewritten(code, allocation, files(count)))
    assert check_allocation(steps, allocation, JUMPS) is None
    assert Machine().run(made_of(steps, allocation)) == Machine().run(meant(code))


def _long_code(values: int, lived: int) -> Code:
    """A straight line of values, each of which is last read ``lived`` values on."""
    code = Code()
    made = [code.vreg(G) for _ in range(values)]
    for k, register in enumerate(made):
        _put(code, "set", "wr", register, k)
        if k >= lived:
            _put(code, "out", "r", made[k - lived])
    return code


def test_a_slot_serves_one_after_another() -> None:
    allocation = allocate(_long_code(400, 10), files(4))
    assert len(allocation.slots) > 200
    assert allocation.slot_count <= 11


def test_work_grows_as_the_code() -> None:
    """Ten times the code, all of it alive at once: a search through all places would take a hundred times."""

    def lines_run(count: int) -> int:
        code, lines = _long_code(count, count // 2), 0

        def trace(_frame: FrameType, event: str, _argument: object) -> Any:
            nonlocal lines
            lines += event == "line"  # each round of a loop is one, on one line too
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            allocation = allocate(code, files(4))
            fault = check_allocation(list(rewritten(code, allocation, files(4))), allocation, JUMPS)
        finally:
            sys.settrace(before)
        assert fault is None
        return lines

    assert lines_run(2000) < 20 * lines_run(200)


def _other_register(step: RewriteStep) -> RewriteStep:
    """An instruction that reads from another register."""
    assert step.after is not None
    operands = tuple(
        Fixed(operand.number ^ 1, G) if isinstance(operand, Fixed) and role != "w" else operand
        for operand, role in zip(step.after.operands, step.after.roles)
    )
    return replace(step, after=replace(step.after, operands=operands))


def _reads(step: RewriteStep) -> bool:
    return step.kind == "inst" and isinstance(step.before, Inst) and step.before.op in ("mix", "out")


PLANTED: dict[str, Callable[[list[RewriteStep]], list[RewriteStep] | None]] = {
    "another register is read": lambda steps: next(
        ([*steps[:k], _other_register(one), *steps[k + 1 :]] for k, one in enumerate(steps) if _reads(one)),
        None,
    ),
    "a fetch is missing": lambda steps: next(
        ([*steps[:k], *steps[k + 1 :]] for k, step in enumerate(steps) if step.kind == "fetch"), None
    ),
    "what is spilled is not put back": lambda steps: next(
        ([*steps[:k], *steps[k + 1 :]] for k, step in enumerate(steps) if step.kind == "put"), None
    ),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_fault_is_found(what: str) -> None:
    """Or is none: a fetch may fetch what is there already, and then nothing changes."""
    found = 0
    for seed in range(16):
        code = random_code(seed)
        allocation = allocate(code, files(3))
        steps = PLANTED[what](list(rewritten(code, allocation, files(3))))
        if steps is not None and check_allocation(steps, allocation, JUMPS) is None:
            assert Machine().run(made_of(steps, allocation)) == Machine().run(meant(code)), seed
        elif steps is not None:
            found += 1
    assert found >= 6


def test_intervals_that_overlap_may_not_share_a_register() -> None:
    """Given one register, two values that are both read later are told apart."""
    code = Code()
    a, b = code.vreg(G), code.vreg(G)
    _put(code, "set", "wr", a, 1)
    _put(code, "set", "wr", b, 2)
    _put(code, "out", "r", a)
    _put(code, "out", "r", b)
    same = Allocation({a: 3, b: 3}, {}, 0)
    steps = list(rewritten(code, same, files(1)))
    assert "holds another" in (check_allocation(steps, same, JUMPS) or "")


def test_nothing_is_fetched_to_a_register_whose_value_is_read_later() -> None:
    """Read by name, or without one as counts of shifts are."""
    fixed = Fixed(1, G)
    for op, operands, unnamed in (("out", (fixed,), {}), ("shift", (), {"shift": Unnamed(reads=(fixed,))})):
        code = Code()
        a, b, c = (code.vreg(G) for _ in range(3))
        for k, register in enumerate((a, b, c)):
            _put(code, "set", "wr", register, k)
        between = len(code.items)
        _put(code, "mov", "wr", fixed, a)
        _put(code, op, "r" * len(operands), *operands)
        spilled = allocate(code, files(0))
        steps = list(rewritten(code, spilled, files(0)))
        assert check_allocation(steps, spilled, JUMPS, unnamed) is None
        code.items.insert(between + 1, Inst("mix", (a, b, c), ("w", "r", "r")))
        spilled = allocate(code, files(0))
        steps = list(rewritten(code, spilled, files(0)))
        assert "was fetched to" in (check_allocation(steps, spilled, JUMPS, unnamed) or "")
