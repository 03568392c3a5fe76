"""What `machines.kera` computes, all items of a stream at once."""

from __future__ import annotations


def receiver(items):
    st = count = bit = word = 0
    out = []
    for (line,) in items:
        valid = False
        if st == 0:
            if not line:
                st, count = 1, 0
        elif st == 1:
            count += 1
            if count == 2:
                st, count, bit = 0 if line else 2, 0, 0
        elif st == 2:
            count += 1
            if count == 4:
                count, word = 0, word >> 1 | line << 7
                if bit == 7:
                    st = 3
                bit = (bit + 1) % 8
        else:
            count += 1
            if count == 4:
                valid, st, count = line, 0, 0
        out.append({"valid": valid, "data": word})
    return out


def chain(items):
    at = a = b = c = 0
    table, out = [0] * 12, []
    for (go,) in items:
        if at == 0:
            if go:
                at, a = 1, 3
        elif at == 1:
            at, b = 2, a + 1
        elif at == 2:
            at, c = 3, a + b
        elif at == 3:
            at, a = 4, c * 2
        elif at == 4:
            at, b = 5 if go else 4, a
        elif at == 5:
            at, c = 6, b * 3
        elif at == 6:
            at = 7
            table[at] = c & 255
        elif at == 7:
            at = 8
            table[a % 12] = b
        elif at == 8:
            at, a = 9, table[7] + c
        elif at == 9:
            at, b = 10, a + b
        else:
            at, c = 0, b ^ a
        a, b, c = a & 255, b & 255, c & 255
        table[at] = table[at] + a & 255
        out.append((at, table[at] ^ c))
    return out
