"""Suggested conversions keep every value: the texts wanted, and at random against exact arithmetic."""
from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kera_hw.frontend.compile import Frontend, compile_source
from kera_hw.interp import run_export
from kera_hw.support import Diagnostic, SourceFile, render_diagnostic
from tests.errors.test_lints import applied, compiled

#: A mistake, and the program once the suggestion is carried out.
APPLIED: tuple[tuple[str, str], ...] = (
    ("pub fn f(a: u8, b: u16) -> u16 { a + b }", "pub fn f(a: u8, b: u16) -> u16 { (a as u16) + b }"),
    ("pub fn f(a: u16, b: u8) -> u16 { a + b }", "pub fn f(a: u16, b: u8) -> u16 { a + (b as u16) }"),
    (
        "pub fn f(a: u8, b: i8) -> bool { a == b }",
        "pub fn f(a: u8, b: i8) -> bool { (a as i16) == (b as i16) }",
    ),
    ("pub fn f(x: u8) -> u16 { x << 8 }", "pub fn f(x: u8) -> u16 { (x as u16) << 8 }"),
    ("pub fn f(x: u8) -> u16 { (x + 1) >> 1 }", "pub fn f(x: u8) -> u16 { ((x as u16) + 1) >> 1 }"),
    (
        "pub fn f(a: i16, s: i32) -> i32 { let mut acc = s; acc += a * a; acc }",
        "pub fn f(a: i16, s: i32) -> i32 { let mut acc = s; acc += (a as i32) * (a as i32); acc }",
    ),
    (
        "pub fn f(a: i16, s: i32) -> i32 { let mut acc = s; acc += a; acc }",
        "pub fn f(a: i16, s: i32) -> i32 { let mut acc = s; acc += a as i32; acc }",
    ),
    ("pub fn f(v: [i16; 4]) -> i32 { sum(v) }", "pub fn f(v: [i16; 4]) -> i32 { sum(v as i32) }"),
    (
        "pub fn f(v: [i8; 4], w: [i8; 4]) -> i32 { dot(v, w) }",
        "pub fn f(v: [i8; 4], w: [i8; 4]) -> i32 { dot(v as i32, w as i32) }",
    ),
    ("pub fn f(x: i8) -> i16 { abs(-x) }", "pub fn f(x: i8) -> i16 { abs(-(x as i16)) }"),
    (
        "pub fn f(x: u8, c: bool) -> u16 { if c { x + 1 } else { x * x } }",
        "pub fn f(x: u8, c: bool) -> u16 { if c { (x as u16) + 1 } else { (x as u16) * (x as u16) } }",
    ),
    (
        "pub fn f(x: u8) -> u16 { match x { 0 => 7u8, n => n + n } }",
        "pub fn f(x: u8) -> u16 { match x { 0 => 7u8 as u16, n => (n as u16) + (n as u16) } }",
    ),
    ("pub fn f(x: u8) -> u16 { x & 15 }", "pub fn f(x: u8) -> u16 { (x & 15) as u16 }"),
    ("pub fn f(x: u8) -> u16 { !x }", "pub fn f(x: u8) -> u16 { (!x) as u16 }"),
    (
        "pub fn f(a: [u8; 2], b: [u16; 2]) -> [u16; 2] { a * 2 - b }",
        "pub fn f(a: [u8; 2], b: [u16; 2]) -> [u16; 2] { (a as u16) * 2 - b }",
    ),
    ("pub fn f(a: u8, b: i16) -> i16 { max(a, b) }", "pub fn f(a: u8, b: i16) -> i16 { max(a as i16, b) }"),
    ("pub fn f(a: u8, b: f16) -> f16 { a + b }", "pub fn f(a: u8, b: f16) -> f16 { (a as f16) + b }"),
    (
        "pub fn f(a: u12, b: f16) -> f32 { a + b }",
        "pub fn f(a: u12, b: f16) -> f32 { (a as f32) + (b as f32) }",
    ),
    (
        "pub fn f(a: fix<16, 8>, b: u8) -> fix<25, 8> { a * b }",
        "pub fn f(a: fix<16, 8>, b: u8) -> fix<25, 8> { a * (b as fix<9, 0>) }",
    ),
    (
        "pub fn f(a: fix<8, 4>, b: ufix<8, 4>) -> fix<17, 8> { a * b }",
        "pub fn f(a: fix<8, 4>, b: ufix<8, 4>) -> fix<17, 8> { a * (b as fix<9, 4>) }",
    ),
    (
        "struct S { q: u16 } pub fn f(q: u8) -> S { S { q } }",
        "struct S { q: u16 } pub fn f(q: u8) -> S { S { q: q as u16 } }",
    ),
    (
        "pub fn f(x: u8) -> u8 { if x { 1 } else { 2 } }",
        "pub fn f(x: u8) -> u8 { if x != 0 { 1 } else { 2 } }",
    ),
    (
        "pub fn f(x: u8, c: bool) -> bool { x as bool == c }",
        "pub fn f(x: u8, c: bool) -> bool { (x != 0) == c }",
    ),
)

