"""Straight-line programs over f64, 64-bit words and flags: the form every elementary function is kept in.

An algorithm is written once as a plain Python function over the three value classes below. Tracing it gives
a ``Trace``, a list of steps without branches, which NumPy runs here, which a checker prints as C++, and
which a target lowers to its own instructions. Each step is one IEEE 754 operation on f64, one operation on
64-bit words modulo 2^64, a comparison, a selection or a table lookup, so that every executor gives the same
bits. Only programs for machines that have it (``fused``) ask for an fma.
"""
from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

SIGN_BIT = 1 << 63
WORD_MASK = (1 << 64) - 1
# Added to |x| < 2^51 this leaves the nearest integer (ties to even) in the low bits of the sum.
ROUNDER = 6755399441055744.0  # 1.5 * 2^52


class Sort(StrEnum):
    """What a value is: a binary64 number, a 64-bit word, or a truth value."""

    REAL = "real"
    WORD = "word"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One operation: its verb, the sort of its result, the earlier steps it reads, and a parameter.

    ``parameter`` is the bits of a constant, a shift distance, or the index of a table.
    """

    verb: str
    sort: Sort
    arguments: tuple[int, ...]
    parameter: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """A constant table of a power-of-two length; every entry is the 64 bits of a word or an f64."""

    sort: Sort
    entries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """Steps in order. The first is the argument, an f64; ``result`` is the step that holds the value."""

    steps: tuple[TraceStep, ...]
    tables: tuple[Table, ...]
    result: int


def real_bits(value: float) -> int:
    """The 64 bits of an f64."""
    return int.from_bytes(struct.pack("<d", value), "little")


def bits_real(bits: int) -> float:
    """The f64 of 64 bits."""
    return struct.unpack("<d", bits.to_bytes(8, "little"))[0]


class Recorder:
    """Collects steps; an equal step is recorded once."""

    def __init__(self) -> None:
        self.steps: list[TraceStep] = []
        self.tables: list[Table] = []
        self._known: dict[TraceStep, int] = {}

    def add(self, step: TraceStep) -> int:
        index = self._known.get(step)
        if index is None:
            index = self._known[step] = len(self.steps)
            self.steps.append(step)
        return index

    def table(self, table: Table) -> int:
        if table not in self.tables:
            assert len(table.entries) & (len(table.entries) - 1) == 0
            self.tables.append(table)
        return self.tables.index(table)


class Value:
    """A step of the program being traced."""

    __slots__ = ("index", "recorder")

    def __init__(self, recorder: Recorder, index: int) -> None:
        self.recorder = recorder
        self.index = index

    def _step(self, verb: str, sort: Sort, *others: Value, parameter: int = 0) -> int:
        arguments = (self.index, *(other.index for other in others))
        return self.recorder.add(TraceStep(verb, sort, arguments, parameter))


class Flag(Value):
    """A truth value."""

    def __and__(self, other: Flag) -> Flag:
        return Flag(self.recorder, self._step("both", Sort.FLAG, other))

    def __or__(self, other: Flag) -> Flag:
        return Flag(self.recorder, self._step("either", Sort.FLAG, other))

    def real(self, yes: Real, no: Real | float) -> Real:
        """``yes`` where true, else ``no``."""
        return Real(self.recorder, self._step("select", Sort.REAL, yes, yes.like(no)))

    def word(self, yes: Word, no: Word | int) -> Word:
        """``yes`` where true, else ``no``."""
        return Word(self.recorder, self._step("select", Sort.WORD, yes, yes.like(no)))


class Word(Value):
    """A 64-bit word; arithmetic is modulo 2^64."""

    def like(self, value: Word | int) -> Word:
        """The value as a word of the same program."""
        if isinstance(value, Word):
            return value
        return Word(self.recorder, self.recorder.add(TraceStep("word", Sort.WORD, (), value & WORD_MASK)))

    def _word(self, verb: str, other: Word | int) -> Word:
        return Word(self.recorder, self._step(verb, Sort.WORD, self.like(other)))

    def __add__(self, other: Word | int) -> Word:
        return self._word("iadd", other)

    def __sub__(self, other: Word | int) -> Word:
        return self._word("isub", other)

    def __mul__(self, other: Word | int) -> Word:
        """Low 64 bits of the product."""
        return self._word("imul", other)

    def __and__(self, other: Word | int) -> Word:
        return self._word("and", other)

    def __or__(self, other: Word | int) -> Word:
        return self._word("or", other)

    def __xor__(self, other: Word | int) -> Word:
        return self._word("xor", other)

    def __lshift__(self, distance: int | Word) -> Word:
        """Left shift; a distance that is a word must be below 64."""
        if isinstance(distance, Word):
            return self._word("shift_left", distance)
        return Word(self.recorder, self._step("shl", Sort.WORD, parameter=distance))

    def __rshift__(self, distance: int | Word) -> Word:
        """Logical right shift; a distance that is a word must be below 64."""
        if isinstance(distance, Word):
            return self._word("shift_right", distance)
        return Word(self.recorder, self._step("shr", Sort.WORD, parameter=distance))

    def arithmetic_shift(self, distance: int) -> Word:
        """Right shift that fills with the sign."""
        return Word(self.recorder, self._step("sar", Sort.WORD, parameter=distance))

    def equals(self, other: Word | int) -> Flag:
        return Flag(self.recorder, self._step("ieq", Sort.FLAG, self.like(other)))

    def below(self, other: Word | int) -> Flag:
        """Unsigned less-than."""
        return Flag(self.recorder, self._step("ult", Sort.FLAG, self.like(other)))

    def real(self) -> Real:
        """The f64 with these bits."""
        return Real(self.recorder, self._step("from_bits", Sort.REAL))

    def lookup(self, table: tuple[float, ...]) -> Real:
        """The entry at this index, which must be below the table's length (a power of two)."""
        entries = tuple(real_bits(value) for value in table)
        number = self.recorder.table(Table(Sort.REAL, entries))
        return Real(self.recorder, self._step("lookup", Sort.REAL, parameter=number))

    def lookup_word(self, table: tuple[int, ...]) -> Word:
        """As ``lookup``, for a table of words."""
        number = self.recorder.table(Table(Sort.WORD, table))
        return Word(self.recorder, self._step("lookup", Sort.WORD, parameter=number))


