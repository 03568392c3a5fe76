"""What `scalars.kera` computes, an item at a time, on unbounded Python integers."""

from __future__ import annotations


def s(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def u(value: int, width: int) -> int:
    return value & ((1 << width) - 1)


def _five(a, b, width, signed):
    fit = s if signed else u
    if b == 0:
        q, r = -1, a
    else:
        q = abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)
        r = a - q * b
    return tuple(fit(v, width) for v in (a + b, a - b, a * b, q, r))


def wrap7(a, b):
    return _five(a, b, 7, True)


def wrap11(a, b):
    return _five(a, b, 11, False)


def wrap64(a, b):
    return _five(a, b, 64, True)


def wrapu64(a, b):
    return _five(a, b, 64, False)


def one_bit(a, b, c, d):
    return u(a + b, 1), u(a - b, 1), s(c + d, 1), s(c * d, 1), s(-c, 1), a < b, (a // b if b else 1)


def shifts(x, y, s_, t):
    big = min(t, 100)
    return s(x << s_, 13), x >> s_, u(y << big, 13), y >> big, x >> big, y >> 3


def shift_lits(x, y):
    return s(x << 63, 64), x >> 64, y >> 63, 0


def _rotl(x, n, width):
    x = u(x, width)
    n %= width
    return u(x << n | x >> (width - n), width)


def rotates(x, y, s_, t):
    return (_rotl(x, s_, 11), _rotl(x, -t, 11), s(_rotl(y, t, 7), 7), s(_rotl(y, -s_, 7), 7))


def _counts(x, width):
    bits = format(u(x, width), f"0{width}b")
    return bits.count("1"), len(bits) - len(bits.lstrip("0")), len(bits) - len(bits.rstrip("0"))


def counts(x, y, z):
    return _counts(x, 11) + _counts(y, 37) + _counts(z, 64)


def _reverse(x, width):
    return int(format(u(x, width), f"0{width}b")[::-1], 2)


def _bytes(x, width):
    return int.from_bytes(u(x, width).to_bytes(width // 8, "little"), "big")


def reversals(x, y, z):
    return _reverse(x, 11), s(_reverse(y, 24), 24), s(_bytes(y, 24), 24), _reverse(z, 64), _bytes(z, 64)


def _saturate(a, b, c, d, width):
    lo, hi, top = -(1 << (width - 1)), (1 << (width - 1)) - 1, (1 << width) - 1
    return (*(min(max(v, lo), hi) for v in (a + b, a - b, a * b)),
            *(min(max(v, 0), top) for v in (c + d, c - d, c * d)))


def saturate(a, b, c, d):
    return _saturate(a, b, c, d, 9)


def saturate64(a, b, c, d):
    return _saturate(a, b, c, d, 64)


def carries(a, b, c, d, e):
    total = a + b + c
    signed = u(d, 6) + u(e, 6) + (not c)
    return (u(total, 13), bool(total >> 13)), (s(signed, 6), bool(signed >> 6)), u(a + b, 13)


def wides(a, b, c, d):
    return a * b, c * d


def orders(a, b, c):
    return (min(a, b), max(a, b), s(abs(a), 12), (a > 0) - (a < 0), min(max(a, b), c), min(max(c, -5), 100))


def choose(c, a, b):
    return a if c else b, b if a > b else a, c if a == b else not c


def casts(x, y, b):
    return (u(x, 9), s(x, 4), u(x, 4), x, u(x, 64), y, s(y, 5), y, int(b), -int(b), int(b))


def chains(x):
    return u(x, 8), s(x, 8), s(x, 8), u(s(x, 32), 64), s(x >> 32, 32)


def bitwise(a, b, p, q):
    return a & b, a | b, a ^ b, ~a, p & q, p | q, p ^ q, not p


def compares(a, b, c, d):
    return a < b, a <= b, a > b, a >= b, c < d, c >= d, a == b, c != d


def bools(p, q, x):
    return (p and q) or (not p and x > 7), p == q, p != q, (p or q) and bool(x & 1)


def limits():
    return (-128, 255, -(1 << 63), (1 << 63) - 1, (1 << 64) - 1, -1, 0, 1, -32768, (1 << 64) - 1)


def _rem(a, b):
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def precedence(a, b, c):
    w = lambda v: s(v, 32)  # noqa: E731
    return (w(a + b * c), w(a << 3), (a & b) ^ c | 7, w(-a * b), (a & 3) == (b & 3),
            _rem(w(-(a - b)), 7), w(a - b - c))


def unary(a, b):
    return a, a, b, s(-~a, 32), s(~-a, 32)


def bit_slices(x, y):
    return x >> 32, x, x >> 7 & 1, u(y, 20), y < 0, bool(x & 1), u(y, 5)


def moving(x, k):
    n = 0
    for i in range(8):
        n = n << 1 | (x >> (i * 4 + 3) & 1)
    return bool(x >> k & 1), n


def cats(a, b, c, d):
    return a << 5 | b, (a << 5 | b) << 8 | u(c, 8), u(c, 8) << 3 | a, u(c, 8) << 1 | d


def bitcasts(x, y, b, q):
    return u(x, 8), s(y, 16), int(b), s(y, 16), u(q, 16), bool(y & 1)


def compound(x, y, s_):
    a = s(x + 3, 16)
    a = s(a * a, 16)
    a = s(a - x, 16)
    a = abs(a) // 7 * (-1 if a < 0 else 1)
    a = s(_rem(a, 1000) << s_, 16) >> 2
    b = u(((y | 0xF00) & 0xFFE ^ y >> 4) - 1, 16)
    return a, b, ((x > 0 and y > 5) or x == 0) ^ True


def inferred(x):
    return u(x + 200, 8), u(x * 300, 16), -14


def shadow(x):
    return (x - 300) * 2 + 1
