"""From source to values: what a program says is what its graph computes."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kera_hw.frontend import compile_source
from kera_hw.frontend.sema.testing import run_tests
from kera_hw.graph import Graph, verify_graph
from kera_hw.interp import run_export
from kera_hw.support import SourceFile


def graph_of(text: str, **modules: str) -> Graph:
    def load(name: str) -> SourceFile | None:
        return SourceFile.from_text(modules[name], f"{name}.kera") if name in modules else None

    front = compile_source(SourceFile.from_text(text), load)
    assert [f"{d.code}: {d.message}" for d in front.diagnostics if d.is_error] == []
    assert front.graph is not None
    assert verify_graph(front.graph) == []
    return front.graph


def run(text: str, name: str = "f", batch: bool = False, **inputs: Any) -> Any:
    export = graph_of(text).export(name)
    assert export is not None
    return run_export(export, inputs, batch)


def passes(text: str) -> None:
    front = compile_source(SourceFile.from_text(text), lambda name: None)
    assert [f"{d.code}: {d.message}" for d in front.diagnostics] == []
    assert front.program is not None
    results = run_tests(front.program)
    assert results
    assert [r.diagnostic.message for r in results if r.diagnostic is not None] == []


PROGRAMS = {
    "structs in tensors": """
        struct P { x: i16, y: i16 }
        fn flip(ps: [P; 3]) -> [P; 3] {
            let mut out = ps;
            for i in 0..3 { out[i] = P { x: ps[2 - i].y, y: ps[2 - i].x }; out[i].x += 1; }
            out
        }
        test "t" {
            let ps = [P { x: 1, y: 2 }, P { x: 3, y: 4 }, P { x: 5, y: 6 }];
            let q = flip(ps);
            assert_eq(q[0].x, 7); assert_eq(q[0].y, 5); assert_eq(q[2].x, 3);
        }""",
    "nested tuples and patterns": """
        fn f(a: (u8, (bool, i8))) -> i8 {
            let (n, (flag, v)) = a;
            match (n, flag) { (0, _) => -1, (1, true) => v, (2..=9, false) => -v, _ => 100 }
        }
        test "t" {
            assert_eq(f((0, (true, 5))), -1); assert_eq(f((1, (true, 5))), 5);
            assert_eq(f((4, (false, 5))), -5); assert_eq(f((4, (true, 5))), 100);
        }""",
    "exclusive borrows": """
        fn swap(v: &mut [u8; 4], i: u2, j: u2) -> u8 { let t = v[i]; v[i] = v[j]; v[j] = t; t }
        test "t" {
            let mut m = [[1u8, 2, 3, 4], [5, 6, 7, 8]];
            let a = swap(&mut m[1], 0, 3);
            assert_eq(a, 5); assert_eq(m, [[1u8, 2, 3, 4], [8, 6, 7, 5]]);
        }""",
    "generic sizes": """
        fn dot2<N>(a: [i32; N], b: [i32; N]) -> i32 {
            let mut s = 0i32;
            for i in 0..N { s += a[i] * b[i]; }
            s
        }
        test "t" { assert_eq(dot2([1i32, 2, 3], [4, 5, 6]), 32); assert_eq(dot2([7i32], [7]), 49); }""",
    "a stream of streams": """
        stream acc(x: i32) -> i32 { state s: i32 = 0; s += x; s }
        stream both(x: i32) -> (i32, i32) {
            state a: acc; state b: acc; state n: u32 = 0;
            n += 1;
            let first = a.step(x);
            let second = if n % 2 == 0 { b.step(first) } else { -1 };
            (first, second)
        }
        test "t" {
            let (p, q) = both([1i32, 2, 3, 4])[3];
            assert_eq(p, 10); assert_eq(q, 13);
            assert_eq(acc([5i32, 5]), [5i32, 10]);
        }""",
    "lambdas": """
        test "t" {
            let k = 3i16;
            let a = reshape::<2, 3>(iota::<i16, 6>());
            assert_eq(map(a, |x| x * k), [[0i16, 3, 6], [9, 12, 15]]);
            assert_eq(zip(a, a, |x, y| (x + y, x > 2))[1, 0].0, 6);
            assert_eq(reduce([1u32, 2, 3], 10, |s, x| s * 2 + x), 91);
            assert_eq(scan([1u32, 2, 3], 0, |s, x| s + x), [1u32, 3, 6]);
        }""",
    "slices and bits": """
        test "t" {
            let a = reshape::<3, 4>(iota::<u8, 12>());
            assert_eq(a[1..3, 2], [6u8, 10]); assert_eq(a[2], [8u8, 9, 10, 11]);
            assert_eq(a[0, 1..4], [1u8, 2, 3]);
            let x = 0b1101_0010u8;
            assert_eq(x.bits(6, 4), 5u3); assert(x.bit(1)); assert_eq(cat(x.bits(7, 4), 0xfu4), 0xdfu8);
            assert_eq(a.at(5u8, 0u8, else: 77), 77u8); assert_eq(a.clamped(9, 9), 11u8);
        }""",
    "bounded loops": """
        fn collatz(n: u32) -> u32 {
            let mut x = n; let mut steps = 0;
            while x != 1, max 50 { x = if x % 2 == 0 { x / 2 } else { 3 * x + 1 }; steps += 1; }
            steps
        }
        test "t" { assert_eq(collatz(6), 8); assert_eq(collatz(27), 50); }""",
    "constants by the same meaning": """
        const N: u32 = 4;
        fn square(x: u8) -> u8 { x * x }
        const TABLE: [u8; N] = map(iota::<u8, N>(), |x| square(x + 14));
        test "t" {
            const LAST: u8 = TABLE[N - 1];
            assert_eq(LAST, 33); assert_eq(TABLE, [196u8, 225, 0, 33]);
        }""",
    "fixed point": """
        type Q = fix<16, 8>;
        test "t" {
            let x: Q = 1.5; let y: Q = -2.25;
            assert_eq(x * y, -3.375); assert_eq((x * y) as i8, -4); assert_eq(x + y, -0.75);
        }""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_file_tests_of_the_language_pass(name: str) -> None:
    passes(PROGRAMS[name])


