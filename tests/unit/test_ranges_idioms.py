"""Counters, pointers and machines as engineers write them: their indices are proved, and near misses not."""
from __future__ import annotations

import pytest

from kera_hw.frontend import compile_source
from kera_hw.support import SourceFile

PROVED = {
    "raster": """stream f(v: u8) -> u8 {
        state x: u4 = 0; state y: u4 = 0; state rows: [u8; 10] = [0; 10]; state columns: [u8; 10] = [0; 10];
        let out = rows[y] ^ columns[x]; rows[y] = v; columns[x] = out;
        if x == 9 { x = 0; if y == 9 { y = 0; } else { y += 1; } } else { x += 1; }
        out }""",
    "raster with blanking": """stream f(v: u8) -> u8 {
        state x: u16 = 0; state y: u16 = 0; state line: [u8; 640] = [0; 640]; state up: [u8; 480] = [0; 480];
        let visible = x < 640 && y < 480;
        let out = if visible { line[x] ^ up[y] } else { 0 };
        if visible { line[x] = v; }
        if x == 799 { x = 0; y = if y == 524 { 0 } else { y + 1 }; } else { x += 1; }
        out }""",
    "three raster counters": """stream f(v: u8) -> u8 {
        state a: u8 = 0; state b: u8 = 0; state c: u8 = 0; state t: [u8; 6, 7, 100] = [0; 6, 7, 100];
        let out = t[a, b, c]; t[a, b, c] = v;
        if c == 99 { c = 0; if b == 6 { b = 0; if a == 5 { a = 0; } else { a += 1; } } else { b += 1; } }
        else { c += 1; }
        out }""",
    "beside unrelated constants": """stream f(p: u8) -> u8 {
        state x: u8 = 0; state line: [u8; 100] = [0; 100];
        let old = line[x]; line[x] = p; x = if x == 99 { 0 } else { x + 1 };
        old ^ (p + 10) ^ (p * 20) }""",
    "named condition on a state": """stream f(v: u8) -> u8 {
        state x: u8 = 0; state l: [u8; 15] = [0; 15];
        let top = x == 15;
        let out = if top { 0 } else { l[x] };
        x = if top { 0 } else { x + 1 };
        out }""",
    "named conditions, used after assignments": """stream f(v: u8) -> u8 {
        state x: u4 = 0; state y: u4 = 0; state t: [u8; 10, 10] = [0; 10, 10];
        let out = t[x, y];
        let right = x == 9; let bottom = y == 9; let last = right && bottom;
        if right { x = 0; } else { x += 1; }
        if last { y = 0; } else if right { y += 1; }
        out }""",
    "wrap in a function": """fn next(x: u8) -> u8 { if x == 9 { 0 } else { x + 1 } }
        stream f(v: u8) -> u8 { state x: u8 = 0; state l: [u8; 10] = [0; 10];
        let out = l[x]; l[x] = v; x = next(x); out }""",
    "wrap in a function of a limit": """fn next(x: u8, limit: u8) -> u8 { if x == limit { 0 } else { x + 1 } }
        stream f(v: u8) -> u8 { state x: u8 = 0; state y: u8 = 0; state l: [u8; 10, 20] = [0; 10, 20];
        let out = l[x, y]; l[x, y] = v; x = next(x, 9); y = next(y, 19); out }""",
    "wrap through a borrow": """fn step(x: &mut u8, wrap: bool) { if wrap { x = 0; } else { x += 1; } }
        stream f(v: u8) -> u8 { state x: u8 = 0; state l: [u8; 10] = [0; 10];
        let out = l[x]; step(&mut x, x == 9); out }""",
    "remainder in the inner counter": """stream f(v: u8) -> u8 {
        state x: u4 = 0; state y: u4 = 0; state l: [u8; 10] = [0; 10];
        let out = l[y]; l[x] = v;
        if x == 9 { x = 0; y = (y + 1) % 10; } else { x += 1; }
        out }""",
    "ring with two pointers": """stream f(v: u8, push: bool, pop: bool) -> u8 {
        state buf: [u8; 12] = [0; 12]; state head: u4 = 0; state tail: u4 = 0;
        let out = buf[tail];
        if push { buf[head] = v; head = if head == 11 { 0 } else { head + 1 }; }
        if pop && tail != head { tail = if tail == 11 { 0 } else { tail + 1 }; }
        out }""",
    "ring with compare at least": """stream f(v: u8) -> u8 {
        state buf: [u8; 12] = [0; 12]; state head: u32 = 0;
        let out = buf[head]; head += 1; if head >= 12 { head = 0; } out }""",
    "fifo with a count": """stream f(v: u8, push: bool, pop: bool) -> (u8, bool) {
        state buf: [u8; 20] = [0; 20]; state head: u5 = 0; state tail: u5 = 0; state count: u5 = 0;
        state seen: [u8; 21] = [0; 21];
        let full = count == 20; let empty = count == 0;
        let puts = push && !full; let takes = pop && !empty;
        let out = buf[tail];
        seen[count] = v;
        if puts { buf[head] = v; head = if head == 19 { 0 } else { head + 1 }; }
        if takes { tail = if tail == 19 { 0 } else { tail + 1 }; }
        if puts && !takes { count += 1; } else if takes && !puts { count -= 1; }
        (out, empty) }""",
    "stack": """stream f(v: u8, push: bool) -> u8 {
        state s: [u8; 8] = [0; 8]; state n: u8 = 0; let mut out = 0u8;
        if push { if n < 8 { s[n] = v; n += 1; } } else if n > 0 { n -= 1; out = s[n]; }
        out }""",
    "saturating up and down": """stream f(up: bool) -> u8 {
        state n: u8 = 0; state t: [u8; 11] = [0; 11];
        if up { if n < 10 { n += 1; } } else { if n > 0 { n -= 1; } }
        t[n] }""",
    "saturating with min": """stream f(v: u8) -> u8 {
        state n: u8 = 0; state t: [u8; 11] = [0; 11]; n = min(n + 1, 10); t[n] }""",
    "signed saturation": """stream f(v: i8) -> u8 {
        state n: i8 = 0; state t: [u8; 21] = [0; 21];
        n = clamp(n + (v & 3) - 1, -10, 10); t[n + 10] }""",
    "delay line": """stream f(v: u8, k: u8) -> u8 {
        state line: [u8; 24] = [0; 24]; state head: u8 = 0;
        line[head] = v; let out = line[(head + 24 - k % 24) % 24];
        head = (head + 1) % 24; out }""",
    "bounded pointer": """const N: u32 = 17;
        stream f(v: u8) -> u8 { state p: u32 = 0; state t: [u8; N] = [0; N];
        let out = t[p]; t[p] = v; p = if p == N - 1 { 0 } else { p + 1 }; out }""",
    "down counter": """stream f(v: u8) -> u8 { state p: u8 = 9; state t: [u8; 10] = [0; 10];
        let out = t[p]; p = if p == 0 { 9 } else { p - 1 }; out }""",
    "counter by two": """stream f(v: u8) -> u8 { state p: u8 = 0; state t: [u8; 10] = [0; 10];
        let out = t[p] ^ t[p + 1]; p += 2; if p == 10 { p = 0; } out }""",
    "counter by three in a loop": """fn f(a: [u8; 30]) -> u8 { let mut p = 0u8; let mut s = 0u8;
        for k in 0..100 { s ^= a[p]; p = if p == 27 { 0 } else { p + 3 }; } s }""",
    "enabled counter": """stream f(v: u8, go: bool) -> u8 { state p: u8 = 0; state t: [u8; 10] = [0; 10];
        let next = if p == 9 { 0 } else { p + 1 }; let out = t[p]; if go { p = next; } out }""",
    "counter cleared by an input": """stream f(v: u8, clear: bool) -> u8 { state p: u8 = 0;
        state t: [u8; 10] = [0; 10]; let out = t[p];
        p = if clear || p == 9 { 0 } else { p + 1 }; out }""",
    "state machine": """const IDLE: u2 = 0; const RUN: u2 = 1; const DONE: u2 = 2;
        stream f(start: bool) -> u8 { state s: u2 = IDLE; state n: u8 = 0; state t: [u8; 3] = [1, 2, 3];
        state b: [u8; 16] = [0; 16];
        let out = t[s] ^ b[n];
        match s { IDLE => { if start { s = RUN; n = 0; } }
                  RUN => { if n == 15 { s = DONE; } else { n += 1; } }
                  _ => { s = IDLE; } }
        out }""",
    "machine that gives the next state": """stream f(go: bool) -> u8 {
        state s: u3 = 0; let t = [1u8, 2, 3, 4, 5];
        let out = t[s];
        s = match s { 0 => if go { 1 } else { 0 }, 1 => 2, 2 => 3, 3 => 4, _ => 0 };
        out }""",
    "binary search": """fn f(t: [u16; 100], key: u16) -> u8 {
        let mut lo = 0u8; let mut hi = 100u8;
        while lo < hi, max 7 { let mid = (lo + hi) / 2; if t[mid] < key { lo = mid + 1; } else { hi = mid; } }
        lo }""",
    "binary search without overflow": """fn f(t: [u16; 200], key: u16) -> u8 {
        let mut lo = 0u8; let mut hi = 200u8;
        while lo < hi, max 8 {
            let mid = lo + (hi - lo) / 2; if t[mid] < key { lo = mid + 1; } else { hi = mid; } }
        lo }""",
    "linear search": """fn f(t: [u8; 20], key: u8) -> u8 {
        let mut i = 0u8; while i < 19 && t[i] != key, max 20 { i += 1; } t[i] }""",
    "two ends": """fn f(t: [u8; 20]) -> u8 {
        let mut i = 0u8; let mut j = 19u8; let mut s = 0u8;
        while i < j, max 10 { s ^= t[i] - t[j]; i += 1; j -= 1; } s }""",
    "gray code": """stream f(v: u8) -> u8 { state n: u4 = 0; state t: [u8; 16] = [0; 16];
        let g = n ^ (n >> 1); let out = t[g]; t[g] = v; n += 1; out }""",
    "bits and masks": """stream f(v: u16) -> u8 { state t: [u8; 8] = [0; 8];
        t[v.bits(6, 4)] = v as u8; t[(v >> 3) & 7] ^ t[min(v, 7)] ^ t[v % 8] }""",
    "struct of counters": """struct At { x: u4, y: u4 }
        stream f(v: u8) -> u8 { state p: At = At { x: 0, y: 0 }; state t: [u8; 10, 12] = [0; 10, 12];
        let out = t[p.x, p.y]; t[p.x, p.y] = v;
        if p.x == 9 { p.x = 0; p.y = if p.y == 11 { 0 } else { p.y + 1 }; } else { p.x += 1; }
        out }""",
    "struct made anew": """struct At { x: u8, y: u8 }
        fn next(p: At) -> At {
            if p.x < 9 { At { x: p.x + 1, y: p.y } } else if p.y < 11 { At { x: 0, y: p.y + 1 } }
            else { At { x: 0, y: 0 } } }
        stream f(v: u8) -> u8 { state p: At = At { x: 0, y: 0 }; state t: [u8; 10, 12] = [0; 10, 12];
        let out = t[p.x, p.y]; p = next(p); out }""",
    "tuple state": """stream f(v: u8) -> u8 { state p: (u8, u8) = (0, 0); state t: [u8; 10, 12] = [0; 10, 12];
        let out = t[p.0, p.1];
        let (x, y) = p;
        p = if x == 9 { (0, if y == 11 { 0 } else { y + 1 }) } else { (x + 1, y) };
        out }""",
    "a test of one field and a change of another": """struct P { a: u8, b: u8 }
        stream f(v: P) -> u8 { state t: [u8; 8] = [0; 8]; let mut p = v;
        if p.a < 8 && p.b < 8 { p.a = 200; t[p.b] } else { 0 } }""",
    "array of counters": """stream f(k: u2) -> u8 {
        state n: [u8; 4] = [0; 4]; state t: [u8; 10] = [0; 10];
        let out = t[n[k]];
        if n[k] == 9 { n[k] = 0; } else { n[k] += 1; }
        out }""",
    "array of counters, stepped in a loop": """stream f(on: [bool; 4]) -> u8 {
        state n: [u8; 4] = [0; 4]; state t: [u8; 10] = [0; 10]; let mut s = 0u8;
        for k in 0..4 { s ^= t[n[k]]; if on[k] { n[k] = (n[k] + 1) % 10; } }
        s }""",
    "array of records": """struct C { n: u8, limit: u8 }
        stream f(k: u2) -> u8 { state c: [C; 4] = [C { n: 0, limit: 9 }; 4]; state t: [u8; 10] = [0; 10];
        let out = t[c[k].n];
        if c[k].n == 9 { c[k].n = 0; } else { c[k].n += 1; }
        out }""",
    "element just written": """stream f(x: u8, k: u3) -> u8 {
        state n: [u8; 8] = [0; 8]; n[k] = x & 7; n[n[k]] }""",
    "counter stepped in nested loops": """fn f(a: [u8; 10]) -> u8 { let mut p = 0u8; let mut s = 0u8;
        for i in 0..3 { for j in 0..3 { for k in 0..7 { for l in 0..2 {
            s ^= a[p]; if p == 9 { p = 0; } else { p += 1; } } } } } s }""",
    "stream stepped in nested loops": """stream f(v: u8) -> u8 { state p: u8 = 0; state t: [u8; 10] = [0; 10];
        let mut s = 0u8;
        for i in 0..3 { for j in 0..3 { s ^= t[p]; p = if p == 9 { 0 } else { p + 1 }; } } s }""",
    "copy of a counter": """stream f(v: u8) -> u8 {
        state now: u8 = 0; state before: u8 = 0; state older: u8 = 0; state t: [u8; 10] = [0; 10];
        let out = t[now] ^ t[before] ^ t[older];
        older = before; before = now; now = if now == 9 { 0 } else { now + 1 };
        out }""",
    "pipeline of pointers": """stream f(v: u8) -> u8 {
        state q: [u8; 4] = [0; 4]; state p: u8 = 0; state t: [u8; 10] = [0; 10];
        let out = t[q[0]];
        q = shift_in(q, p); p = if p == 9 { 0 } else { p + 1 }; out }""",
    "choice kept": """fn f(a: [u8; 8], i: u8, valid: bool) -> u8 {
        let k = if valid && i < 8 { i } else { 255 }; if k != 255 { a[k] } else { 0 } }""",
    "condition chosen": """stream f(wide: bool) -> u8 { state x: u8 = 0; state t: [u8; 20] = [0; 20];
        let last = if wide { x == 19 } else { x == 9 || x >= 19 };
        let out = t[x]; x = if last { 0 } else { x + 1 }; out }""",
    "condition in a function": """fn last(x: u8, wide: bool) -> bool { if wide { x >= 19 } else { x >= 9 } }
        stream f(wide: bool) -> u8 { state x: u8 = 0; state t: [u8; 20] = [0; 20];
        let out = t[x]; if last(x, wide) { x = 0; } else { x += 1; } out }""",
    "named sum": """fn f(a: [u8; 8], i: u8) -> u8 { let j = i + 1; if i < 7 { a[j] } else { 0 } }""",
    "up and down between the ends": """stream f(v: u8) -> u8 {
        state up: bool = true; state x: u8 = 0; state t: [u8; 10] = [0; 10];
        let out = t[x];
        if up { if x == 9 { up = false; x = 8; } else { x += 1; } }
        else { if x == 0 { up = true; x = 1; } else { x -= 1; } }
        out }""",
    "up and down, turned on arrival": """stream f(v: u8) -> u8 {
        state up: bool = true; state x: u8 = 0; state t: [u8; 10] = [0; 10];
        let out = t[x];
        if up { x += 1; if x == 9 { up = false; } } else { x -= 1; if x == 0 { up = true; } }
        out }""",
    "machine that counts in one state": """stream f(start: bool) -> u8 {
        state s: u2 = 0; state n: u8 = 0; state t: [u8; 10] = [0; 10];
        let mut out = 0u8;
        match s { 0 => { if start { s = 1; n = 0; } }
                  1 => { out = t[n]; n += 1; if n == 10 { s = 2; } }
                  _ => { s = 0; } }
        out }""",
    "bit counter of a receiver": """stream f(rx: bool) -> u8 {
        state busy: bool = false; state n: u4 = 0; state data: [bool; 8] = [false; 8];
        if busy { data[n] = rx; if n == 7 { busy = false; n = 0; } else { n += 1; } }
        else if !rx { busy = true; }
        n as u8 }""",
}

