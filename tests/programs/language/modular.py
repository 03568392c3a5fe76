"""What `modular.kera` computes, an item at a time."""

from __future__ import annotations


def s(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def corner(v, g, i):
    return s(v["x"] * g["x"][i] + v["y"] * g["y"][i], 32), {"x": 1, "y": 0}, s(2 * v["x"], 16)


def consts():
    return [0, 2, 4, 6], 125, 8


def sums(items):
    t = w = 0
    out = []
    for x, in items:
        t = s(t + x, 16)
        w = s(w + t, 16)
        out.append(w)
    return out


def literal(a):
    return {"x": a, "y": 3}
