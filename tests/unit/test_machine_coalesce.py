"""Moves that only rename: gone from a loop's accumulators, kept where both values are needed."""
from __future__ import annotations

import pytest

from kera_hw.cpu_gpu.machine.coalesce import coalesce
from kera_hw.cpu_gpu.machine.code import Code, Inst, Mark, Operand, RegClass
from tests.unit.test_machine_allocation import Machine, meant, random_code

G = RegClass.GENERAL
MOVES = frozenset({"mov"})
_ROLES = {"set": ("w", "r"), "mov": ("w", "r"), "mix": ("w", "r", "r"), "step": ("m",), "out": ("r",)}


def _put(code: Code, op: str, *operands: Operand) -> None:
    code.items.append(Inst(op, operands, _ROLES[op], 64))


def _ops(code: Code) -> list[str]:
    return [item.op for item in code.items if isinstance(item, Inst)]


def test_an_accumulator_is_changed_in_place() -> None:
    code = Code()
    total, factor = code.vreg(G), code.vreg(G)
    _put(code, "set", total, 1)
    _put(code, "set", factor, 3)
    code.items.append(Mark("loop"))
    copied = code.vreg(G)
    _put(code, "mov", copied, total)
    _put(code, "mix", copied, copied, factor)
    _put(code, "mov", total, copied)
    code.items.append(Mark("end"))
    _put(code, "out", total)
    coalesce(code, MOVES)
    assert [item.operands for item in code.items if isinstance(item, Inst) and item.op == "mix"] == [
        (total, total, factor)
    ]


def test_values_that_change_places_keep_a_move() -> None:
    code = Code()
    a, b, first, second = (code.vreg(G) for _ in range(4))
    for register, value in ((a, 1), (b, 2)):
        _put(code, "set", register, value)
    _put(code, "mov", first, b)
    _put(code, "mov", second, a)
    _put(code, "mov", a, first)
    _put(code, "mov", b, second)
    _put(code, "out", a)
    _put(code, "out", b)
    coalesce(code, MOVES)
    assert Machine().run(meant(code)) == [2, 1]


def test_a_move_of_half_a_register_stays() -> None:
    code = Code()
    a, b = code.vreg(G), code.vreg(G)
    _put(code, "set", b, 1 << 40)
    code.items.append(Inst("mov", (a, b), ("w", "r"), 32))
    _put(code, "out", a)
    coalesce(code, MOVES)
    assert _ops(code) == ["set", "mov", "out"]


@pytest.mark.parametrize("seed", range(120))
def test_random_code_computes_what_it_computed(seed: int) -> None:
    code = random_code(seed)
    wanted = Machine().run(meant(code))
    before = _ops(code).count("mov")
    coalesce(code, MOVES)
    assert Machine().run(meant(code)) == wanted
    assert _ops(code).count("mov") <= before


def test_some_moves_of_random_code_go() -> None:
    left = removed = 0
    for seed in range(40):
        code = random_code(seed)
        before = _ops(code).count("mov")
        coalesce(code, MOVES)
        left += _ops(code).count("mov")
        removed += before - _ops(code).count("mov")
    assert left and removed
