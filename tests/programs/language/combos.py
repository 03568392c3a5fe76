"""What `combos.kera` computes, an item at a time."""

from __future__ import annotations

import numpy as np


def s(value: int, width: int = 16) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _wrap(values, width=16, signed=True):
    if isinstance(values, (list, tuple)):
        return [_wrap(v, width, signed) for v in values]
    if isinstance(values, np.ndarray):
        return _wrap(values.tolist(), width, signed)
    return s(int(values), width) if signed else int(values) & ((1 << width) - 1)


def _clamp(x, lo, hi):
    return min(max(x, lo), hi)


def spread(a, k, m, c):
    return ([min(x, k) for x in a], [max(x, k) for x in a], [_clamp(x, k, 100) for x in a],
            [_clamp(k, x, 100) for x in a], [_clamp(5, -3, x) for x in a],
            [_clamp(x, s(x - 1), k) for x in a])


def spread2(a, k, m, c):
    return (a if c else [k] * 3, [0] * 3 if c else a, [k if p else 7 for p in m], [int(p) for p in m],
            a if c else _wrap([x + 1 for x in a]))


def spread3(a, k, s_):
    top = 65535
    return ([min(x + k, top) for x in a], [max(k - x, 0) for x in a], [min(2 * x, top) for x in a],
            [max(x - 1, 0) for x in a], [x * k for x in a], [3 * x for x in a])


def _rotl(x, n):
    n %= 16
    return (x << n | x >> (16 - n)) & 0xFFFF


def spread4(a, k, s_, t, c):
    with_c = [x + k + c for x in a]
    without = [x + k for x in a]
    return ([_rotl(x, s_) for x in a], [_rotl(k, -n) for n in t], [_rotl(x, n) for x, n in zip(a, t)],
            ([v & 65535 for v in with_c], [v > 65535 for v in with_c]),
            ([v & 65535 for v in without], [v > 65535 for v in without]))


def _div(a, b):
    if b == 0:
        return -1
    return s(abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1))


def _rem(a, b):
    return a if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1)


def spread5(a, k):
    def each(f):
        return [[f(x) for x in r] for r in a]

    return (each(lambda x: x < k), each(lambda x: k <= x), each(lambda x: _div(k, x)),
            each(lambda x: _rem(x, k)), each(lambda x: k & x), each(lambda x: ~(x | 1)))


def unary(a, u):
    return (_wrap([abs(x) for x in a]), _wrap([-x for x in a]), [(x > 0) - (x < 0) for x in a],
            [int(format(x, "016b")[::-1], 2) for x in u], [(x << 8 | x >> 8) & 65535 for x in u],
            [16 if x == 0 else (x & -x).bit_length() - 1 for x in u])


def _zip(value, f):
    return {"x": f(np.array(value["x"])), "v": f(np.array(value["v"]))}


def struct_select(c, m, p, v, w):
    last = {"x": v["x"][1], "v": v["v"][1]}
    mixed = {n: [v[n][i] if m[i] else w[n][i] for i in (0, 1)] for n in "xv"}
    return p if c else last, mixed, v if c else w


def _lists(value):
    return {key: part.tolist() for key, part in value.items()}


def struct_shapes(v, p):
    x, u = np.array(v["x"]), np.array(v["v"])
    return ({"x": x.T, "v": u.transpose(1, 0, 2)}, {"x": x.reshape(6), "v": u.reshape(6, 2)},
            {"x": x[:, ::-1], "v": u[:, ::-1]}, {"x": x[1], "v": u[1]},
            {"x": [[p["x"]] * 2] * 2, "v": np.broadcast_to(p["v"], (2, 2, 2))})


def struct_pads(v, p):
    return ({n: [p[n], *v[n], p[n]] for n in "xv"}, {n: v[n] + v[n][::-1] for n in "xv"},
            {n: [v[n][1], p[n]] for n in "xv"})


def _product(values):
    out = 1
    for v in values:
        out *= v
    return out


def small(a, b, c):
    return (sum(a) & 7, _product(a) & 7, s(sum(b), 2), s(_product(b), 2), sum(c) & 1, _product(c), max(a),
            min(b), c.index(max(c)))


def cube(a):
    a = np.array(a, object)
    return (_wrap(a.sum(0)), _wrap(a.prod(1)), a.max(2), np.array(a, int).argmin(1), a.min(2),
            s(int(a.sum())), int(np.array(a, int).argmax()))


def scans(a):
    first, second = a
    sums = [s(sum(first), 32), s(sum(first) + sum(second), 32)]
    return ([first, _wrap([x + y for x, y in zip(first, second)], 32)],
            [first, [x * y for x, y in zip(first, second)]], (sums, [1, 2]))


def folds(a, start):
    for x in a:
        start = (start ^ x) * 16777619 & 0xFFFFFFFF
    return start, min(a) > 10, (min(a), max(a)), 42, [a[0] ^ a[2] ^ a[4], a[1] ^ a[3] ^ a[5]]


def _conv(x, w, pad, width):
    x = np.pad(np.array(x[0], object), pad)
    n = len(x) - 1
    return [_wrap([[sum(x[i + p][j + q] * w[0][0][p][q] for p in (0, 1) for q in (0, 1)) for j in range(n)]
                   for i in range(n)], width)]


def conv1(x, w):
    return _conv(x, w, 0, 8), _conv(x, w, 1, 8), [[_conv(x, w, 0, 32)[0][0][:1]]]


def matrix_vector(m, v):
    rows = [s(sum(p * q for p, q in zip(r, v)), 32) for r in m]
    cell = [[m[i][0] * m[0][j + 1] + m[i][1] * m[1][j + 1] & 255 for j in (0, 1)] for i in (0, 1)]
    return rows, s(sum(x * x for x in v), 32), cell


def paddings(m):
    (a, b), = m
    return [[5] * 4, [5, a, b, 5], [5] * 4], m, [[9, a, b], [9] * 3, [9] * 3]


def broadcasts(a, b, k):
    return [a] * 3, [r * 4 for r in b], [[k] * 2] * 2, [a]


def extremes_of_empty():
    return 0, 1, False, True


def bit_tensors(x):
    return [bool(x >> i & 1) for i in range(12)], x, [x & 15, x >> 4 & 15, x >> 8]


def gather_rows(m, k):
    return [m[i % 3] for i in k], [m[2], m[0]], [m[min(i, 2)][1] for i in k]
