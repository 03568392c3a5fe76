"""What the operators of terms compute on numbers: for folding constants and for checking counterexamples."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

# (operand values, operand widths, parameters, result width) -> value, not yet reduced to the width
Rule = Callable[[Sequence[int], Sequence[int], Sequence[int | str], int], int]


def signed(value: int, width: int) -> int:
    """The pattern read as a two's complement number."""
    return value - (1 << width) if value >> (width - 1) else value


def _divide(a: int, b: int, width: int) -> int:
    return a // b if b else (1 << width) - 1


def _concat(values: Sequence[int], widths: Sequence[int]) -> int:
    total, position = 0, 0
    for value, width in zip(values, widths):
        total |= value << position
        position += width
    return total


OPERATORS: Mapping[str, Rule] = {
    "not": lambda v, w, p, n: ~v[0],
    "and": lambda v, w, p, n: v[0] & v[1],
    "or": lambda v, w, p, n: v[0] | v[1],
    "xor": lambda v, w, p, n: v[0] ^ v[1],
    "neg": lambda v, w, p, n: -v[0],
    "add": lambda v, w, p, n: v[0] + v[1],
    "sub": lambda v, w, p, n: v[0] - v[1],
    "mul": lambda v, w, p, n: v[0] * v[1],
    "udiv": lambda v, w, p, n: _divide(v[0], v[1], n),
    "urem": lambda v, w, p, n: v[0] % v[1] if v[1] else v[0],
    "shl": lambda v, w, p, n: v[0] << v[1] if v[1] < n else 0,
    "lshr": lambda v, w, p, n: v[0] >> v[1],
    "ashr": lambda v, w, p, n: signed(v[0], n) >> min(v[1], n),
    "concat": lambda v, w, p, n: _concat(v, w),
    "extract": lambda v, w, p, n: v[0] >> int(p[0]),
    "zext": lambda v, w, p, n: v[0],
    "sext": lambda v, w, p, n: signed(v[0], w[0]),
    "ite": lambda v, w, p, n: v[1] if v[0] else v[2],
    "eq": lambda v, w, p, n: int(v[0] == v[1]),
    "ult": lambda v, w, p, n: int(v[0] < v[1]),
    "ule": lambda v, w, p, n: int(v[0] <= v[1]),
    "slt": lambda v, w, p, n: int(signed(v[0], w[0]) < signed(v[1], w[1])),
    "sle": lambda v, w, p, n: int(signed(v[0], w[0]) <= signed(v[1], w[1])),
}
