"""The elementary functions for f16, bf16 and f32 on machines with fma: programs over f64 as in ``narrow``.

They give other f64 values than those, and the same values of the three formats, which is held against every
input (docs/reference/elementary.md). A product that one sum alone reads becomes one step with it, and powers
come from a table of sixteenths of an octave, which a machine can hold in registers.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kera_hw.numerics.elementary import fused_coefficients as c
from kera_hw.numerics.elementary import narrow
from kera_hw.numerics.elementary.narrow import sum_to_odd, weighed
from kera_hw.numerics.elementary.program import (
    ROUNDER,
    SIGN_BIT,
    Real,
    Trace,
    TraceStep,
    Word,
    polynomial,
    pruned,
    trace,
)

_STEPS = 16


def _power(steps: Word) -> Real:
    """2^(k/16) for the integer k in the low bits of a sum with a rounder."""
    return ((steps & (_STEPS - 1)).lookup_word(c.POWERS) + (steps << 48)).real()


def exp_reduced(x: Real) -> Real:
    """e^x for |x| < 300: a power for the nearest sixteenth of an octave, a polynomial for the rest."""
    rounded = x.times_plus(c.STEPS_OF_E, ROUNDER)
    rest = x.times_plus(c.STEPS_OF_E, ROUNDER - rounded)
    power = _power(rounded.bits())
    return power + power * (rest * polynomial(c.EXP, rest))


def exp(x: Real) -> Real:
    return exp_reduced(x.at_most(90.0).at_least(-110.0))


def exp2(x: Real) -> Real:
    x = x.at_most(130.0).at_least(-160.0)
    rounder = ROUNDER / _STEPS
    rounded = x + rounder
    r = x - (rounded - rounder)
    power = _power(rounded.bits())
    return power + power * (r * polynomial(c.EXP2, r))


def tanh(x: Real) -> Real:
    """e / (e + 2) for e = e^2x - 1; beyond 9.125 every format has rounded to 1.

    The nearest sixteenth of an octave is 0 where x is small, so that e has all its bits; what is added then
    is -0, with which a zero keeps its sign.
    """
    x = x.at_most(9.125).at_least(-9.125)
    rounded = x.times_plus(2.0 * c.STEPS_OF_E, ROUNDER)
    rest = x - (rounded - ROUNDER) * c.HALF_STEP
    power = _power(rounded.bits())
    e = power * (rest * polynomial(c.TANH, rest)) + -(1.0 - power)
    return e / (e + 2.0)


def sigmoid(x: Real) -> Real:
    """As in ``narrow``."""
    near = sum_to_odd(x.like(0.5), 0.5 * narrow.tanh(0.5 * x.at_least(-1.0)))
    far = 1.0 / (1.0 + exp_reduced(-(x.at_most(0.0).at_least(-110.0))))
    return (x < -1.0).real(far, near)


def gelu(x: Real) -> Real:
    """As in ``narrow``."""
    p, q = narrow.c.PHI_P, narrow.c.PHI_Q
    return weighed(x, lambda a: exp_reduced(-0.5 * (a * a)) * polynomial(p, a) / polynomial(q, a), 15.0)


def silu(x: Real) -> Real:
    """As in ``narrow``."""
    return weighed(x, lambda a: 1.0 / (1.0 + exp_reduced(a)), 120.0)


ALGORITHMS: dict[str, Callable[[Real], Real]] = {
    **narrow.UNPATCHED,
    "exp": exp, "exp2": exp2, "tanh": tanh, "sigmoid": sigmoid, "gelu": gelu, "silu": silu,
}


def contracted(program: Trace) -> Trace:
    """Sums with products that nothing else reads as one step each."""
    steps = list(program.steps)
    uses = [0] * len(steps)
    for step in steps:
        for argument in step.arguments:
            uses[argument] += 1
    uses[program.result] += 1
    made: list[TraceStep] = []
    places: list[int] = []

    def add(step: TraceStep) -> int:
        made.append(step)
        return len(made) - 1

    def negated(place: int) -> int:
        constant = made[place]
        return add(replace(constant, parameter=constant.parameter ^ SIGN_BIT))

    for step in steps:
        arguments = tuple(places[a] for a in step.arguments)
        alone = [steps[a].verb == "mul" and uses[a] == 1 for a in step.arguments]
        if step.verb == "add" and any(alone):
            product, other = arguments if alone[0] else arguments[::-1]
            arguments = (*made[product].arguments, other)
            step = replace(step, verb="fma")
        elif step.verb == "sub" and any(alone):
            product, other = arguments if alone[0] else arguments[::-1]
            factors = sorted(made[product].arguments, key=lambda a: made[a].verb != "real")
            if alone[0] and made[other].verb == "real":
                step, arguments = replace(step, verb="fma"), (*factors, negated(other))
            elif not alone[0] and made[factors[0]].verb == "real":
                step, arguments = replace(step, verb="fma"), (negated(factors[0]), factors[1], other)
        places.append(add(replace(step, arguments=arguments)))
    return pruned(Trace(tuple(made), program.tables, places[program.result]))


def program(name: str) -> Trace:
    """Of a function."""
    return contracted(trace(narrow.patched(ALGORITHMS[name], narrow.c.PATCHES[name])))
