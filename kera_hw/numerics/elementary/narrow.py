"""The elementary functions for f16, bf16 and f32, as programs over f64.

Each takes the argument as an f64 (which holds every value of the three formats) and gives an f64 that rounds
to the correct value of the format, subnormals, overflow and signed zeros included. Derivation, bounds and the
exhaustive check: docs/reference/elementary.md.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kera_hw.numerics.elementary import coefficients as c
from kera_hw.numerics.elementary.program import ROUNDER, Flag, Real, Word, polynomial

# Bits of 2^52: a 32-bit word below them, read as a number, is 2^52 + the word.
INTEGER_BITS = 0x4330_0000_0000_0000
TWO_52 = 4503599627370496.0


def integer_real(word: Word) -> Real:
    """A word below 2^52 as a number."""
    return (word | INTEGER_BITS).real() - TWO_52


def scale(x: Real, rounded: Real) -> Real:
    """x * 2^k for the integer k in the low bits of ``rounded`` (a sum with ROUNDER); no overflow."""
    return (x.bits() + (rounded.bits() << 52)).real()


def sum_to_odd(a: Real, b: Real) -> Real:
    """a + b for |a| >= |b| or a = 0, rounded to odd: cut, the last bit set unless exact.

    Such a sum can be rounded once more, to fewer bits, as if the exact one were.
    """
    total = a + b
    rest = b - (total - a)
    # An inexact sum with an even last bit gives way to its neighbour on the exact sum's side.
    inexact = (rest < 0.0) | (rest > 0.0)
    inward = (rest.bits() ^ total.bits()) >> 63
    nudged = (total.bits() + 1 - (inward << 1)).real()
    return (inexact & (total.bits() & 1).equals(0)).real(nudged, total)


def exp_reduced(x: Real) -> Real:
    """e^x for |x| < 300, x at most 48 bits wide so that the reduction is exact but for LN2_LOW."""
    rounded = x * c.LOG2_E + ROUNDER
    k = rounded - ROUNDER
    r = (x - k * c.LN2_HIGH) - k * c.LN2_LOW
    return scale(1.0 + (r + r * r * polynomial(c.EXP, r)), rounded)


def exp(x: Real) -> Real:
    return exp_reduced(x.at_most(90.0).at_least(-110.0))


def exp2(x: Real) -> Real:
    x = x.at_most(130.0).at_least(-160.0)
    rounded = x + ROUNDER
    r = x - (rounded - ROUNDER)
    return scale(1.0 + r * polynomial(c.EXP2, r), rounded)


def log_exponent(x: Real) -> tuple[Real, Word, Real]:
    """(e, index, m) of a positive normal x = 2^e m, with the row of the logarithms' tables for m."""
    offset = x.bits() - c.LOG_START[0]
    index = (offset >> 46) & 63
    exponent = offset & 0xFFF0_0000_0000_0000
    m = (x.bits() - exponent).real()
    # The exponent is signed: 2^51 in front of it keeps the word positive.
    e = ((exponent.arithmetic_shift(52) + (1 << 51)) | INTEGER_BITS).real() - (TWO_52 + TWO_52 / 2)
    return e, index, m


def log_parts(x: Real) -> tuple[Real, Word, Real]:
    """(e, index, r) of a positive x = 2^e m: r = m * LOG_RECIPROCAL[index] - 1, exactly."""
    e, index, m = log_exponent(x)
    return e, index, m * index.lookup(c.LOG_RECIPROCAL) - 1.0


def log_domain(x: Real, value: Real) -> Real:
    """The value where x is positive and finite; -inf at a zero, NaN below, +inf and NaN as x."""
    special = (x < 0.0).real(x.like(math.nan), x)
    special = x.equals(0.0).real(x.like(-math.inf), special)
    return ((x > 0.0) & (x < math.inf)).real(value, special)


def log(x: Real) -> Real:
    e, index, r = log_parts(x)
    low = e * c.LN2_LOW + index.lookup(c.LOG_LOW) + r * r * polynomial(c.LOG, r)
    return log_domain(x, sum_to_odd(e * c.LN2_HIGH + index.lookup(c.LOG_HIGH), r + low))


def log2(x: Real) -> Real:
    e, index, r = log_parts(x)
    low = r * c.LOG2_E_LOW + index.lookup(c.LOG2_LOW) + r * r * polynomial(c.LOG2, r)
    return log_domain(x, sum_to_odd(e + index.lookup(c.LOG2_HIGH), r * c.LOG2_E_HIGH + low))


