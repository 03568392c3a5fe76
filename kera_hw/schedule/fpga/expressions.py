"""Bitwise expressions over the operands of a cell, and what they depend on."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, cast

from kera_hw.schedule.fpga.bits import Bits

# As nested tuples over operand positions:
# ("in", k) | ("not", e) | ("and", e, e, ...) | ("or", e, ...) | ("xor", e, ...) | ("mux", cond, then, else)
# | ("const", 0 or 1)
BitExpr = tuple[object, ...]

Constants = tuple[int | None, ...]  # per operand the constant 0 or 1, or None for a signal


def evaluate(expr: BitExpr, operands: Sequence[Any], ones: int) -> Any:
    """``expr`` on integers or arrays of them, bit by bit; true is ``ones``, a mask of their width."""
    head, *arguments = expr
    if head == "in":
        return operands[cast("int", arguments[0])]
    if head == "const":
        return ones if arguments[0] else 0
    values = [evaluate(cast("BitExpr", part), operands, ones) for part in arguments]
    if head == "not":
        return values[0] ^ ones
    if head == "mux":
        return values[0] & values[1] | (values[0] ^ ones) & values[2]
    result = values[0]
    for value in values[1:]:
        if head == "and":
            result = result & value
        elif head == "or":
            result = result | value
        elif head == "xor":
            result = result ^ value
        else:
            raise ValueError(f"unknown bit expression {head!r}")
    return result


def truth_table(expr: BitExpr, count: int) -> int:
    """The function of ``count`` operands: bit a + 2 b + 4 c ... is its value where they are a, b, c ..."""
    return evaluate(expr, [input_column(k, count) for k in range(count)], (1 << (1 << count)) - 1)


@cache
def input_column(position: int, count: int) -> int:
    """The truth table of input ``position`` among ``count`` inputs: bit i is bit ``position`` of i."""
    block = ((1 << (1 << position)) - 1) << (1 << position)
    table = 0
    for start in range(0, 1 << count, 2 << position):
        table |= block << start
    return table


@cache
def support_size(expr: BitExpr, constants: Constants) -> int:
    """How many operands ``expr`` depends on when some are constant (0 or 1; None: a signal)."""
    signals = [k for k, constant in enumerate(constants) if constant is None]
    count = len(signals)
    ones = (1 << (1 << count)) - 1
    columns = [ones if constant else 0 for constant in constants]
    for place, k in enumerate(signals):
        columns[k] = input_column(place, count)
    return table_support(evaluate(expr, columns, ones), count)


def table_support(table: int, count: int) -> int:
    """How many of its ``count`` inputs a truth table depends on."""
    used = 0
    for place in range(count):
        high = input_column(place, count)
        used += (table & high) >> (1 << place) != table & ~high & ((1 << (1 << count)) - 1)
    return used


def constant_runs(operands: tuple[Bits, ...], width: int) -> Iterator[tuple[int, int, Constants]]:
    """Runs of bits for which every operand is a signal or one constant: (low, width, constants)."""
    rows = [list(constants(bits, width)) for bits in operands]
    position = 0
    while position < width:
        column = tuple(row[position] for row in rows)
        end = position + 1
        while end < width and all(row[end] == value for row, value in zip(rows, column)):
            end += 1
        yield position, end - position, column
        position = end


def constants(bits: Bits, width: int) -> Sequence[int | None]:
    """One entry a bit: 0 or 1 for constants, None for signals; single bits spread to the width."""
    row: list[int | None] = []
    for segment in bits:
        if segment.cell is None:
            row += [segment.low >> i & 1 for i in range(segment.width)]
        else:
            row += [None] * segment.width
    return row * width if len(row) == 1 else row
