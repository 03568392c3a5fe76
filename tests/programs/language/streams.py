"""What `streams.kera` computes: each function takes the whole sequence from reset."""

from __future__ import annotations


def s(value: int, width: int = 16) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def delay(items):
    return [-3] + [x for x, in items][:-1]


def counter(items):
    n, out = 13, []
    for go, in items:
        n = n + go & 15
        out.append(n)
    return out


def stats(items):
    total, n, recent, out = 100, 0, [1, 2, 3], []
    for x, in items:
        total, n, recent = s(total + x, 32), min(n + 50, 255), [*recent[1:], x]
        out.append({"total": total, "n": n, "recent": recent})
    return out


def edges(items):
    xs = [x for x, in items]
    return [(x and not p, p and not x) for x, p in zip(xs, [False, *xs])]


def _average(xs, n):
    line, out = [0] * n, []
    for x in xs:
        line = [*line[1:], x]
        t = sum(line)
        out.append(abs(t) // n * (-1 if t < 0 else 1))
    return out


def chained(items):
    xs = [x for x, in items]
    ys = [-3, -3, *xs][:len(xs)]
    return list(zip(ys, _average([s(x - y) for x, y in zip(xs, ys)], 4)))


def sometimes(items):
    z, held, out = -3, 0, []
    for go, x in items:
        if go:
            held, z = z, x
        out.append(held)
    return out


def whole(v):
    n, count = 13, []
    for x in v:
        n = n + (x > 0) & 15
        count.append(n)
    return [-3, *v[:-1]], _average(v, 2), count


def lfsr(items):
    r, out = 0xACE1, []
    for reseed, seed in items:
        bit = (r ^ r >> 2 ^ r >> 3 ^ r >> 5) & 1
        r = seed if reseed else bit << 15 | r >> 1
        out.append(r)
    return out


def memory(items):
    m, out = [(0, True)] * 8, []
    for write, at, x in items:
        out.append(m[at])
        if write:
            m[at] = x
    return out


def machine(items):
    mode, run, out = 0, 0, []
    for c, in items:
        one = c & 1
        if one:
            mode = 1
        else:
            mode = 2 if mode == 1 else 0
        run = run + 1 & 255 if mode == 1 else run if mode == 2 else 0
        out.append((run, mode))
    return out


def unpacked(items):
    prev, out = 0, []
    for (a, b), k in items:
        out.append(s(a * k[0] + b * k[1] - prev, 8))
        prev = b
    return out
