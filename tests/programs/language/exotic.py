"""What `exotic.kera` computes, an item at a time."""

from __future__ import annotations


def s(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def words(w, total, length, t, m):
    return total + 4 & 255 ^ max(w["max"], length), w["host"][1], 4, t[3], m[2][1] + 4 & 255


def operand_blocks(c, x):
    return 1 + (1 if c else 2) * x & 255, (x + 1) * 2 & 255, (x or 7) - 1


def statement_then_minus(c, x):
    y = 1 if c else x + 2
    return s(-(y * 3 if x == 0 else y), 8)


def cast_then_compare(x, y):
    low = x & 255
    return low < y, low << 2 & 255 | y, (~x ^ -x) & 255


def found_indices(a, b, x, c):
    bits = format(x, "08b")
    first = len(bits) - len(bits.lstrip("0"))
    last = len(bits) - len(bits.rstrip("0"))
    return (max(b), a[8], a[x.bit_count()], a[first] ^ a[last], a[x & 7] + a[x >> 5] & 255,
            a[(x & 3) * 2 + c], a[1] ^ a[0] if c else a[2] ^ a[8])


def proved_by_match(a, i):
    return a[i] if i < 4 else a[i - 10] if i in (10, 11) else 0


def neighbours(a):
    t = 0
    for i in range(1, 8):
        t = t * 3 + (a[i] ^ a[i - 1] ^ a[7 - i] ^ a[(i + 1) % 8]) & 255
    return t


def ring(items):
    xs = [9] * 5 + [x for x, in items]
    return [(xs[i], (i + 1) % 5) for i in range(len(items))]


def scan_while(a, stop):
    i = t = 0
    while i < 4 and t < stop:
        t, i = t + (a[i] >> 2), i + 1
    return t, i


def signed_indices(a, i):
    return a[i] if 0 <= i < 4 else 0, a[i & 3], a[(i > 0) - (i < 0) + 1], a[abs(i) % 4]


def generic_last(a):
    return a[3] + 2 * a[2] & 255


def masks(m, n, a):
    pairs = list(zip(m, n))
    return ([(not p and q) or p != q for p, q in pairs], [x if p else 0 for p, x in zip(m, a)],
            [1 if p else x for p, x in zip(m, a)], any(p and not q for p, q in pairs))


def tensor_carry(a, b, c):
    totals = [x + y + z for x, y, z in zip(a, b, c)]
    return [t & 255 for t in totals], [t > 255 for t in totals], [x + 1 & 255 for x in a]


def lends(p):
    v, n, k = p["v"], p["n"], 5
    for _ in range(2):
        v[0] = v[0] * 2 + 1 & 255
    v[1] = v[1] + 1 & 255
    k = k + v[1] & 255
    v[0] = k
    n = n + v[1] & 255
    v[0] = n
    return {"v": v, "n": n}, 2 * v[3] + k & 255


def variable_shifts(x, n):
    t = x
    for i in range(5):
        t ^= t << (1 << i) & 0xFFFFFFFF
    return x << 3 & 255 | x >> 5, x << n & 255 | x >> (8 - n), t


def constants(x):
    return 0x24000, [2, 2], [[-1, -1]] * 3, x + 6 & 255


def deep_lambdas(a, m):
    squares = [x * x for x in a]
    return ([x if x > 50 else 2 if x else 1 for x in squares], sum(x * y for x, y in zip(a, m)),
            [[x - y & 255 for y in m] for x in m])


def half_open(x, y):
    return 0 if x < 4 else 1 if x < 10 else 2, (y > 0) - (y < 0) + 1


def chained_index(x):
    return x[1][2] + x[0][1] + x[1][0] + x[0][2] & 255


def tuple_tensors(a, x):
    return [n if b else 0 for n, b in zip(*a)], a[0][1], 3


def literal_flow(c, x):
    return (1000 if c else 2000) + x & 0xFFFF, (1 if x else -1) * 4_000_000_000, 42, 20 if c else -32


def early(v, limit):
    total = i = 0
    while i < 8 and total <= limit:
        total, i = total + v[i], i + 1
    return total, i


def bounded_while(x):
    return x + 3 & 255


def assigning_arms(c, x):
    return [1, 3, x, s(x + 2, 8)][c]


def solved_sizes(a, x, y):
    return (a[1:5], [p + q & 255 for p, q in zip(a, a[3:])],
            [s(sum(p * q for p, q in zip(x[i:], y)), 16) for i in range(5)])


def lengths(m):
    t = 0
    for row in m:
        for v in row[:0:-1]:
            t = t * 7 + v & 255
    return t, m[1:], 12
