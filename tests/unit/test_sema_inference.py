"""Types of literals by unification, their values, and the forms of the typed tree."""
from __future__ import annotations

import struct

import numpy as np
import pytest

from kera_hw.frontend.sema.tree import hir
from tests.unit.sema_support import accept, function, result_of
from tests.unit.sema_verify import verify_program


def _constants(part: object) -> list[hir.Const]:
    """All constants below a piece of the tree, in order."""
    found: list[hir.Const] = []
    if isinstance(part, hir.Const):
        found.append(part)
    elif isinstance(part, tuple):
        for item in part:
            found += _constants(item)
    elif hasattr(part, "__dataclass_fields__") and not isinstance(part, (hir.Var, hir.Function)):
        for name in part.__dataclass_fields__:
            if name not in ("type", "span"):
                found += _constants(getattr(part, name))
    return found


@pytest.mark.parametrize(("text", "types"), [
    ("fn f() -> u8 { 1 }", ["u8"]),
    ("fn f() { let x = 1; }", ["i32"]),
    ("fn f() { let x = 1.0; }", ["f32"]),
    ("fn f() { let x = 1 + 2.0; }", ["f32", "f32"]),
    ("fn f() -> f64 { let x = 1; x }", ["f64"]),
    ("fn f() -> u64 { let x = 1; let y = x; let z = [y, 2]; z[0] }", ["u64", "u64", "i32"]),
    ("fn f(x: i16) -> i16 { 2 * x + 3 }", ["i16", "i16"]),
    ("fn f(x: [i16; 4]) -> [i16; 4] { 2 * x }", ["i16"]),
    ("fn f() -> u16 { 3 as u16 }", ["u16"]),
    ("fn f() -> u16 { (1 + 3) as u16 }", ["i32", "i32"]),
    ("fn f() -> f32 { 3 as f32 }", ["f32"]),
    ("fn f() -> i8 { 3.5 as i8 }", ["f32"]),
    ("fn f(x: u64) -> u64 { x >> 3 }", ["u32"]),
    ("fn f(x: u64) -> u64 { let n = 3; x >> n }", ["u32"]),
    ("fn f(x: u64) -> u64 { let n = 3; let m: u8 = n; x >> n }", ["u8"]),
    ("fn f(x: u64) -> u64 { rotl(x, 3) }", ["u32"]),
    ("fn f(c: bool) -> u8 { if c { 1 } else { 2 } }", ["u8", "u8"]),
    ("fn f(c: u3) -> u8 { match c { 0 => 1, _ => 2 } }", ["u8", "u8"]),
    ("fn f(a: [u8; 2]) -> [u16; 2] { map(a, |x| x as u16 * 3) }", ["u16"]),
    ("fn f(a: [u8; 2]) -> u8 { reduce(a, 0, |s, x| s + x) }", ["u8"]),
    ("fn f(x: fix<16, 8>) -> fix<32, 16> { x * 1.5 }", ["fix<16, 8>"]),
    ("fn f(x: fix<16, 8>) -> fix<24, 12> { let k = 1.5; let z: fix<8, 4> = k; x * k }", ["fix<8, 4>"]),
    ("fn f() -> u8 { 2 * 3 }", ["u8", "u8"]),
    ("fn f() -> i64 { let x = 2 * 3; x + 1 }", ["i64", "i64", "i64"]),
    ("fn f(a: i32) -> i64 { (mul_wide(a, 5) + (1i64 << 30)) >> 31 }", ["i32", "i64", "u32", "u32"]),
    ("fn f() -> u64 { mul_wide(3, 4u32) }", ["u32", "u32"]),
    ("fn f(x: u8) -> bool { 0 == x }", ["u8"]),
    ("fn g(x: i7) {} fn f() { g(5); }", ["i7"]),
    ("fn f() -> (u8, f16) { (1, 2) }", ["u8", "f16"]),
    ("fn f() { let mut x = 0; x = 3u16; x += 1; }", ["u16", "u16", "u16"]),
    ("fn f() -> i8 { -1 }", ["i8"]),
    ("fn f(x: i8) -> i8 { -x - -1 }", ["i8"]),
])
def test_literal_types(text: str, types: list[str]) -> None:
    program = accept(text)
    verify_program(program)
    assert [str(item.type) for item in _constants(function(program, "f").body)] == types


