"""A mistake has one report in the whole of a program, whichever stage finds it and whoever builds on it."""
from __future__ import annotations

import pytest

from kera_hw.frontend.compile import compile_source
from kera_hw.support import SourceFile

ROWS = (
    ("K0101", "fn g(x: 3) -> u8 { 1 }\nfn f(x: u8) -> u8 { g(x) }"),
    ("K0101", "fn g(x: u8) -> { x }\nfn f() -> u8 { g(3) + 1 }"),
    ("K0101", "fn g<N>(x: [u8; N C]) -> u8 { 1 }\nfn f(x: [u8; 2]) -> u8 { g(x) + g(x) }"),
    ("K0101", "struct S { a u8 }\nfn f(s: S) -> u8 { s.a }"),
    ("K0101", "struct S { a: , b: u8 }\nfn f() -> S { S { a: 1, b: 2 } }"),
    ("K0101", "const N u32 = 3;\nfn f() -> [u8; N] { [0; N] }"),
    ("K0101", "type T = ;\nfn f(x: T) -> u8 { x + 1 }"),
    ("K0101", "fn f(a: [ 2i16; 5], b: [i16; 5]) -> i16 {\n    a[0] + b[1]\n}"),
    ("K0101", "fn f(x: [u8; 4]) -> u8 {\n    let y = x[0;\n    y + x[1]\n}"),
    ("K0109", "fn f(x: [u8; 4]) -> u8 {\n    let mut y = x;\n    y[1 = x[2];\n    y[0]\n}"),
    ("K0101", "fn f(x: u8) -> (u8, u8) {\n    (x), x)\n}"),
    ("K0005", "test \"open {\n    assert(true);\n}\nfn f() {}"),
    ("K0102", "fn f(x: u8) -> u8 {\n    let y = x"),
    ("K0112", "fn f(in: u8) -> u8 { 1 }"),
    ("K0201", "fn f(x: Foo) -> Foo {\n    let y: Foo = x;\n    y\n}"),
    ("K0201", "fn f() -> u8 { a + a * a }"),
    ("K0201", "stream g(x: u8) -> u8 {\n    state n: nope;\n    n.step(x)\n}"),
    ("K0316", "fn f(a: [u8; 3]) -> u8 {\n    let mut s = 0;\n    for x in a { s += x; }\n    s\n}"),
)


@pytest.mark.parametrize(("code", "text"), ROWS, ids=[text.splitlines()[0][:50] for _, text in ROWS])
def test_one_report(code: str, text: str) -> None:
    found = compile_source(SourceFile.from_text(text + "\n", "main.kera"), lambda _: None)
    assert [item.code for item in found.diagnostics] == [code], found.diagnostics
    assert found.graph is None


def test_mistakes_apart_are_all_reported() -> None:
    text = (
        "fn f() -> u8 { a }\nfn g() -> u8 {\n    let b = ;\n    1\n}\n"
        "fn h(x: u8) -> u16 { x }\nfn k() -> u8 { a }\n"
    )
    found = compile_source(SourceFile.from_text(text, "main.kera"), lambda _: None)
    assert sorted(item.code for item in found.diagnostics) == ["K0101", "K0201", "K0201", "K0302"]
