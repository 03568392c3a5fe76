"""What `circuits.kera` computes, an item at a time; a stream's items all at once."""

from __future__ import annotations


def vote(a, b, c):
    return a + b + c


def first_set(x, k):
    return sum(x) + k & 255, x.index(True) if any(x) else 7


def arbiter(request, last):
    for i in range(5):
        j = (last + 1 + i) % 5
        if request >> j & 1:
            return j, True
    return 0, False


def decimal(v):
    return [v // 10**d % 10 for d in range(4)]


def fifo(items):
    m, r, w, n, out = [0] * 4, 0, 0, 0, []
    for push, pop, x in items:
        shown, take, give = m[r], push and n < 4, pop and n > 0
        if take:
            m[w], w = x, (w + 1) % 4
        r = (r + give) % 4
        n += take - give
        out.append((shown, n))
    return out


def insertion(v):
    return sorted(v)