def _value(kind: str, literal: str) -> object:
    constant = result_of(f"fn f() -> {kind} {{ {literal} }}")
    assert isinstance(constant, hir.Const)
    return constant.value


@pytest.mark.parametrize(("kind", "literal", "value"), [
    ("u8", "0xff", 255), ("i8", "-128", -128), ("u64", "18_446_744_073_709_551_615", 2**64 - 1),
    ("i64", "-9223372036854775808", -(2**63)), ("i1", "-1", -1), ("u5", "0b1_0101", 21),
    ("fix<8, 4>", "1.5", 24), ("fix<8, 4>", "-8", -128), ("ufix<8, 8>", "0.5", 128),
    ("fix<8, 2>", "0.125", 0), ("fix<8, 2>", "0.375", 2), ("fix<8, 2>", "-0.125", 0),
    ("fix<24, 20>", "0.785398163397448", 823550), ("fix<16, 8>", "0x1.8p-4", 24),
])
def test_exact_values(kind: str, literal: str, value: int) -> None:
    found = _value(kind, literal)
    assert int(found) == value  # type: ignore[call-overload]


@pytest.mark.parametrize(("literal", "bits"), [
    ("0.1", 0x3DCCCCCD), ("-0.0", 0x80000000), ("1e-45", 1), ("1e-46", 0), ("16777217", 0x4B800000),
    ("16777219", 0x4B800002), ("3.4028235e38", 0x7F7FFFFF), ("0x1.fffffep127", 0x7F7FFFFF),
    ("1.00000005960464477539062500000000001", 0x3F800001), ("1.000000059604644775390625", 0x3F800000),
])
def test_f32_bits(literal: str, bits: int) -> None:
    found = _value("f32", literal)
    assert struct.unpack("<I", np.float32(found).tobytes())[0] == bits  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "literal", ["0.1", "1e-320", "1.7976931348623157e308", "123456789.123456789", "4.9e-324"]
)
def test_f64_is_what_python_reads(literal: str) -> None:
    assert float(_value("f64", literal)) == float(literal)  # type: ignore[arg-type]


def test_f16_overflow_is_decided_after_rounding() -> None:
    assert float(_value("f16", "65519.9")) == 65504.0  # type: ignore[arg-type]


def test_generic_instances_are_shared_and_ordered() -> None:
    program = accept(
        "pub fn top(a: [u8; 3], b: [u8; 4]) -> u8 { first(a) + first(b) + first(a) + last::<4>(b) }"
        "fn first<N>(a: [u8; N]) -> u8 { a[0] } fn last<N>(a: [u8; N]) -> u8 { a[N - 1] }"
    )
    verify_program(program)
    assert [item.name for item in program.functions] == ["first<3>", "first<4>", "last<4>", "top"]
    assert [item.public_name for item in program.functions] == [None, None, None, "top"]


def test_sizes_are_inferred_through_every_form() -> None:
    program = accept(
        "fn g<N, M, K>(a: &[[u8; M]; N], b: ([i8; K], u8), c: [u8; N * 2]) -> u32 { N * 100 + M * 10 + K }"
        "fn f(a: [u8; 2, 3], b: ([i8; 5], u8), c: [u8; 4]) -> u32 { g(&a, b, c) }"
    )
    assert "g<2, 3, 5>" in [item.name for item in program.functions]


def test_constants_are_values() -> None:
    program = accept(
        "const N: u32 = 2 + M; const M: u32 = 1 << 2; const T: [(u8, bool); 2] = [(1, true), (2, false)];"
        "fn f() -> [u8; N] { const K: u8 = 3; [K; N] } fn g() -> [(u8, bool); 2] { T }"
    )
    verify_program(program)
    fill = function(program, "f").body
    assert fill is not None and str(fill.type) == "[u8; 6]"
    body = function(program, "g").body
    assert body is not None and isinstance(body.result, hir.Const)
    numbers, flags = body.result.value
    assert numbers.tolist() == [1, 2] and flags.tolist() == [True, False]


