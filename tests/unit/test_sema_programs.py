"""Whole programs through the checker with the real evaluation of constants, and speed."""
from __future__ import annotations

from pathlib import Path

import pytest

from kera_hw.frontend import compile_source
from kera_hw.frontend.parser import parse
from kera_hw.frontend.sema import check
from kera_hw.frontend.sema.constants.run import evaluate_constant
from kera_hw.frontend.sema.testing import run_tests
from kera_hw.support import SourceFile, render_diagnostics
from tests.unit.sema_support import check_text
from tests.unit.sema_verify import verify_program

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("sema_*.kera")) + sorted((HERE.parents[1] / "examples").glob("*.kera"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_program(path: Path) -> None:
    file = SourceFile(path.name, path.read_bytes())
    unit, syntax = parse(file)
    program, found = check(unit, file, lambda name: None, evaluate_constant, syntax)
    assert program is not None and not syntax and not found, render_diagnostics([*syntax, *found])
    verify_program(program)
    results = run_tests(program)
    assert results and all(result.passed for result in results)


def test_a_syntax_error_silences_its_item_only() -> None:
    text = "fn f() -> u8 { let x = ; y }\nfn broken( -> u8 { 1 }\nfn g() -> u8 { z }"
    file = SourceFile.from_text(text)
    unit, syntax = parse(file)
    program, found = check(unit, file, lambda name: None, evaluate_constant, syntax)
    assert program is None and syntax
    assert [file.text(item.span) for item in found if item.span is not None] == ["z"]


def test_what_a_syntax_error_swallowed_is_not_unknown() -> None:
    file = SourceFile.from_text("fonction helper(x: u8) -> u8 { x }\nfn g() -> u8 { helper(1) }")
    unit, syntax = parse(file)
    program, found = check(unit, file, lambda name: None, evaluate_constant, syntax)
    assert program is None and syntax and not found


def test_the_checker_needs_no_syntax_report() -> None:
    program, found, _ = check_text("fn f() -> u8 { 1 }")
    assert program is not None and not found


@pytest.mark.parametrize(("body", "code"), [
    ("x.bit(i)", "K0301"), ("x.bit(i & 31)", ""), ("x.bits(i & 31, i & 31) == 1", ""),
    ("if i < 25 { x.bits(i + 7, i) == 1 } else { false }", ""),
    ("if i < 26 { x.bits(i + 7, i) == 1 } else { false }", "K0301"),
    ("{ let mut r = false; for k in 0..16 { r = x.bit(2 * k); } r }", ""),
    ("{ let mut r = false; for k in 0..17 { r = x.bit(2 * k); } r }", "K0301"),
])
def test_moving_bits_are_proved(body: str, code: str) -> None:
    file = SourceFile.from_text(f"pub fn f(x: i32, i: u8) -> bool {{ {body} }}")
    made = compile_source(file, lambda name: None)
    assert [item.code for item in made.diagnostics if item.is_error] == ([code] if code else [])


def test_doubling_types_end() -> None:
    """Each line doubles the width of a type: refused before it matters."""
    structs = "struct S0 { a: u8, b: u8 } " + " ".join(
        f"struct S{n + 1} {{ a: S{n}, b: S{n} }}" for n in range(60)
    )
    values = "let x0 = (1, 2); " + " ".join(f"let x{n + 1} = (x{n}, x{n});" for n in range(60))
    aliases = "type T0 = (u8, u8); " + " ".join(f"type T{n + 1} = (T{n}, T{n});" for n in range(60))
    for text in (structs, f"fn f() {{ {values} }}", aliases):
        program, found, _ = check_text(text)
        assert program is None and [item.code for item in found] == ["K0319"]


@pytest.mark.parametrize("text", [
    " ".join(f"const A{n}: u32 = A{n + 1} + 1;" for n in range(250)) + "const A250: u32 = 1;",
    " ".join(f"type A{n} = A{n + 1};" for n in range(250)) + "type A250 = u8;",
    " ".join(f"fn a{n}(x: [u8; C{n + 1}]) -> u32 {{ 1 }} const C{n}: u32 = a{n}([0; C{n + 1}]);"
             for n in range(250)) + "const C250: u32 = 1;",
], ids=["constants", "aliases", "signatures"])
def test_long_chains_of_definitions_are_refused(text: str) -> None:
    made = compile_source(SourceFile.from_text(text), lambda name: None)
    assert made.program is None and {item.code for item in made.diagnostics} == {"K0207"}


def test_generic_functions_cannot_multiply_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kera_hw.frontend.sema.checking.program.MAX_INSTANCES", 300)
    text = " ".join(
        f"fn g{n}<N>(x: [u8; N]) -> u8 {{ g{n + 1}([0u8; 2 * N]) + g{n + 1}([0u8; 2 * N + 1]) }}"
        for n in range(12)
    ) + "fn g12<N>(x: [u8; N]) -> u8 { 1 } pub fn f() -> u8 { g0([1]) }"
    program, found, _ = check_text(text)
    assert program is None and {item.code for item in found} == {"K0314"}
