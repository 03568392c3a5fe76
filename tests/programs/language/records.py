"""What `records.kera` computes, an item at a time. Tensors of structs are structs of lists."""

from __future__ import annotations

import numpy as np


def s(value: int, width: int = 16) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def P(x, y):
    return {"x": s(x), "y": s(y)}


def points(a, b):
    x, y = s(a["x"] + b["x"]), s(a["y"] + b["y"])
    return P(x - 1, y), (x, y), a == b


def blend(p, q):
    k = p["alpha"]
    # 16-bit arithmetic never overflows: 255 * 15 < 2^16
    return {"rgb": [(a * k + b * (15 - k)) // 15 & 255 for a, b in zip(p["rgb"], q["rgb"])],
            "alpha": max(k, q["alpha"])}


def update(w, i, p):
    lines = w["lines"]
    lines["to"]["x"][i], lines["to"]["y"][i] = p["x"], p["y"]
    lines["from"]["x"][0] = s(lines["from"]["x"][0] + 5)
    lines["tag"][1][1 - i] = 7
    lines["tag"][0][i] = True
    lines["tag"][1][i] ^= 1
    return {"lines": lines, "n": w["n"] + 1 & 0xFFFFFFFF}


def _far(xs, ys):
    best = (0, 0)
    for p in zip(xs, ys):
        if s(abs(p[0])) > s(abs(best[0])):
            best = p
    return P(*best)


def field_tensors(v, k):
    xs, ys = v["x"], v["y"]
    xs[1] = 100
    ys[min(k, 2)] = xs[0]
    return {"x": xs, "y": ys}, s(sum(xs)), xs, _far(xs, ys)


def build_tensors(a, b):
    return ({"x": [a, b], "y": [b, a]}, ([a, b], [b, 3]), {"x": [a] * 4, "y": [a] * 4},
            {"x": [[1, 1], [1, 1]], "y": [[b, b], [b, b]]})


def moves(v, p):
    def both(f):
        return {"x": f(v["x"], p["x"]), "y": f(v["y"], p["y"])}

    return (both(lambda a, _: a[::-1]), both(lambda a, q: [*a[1:], q]), both(lambda a, _: a[1:3]),
            both(lambda a, q: [*a, q]), both(lambda a, _: [a[:2], a[2:]]))


def gathers(v, ix, i):
    k = min(max(i, 0), 3)
    at = P(v["x"][i], v["y"][i]) if 0 <= i < 4 else P(0, 0)
    return {n: [v[n][j] for j in ix] for n in "xy"}, at, P(v["x"][k], v["y"][k])


def running(v):
    total, product = 0, 1
    for x in v:
        total, product = s(total + x), s(product * x)
    return ((np.minimum.accumulate(v), np.maximum.accumulate(v)), (total, product),
            {"x": v, "y": [s(-x) for x in v]})


def zips(a, b):
    return ([s(x * k + y) for x, y, k in zip(a["x"], a["y"], b)],
            ([x > k for x, k in zip(a["x"], b)], {"x": b, "y": a["y"]}))


def choices(c, k, a, b):
    return (a if c else b, [a, b, P(2, -2), P(7, 8)][k], (a, 1) if a["x"] > b["x"] else (P(0, 0), -1))


def table(k):
    return k % 3 + 1, k % 3 != 1, (-1, -2)[k & 1]


def looped(v):
    best, count = (v["x"][0], v["y"][0]), 0
    for p in list(zip(v["x"], v["y"]))[1:]:
        if p > best:
            best, count = p, count + 1
    x, y = best
    while x > 1000:
        x, y = x >> 1, s(y + count)
    return P(x, y)


def tuples(t):
    a, (b, c), d = t
    return (a + 1 & 255, [-5, c[1]]), b ^ (d == 1), (a ^ c[1] & 255,)


def whole(w):
    lines = w["lines"]

    def pick(value, i):
        if isinstance(value, dict):
            return {k: pick(v, i) for k, v in value.items()}
        return tuple(pick(v, i) for v in value) if isinstance(value, tuple) else value[i]

    ys = lines["to"]["y"]
    return pick(lines, 0), pick(lines["from"], 1), lines["tag"][1][1], s(ys[0] - ys[1])