def test_constant_may_call_functions() -> None:
    program = accept("fn four() -> u32 { 2 + 2 } const N: u32 = four(); fn f(x: [u8; N]) -> [u8; 4] { x }")
    assert str(function(program, "f").params[0].var.type) == "[u8; 4]"


@pytest.mark.parametrize(("head", "start", "step", "count"), [
    ("i in 0..10", 0, 1, 10), ("i in 3..3", 3, 1, 0), ("i in 5..2", 5, 1, 0),
    ("i in (0..10).rev()", 9, -1, 10), ("i in (0..10).step_by(3)", 0, 3, 4),
    ("i in (0..10).step_by(3).rev()", 9, -3, 4), ("i in (0..10).rev().step_by(3)", 9, -3, 4),
    ("i: u4 in 0..16", 0, 1, 16), ("i: i8 in -3..4", -3, 1, 7), ("i in 0..=N", 0, 1, 6),
])
def test_loop_plans(head: str, start: int, step: int, count: int) -> None:
    program = accept(f"const N: u16 = 5; fn f() {{ for {head} {{ }} }}")
    body = function(program, "f").body
    assert body is not None and isinstance(body.stmts[0], hir.For)
    loop = body.stmts[0]
    assert (loop.start, loop.step, loop.count) == (start, step, count)


@pytest.mark.parametrize(
    ("entry", "length"),
    [
        ("0..4", 4),
        ("2..", 6),
        ("..3", 3),
        ("..", 8),
        ("i..i + 2", 2),
        ("i + 1..i + 4", 3),
        ("2 * i..2 * i + 2", 2),
        ("i * 2 - i..i + 1", 1),
        ("i..=i + 1", 2),
        ("j..j + 3", 3),
        ("(i as u8)..(i as u8) + 2", 2),
        ("N / 2..N / 2 + N", 4),
        ("k..i + 4", 4),
    ],
)
def test_slice_lengths(entry: str, length: int) -> None:
    program = accept(
        "const N: u32 = 4; fn f(a: [u8; 8], j: u32) "
        f"{{ for i in 0..2 {{ let k = i; let s = a[{entry}]; let t: [u8; {length}] = s; }} }}"
    )
    verify_program(program)


def test_compound_assignment_reads_the_place() -> None:
    program = accept("struct P { v: [u8; 4] } fn f(p: P, i: u2) -> P { let mut q = p; q.v[i] += 1; q }")
    body = function(program, "f").body
    assert body is not None and isinstance(body.stmts[1], hir.Assign)
    assign = body.stmts[1]
    assert [type(step) for step in assign.place.path] == [hir.FieldStep, hir.IndexStep]
    assert isinstance(assign.value, hir.Op) and assign.value.name == "integer.add"


def test_temporary_is_lent_through_a_variable() -> None:
    made = result_of("fn g(v: &[u8; 2]) -> u8 { v[0] } fn f() -> u8 { g(&[1, 2]) }")
    assert isinstance(made, hir.Block) and isinstance(made.stmts[0], hir.Let)
    assert isinstance(made.result, hir.Call) and made.result.borrows == ("&",)


def test_borrowed_parameter_is_lent_on() -> None:
    program = accept(
        "fn h(v: &mut [u8; 2]) { v[0] = 1; } fn g(v: &mut [u8; 2]) { h(&mut v); h(v); }"
        "fn f() -> u8 { let mut a = [0; 2]; g(&mut a); a[0] }"
    )
    verify_program(program)


def test_streams_hold_state_and_streams() -> None:
    program = accept(
        "stream delay(x: u8) -> u8 { state z: u8 = 7; let y = z; z = x; y }"
        "pub stream two(x: u8) -> u8 { state a: delay; state b: delay; b.step(a.step(x)) }"
        "fn f(x: [u8; 4]) -> [u8; 4] { two(x) }"
        "stream pairs(x: (u8, bool)) -> [u8; 2] { [x.0, 1] }"
        " fn g(x: [(u8, bool); 3]) -> [u8; 3, 2] { pairs(x) }"
    )
    verify_program(program)
    two = function(program, "two")
    assert [item.stream.name for item in two.instances] == ["delay", "delay"]
    assert int(function(program, "delay").states[0].initial.value) == 7


