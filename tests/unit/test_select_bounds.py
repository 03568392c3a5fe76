"""What words do not exceed, held against random operands; and products written by that."""
from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count

import pytest

from kera_hw.cpu_gpu.select.bounds import RULES, Bounds
from kera_hw.loops.program import Block, Buffer, Literal, Load, LoopProgram, Op, Operand, Var
from kera_hw.types import IntType

WORD = IntType(64, False)
MASK = (1 << 64) - 1
_NUMBERS = count()
MEANINGS: dict[str, Callable[[int, int], int]] = {
    "bits.and": int.__and__, "bits.or": int.__or__, "bits.xor": int.__xor__,
    "integer.add": int.__add__, "integer.mul": int.__mul__, "integer.min": min, "integer.max": max,
}


def _bounds(*most: int) -> tuple[Bounds, list[Var]]:
    tables = tuple(
        Buffer(f"c{k}", WORD, (2,), "const", value.to_bytes(8, "little") + bytes(8))
        for k, value in enumerate(most)
    )
    bounds = Bounds(LoopProgram("f", tables, Block(())))
    variables = [Var(f"v{k}", WORD) for k in range(len(most))]
    for k, var in enumerate(variables):
        bounds.loaded(Load(var, f"c{k}", ()))
    return bounds, variables


def _after(bounds: Bounds, opcode: str, operands: tuple[Operand, ...]) -> int:
    result = Var(f"r{next(_NUMBERS)}", WORD)
    bounds.note(Op((result,), opcode, operands))
    found = bounds.of(result)
    assert found is not None
    return found


@pytest.mark.parametrize("opcode", sorted(MEANINGS))
def test_no_result_exceeds_its_bound(opcode: str) -> None:
    assert set(MEANINGS) == set(RULES)
    rng = random.Random(opcode)
    for _ in range(500):
        a, b = (rng.getrandbits(rng.randrange(1, 65)) for _ in range(2))
        bounds, (x, y) = _bounds(a, b)
        most = _after(bounds, opcode, (x, y))
        for left, right in ((a, b), (a, 0), (0, b), (rng.randint(0, a), rng.randint(0, b))):
            assert MEANINGS[opcode](left, right) & MASK <= most <= MASK


def test_shifts_selections_and_narrow_words() -> None:
    bounds, (x, y) = _bounds(1000, 5)
    assert _after(bounds, "bits.shr", (x, Literal(WORD, 3))) == 125
    assert _after(bounds, "bits.shr", (x, y)) == MASK
    assert _after(bounds, "control.select", (Var("c", IntType(1, False)), x, y)) == 1000
    assert _after(bounds, "convert.cast", (Var("n", IntType(16, False)),)) == 0xFFFF
    assert _after(bounds, "convert.cast", (Var("n", IntType(16, True)),)) == MASK
    assert bounds.of(Var("i", IntType(64, True))) is None
