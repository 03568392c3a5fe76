"""The index proof on source: what LANGUAGE says is proved, near misses, and random programs."""
from __future__ import annotations

import random

import numpy as np
import pytest

from kera_hw.frontend import Frontend, compile_source
from kera_hw.frontend.sema.ranges.proof import analysed, prove_indices
from kera_hw.interp import run_export
from kera_hw.support import Diagnostic, SourceFile


def front_of(text: str) -> Frontend:
    front = compile_source(SourceFile.from_text(text), lambda name: None)
    assert [d.message for d in front.diagnostics if d.is_error and d.code != "K0301"] == []
    return front


def errors(text: str) -> list[Diagnostic]:
    return [item for item in front_of(text).diagnostics if item.is_error]


ACCEPTED = {
    "bit counts": """fn f(a: [u8; 8], x: u8) -> u8 {
        if x != 0 { a[ctz(x)] ^ a[7 - clz(x)] ^ a[popcount(x) - 1] } else { 0 } }""",
    "clamped float": """fn f(a: [u8; 8], x: f32) -> u8 {
        a[clamp(x * 8.0, -3.5, 7.5) as u8] ^ a[relu(min(x, 7.0)) as i32] }""",
    "named float": """fn f(a: [u8; 9], x: f16) -> u8 {
        let y = round(min(abs(x), 8.4)); a[y as u32] ^ a[(sigmoid(x) as u4) + 7] }""",
    "type": "fn f(a: [u8; 256], i: u8) -> u8 { a[i] }",
    "signed after a test": "fn f(a: [u8; 8], i: i32) -> u8 { if i >= 0 && i < 8 { a[i] } else { 0 } }",
    "test on the other side": "fn f(a: [u8; 8], i: u32) -> u8 { if 8 > i { a[i] } else { 0 } }",
    "early default": "fn f(a: [u8; 8], i: u32) -> u8 { if i >= 8 { 0 } else { a[i] } }",
    "negated or": "fn f(a: [u8; 8], i: i8) -> u8 { if !(i < 0 || i > 7) { a[i] } else { 0 } }",
    "and": "fn f(a: [bool; 8], i: u32) -> bool { i < 8 && a[i] }",
    "or": "fn f(a: [bool; 8], i: u32) -> bool { i >= 8 || a[i] }",
    "mask": "fn f(a: [u8; 8], i: i32) -> u8 { a[i & 7] }",
    "remainder": "fn f(a: [u8; 10], i: u32) -> u8 { a[i % 10] }",
    "len": "fn f(a: [u8; 10], i: u32) -> u8 { a[i % len(a)] }",
    "min": "fn f(a: [u8; 10], i: u32) -> u8 { a[min(i, 9)] }",
    "clamp": "fn f(a: [u8; 10], i: i32) -> u8 { a[clamp(i, 0, 9)] }",
    "shift": "fn f(a: [u8; 16], i: u8) -> u8 { a[i >> 4] }",
    "bits": "fn f(a: [u8; 8], i: u32) -> u8 { a[i.bits(5, 3)] }",
    "cast": "fn f(a: [u8; 8], i: u32) -> u8 { a[i as u3] }",
    "bool": "fn f(a: [u8; 2], c: bool) -> u8 { a[c as u1] }",
    "match": """fn f(a: [u8; 8], i: u32) -> u8 {
        match i { 0..=3 | 5 => a[i], 8..=4294967295 => 0, _ => a[i] } }""",
    "match on a pair": """fn f(a: [u8; 4], i: u32, c: bool) -> u8 {
        match (i, c) { (0..=3, true) => a[i], _ => 0 } }""",
    "window": "fn f(a: [u8; 8], i: u32) -> u8 { if i > 0 && i < 7 { a[i - 1] + a[i + 1] } else { 0 } }",
    "widened": "fn f(a: [u8; 16], i: u3) -> u8 { a[(i as u8) * 2 + 1] }",
    "named condition": "fn f(a: [u8; 8], i: u32) -> u8 { let ok = i < 8; if ok { a[i] } else { 0 } }",
    "named index": "fn f(a: [u8; 8], i: u32) -> u8 { let j = i + 1; if j < 8 { a[j] } else { 0 } }",
    "relation": """fn f(a: [u8; 8], i: u32, n: u32) -> u8 {
        if i < n { if n <= 8 { a[i] } else { 0 } } else { 0 } }""",
    "two dimensions": """fn f(a: [u8; 4, 8], i: u2, j: u3) -> u8 { a[i, j] + a[i][j] }""",
    "triangle": """fn f(a: [u8; 8]) -> u8 {
        let mut s = 0u8;
        for i in 0..8 { for j in 0..8 { if j <= i { s += a[i - j]; } } }
        s }""",
    "fft": """fn f(x: [i16; 16]) -> [i16; 16] {
        let mut a = x;
        for s in 0..4 { for k in 0..8 {
            let low = k & ((1 << s) - 1);
            let top = ((k >> s) << (s + 1)) | low;
            let t = a[top + (1 << s)];
            a[top + (1 << s)] = a[top] - t;
            a[top] = a[top] + t;
        } }
        a }""",
    "bit reversal through a function": """fn rev(i: u32) -> u32 { let mut r = 0u32; let mut x = i;
            for b in 0..4 { r = (r << 1) | (x & 1); x >>= 1; } r }
        fn f(a: [u8; 16]) -> u8 { let mut s = 0u8; for i in 0..16 { s += a[rev(i)]; } s }""",
    "table of indices": """const ORDER: [u8; 4] = [3, 0, 9, 1];
        fn f(a: [u8; 10]) -> u8 { let mut s = 0u8; for i in 0..4 { s += a[ORDER[i]]; } s }""",
    "permuted modulo a prime": """fn f(a: [u8; 17]) -> u8 {
        let mut s = 0u8; for i in 0..17 { s ^= a[(i * 5 + 3) % 17]; } s }""",
    "reversed and stepped": """fn f(a: [u8; 8]) -> u8 {
        let mut s = 0u8; for i in (0..8).rev().step_by(3) { s ^= a[i]; } s }""",
    "ring in a loop": """fn f(a: [u8; 8], n: u8) -> u8 {
        let mut p: u32 = 0; let mut s = 0u8;
        for i in 0..100 { s ^= a[p]; p = (p + 3) & 7; } s }""",
    "counter with a wrap": """fn f(a: [u8; 10]) -> u8 {
        let mut p: u8 = 0; let mut s = 0u8;
        for i in 0..100 { s ^= a[p]; if p == 9 { p = 0; } else { p += 1; } } s }""",
    "while": """fn f(a: [u8; 10]) -> u8 {
        let mut p: u32 = 0; let mut s = 0u8;
        while p < 10, max 10 { s ^= a[p]; p += 1; } s }""",
    "ring buffer in a stream": """stream f(x: u8) -> u8 {
        state buf: [u8; 12] = [0; 12]; state head: u32 = 0;
        let old = buf[head]; buf[head] = x; head = if head == 11 { 0 } else { head + 1 };
        old }""",
    "histogram": "stream f(x: u8) -> u32 { state n: [u32; 256] = [0; 256]; n[x] += 1; n[x] }",
    "slice": """fn f(a: [u8; 6, 6]) -> u8 {
        let mut s = 0u8; for y in 1..5 { for x in 1..5 { s ^= sum(a[y - 1..y + 2, x - 1..x + 2]); } } s }""",
    "dynamic slice": """fn f(a: [u8; 64]) -> u8 {
        let mut s = 0u8; for i in 0..8 { s ^= max(a[i * 8..i * 8 + 8]); } s }""",
    "gather": "fn f(a: [u8; 16], i: [u8; 3]) -> [u8; 3] { gather(a, i & 15) }",
    "argmax": "fn f(a: [u8; 5], b: [u8; 5]) -> u8 { b[argmax(a)] }",
    "lambda": "fn f(a: [u8; 16], b: [u4; 3]) -> [u8; 3] { map(b, |i| a[i]) }",
    "converted": "fn f(a: [f32; 8], i: u8) -> f32 { let k = i & 7; a[k] * k as f32 }",
    "converted twice": "fn f(a: [u8; 8], i: u8) -> u8 { a[(i & 7) as fix<12, 4> as u8] }",
    "popcount": "fn f(a: [u8; 9], x: u8) -> u8 { a[popcount(x)] }",
    "carry-less product": "fn f(a: [u8; 8], x: u2) -> u8 { a[clmul(x, x)] }",
    "at": "fn f(a: [u8; 9], x: u8) -> u8 { a.at(x, else: 1) + a.clamped(x) }",
    "after a bounded assignment": """fn f(a: [u8; 8], x: u32) -> u8 {
        let mut i = x; if i > 7 { i = 7; } a[i] }""",
    "function result": "fn low(x: u32) -> u32 { x & 7 } fn f(a: [u8; 8], x: u32) -> u8 { a[low(x)] }",
}

