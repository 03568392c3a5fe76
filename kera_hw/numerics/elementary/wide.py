"""The elementary functions on f64: these programs are the definition of the results.

Below one unit in the last place everywhere, by carrying what matters as an unevaluated sum of two f64; the
steps and the greatest errors seen against MPFR are in docs/reference/elementary.md.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from kera_hw.numerics.elementary import coefficients as c
from kera_hw.numerics.elementary import wide_coefficients as w
from kera_hw.numerics.elementary.doubled import (
    Pair,
    add,
    choose,
    divide,
    exact_product,
    exact_sum,
    fast_sum,
    head,
    multiply,
    negate,
)
from kera_hw.numerics.elementary.narrow import integer_real, log_domain, log_exponent
from kera_hw.numerics.elementary.program import ROUNDER, Real, Word, polynomial

LEAST_NORMAL = 2.0**-1022
DIGIT_MASK = (1 << 27) - 1
SIXTEENTHS = ROUNDER / 16  # rounds to a multiple of 1/16, as ROUNDER does to an integer


def scaled(x: Real, k: Word) -> Real:
    """x * 2^k for |k| < 1100, in two exact or correctly rounded products."""
    half = k.arithmetic_shift(1)
    first, second = (((part + 1023) << 52).real() for part in (half, k - half))
    return x * first * second


def power(r: Real, rest: Real, tail: Real) -> Pair:
    """1 + r + rest + tail."""
    total = fast_sum(r.like(1.0), r)
    return fast_sum(total.high, total.low + (rest + tail))


def exp_parts(x: Pair) -> tuple[Pair, Word]:
    """(m, k): e^x = m 2^k for |x| < 760, m relatively right to 2^-56."""
    rounded = x.high * c.LOG2_E + ROUNDER
    k = rounded - ROUNDER
    r = exact_sum(x.high - k * c.LN2_HIGH, x.low - k * c.LN2_LOW)
    tail = r.high * r.high * polynomial(c.EXP, r.high) + r.low * r.high
    # The word is the integer plus the bits of ROUNDER: 51 bits of it are the integer, sign included.
    return power(r.high, r.low, tail), (rounded.bits() << 13).arithmetic_shift(13)


def exp(x: Real) -> Real:
    m, k = exp_parts(Pair(x.at_most(710.0).at_least(-746.0), x.like(0.0)))
    return scaled(m.rounded(), k)


def exp2(x: Real) -> Real:
    x = x.at_most(1025.0).at_least(-1076.0)
    rounded = x + ROUNDER
    r = x - (rounded - ROUNDER)
    r_head = head(r)
    lead = r_head * w.EXP2_HIGH
    rest = (r - r_head) * w.EXP2_HIGH + r * w.EXP2_LOW
    m = power(lead, rest, r * r * polynomial(w.EXP2_TAIL, r))
    return scaled(m.rounded(), (rounded.bits() << 13).arithmetic_shift(13))


def log_parts(x: Real) -> tuple[Real, Word, Pair]:
    """(e, index, r) of a positive x = 2^e m: r = m * LOG_RECIPROCAL[index] - 1, exactly."""
    tiny = x < LEAST_NORMAL
    normal = tiny.real(x * 2.0**54, x)
    e, index, m = log_exponent(normal)
    reciprocal = index.lookup(c.LOG_RECIPROCAL)
    m_head = head(m)
    r = exact_sum(m_head * reciprocal - 1.0, (m - m_head) * reciprocal)
    return tiny.real(e - 54.0, e), index, r


def log(x: Real) -> Real:
    e, index, r = log_parts(x)
    total = exact_sum(e * c.LN2_HIGH + index.lookup(c.LOG_HIGH), r.high)
    square = r.high * r.high
    rest = r.low + (e * c.LN2_LOW + index.lookup(c.LOG_LOW) + square * polynomial(c.LOG, r.high))
    return log_domain(x, total.high + (total.low + rest))


def log2(x: Real) -> Real:
    e, index, r = log_parts(x)
    r_head = head(r.high)
    total = exact_sum(e + index.lookup(c.LOG2_HIGH), r_head * c.LOG2_E_HIGH)
    r_rest = (r.high - r_head) + r.low
    square = r.high * r.high
    rest = index.lookup(c.LOG2_LOW) + square * polynomial(c.LOG2, r.high)
    rest = r_rest * c.LOG2_E_HIGH + (r.high * c.LOG2_E_LOW + rest)
    return log_domain(x, total.high + (total.low + rest))


def turn(x: Real) -> tuple[Pair, Word, Word]:
    """(r, q, sign): |x| = (q + f) pi/2 with -1/2 <= f <= 1/2, r = |f| pi/2 and the sign bit of f, in place.

    |x| = M 2^(E - 52). With E - 52 = 27 j + t the digits of M 2^t meet those of 2/pi from number j on; digits
    are of 27 bits, so that three products and a carry fit in a word. Seven digits of the fraction are kept.
    """
    bits = x.bits()
    place = ((bits >> 52) & 0x7FF) - (1075 - 54)  # E - 52 + 54, not negative from |x| = 1/2 on
    small = abs(x) < 0.5
    place = small.word(place.like(0), place) & 0x7FF
    row = (place * 2428) >> 16  # place / 27
    shift = place - row * 27
    significand = (bits & ((1 << 52) - 1)) | (1 << 52)
    low = (significand & DIGIT_MASK) << shift
    high = ((significand >> 27) << shift) + (low >> 27)
    factors = (low & DIGIT_MASK, high & DIGIT_MASK, high >> 27)
    digits = [((row + n) & 63).lookup_word(w.TURN) for n in range(10)]
    limbs: list[Word] = []
    carry = row.like(0)
    for column in range(7, -1, -1):
        total = carry
        for a, factor in enumerate(factors):
            total = total + factor * digits[column + a]
        limbs.append(total & DIGIT_MASK)
        carry = total >> 27
    negative = limbs[6] >> 26
    flip = (negative.like(0) - negative) & DIGIT_MASK
    f = [integer_real(limb ^ flip) * 2.0 ** (27 * (i - 7)) for i, limb in enumerate(limbs[:7])]
    top = exact_sum(f[6] + f[5], f[4])
    fraction = fast_sum(top.high, top.low + (f[3] + f[2]))
    r = multiply(fraction, Pair(x.like(w.QUARTER), x.like(w.QUARTER_REST)))
    return r, limbs[7] + negative, negative << 63


def wave(x: Real, quarter: int) -> Real:
    """sin(|x| + quarter * pi/2), NaN unless x is finite; |x| < 1/2 needs no reduction."""
    small = abs(x) < 0.5
    r, q, sign = turn(x)
    r = choose(small, Pair(abs(x), x.like(0.0)), r)
    q = small.word(q.like(0), q) + quarter
    sign = small.word(sign.like(0), sign)
    z = r.high * r.high
    sine = r.high + (r.high * z * polynomial(c.SIN, z) + r.low * (1.0 - 0.5 * z))
    r_head = head(r.high)
    square = r_head * r_head
    square_rest = (r.high - r_head) * (r.high + r_head)
    lead = 1.0 - 0.5 * square
    lost = (1.0 - lead) - 0.5 * square
    cosine = lead + (lost + (z * z * polynomial(c.COS, z) - (0.5 * square_rest + r.high * r.low)))
    value = (q & 1).equals(0).real(sine.with_sign(sign), cosine).with_sign((q & 2) << 62)
    return (abs(x) < math.inf).real(value, x - x)


def sin(x: Real) -> Real:
    return wave(x, 0).with_sign(x.sign())


def cos(x: Real) -> Real:
    return wave(x, 1)


def one(x: Real) -> Pair:
    return Pair(x.like(1.0), x.like(0.0))


def decay(a: Pair) -> tuple[Pair, Word, Pair]:
    """(m, k, e): e^-a = m 2^k = e for 0 <= a < 760; e may lack low bits where it is tiny."""
    m, k = exp_parts(negate(a))
    return m, k, Pair(scaled(m.high, k), scaled(m.low, k))


def tanh(x: Real) -> Real:
    """x + x^3 polynomial(x^2) below 1/2, else (1 - e^-2a) / (1 + e^-2a) with a = |x|, 1 from 22 on."""
    a = abs(x)
    t = a.at_most(0.5)
    z = t * t
    near = t + t * z * polynomial(w.TANH_TAIL, z)
    _, _, e = decay(Pair(2.0 * a.at_most(22.0), x.like(0.0)))
    far = divide(add(one(x), negate(e)), add(one(x), e)).rounded()
    return (a < 0.5).real(near, far).with_sign(x.sign())


def logistic(a: Real) -> tuple[Pair, Word, Pair]:
    """(m, k, s): 1 / (1 + e^a) = m 2^k, and 1 / (1 + e^-a) = s, for 0 <= a < 760."""
    m, k, e = decay(Pair(a, a.like(0.0)))
    below = add(one(a), e)
    return divide(m, below), k, divide(one(a), below)


def sigmoid(x: Real) -> Real:
    m, k, s = logistic(abs(x).at_most(750.0))
    return (x < 0.0).real(scaled(m.rounded(), k), s.rounded())


def erf(x: Real) -> Real:
    """x + x^3 polynomial(x^2) below 1/2, else from the nearest multiple of 1/16; 1 from 5.9375 on."""
    a = abs(x)
    t = a.at_most(0.5)
    z = t * t
    t_head = head(t)
    lead = t_head * w.ERF_HIGH
    rest = (t - t_head) * w.ERF_HIGH + t * w.ERF_LOW
    near = lead + (rest + t * z * polynomial(w.ERF_TAIL, z))
    # Among subnormals the parts would be cut; there the rounded factor alone is as good.
    near = (a < 2.0**-900).real(a * w.ERF_SCALE, near)
    clamped = a.at_most(5.9375).at_least(0.5)
    rounded = clamped + SIXTEENTHS
    index = (rounded.bits() - 8) & 127
    far = table_value(w.ERF_ROWS, index, clamped - (rounded - SIXTEENTHS))
    return (a < 0.5).real(near, far.rounded()).with_sign(x.sign())


def table_value(rows: tuple[tuple[float, ...], ...], index: Word, distance: Real) -> Pair:
    """The value of a table of polynomials whose first two columns are one leading coefficient."""
    high, low, *columns = (index.lookup(column) for column in rows)
    total = columns[-1]
    for column in columns[-2::-1]:
        total = total * distance + column
    return fast_sum(high, low + distance * total)


def weighed(x: Real, weight: Callable[[Real], tuple[Pair, Word]], limit: float, curve: float) -> Real:
    """x F(x), where F(-a) = weight(a) = 1 - F(a): x - a F(-a) or -a F(-a). Near 0: x/2 + curve x^2."""
    a = abs(x)
    bounded = a.at_most(limit).at_least(2.0**-30)
    m, k = weight(bounded)
    product = multiply(Pair(bounded, x.like(0.0)), m)
    positive = exact_sum(x, -scaled(product.high, k))
    above = positive.high + (positive.low - scaled(product.low, k))
    below = -scaled(product.rounded(), k)
    # Beyond the limit the weight vanishes; x itself (an infinity too) or -0 is left.
    above = (a > limit).real(x, above)
    near = (0.5 * a + (curve * (a * a)).with_sign(x.sign())).with_sign(x.sign())
    value = (x.bits() >> 63).equals(0).real(above, below)
    return (a < 2.0**-30).real(near, value)


def phi(a: Real) -> tuple[Pair, Word]:
    """Phi(-a) = e^(-a^2 / 2) times the Mills ratio's table, for 0 <= a <= 39."""
    square = exact_product(a, a)
    m, k = exp_parts(Pair(-0.5 * square.high, -0.5 * square.low))
    index = (((a + 1.0).bits() >> 48) - (0x3FF << 4)) & 127
    ratio = table_value(w.PHI_ROWS, index, a - index.lookup(w.PHI_MIDDLE))
    return multiply(m, ratio), k


def gelu(x: Real) -> Real:
    return weighed(x, phi, 39.0, w.GELU_CURVE)


def silu(x: Real) -> Real:
    def weight(a: Real) -> tuple[Pair, Word]:
        m, k, _ = logistic(a)
        return m, k

    return weighed(x, weight, 755.0, 0.25)


ALGORITHMS: dict[str, Callable[[Real], Real]] = {
    "exp": exp, "exp2": exp2, "log": log, "log2": log2, "sin": sin, "cos": cos, "tanh": tanh,
    "sigmoid": sigmoid, "erf": erf, "gelu": gelu, "silu": silu,
}