#: A mistake, and what the advice says; nothing that a tool could apply.
ADVICE: tuple[tuple[str, str], ...] = (
    ("pub fn f(a: u64, b: i64) -> bool { a < b }", "no type holds all values of `u64` and `i64`"),
    ("pub fn f(a: u16) -> u8 { a }", "`a as u8` would keep the low 8 bits alone"),
    ("pub fn f(a: i19) -> i16 { a >> 3 }", "`(a >> 3) as i16` would"),
    ("pub fn f(a: u8) -> i8 { a }", "`a as i8` would turn values above 127 into negative ones"),
    ("pub fn f(a: i8) -> u8 { a }", "`a as u8` would turn negative values into large ones"),
    ("pub fn f(a: f32) -> i32 { a }", "would drop the fraction"),
    ("pub fn f(a: i32) -> f32 { a }", "would round"),
    ("pub fn f(a: fix<16, 8>) -> fix<16, 4> { a }", "would not keep every value"),
    ("pub fn f(a: u8) -> u8 { let mut r = a; r += 300u16; r }", "declare `r` as `u16`"),
    ("pub fn f(x: u8, n: i8) -> u8 { x >> n }", "`as u8` would turn negative values into large ones"),
    ("pub fn f(v: [u8; 4]) -> u8 { v[4] }", "the largest that fits is 3"),
    (
        "pub fn f(v: [u8; 4]) -> u8 { let mut s = 0; for i in 0..5 { s += v[i]; } s }",
        "the largest that fits is 3",
    ),
    ("pub fn f(v: [u8; 4]) -> u16 { reduce(v, 0u8, |a, b| a + b) }", "convert the operands with `as u16`"),
)


def _only(text: str) -> Diagnostic:
    found = compiled(text).diagnostics
    assert len(found) == 1, [item.message for item in found]
    return found[0]


@pytest.mark.parametrize(("text", "fixed"), APPLIED, ids=[text for text, _ in APPLIED])
def test_applied(text: str, fixed: str) -> None:
    assert applied(text, _only(text)) == fixed
    assert compiled(fixed).diagnostics == ()


@pytest.mark.parametrize(("text", "words"), ADVICE, ids=[text for text, _ in ADVICE])
def test_advice(text: str, words: str) -> None:
    item = _only(text)
    assert item.fix is not None and words in item.fix.message and item.fix.replacement is None


def test_a_repaired_expression_is_shown_with_its_brackets() -> None:
    shown = render_diagnostic(_only("pub fn f(x: u8, t: u16) -> u16 { t + ((x << 8)) }"))
    assert shown.endswith("`t + (((x as u16) << 8))`")


def test_suggestions_are_shown_as_code_with_one_punctuation() -> None:
    shown = render_diagnostic(_only("pub fn f(v: [u8; 4], i: u8) -> u8 { v[i] }"))
    assert shown.endswith("for the nearest element: `v.clamped(i)`")
    shown = render_diagnostic(_only("fn g(v: [u8; 2]) -> u8 { v[0] } pub fn f(x: [u8; 2]) -> u8 { g(&x) }"))
    assert shown.endswith("help: pass the value")


# ---------------------------------------------------------------- at random

