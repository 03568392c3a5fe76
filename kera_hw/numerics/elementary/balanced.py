"""The elementary functions for f16, bf16 and f32 on machines without fma: ``narrow``'s programs, balanced.

Horner's rule is a chain: each step waits for the one before, and a processor idles. Here a polynomial is two
chains in the square, of even and of odd powers, for a single product more (Knuth, "The art of computer
programming", volume 2, 4.6.4). The f64 values are others than those of ``narrow``, the values of the three
formats the same, which is held against every input (docs/reference/elementary.md).
"""
from __future__ import annotations

from kera_hw.numerics.elementary import narrow
from kera_hw.numerics.elementary.program import Recorder, Sort, Trace, TraceStep, pruned, trace

_LEAST_TERMS = 4
"""Of a polynomial: below, there are no two chains to speak of."""
_AS_THEY_ARE = frozenset({"erf"})
"""Functions that would need a patch: of erf, at 0x1.81d5acp-13 alone."""


def balanced(program: Trace) -> Trace:
    """The program with its polynomials in two chains each."""
    uses = [0] * len(program.steps)
    for step in program.steps:
        for argument in step.arguments:
            uses[argument] += 1
    recorder = Recorder()
    places: list[int] = []
    for index, step in enumerate(program.steps):
        found = _polynomial(program, uses, index)
        if found is None:
            arguments = tuple(places[a] for a in step.arguments)
            places.append(recorder.add(TraceStep(step.verb, step.sort, arguments, step.parameter)))
        else:
            x, coefficients = found
            places.append(_in_two_chains(recorder, places[x], [places[c] for c in coefficients]))
    return pruned(Trace(tuple(recorder.steps), program.tables, places[program.result]))


def _polynomial(program: Trace, uses: list[int], index: int) -> tuple[int, list[int]] | None:
    """The variable and the coefficients, the lowest first, if the step is the last of Horner's rule."""
    steps = program.steps
    coefficients: list[int] = []
    variable: int | None = None
    while steps[index].verb == "add":
        product, constant = steps[index].arguments
        if steps[product].verb != "mul" or steps[constant].verb != "real" or uses[product] > 1:
            break
        total, x = steps[product].arguments
        if variable not in (None, x) or (coefficients and uses[index] > 1):
            break
        variable = x
        coefficients.append(constant)
        index = total
    if variable is None or steps[index].verb != "real" or len(coefficients) + 1 < _LEAST_TERMS:
        return None
    return variable, [*coefficients, index]


def _in_two_chains(recorder: Recorder, x: int, coefficients: list[int]) -> int:
    """The polynomial's value; steps of the chains take turns."""

    def times_plus(total: int, factor: int, addend: int) -> int:
        product = recorder.add(TraceStep("mul", Sort.REAL, (total, factor)))
        return recorder.add(TraceStep("add", Sort.REAL, (product, addend)))

    square = recorder.add(TraceStep("mul", Sort.REAL, (x, x)))
    even, odd = list(coefficients[0::2]), list(coefficients[1::2])
    total_even, total_odd = even.pop(), odd.pop()
    while even or odd:
        if odd:
            total_odd = times_plus(total_odd, square, odd.pop())
        if even:
            total_even = times_plus(total_even, square, even.pop())
    return times_plus(total_odd, x, total_even)


def program(name: str) -> Trace:
    """Of a function."""
    whole = trace(narrow.ALGORITHMS[name])
    return whole if name in _AS_THEY_ARE else balanced(whole)
