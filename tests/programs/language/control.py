"""What `control.kera` computes, an item at a time."""

from __future__ import annotations


def s(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def constants():
    return 7, [i * i for i in range(8)], 243, [7] * 7


def grade(x):
    if x == 0:
        return 1
    if x in (1, 2, 5):
        return 2
    if x in (3, 4):
        return 3
    return 4 if x < 100 or x >= 200 else 5


def signs(x, y):
    return {(True, True): 1, (False, True): 2, (True, False): 3, (False, False): 4}[x > 0, y > 0]


def pairs(p, q):
    n, b = p
    if n == 0 and q == -32:
        return -1
    if 1 <= n <= 7 and b:
        return 10 + q
    if n >= 8:
        return q if b else -q
    if not b and -5 <= q <= 5:
        return n * 100
    return 0


def bind(x):
    return (x if x < 10 else 2 * x) + 1


def nested_if(a, b):
    if a > b:
        return (a, True) if a > 0 else (b, False)
    if a == b:
        return 0, True
    t = s(a - b, 8)
    return t, t > a


def if_statement(a):
    r = a if a > 10 else 0
    return (r - 1 if a > 100 else r + 1) & 255


def loops():
    e = 0
    for i in (9, 6, 3, 0):
        e = e * 16 + i
    return 45, 3210, 120, 0 + 2 + 4 + 6, e


def loops2():
    return 0x9630, 7, 10


def nested_loops(m):
    t = 0
    for i in range(3):
        for j in range(4):
            t = t + m[i][j] if (i + j) % 2 == 0 else t ^ i * j
    return t


def collatz(n):
    steps = 0
    while n > 1 and steps < 20:
        n = 3 * n + 1 if n & 1 else n >> 1
        steps += 1
    return steps


def while_flag(v):
    for i, x in enumerate(v):
        if x > 100:
            return i, True
    return 6, False


def generics(a, x, y):
    clip = [min(max(v, -9), 9) for v in a]
    b = [v for pair in zip(x, y) for v in pair]
    return (clip, [min(max(v, 0), 1) for v in a[:2]], b, [v for v in b for _ in range(2)],
            [[s(p * q, 16) for q in a[3:]] for p in a], (x[:1], x[1:]))


def borrows(v, i, j):
    i, j = min(i, 2), min(j, 2)
    v[i], v[j] = v[j], v[i]
    v[0], v[1] = v[1], v[0]
    return v, 4 * (v[0] ^ v[2]) & 255


def scopes(x):
    y = x + 1 & 255
    return y, y * 2 + x & 255


def returns(x):
    return (x + 1) * 2 & 255


def destructure(x):
    b, c = x + 1 & 255, x + 2 & 255
    return x * b + c & 255, c, 1


def units(x):
    return x


def twiddle(v):
    for h in (1, 2, 4):
        for start in range(0, 8, 2 * h):
            for i in range(start, start + h):
                v[i], v[i + h] = s(v[i] + v[i + h], 16), s(v[i] - v[i + h], 16)
    return v


def proofs(a, i, j, k):
    return (a[i % 10], a[i & 7], a[min(i, 9)], a[min(max(j, 0), 9)], a[k] if k < 10 else 0,
            a[j] if 0 <= j < 10 else 1, 1 if i >= 10 or a[i] > 3 else 2, a[i >> 5])
