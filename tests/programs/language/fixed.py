"""What `fixed.kera` computes, on raw integers and exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import floor, trunc


def s(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def u(value: int, width: int) -> int:
    return value & ((1 << width) - 1)


def q(value: int) -> int:
    return s(value, 16)


COEFF = [64, -384, 768, -1]


def literals():
    return COEFF, [26, -26, 0, 2, 0, 127], 4095, -524288, 128, -128, 1


def basic(a, b):
    return q(a + b), q(a - b), q(-a), q(abs(a)), min(a, b), min(max(a, -384), 512)


def mixed(a, v):
    return a >= -320, v != 1, q(a + 128), u(v - 16, 12), u(v << 2, 12), a >> 3


def products(a, b, v, w):
    return a * b, a * a, v * w, q(a * 128 >> 8)


def formats(a):
    return (s(a << 4, 20), s(a >> 4, 12), s(a, 8), u(a, 16), s(a >> 8, 8), a << 24, s(a, 9))


def integers(a, x, y):
    n = a >> 8
    return s(n, 8), u(n, 8), n, s(n, 4), q(x << 8), q(y << 8), u(x << 4, 12), s(y << 8, 30)


def _half_up(v):
    return floor(v + Fraction(1, 2))


def _scaled(a, fraction):
    return Fraction(a, 256) * (1 << fraction)


def rounding(a):
    v = _scaled(a, 4)
    return tuple(s(f(v), 12) for f in (floor, trunc, _half_up, round))


def _clip(value, lo, hi):
    return min(max(value, lo), hi)


def saturating(a):
    v = _scaled(a, 4)
    return (_clip(floor(v), -64, 63), _clip(trunc(v), -64, 63), _clip(_half_up(_scaled(a, 2)), 0, 63),
            _clip(round(v), -64, 63), _clip(a * 2, -512, 511), u(round(_scaled(a, 0)), 3))


def bounded(a, b, v, w):
    return (_clip(a + b, -32768, 32767), _clip(a - b, -32768, 32767), _clip(v + w, 0, 4095),
            _clip(v - w, 0, 4095))


def tensors(a):
    p = [x * y for x, y in zip(a, COEFF)]
    return (q(sum(a)), p, max(a), a.index(min(a)), s(sum(p), 32), [q(x + 256) for x in a],
            [q(abs(x)) for x in a])


def series(x):
    y = q(q(128 * x >> 8) + 256)
    return q(_clip(_half_up(Fraction(y * x, 256)), -32768, 32767) + 256)


def bits_of(a):
    return u(a, 16), a ^ 1, q(a << 1), u(a, 16) >> 8 & 1


def signs(a):
    return ((a > 0) - (a < 0)) * 256, q(a + 128), q(-a) > a, q(256 + a)


def leaky(items):
    y, out = 32, []
    for x, in items:
        y = q(y - (y >> 2) + (x >> 2))
        out.append(y)
    return out