REFUSED = {
    "element of nothing": (  # clamped, it is zero, whatever the elements would have been
        "fn f(a: [u8; 6], k: u8) -> u8 { let e: [u8; 0] = [5; 0]; a[e.clamped(k) - 1] }", "may be 0 to 255"),
    "element of no pairs": (
        "fn f(a: [u8; 6], k: u8) -> u8 { let e: [(u8, u8); 0] = [(5, 5); 0]; a[e.clamped(k).0 - 1] }",
        "may be 0 to 255"),
    "one-sided float": ("fn f(a: [u8; 8], x: f32) -> u8 { a[min(x, 7.0) as i32] }", "-2147483648"),
    "raised float": ("fn f(a: [u8; 8], x: f32) -> u8 { a[ceil(clamp(x, 0.0, 7.5)) as u8] }", "may be 0 to 8"),
    "float not zero": ("fn f(a: [u8; 8], x: f32) -> u8 { a[max(x, 3.0) as u8] }", "may be 0 to 255"),
    "float in a variable": (
        """fn f(a: [u8; 8], x: f32) -> u8 {
        let mut y = min(abs(x), 7.0); y = x; a[y as u8] }""", "may be 0 to 255"),
    "triangle": (
        """fn f(a: [u8; 4]) -> u8 {
        let mut t = 0; for i in 0..3 { for j in i..3 { t += a[i + j]; } } t }""", "is 4 when i = 2 and j"),
    "type": ("fn f(a: [u8; 10], i: u8) -> u8 { a[i] }", "may be 0 to 255"),
    "negative": ("fn f(a: [u8; 10], i: i32) -> u8 { if i < 10 { a[i] } else { 0 } }", "-2147483648 to 9"),
    "off by one": ("fn f(a: [u8; 10], i: u32) -> u8 { if i <= 10 { a[i] } else { 0 } }", "may be 0 to 10"),
    "wrong arm": ("fn f(a: [u8; 10], i: u32) -> u8 { if i < 10 { 0 } else { a[i] } }", "is 10 to 42949"),
    "wrapping sum": ("fn f(a: [u8; 10], i: u32) -> u8 { if i + 1 < 10 { a[i] } else { 0 } }", "may be"),
    "wrapping difference": ("fn f(a: [u8; 10], i: u32) -> u8 { if i < 10 { a[i - 1] } else { 0 } }", "may"),
    "signed remainder": ("fn f(a: [u8; 10], i: i32) -> u8 { a[i % 10] }", "may be -9 to 9"),
    "remainder by an input": ("fn f(a: [u8; 10], i: u32, n: u4) -> u8 { a[i % (n as u32)] }", "may be"),
    "right of or": ("fn f(a: [bool; 8], i: u32) -> bool { i < 8 || a[i] }", "is 8 to"),
    "stale": (
        """fn f(a: [u8; 8], x: u32) -> u8 {
        let mut i = x; if i < 8 { i += 1; a[i] } else { 0 } }""", "may be 1 to 8"),
    "stale in a loop": (
        """fn f(a: [u8; 8], x: u32) -> u8 { let mut i = x; let mut s = 0u8;
        if i < 8 { for k in 0..4 { s ^= a[i]; i += 1; } } s }""", "may be"),
    "callers do not help": (
        "fn g(a: [u8; 8], i: u32) -> u8 { a[i] } fn f(a: [u8; 8]) -> u8 { g(a, 3) }", "may be"),
    "mutable table": (
        """fn f(a: [u8; 8], x: u8) -> u8 { let mut t = [1u8, 2]; t[0] = x; a[t[0]] }""", "may be 0 to 255"),
    "slice": (
        """fn f(a: [u8; 8]) -> u8 {
        let mut s = 0u8; for i in 0..8 { s ^= max(a[i..i + 2]); } s }""", "starts at 7"),
    "update": ("fn f(x: [u8; 8], i: u8) -> [u8; 8] { let mut a = x; a[i] = 1; a }", "may be 0 to 255"),
    "gather": ("fn f(a: [u8; 15], i: [u4; 3]) -> [u8; 3] { gather(a, i) }", "may be 0 to 15"),
    "second axis": ("fn f(a: [u8; 4, 5], i: u2, j: u3) -> u8 { a[i, j] }", "the axis has 5 elements"),
    "state grows": (
        "stream f(x: u8) -> u8 { state b: [u8; 4] = [0; 4]; state h: u8 = 0; h += 1; b[h] }", "may be"),
    "at's index": ("fn f(a: [u8; 4], i: [u8; 4], k: u8) -> u8 { a.at(i[k], else: 0) }", "may be 0 to 255"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    assert [item.message for item in errors(ACCEPTED[name])] == []


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, words = REFUSED[name]
    (diagnostic,) = errors(text)
    assert diagnostic.code == "K0301"
    assert words in diagnostic.message


def test_the_index_is_underlined_and_the_fix_clamps_it() -> None:
    text = "pub fn f(x: [i32; 10], i: u8) -> i32 { x[i] }"
    (diagnostic,) = errors(text)
    assert diagnostic.message == "The index may be 0 to 255, but the axis has 10 elements."
    assert diagnostic.span is not None and diagnostic.fix is not None and diagnostic.fix.span is not None
    assert text[diagnostic.span.start : diagnostic.span.end] == "i"
    start, end = diagnostic.fix.span.start, diagnostic.fix.span.end
    fixed = text[:start] + (diagnostic.fix.replacement or "") + text[end:]
    assert fixed.endswith("{ x.clamped(i) }")
    assert errors(fixed) == []


def test_each_bad_index_is_one_diagnostic() -> None:
    text = """fn f<N>(a: [u8; N], i: u8) -> u8 { a[i] + a[i & 1] }
        fn g(a: [u8; 4], b: [u8; 9], i: u8) -> u8 { f(a, i) + f(b, i) + a[i] }"""
    assert len(errors(text)) == 2


class Programs:
    """Random loops over wrapping variables that index a tensor and track their own largest index."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops = 0

    def expr(self, depth: int) -> str:
        pick = self.random.choice
        if depth == 0:
            names = ["p", "q", "x", *(f"i{k}" for k in range(self.loops))]
            return pick([*names, *names, str(self.random.randrange(12))])
        a, b = self.expr(depth - 1), self.expr(depth - 1)
        return pick([
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} & {self.random.choice((1, 3, 7, 15))})",
            f"({a} % {self.random.randrange(1, 12)})", f"min({a}, {b})", f"max({a}, {b})", f"({a} >> 2u8)",
            f"({a} ^ {b})", f"if {self.cond()} {{ {a} }} else {{ {b} }}",
        ])

    def cond(self) -> str:
        verb = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
        simple = f"{self.expr(0)} {verb} {self.expr(self.random.randrange(2))}"
        other = f"{self.expr(0)} {verb} {self.expr(0)}"
        return self.random.choice([simple, f"({simple} && {other})", f"!({simple} || {other})"])

    def body(self, depth: int) -> str:
        return " ".join(self.stmt(depth) for _ in range(self.random.randrange(1, 4)))

    def stmt(self, depth: int) -> str:
        kind = self.random.randrange(7)
        if kind < 3 or depth == 0:
            index = self.random.choice(["p", "q", self.expr(1), self.expr(2)])
            if kind == 0:
                return f"{self.random.choice('pq')} = {self.expr(2)};"
            return f"{{ let e: u8 = {index}; top = max(top, e); s ^= a[e]; }}"
        if kind < 5:
            return f"if {self.cond()} {{ {self.body(depth - 1)} }} else {{ {self.body(depth - 1)} }}"
        if kind == 5:
            return f"while {self.cond()}, max 5 {{ {self.body(depth - 1)} }}"
        head = f"for i{self.loops}: u8 in {self.random.randrange(3)}..{self.random.randrange(3, 9)}"
        self.loops += 1
        inner = self.body(depth - 1)
        self.loops -= 1
        return f"{head} {{ {inner} }}"

    def program(self) -> tuple[str, int]:
        extent = self.random.choice([8, 12, 16, 64, 250])
        body = self.body(3)
        return f"""pub fn f(a: [u8; {extent}], x: u8) -> (u8, u8) {{
            let mut p: u8 = {self.random.randrange(6)}; let mut q: u8 = x & 7;
            let mut top: u8 = 0; let mut s: u8 = 0;
            {body}
            (top, s) }}""", extent


def test_random_programs_that_are_accepted_stay_in_range() -> None:
    accepted = 0
    items = np.arange(256).astype(np.uint8)
    for seed in range(60):
        text, extent = Programs(seed).program()
        front = front_of(text)
        if front.graph is None:
            continue
        data = np.zeros((256, extent), np.uint8)
        top, _ = run_export(front.graph.exports[0], {"a": data, "x": items}, batch=True)
        assert int(top.max()) < extent, text
        accepted += int(top.max()) > 0
    assert accepted > 8


@pytest.mark.parametrize("seed", range(12))
def test_what_has_no_index_need_not_be_looked_at(seed: int) -> None:
    """Leaving out functions without an index and without a caller that has one says all that looking at all
    does: calls from functions that have one, gathers, places that are assigned or lent."""
    below = random.Random(seed)
    functions = [
        "fn f0(x: u8) -> u8 { x & 15 }",
        "fn f1(t: [i8; 8], x: u8) -> i8 { t[x] }",
        "fn f2(t: &mut [i8; 8], x: u8) { t[f0(x)] = 1; }",
        "fn f3(x: u8) -> u8 { f0(x) + 1 }",
        "fn f4(t: [i8; 8], k: [u8; 2]) -> [i8; 2] { gather(t, k) }",
        "fn f5(t: [i8; 8], x: u8) -> i8 { let mut s = t; f2(&mut s, f3(x)); s[0] }",
        "fn f6() -> u8 { 3 }",
    ]
    always = ("fn f0", "fn f2", "fn f3")
    chosen = [text for text in functions if below.random() < 0.7 or text.startswith(always)]
    text = "\n".join(chosen)
    text += "\nconst T: [u8; 4] = [1, 2, 3, 4];\ntest \"t\" { assert_eq(T[f0(2)], 3u8); }\n"
    program = compile_source(SourceFile.from_text(text), lambda name: None).program
    assert program is not None, text
    assert prove_indices(program) == analysed(program).diagnostics
