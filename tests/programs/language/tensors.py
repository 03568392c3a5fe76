"""What `tensors.kera` computes, an item at a time, with NumPy on 64-bit integers, then wrapped."""

from __future__ import annotations

import numpy as np

A = np.array


def _fit(value, width, signed=True):
    value = np.asarray(value).astype(np.int64) & ((1 << width) - 1)
    return np.where(signed & (value >> (width - 1) == 1), value - (1 << width), value).tolist()


def shapes(a, b):
    return A(a).T, A(a).ravel(), A(a).T, np.broadcast_to(b, (3, 4)), A([b])


def permutes(a):
    return A(a).transpose(2, 0, 1), A(a).transpose(1, 0, 2), A(a).transpose(2, 1, 0)


def joins(a, b, c):
    return np.concatenate([a, b]), np.concatenate([a, c], 1), np.concatenate([a, b, b])


def pads(a, m):
    return [-1, *a, -1, -1], [7, 7, *a], np.pad(m, (1, 2), constant_values=9)


def reverses(a, m):
    return a[::-1], [r[::-1] for r in m], m[::-1]


def gathers(a, m, ix, jx):
    return A(a)[ix], A(m)[ix], A(a)[A(jx) & 3]


def iotas():
    return list(range(5)), [-5, -2, 1, 4], list(range(16)), [[0, 1, 2], [3, 4, 5]]


def _prod(values):
    out = 1
    for v in values:
        out = out * int(v) & 0xFFFF
    return out


def sums(a, b):
    return (_fit(np.sum(a), 8), _fit(np.sum(a, 0), 8), _fit(np.sum(a, 1), 8), _fit(np.sum(b), 16, False),
            _prod(b), _fit(_prod(A(a).ravel()), 8))


def extremes(a):
    a = A(a)
    return a.min(), a.max(), a.min(0), a.max(1), a.argmin(), a.argmax(), a.argmin(0), a.argmax(1)


def quantifiers(a):
    return np.any(a), np.all(a), np.any(a, 0), np.all(a, 1)


def products(a, b, m, n):
    d = sum(x * y for x, y in zip(a, b))
    mul = A(m).astype(np.int64) @ A(n).astype(np.int64)
    other = (A(n).astype(np.int64) @ A(m).astype(np.int64)).sum()
    return _fit(d, 16), d, _fit(mul, 32), _fit(other, 32)


def _conv(x, w, stride, pad):
    x = np.pad(A(x).astype(np.int64), ((0, 0), (pad, pad), (pad, pad)))
    w = A(w).astype(np.int64)
    rows = (x.shape[1] - w.shape[2]) // stride + 1
    cols = (x.shape[2] - w.shape[3]) // stride + 1
    out = np.zeros((w.shape[0], rows, cols), np.int64)
    for r in range(rows):
        for c in range(cols):
            part = x[:, r * stride:r * stride + w.shape[2], c * stride:c * stride + w.shape[3]]
            with np.errstate(over="ignore"):
                out[:, r, c] = (part[None] * w).sum((1, 2, 3))
    return _fit(out, 32)


def convolve(x, w):
    return _conv(x, w, 1, 0), _conv(x, w, 2, 1), _conv(x, w, 2, 0)


def _pool(x, size, stride, pad):
    x = np.pad(A(x), ((0, 0), (pad, pad), (pad, pad)), constant_values=-128)
    n = (x.shape[1] - size) // stride + 1
    return [[[int(c[i * stride:i * stride + size, j * stride:j * stride + size].max()) for j in range(n)]
             for i in range(n)] for c in x]


def pools(x):
    return _pool(x, 2, 2, 0), _pool(x, 2, 1, 0), _pool(x, 2, 2, 1)


def slices(m, v):
    m = A(m)
    return m[1:3, 2:5], m[2], m[:, 1], m[0:2, 4], v[5:], v[2]


def windows(v):
    return _fit([sum(v[i:i + 3]) for i in range(6)], 16)


def assign_parts(m, r):
    n = [list(row) for row in m]
    n[1] = r
    n[2][0] = 99
    n[0][1] = _fit(n[0][1] + n[2][3], 16)
    n[2][1:3] = [7, 8]
    n[0][3] = -1
    return n


def elementwise(a, b, k):
    a, b = A(a), A(b)
    return (_fit(a * b + k, 16), _fit(k - a, 16), _fit(_fit(-a, 16) ^ b, 16), a < b, np.maximum(a, b),
            np.clip(a, -10, 10))


def element_calls(a, b):
    return ([x * y for x, y in zip(a, b)], [x.bit_count() for x in a],
            [(x << 3 | x >> 13) & 0xFFFF for x in a], [max(x - y, 0) for x, y in zip(a, b)],
            np.maximum(a, b), [16 - x.bit_length() for x in b])


def element_casts(a, c):
    return a, _fit(a, 8, False), A(c).astype(int)


def shift_tensors(a, s):
    return (_fit([x << min(k, 20) for x, k in zip(a, s)], 16), [x >> k for x, k in zip(a, s)],
            [x >> 2 for x in a], _fit([1 << min(k, 20) for k in s], 16))


def higher(a, b, k):
    acc = 1
    for x in a:
        acc = _fit(acc * 3 + x, 32)
    run, out = k, []
    for x in b:
        run ^= x
        out.append(run)
    return ([x * k for x in a], [x > _fit(y + k, 16) for x, y in zip(a, b)], acc, out, max([k, *a]))


def higher_rank(m):
    m = A(m)
    return m + 1, m ^ (m >> 1), _fit(m.sum(0), 8, False), [
        m[0].tolist(), _fit(m[0] * m[1], 8, False)]


def nested_maps(m, v):
    rows = [_fit(sum(_fit(a * b, 16) for a, b in zip(row, v)), 16) for row in m]
    return rows, (_fit(A(v) + 1, 16), [x > 0 for x in v])


def shifting(a, m, x, r):
    return [*a[1:], x], [m[1], r], 6


def fills(x):
    return [[x] * 3] * 2, [x, _fit(x + 1, 8), 3], [[x, 1], [2, x]], [], 0


def empty_all(a, b):
    return True, False, 0, 1


def totals(a, i, j):
    return (a[i] if 0 <= i < 4 else -7, a[min(max(i, 0), 3)], a[j] if j < 4 else a[0], a[min(j, 3)])


def totals2(m, i, j):
    inside = 0 <= i < 2 and j < 3
    return (m[i][j] if inside else 5, m[min(max(i, 0), 1)][min(j, 2)], m[min(max(i, 0), 1)])


def equal(a, b):
    return A(a) == A(b), a == b, a != b


def row_swap(m, i):
    k = min(i, 2)
    n = list(m)
    n[k], n[0] = n[0], n[k]
    return n


def bubble(v):
    return sorted(v)