def turn(x: Real) -> tuple[Real, Word, Word]:
    """(r, q, sign): |x| = (q + f) pi/2 with -1/2 <= f <= 1/2, r = |f| pi/2 and the sign bit of f, in place.

    The product of the 24-bit significand with a 160-bit window of 2/pi modulo 4, in limbs of 32 bits.
    """
    bits = x.bits()
    significand = ((bits >> 29) & 0x7F_FFFF) | 0x80_0000
    row = ((bits >> 52) - 1022) & 255
    limbs: list[Word] = []
    carry = row.like(0)
    for table in (c.TURN_0, c.TURN_1, c.TURN_2, c.TURN_3, c.TURN_4):
        product = significand * row.lookup_word(table) + carry
        limbs.append(product & 0xFFFF_FFFF)
        carry = product >> 32
    # A fraction of 1/2 or more counts back from the next quarter: negate it by complement.
    negative = limbs[3] >> 31
    flip = (negative.like(0) - negative) & 0xFFFF_FFFF
    low, middle, top = (integer_real(limb ^ flip) for limb in limbs[1:4])
    rest = middle * 2.0**-64 + low * 2.0**-96
    top = top * 2.0**-32
    r = top * c.QUARTER_HIGH + (top * c.QUARTER_LOW + rest * c.QUARTER)
    return r, limbs[4] + negative, negative << 63


def wave(x: Real, quarter: int) -> Real:
    """sin(|x| + quarter * pi/2), NaN unless x is finite; |x| < 1/2 needs no reduction."""
    small = abs(x) < 0.5
    r, q, sign = turn(x)
    r = small.real(abs(x), r)
    q = small.word(q.like(0), q) + quarter
    sign = small.word(sign.like(0), sign)
    z = r * r
    sine = (r + r * z * polynomial(c.SIN, z)).with_sign(sign)
    cosine = (1.0 - 0.5 * z) + z * z * polynomial(c.COS, z)
    value = (q & 1).equals(0).real(sine, cosine).with_sign((q & 2) << 62)
    return (abs(x) < math.inf).real(value, x - x)


def sin(x: Real) -> Real:
    return wave(x, 0).with_sign(x.sign())


def cos(x: Real) -> Real:
    return wave(x, 1)


def tanh(x: Real) -> Real:
    """x p(x^2) / q(x^2); beyond 9.125 every format has rounded to 1."""
    t = abs(x).at_most(9.125)
    z = t * t
    return (t * polynomial(c.TANH_P, z) / polynomial(c.TANH_Q, z)).with_sign(x.sign())


def sigmoid(x: Real) -> Real:
    """1/2 + tanh(x/2)/2, the sum rounded to odd; 1 / (1 + e^-x) below -1."""
    near = sum_to_odd(x.like(0.5), 0.5 * tanh(0.5 * x.at_least(-1.0)))
    far = 1.0 / (1.0 + exp_reduced(-(x.at_most(0.0).at_least(-110.0))))
    return (x < -1.0).real(far, near)


def erf(x: Real) -> Real:
    """x p(x^2) / q(x^2); beyond 3.96875 every format has rounded to 1."""
    t = abs(x).at_most(3.96875)
    z = t * t
    return (t * polynomial(c.ERF_P, z) / polynomial(c.ERF_Q, z)).with_sign(x.sign())


def weighed(x: Real, weight: Callable[[Real], Real], limit: float) -> Real:
    """x * F(x) for F(-a) = weight(a), F(a) = 1 - weight(a): from one product w = a * weight(a), x - w or -w.

    The weight is taken at 2^-40 at least: below, the format's result is x/2 where it holds that, and where it
    does not (an odd subnormal) the tie is broken upward, to the side of the exact value.
    """
    a = abs(x)
    w = a.at_most(limit) * weight(a.at_most(limit).at_least(2.0**-40))
    return (x.bits() >> 63).equals(0).real(x - w, -w)


def gelu(x: Real) -> Real:
    """The weight is Phi(-a) = e^(-a^2/2) p(a) / q(a)."""
    return weighed(
        x, lambda a: exp_reduced(-0.5 * (a * a)) * polynomial(c.PHI_P, a) / polynomial(c.PHI_Q, a), 15.0
    )


def silu(x: Real) -> Real:
    """The weight is sigmoid(-a) = 1 / (1 + e^a)."""
    return weighed(x, lambda a: 1.0 / (1.0 + exp_reduced(a)), 120.0)


def patched(
    algorithm: Callable[[Real], Real], patches: Sequence[tuple[float, float]]
) -> Callable[[Real], Real]:
    """The algorithm, with the values of the few inputs it misses put in their place."""

    def whole(x: Real) -> Real:
        value = algorithm(x)
        for place, correct in patches:
            hit: Flag = x.equals(place)
            value = hit.real(value.like(correct), value)
        return value

    return whole


UNPATCHED: dict[str, Callable[[Real], Real]] = {
    "exp": exp, "exp2": exp2, "log": log, "log2": log2, "sin": sin, "cos": cos, "tanh": tanh,
    "sigmoid": sigmoid, "erf": erf, "gelu": gelu, "silu": silu,
}
ALGORITHMS: dict[str, Callable[[Real], Real]] = {
    name: patched(algorithm, c.PATCHES[name]) for name, algorithm in UNPATCHED.items()
}