class Real(Value):
    """An f64; each operator is one IEEE operation, rounded to nearest even."""

    def like(self, value: Real | float) -> Real:
        """The value as a number of the same program."""
        if isinstance(value, Real):
            return value
        constant = TraceStep("real", Sort.REAL, (), real_bits(float(value)))
        return Real(self.recorder, self.recorder.add(constant))

    def _real(self, verb: str, other: Real | float) -> Real:
        return Real(self.recorder, self._step(verb, Sort.REAL, self.like(other)))

    def __add__(self, other: Real | float) -> Real:
        return self._real("add", other)

    def __sub__(self, other: Real | float) -> Real:
        return self._real("sub", other)

    def __mul__(self, other: Real | float) -> Real:
        return self._real("mul", other)

    def __truediv__(self, other: Real | float) -> Real:
        return self._real("div", other)

    def times_plus(self, factor: Real | float, addend: Real | float) -> Real:
        """self * factor + addend with one rounding, for machines that have it."""
        arguments = self.like(factor), self.like(addend)
        return Real(self.recorder, self._step("fma", Sort.REAL, *arguments))

    def __radd__(self, other: float) -> Real:
        return self.like(other) + self

    def __rsub__(self, other: float) -> Real:
        return self.like(other) - self

    def __rmul__(self, other: float) -> Real:
        return self.like(other) * self

    def __rtruediv__(self, other: float) -> Real:
        return self.like(other) / self

    def __neg__(self) -> Real:
        return (self.bits() ^ SIGN_BIT).real()

    def __abs__(self) -> Real:
        return (self.bits() & (SIGN_BIT - 1)).real()

    def __lt__(self, other: Real | float) -> Flag:
        return Flag(self.recorder, self._step("lt", Sort.FLAG, self.like(other)))

    def __le__(self, other: Real | float) -> Flag:
        return Flag(self.recorder, self._step("le", Sort.FLAG, self.like(other)))

    def __gt__(self, other: Real | float) -> Flag:
        return self.like(other) < self

    def __ge__(self, other: Real | float) -> Flag:
        return self.like(other) <= self

    def equals(self, other: Real | float) -> Flag:
        return Flag(self.recorder, self._step("eq", Sort.FLAG, self.like(other)))

    def bits(self) -> Word:
        """The 64 bits of the number."""
        return Word(self.recorder, self._step("to_bits", Sort.WORD))

    def sign(self) -> Word:
        """The sign bit in place, all other bits clear."""
        return self.bits() & SIGN_BIT

    def with_sign(self, sign: Word) -> Real:
        """The number with a sign, as ``sign()`` gives it, flipped in."""
        return (self.bits() ^ sign).real()

    def at_most(self, limit: float) -> Real:
        """The smaller of the number and a constant; NaN stays NaN."""
        return (self > limit).real(self.like(limit), self)

    def at_least(self, limit: float) -> Real:
        """The greater of the number and a constant; NaN stays NaN."""
        return (self < limit).real(self.like(limit), self)


def polynomial(coefficients: tuple[float, ...], x: Real) -> Real:
    """Horner's rule; the coefficient of the lowest power comes first."""
    total = x.like(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


def trace(algorithm: Callable[[Real], Real]) -> Trace:
    """The program of an algorithm: its operations in the order written, the unused ones dropped."""
    recorder = Recorder()
    argument = Real(recorder, recorder.add(TraceStep("argument", Sort.REAL, ())))
    result = algorithm(argument).index
    return pruned(Trace(tuple(recorder.steps), tuple(recorder.tables), result))


def pruned(program: Trace) -> Trace:
    """The program without steps that its result does not ask for."""
    live = {0, program.result}
    for index in range(program.result, -1, -1):
        if index in live:
            live.update(program.steps[index].arguments)
    places = {old: new for new, old in enumerate(sorted(live))}
    steps = tuple(
        TraceStep(step.verb, step.sort, tuple(places[a] for a in step.arguments), step.parameter)
        for step in (program.steps[old] for old in places)
    )
    return Trace(steps, program.tables, places[program.result])
