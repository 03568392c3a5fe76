"""Checks that a loop program is native, without trust in what made it.

Checked:
- every operation is in the native set, or among what the machine has as well;
- no division meets a divisor at which a machine stops: by ranges, or by the selection that gives the divisor;
- elements of buffers have types that memory has.

Not checked: that nobody sees the bits of a NaN, or what lies beyond a domain that no machine stops at; that
depends on values. The tests run native programs on a machine that does its worst there.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping

from kera_hw.legal.native import NATIVE, NOTHING_MORE, STORED, Domain, Native, Signature
from kera_hw.loops.program import Alloc, Literal, LoopProgram, Op, Operand, Var, statements
from kera_hw.loops.spans import operand_span, spans_within
from kera_hw.ops.intervals import Interval
from kera_hw.types import IntType


def verify_native(program: LoopProgram, extra: Native = NOTHING_MORE) -> list[str]:
    """What is not native, each a sentence; empty for a native program."""
    return list(_faults(program, {**NATIVE, **extra}))


def _faults(program: LoopProgram, native: Native) -> Iterator[str]:
    for buffer in program.buffers:
        if buffer.element not in STORED:
            yield f"`{buffer.name}` has elements of {buffer.element}, which no memory has."
    divisors = _Divisors(program)
    for statement in statements(program.body):
        match statement:
            case Alloc(buffer=buffer) if buffer.element not in STORED:
                yield f"`{buffer.name}` has elements of {buffer.element}, which no memory has."
            case Op(results=(result,), operands=operands, opcode=opcode):
                signature = Signature(opcode, tuple(operand.type for operand in operands), result.type)
                domain = native.get(signature)
                if domain is None:
                    yield f"`{result.name}`: `{signature}` is not native."
                elif domain is Domain.SAFE_DIVISOR and not divisors.is_safe(result, operands):
                    yield f"`{result.name}`: a machine may stop at this division."
            case Op():
                yield f"`{statement.opcode}` has {len(statement.results)} results, but a machine gives one."
            case _:
                pass


class _Divisors:
    """Whether a divisor is 0, or -1 under the least dividend."""

    def __init__(self, program: LoopProgram) -> None:
        self._spans: Mapping[Var, Interval] = spans_within(program.body)
        self._made = {
            result: statement for statement in statements(program.body) if isinstance(statement, Op)
            for result in statement.results
        }

    def is_safe(self, quotient: Var, operands: tuple[Operand, ...]) -> bool:
        if quotient not in self._spans:  # in a loop without rounds
            return True
        dividend, divisor = operands
        kind = divisor.type
        assert isinstance(kind, IntType)
        asked, value = self._asked(divisor)
        zero = (value, 0)
        if self._has(value, 0) and zero not in asked:
            return False
        if not kind.signed or not self._has(value, -1) or not self._has(dividend, kind.min):
            return True
        return (value, -1) in asked or (dividend, kind.min, value, -1) in asked

    def _asked(self, divisor: Operand) -> tuple[set[tuple[object, ...]], Operand]:
        """Of a divisor that is a harmless constant or a value: what is asked to choose, and the value."""
        made = self._made.get(divisor) if isinstance(divisor, Var) else None
        if made is None or made.opcode != "control.select":
            return set(), divisor
        condition, then, otherwise = made.operands
        if not isinstance(then, Literal) or _number(then) in (0, -1):
            return set(), divisor
        return set(self._questions(condition)), otherwise

    def _questions(self, condition: Operand) -> Iterator[tuple[object, ...]]:
        """What each part of a disjunction compares with which number; two numbers of a conjunction."""
        made = self._made.get(condition) if isinstance(condition, Var) else None
        if made is None:
            return
        if made.opcode == "bits.or":
            for part in made.operands:
                yield from self._questions(part)
        elif made.opcode == "bits.and":
            one, other = (list(self._questions(part)) for part in made.operands)
            yield from (a + b for a in one for b in other)
        elif made.opcode == "compare.eq" and isinstance(made.operands[1], Literal):
            yield made.operands[0], _number(made.operands[1])

    def _has(self, operand: Operand, number: int) -> bool:
        span = operand_span(operand, self._spans)
        return span is None or span.low <= number <= span.high


def _number(item: Literal) -> int:
    assert isinstance(item.type, IntType)
    return item.type.wrap(item.bits)
