"""What `loops.kera` computes, an item at a time; a stream's items all at once."""

from __future__ import annotations


def selection_sort(x):
    return sorted(x)


def bubble(x):
    return sorted(x)


def bitonic(x):
    return sorted(x)


def transform(x):
    return [sum(v * pow(64, i * k, 257) for i, v in enumerate(x)) % 257 for k in range(8)]


def _digits(values):
    total = 0
    for value in values:
        total = total * 10 + value
    return total


def orders():
    return [
        [_digits(range(6, i - 1, -3)) for i in range(4)],
        [_digits(reversed(range(i, 7, i + 1))) for i in range(4)],
        [_digits(range(2 * i + 1, 0, -(i + 1))) for i in range(4)],
        [_digits(range(1, i)) for i in range(4)],
    ]


def signed(x):
    t = 0
    for i in range(-3, 4):
        for j in range(-i, i + 1):
            t = t * 3 + x[i + 3] * x[j + 3]
    return (t + (1 << 31)) % (1 << 32) - (1 << 31)


def pyramids():
    return (
        sum(k for i in range(6) for j in range(i) for k in range(j, i)),
        sum(i + j + k + 1 for i in range(5) for j in range(i + 1, 5) for k in range(j - i - 1)),
        sum(j for i in range(12, 16) for j in range(i, 16)),
    )


def determined(a):
    return sum(a[i] * a[j] for i in range(4) for j in range(i + 1)) % (1 << 32), 25


def running(items):
    z, out = [0] * 4, []
    for (x,) in items:
        z = [*z[1:], x]
        out.append(sum(sum(z[i:]) for i in range(4)))
    return out


def hull_is_not_the_range(x):
    a, b = x, x
    for i in range(3):
        for j in range(i, 2):
            a = a * 3 + j
        for j in range((5, 0, 3)[i], 4):
            b = b * 3 + j
    return a % 256, b % 256


def changing_bounds(x):
    a = b = c = x
    n = 0

    def bump():
        nonlocal b
        b = (b + 1) % 256
        return b % 5 != 0

    for i in range(4):
        for _ in range(i * i):
            if a >= 200:
                break
            a = (a + i + 1) % 256
        go = bump()
        for _ in range(i):
            if not go:
                break
            c, n = (c + 1) % 256, n + i
            go = bump()
        for j in range(i, 3):
            for _ in range(j - i + 1):
                if n > 20:
                    n -= 7
    return a, b, c, n


def fixed_bound(x):
    b = c = x

    def bump():
        nonlocal b
        b = (b + 1) % 256
        return b % 5 != 0

    for _ in range(3):
        go = bump()
        for _ in range(2):
            if not go:
                break
            c = (c + 1) % 256
            go = bump()
    return b, c
