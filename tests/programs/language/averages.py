"""What `averages.kera` computes, an item at a time."""

from __future__ import annotations


def _wrap(value, width):
    return (value + (1 << width - 1)) % (1 << width) - (1 << width - 1)


def _mean(values):
    total = _wrap(sum(values), 13)
    quotient = abs(total) // len(values)
    return quotient if total >= 0 else -quotient


def means(a, b, c):
    return _mean(a), sum(b) % 64 // 7, [_mean(column) for column in zip(*c)], [_mean(row) for row in c]


def _pool(x, size, stride, pad):
    n = len(x[0])
    starts = range(-pad, n + pad - size + 1, stride)

    def window(i, j):
        cells = [(y, z) for y in range(i, i + size) for z in range(j, j + size)]
        return [x[0][y][z] for y, z in cells if 0 <= y < n and 0 <= z < n]

    return [[[_mean(window(i, j)) for j in starts] for i in starts]]


def pools(x):
    return _pool(x, 2, 2, 0), _pool(x, 3, 2, 1)


def counting(k):
    halves = [0x000, 0x3C0, 0x400, 0x420, 0x440, 0x450]
    return [_wrap(8 * i + k, 7) for i in range(20)], [0] * 3, [_wrap(i, 3) for i in range(10)], halves
