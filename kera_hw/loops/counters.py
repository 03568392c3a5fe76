"""Sums of counters: scalars that are index expressions, and what these run through."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from kera_hw.loops.program import COUNTER, Affine, Literal, Op, Operand, Var, of_var
from kera_hw.loops.rewrite import as_affine
from kera_hw.loops.spans import Ranges, affine_span
from kera_hw.ops.intervals import Interval, type_interval
from kera_hw.types import IntType


class Counters:
    """What is computed with counters, as sums of them. ``counts``: which scalars count as such."""

    def __init__(self, spans: Ranges, counts: Callable[[Var], bool]) -> None:
        self.spans = spans
        self._counts = counts
        self._sums: dict[Var, Affine] = {}

    def note(self, op: Op) -> Affine | None:
        """The sum that a result is, where it does not wrap."""
        if op.opcode not in _SUMS:
            return None
        (result,) = op.results
        if not isinstance(result.type, IntType):
            return None
        parts: list[Affine] = []
        for operand in op.operands:
            part = self.of(operand)
            if part is None:
                return None
            parts.append(part)
        total, able = _summed(op.opcode, parts), type_interval(result.type)
        if total is None or able is None or not self.fits(total, able):
            return None
        self._sums[result] = total
        return total

    def of(self, operand: Operand) -> Affine | None:
        """A scalar as a sum of counters."""
        if isinstance(operand, Literal):
            return as_affine(operand) if isinstance(operand.type, IntType) else None
        known = self._sums.get(operand)
        if known is None and self._counts(operand):
            return of_var(operand)
        return known

    def fits(self, expression: Affine, within: Interval) -> bool:
        span = affine_span(expression, self.spans)
        return span is not None and span.within(within)

    def difference(self, op: Op) -> Affine | None:
        """Of what a comparison compares."""
        a, b = map(self.of, op.operands)
        return None if a is None or b is None else a - b


_SUMS = frozenset({"convert.cast", "integer.add", "integer.sub", "integer.mul", "bits.shl"})


def _summed(opcode: str, parts: Sequence[Affine]) -> Affine | None:
    match opcode, parts:
        case "convert.cast", [part]:
            return part
        case "integer.add", [one, two]:
            return one + two
        case "integer.sub", [one, two]:
            return one - two
        case "integer.mul", [Affine(terms=()) as one, two]:
            return two * one.constant
        case "integer.mul", [one, Affine(terms=()) as two]:
            return one * two.constant
        case "bits.shl", [one, Affine(terms=()) as two] if 0 <= two.constant < COUNTER.width_bits:
            return one * (1 << two.constant)
        case _:
            return None