def test_a_failing_test_says_what_differs() -> None:
    text = 'fn f(x: u8) -> u8 { x + 1 }\ntest "wraps" { assert_eq([f(254), f(255)], [255u8, 1]); }'
    front = compile_source(SourceFile.from_text(text), lambda name: None)
    assert front.program is not None
    (result,) = run_tests(front.program)
    assert not result.passed and result.diagnostic is not None
    assert 'Test "wraps" failed' in result.diagnostic.message
    assert "first at `[1]`: 0 (0x00) against 1 (0x01)" in result.diagnostic.message
    assert result.diagnostic.span is not None and text[result.diagnostic.span.start :].startswith("assert_eq")


def test_a_stream_runs_over_a_sequence() -> None:
    text = "pub stream f(x: i16) -> i32 { state s: i32 = 5; s += x as i32; s }"
    assert run(text, batch=True, x=np.array([1, -2, 3], np.int16)).tolist() == [6, 4, 7]


def test_modules_come_from_the_loader() -> None:
    graph = graph_of(
        "use lib::double; pub fn f(x: u8) -> u8 { double(x) + lib::ONE }",
        lib="pub fn double(x: u8) -> u8 { x * 2 }\npub const ONE: u8 = 1;",
    )
    assert [export.name for export in graph.exports] == ["f"]
    assert run_export(graph.exports[0], {"x": np.uint8(20)}) == 41


BASE = """
pub fn f(a: [u32; 8], k: u32) -> u32 {
    let bias = k + 1;
    let mut total: u32 = 0;
    for i in 0..8 { let x = a[i]; if x > bias { total += x; } }
    total
}
"""


def test_the_fingerprint_ignores_names_comments_and_layout() -> None:
    renamed = BASE
    for old, new in (("bias", "offset"), ("total", "sum0"), (" i ", " j "), ("a[i]", "a[j]")):
        renamed = renamed.replace(old, new)
    spaced = "// a comment\n" + renamed.replace("; ", ";\n  /* note */ ")
    grown = BASE + 'test "unused" { assert_eq(1, 1); }\nfn unused(x: u8) -> u8 { x }\n'
    changed = BASE.replace("k + 1", "k + 2")
    prints = [graph_of(text).fingerprint for text in (BASE, renamed, spaced, grown, changed)]
    assert len(set(prints[:4])) == 1
    assert prints[4] != prints[0]


def test_origins_name_lines_and_locals() -> None:
    graph = graph_of(BASE)
    named = {origin.name: origin.line for origin in graph.origins.values() if origin.name}
    assert named["bias"] == 3
    assert named["x"] == 5


def test_an_effect_without_lowering_warns_and_leaves_the_other_exports() -> None:
    text = 'pub fn loud(x: u8) -> u8 ! net { send("x", x); x }\npub fn f(x: u8) -> u8 { x }'
    front = compile_source(SourceFile.from_text(text), lambda name: None)
    assert [(d.code, d.is_error) for d in front.diagnostics] == [("K0502", False)]
    assert front.graph is not None and [export.name for export in front.graph.exports] == ["f"]


@pytest.mark.timeout(60)
def test_large_and_deep_programs_compile() -> None:
    graph_of("pub fn f() -> u8 { let a = [7u8; 1000000, 1000000]; a[5, 6] }")
    graph_of(f"pub fn f(x: u32) -> u32 {{ {' + '.join(['x'] * 1000)} }}")
    lets = "".join(f"let x{k + 1} = x{k} + x{k};" for k in range(60))
    graph_of(f"pub fn f(x0: u32, a: [u8; 4]) -> u8 {{ {lets} a[x60 & 3] }}")
    nested = "x"
    for _ in range(40):
        nested = f"if {nested} > 3 {{ x }} else {{ x + 1 }}"
    graph_of(f"pub fn f(x: u32) -> u32 {{ {nested} }}")
    loops = "".join(f"for i{k} in 0..4 {{ p = (p + 1) & 3; s += a[p] as u32; " for k in range(8)) + "}" * 8
    graph_of(f"pub fn f(a: [u8; 4]) -> u32 {{ let mut p: u32 = 0; let mut s: u32 = 0; {loops} s }}")


@pytest.mark.timeout(30)
def test_tables_cost_their_elements_once() -> None:
    passes("""
        const SQUARES: [u32; 8192] = map(iota::<u32, 8192>(), |i| i * i + 1);
        const SUMS: [u32; 8192] = scan(SQUARES, 0, |s, x| s + x);
        const ROWS: [i32; 64] = reduce(reshape::<128, 64>(iota::<i32, 8192>()), [0; 64], |s, r| s + r);
        test "tables" {
            assert_eq(SQUARES[8191], 67092482u32);
            assert_eq(SUMS[2], 1u32 + 2 + 5);
            assert_eq(ROWS[63], 528256);
        }""")


@pytest.mark.timeout(30)
def test_a_constant_that_takes_too_long_is_refused() -> None:
    text = """
        fn slow(x: u32) -> u32 {
            let mut s = x;
            for i in 0..100000 { for j in 0..100000 { s = s * 3 + i; } }
            s
        }
        const C: u32 = slow(1);
        pub fn f() -> u32 { C }"""
    front = compile_source(SourceFile.from_text(text), lambda name: None)
    assert [d.code for d in front.diagnostics] == ["K0214"]