_INTEGER_TYPES = [f"{sign}{width}" for sign in "iu" for width in range(1, 65)]
_FIXED_TYPES = [
    f"{sign}fix<{width}, {fraction}>"
    for sign in ("", "u") for width in range(1, 41) for fraction in range(width + 1)
]
_INTEGERS, _FIXED = st.sampled_from(_INTEGER_TYPES), st.sampled_from(_FIXED_TYPES)
_NUMBERS = st.one_of(_INTEGERS, _INTEGERS, _FIXED, st.sampled_from(["f16", "bf16", "f32", "f64"]))
_OPERATORS = ("+", "-", "*", "/", "%", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=")
_FORMS = ("{0}", "{0} + 1", "{0} * {0}", "-{0}", "({0} - {0}) >> 1", "{0} << 3")
_PRECISION = {"f16": (11, 5), "bf16": (8, 8), "f32": (24, 8), "f64": (53, 11)}
_CAST = re.compile(r"\b([ab]) as ((?:u?fix<\d+, \d+>)|\w+)")


def _extremes(kind: str) -> list[Fraction]:
    """Values at the ends of a type's range, and its smallest step."""
    if kind in _PRECISION:
        digits, exponent_bits = _PRECISION[kind]
        top = (1 << (exponent_bits - 1)) - 1
        step = Fraction(1, 1 << (top - 1 + digits - 1))
        largest = (2 - Fraction(1, 1 << (digits - 1))) * (1 << top)
        return [-largest, largest, step, -step, Fraction((1 << digits) - 1)]
    width, fraction, signed = _format(kind)
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    return [Fraction(value, 1 << fraction) for value in (low, high, min(1, high), low + 1 if low else 0)]


def _format(kind: str) -> tuple[int, int, bool]:
    if "fix" in kind:
        width, fraction = map(int, re.findall(r"\d+", kind))
        return width, fraction, not kind.startswith("u")
    return int(kind[1:]), 0, kind[0] == "i"


def _is_of(kind: str, value: Fraction) -> bool:
    """Whether a type has a value, by the definition of its format."""
    if kind in _PRECISION:
        digits, exponent_bits = _PRECISION[kind]
        top = (1 << (exponent_bits - 1)) - 1
        scaled = value * (1 << (top - 1 + digits - 1))
        if scaled.denominator != 1:
            return False
        odd = abs(scaled.numerator)
        while odd and odd % 2 == 0:
            odd //= 2
        return odd < 1 << digits and abs(value) < 1 << (top + 1)
    width, fraction, signed = _format(kind)
    raw = value * (1 << fraction)
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    return raw.denominator == 1 and low <= raw <= high


@settings(max_examples=150, deadline=None)
@given(_NUMBERS, _NUMBERS, st.sampled_from(_OPERATORS))
def test_a_conversion_of_operands_keeps_their_values(a: str, b: str, op: str) -> None:
    text = f"pub fn f(a: {a}, b: {b}) -> () {{ let _ = a {op} b; }}"
    errors = [item for item in compiled(text).diagnostics if item.is_error]
    if len(errors) != 1 or errors[0].code != "K0302":
        return
    made = applied(text, errors[0])
    if made is None:
        return
    assert {item.code for item in compiled(made).diagnostics} <= {"K0353"}, made
    casts = _CAST.findall(made)
    assert casts
    for name, target in casts:
        kind = a if name == "a" else b
        assert all(_is_of(target, value) for value in _extremes(kind)), made


@settings(max_examples=80, deadline=None)
@given(_NUMBERS, _NUMBERS, st.sampled_from(_FORMS))
def test_a_conversion_of_a_result_converts_before_computing(a: str, b: str, form: str) -> None:
    text = f"pub fn f(a: {a}) -> {b} {{ {form.format('a')} }}"
    errors = [item for item in compiled(text).diagnostics if item.is_error]
    if len(errors) != 1 or errors[0].code != "K0302":
        return
    made = applied(text, errors[0])
    if made is None:
        return
    assert not any(item.is_error for item in compiled(made).diagnostics), made
    if form == "{0} * {0}" and "fix" in a:
        return  # exact in its own type
    if form != "{0}" and b in _PRECISION:
        assert a in _PRECISION  # else the sum would round
    assert made.endswith(f"{{ {form.format(f'(a as {b})') if form != '{0}' else f'a as {b}'} }}")
    assert all(_is_of(b, value) for value in _extremes(a)), made


def _graph(text: str) -> Frontend:
    return compile_source(SourceFile.from_text(text), lambda _: None)


@settings(max_examples=40, deadline=None)
@given(_INTEGERS, _INTEGERS, st.data())
def test_repaired_comparisons_compare_numbers(a: str, b: str, data: st.DataObject) -> None:
    text = f"pub fn f(a: {a}, b: {b}) -> (bool, bool) {{ (a == b, a < b) }}"
    made = text
    for item in reversed(_graph(text).diagnostics):
        made = applied(made, item) or ""
    if not made or made == text:
        return
    graph = _graph(made).graph
    assert graph is not None, made
    pairs = [(x.numerator, y.numerator) for x in _extremes(a) for y in _extremes(b)]
    low, high = _extremes(a)[:2]
    pairs.append((data.draw(st.integers(int(low), int(high))), int(_extremes(b)[1])))
    columns = {
        name: np.array([pair[k] for pair in pairs], dtype=_dtype(kind))
        for k, (name, kind) in enumerate((("a", a), ("b", b)))
    }
    equal, less = run_export(graph.exports[0], columns, True)
    assert [bool(x) for x in equal] == [x == y for x, y in pairs]
    assert [bool(x) for x in less] == [x < y for x, y in pairs]


def _dtype(kind: str) -> np.dtype[np.generic]:
    width = next(size for size in (8, 16, 32, 64) if size >= int(kind[1:]))
    return np.dtype(f"{'int' if kind[0] == 'i' else 'uint'}{width}")