def test_modules_are_shared_and_qualified() -> None:
    modules = {
        "dsp": "use base::Sample; const GAIN: Sample = 3; fn amplify(x: Sample) -> Sample { x * GAIN }",
        "base": "type Sample = i16; struct Frame { left: Sample, right: Sample }",
    }
    program = accept(
        "use dsp::amplify; use base::Frame; pub fn f(x: Frame) -> Frame"
        " { Frame { left: amplify(x.left), right: dsp::amplify(x.right) + dsp::GAIN } }", modules,
    )
    verify_program(program)
    assert [item.name for item in program.functions] == ["dsp::amplify", "f"]


def test_match_on_constants_and_tuples() -> None:
    made = result_of(
        "const LOW: u8 = 3; fn f(x: u8, y: bool) -> u8 {"
        " match (x, y) { (LOW, true) => 1, (4..=9, _) => 2, (10.., z) => if z { 3 } else { 4 }, _ => 5 } }"
    )
    assert isinstance(made, hir.Match)
    first = made.arms[0].patterns[0]
    assert isinstance(first, hir.TuplePattern)
    assert [(item.low, item.high) for item in first.items if isinstance(item, hir.IntRange)] == [
        (3, 3),
        (1, 1),
    ]


def test_bits_at_a_moving_position() -> None:
    program = accept(
        "fn f(x: i32) -> u32 { let mut n: u32 = 0; for i in 0..16 { if x.bit(2 * i) { n += 1; }"
        " n += x.bits(2 * i + 1, 2 * i) as u32; } n }"
    )
    verify_program(program)


def test_unused_generic_function_is_no_error() -> None:
    assert accept("fn f<N>(x: [u8; N]) -> u8 { x[N - 9] }").functions == ()


def test_long_sums_do_not_exhaust_the_stack() -> None:
    text = "fn f(x: u32) -> u32 { " + " + ".join(["x"] * 150) + " }"
    verify_program(accept(text))


def test_errors_of_a_file_come_together() -> None:
    from tests.unit.sema_support import reject

    found = reject("fn f() -> u8 { let a = b; let c: u8 = true; a + d }\nfn g(x: u8) -> u16 { x }")
    assert found == [("K0201", "b"), ("K0302", "true"), ("K0201", "d"), ("K0302", "x")]


def test_an_index_that_acts_is_evaluated_once() -> None:
    program = accept(
        "stream next(x: u2) -> u2 { state n: u2 = 0; n += x; n }"
        "stream f(x: u8) -> u8 { state i: next; state a: [u8; 4] = [0; 4]; a[i.step(1)] += x; a[0] }"
    )
    verify_program(program)
    body = function(program, "f").body
    assert body is not None
    statement = body.stmts[0]
    assert isinstance(statement, hir.ExprStmt) and isinstance(statement.value, hir.Block)
    assert [type(item) for item in statement.value.stmts] == [hir.Let, hir.Assign]


def test_a_module_is_imported_whole() -> None:
    assert accept("use dsp; fn f() -> u8 { dsp::g() }", {"dsp": "fn g() -> u8 { 1 }"}).functions


def test_return_may_give_the_value() -> None:
    program = accept("fn f(x: u8) -> u8 { let y = x + 1; return y; } fn g() { return; }")
    verify_program(program)


def test_computed_constants_are_kept_for_the_index_proof() -> None:
    program = accept(
        "fn four() -> u32 { 4 } const N: u32 = four(); const M: u32 = N + 1; fn f(x: [u8; N]) {}"
    )
    assert [file.text(tree.span) for tree, file in program.constants] == ["four()"]


def test_alternatives_inside_tuples() -> None:
    made = result_of("fn f(x: (u2, u2)) -> u8 { match x { (0 | 1, 2 | 3) => 1, (_, _) => 2 } }")
    assert isinstance(made, hir.Match) and [len(arm.patterns) for arm in made.arms] == [4, 1]