REFUSED = {
    "condition named before the assignment": ("""stream f(v: u8) -> u8 {
        state x: u8 = 0; state l: [u8; 15] = [0; 15];
        let top = x >= 14; x += 1; if top { 0 } else { l[x + 1] } }""", "may be"),
    "condition on another version": ("""fn f(a: [u8; 8], i: u8, j: u8) -> u8 {
        let mut x = i; let ok = x < 8; x = j; if ok { a[x] } else { 0 } }""", "may be 0 to 255"),
    "field changed after the test": ("""struct P { a: u8, b: u8 }
        fn f(v: P, t: [u8; 8]) -> u8 { let mut p = v; if p.b < 8 { p.b += 1; t[p.b] } else { 0 } }""",
        "may be 1 to 8"),
    "element that another may have changed": ("""stream f(x: u8, j: u3, k: u3) -> u8 {
        state n: [u8; 8] = [0; 8]; state t: [u8; 8] = [0; 8];
        if n[k] < 8 { n[j] = x; t[n[k]] } else { 0 } }""", "may be 0 to 255"),
    "inner counter wraps too late": ("""stream f(v: u8) -> u8 {
        state x: u4 = 0; state y: u4 = 0; state l: [u8; 10] = [0; 10];
        if x == 9 { x = 0; if y == 10 { y = 0; } else { y += 1; } } else { x += 1; }
        l[y] }""", "may be 0 to 10"),
    "function that wraps too late": ("""fn next(x: u8) -> u8 { if x == 10 { 0 } else { x + 1 } }
        stream f(v: u8) -> u8 { state x: u8 = 0; state l: [u8; 10] = [0; 10]; x = next(x); l[x] }""",
        "may be 0 to 10"),
    "counter by two from an odd start": ("""stream f(v: u8) -> u8 {
        state p: u8 = 1; state t: [u8; 11] = [0; 11];
        let out = t[p]; p += 2; if p == 10 { p = 0; } out }""", "may be"),
    "up and down, never turned": ("""stream f(v: u8) -> u8 {
        state up: bool = true; state x: u8 = 0; state t: [u8; 10] = [0; 10]; let out = t[x];
        if up { x += 1; if x == 10 { up = false; } } else { x -= 1; if x == 0 { up = true; } }
        out }""", "may be"),
    "cleared only sometimes": ("""stream f(clear: bool) -> u8 { state p: u8 = 0;
        state t: [u8; 10] = [0; 10]; let out = t[p];
        p = if clear && p == 9 { 0 } else { p + 1 }; out }""", "may be"),
    "through a borrow": ("""fn step(x: &mut u8, wrap: bool) { if wrap { x = 0; } else { x += 1; } }
        stream f(v: u8) -> u8 { state x: u8 = 0; state l: [u8; 10] = [0; 10];
        let out = l[x]; step(&mut x, x == 10); out }""", "may be 0 to 10"),
}


def refusals(text: str) -> list[str]:
    front = compile_source(SourceFile.from_text(text), lambda name: None)
    assert [item.message for item in front.diagnostics if item.is_error and item.code != "K0301"] == []
    return [item.message for item in front.diagnostics if item.code == "K0301"]


@pytest.mark.parametrize("name", PROVED)
def test_proved(name: str) -> None:
    assert refusals(PROVED[name]) == []


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, words = REFUSED[name]
    found = refusals(text)
    assert found and all(words in message for message in found)
