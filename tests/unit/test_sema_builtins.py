"""Every built-in: the operation it becomes, checked against the registry's own typing rules."""
from __future__ import annotations

import pytest

from kera_hw.frontend.sema.names.builtins import BUILTINS
from kera_hw.frontend.sema.tree import hir
from tests.unit.sema_support import accept, function
from tests.unit.sema_verify import verify_program

#: Parameters, the body's expression, the type of the result.
CASES: tuple[tuple[str, str, str], ...] = (
    *((f"x: {kind}", f"{name}(x)", kind) for name in ("abs", "neg", "sign")
      for kind in ("i13", "f32", "fix<24, 20>", "[i8; 4]")),
    *(("x: f64", f"{name}(x)", "f64") for name in (
        "sqrt", "rsqrt", "recip", "floor", "ceil", "round", "trunc", "exp", "exp2", "log", "log2", "sin",
        "cos", "tanh", "sigmoid", "erf", "relu", "gelu", "silu",
    )),
    ("x: [i16; 4]", "relu(x)", "[i16; 4]"),
    ("x: fix<16, 8>", "relu(x)", "fix<16, 8>"),
    ("x: f32", "is_nan(x)", "bool"),
    ("x: [bf16; 2, 2]", "is_finite(x)", "[bool; 2, 2]"),
    ("x: u64", "reverse_bits(x)", "u64"),
    ("x: i24", "reverse_bytes(x)", "i24"),
    ("x: [u7; 3]", "popcount(x)", "[u32; 3]"),
    ("x: i9", "clz(x)", "u32"),
    ("x: u1", "ctz(x)", "u32"),
    *(("a: i8, b: i8", f"{name}(a, b)", "i8") for name in (
        "saturating_add", "saturating_sub", "saturating_mul", "min", "max")),
    ("a: [u8; 4]", "saturating_add(a, 1)", "[u8; 4]"),
    ("a: fix<8, 4>", "saturating_sub(1.5, a)", "fix<8, 4>"),
    ("a: i8", "min(b: a, a: 3)", "i8"),
    ("x: [i32; 4]", "clamp(x, -5, 5)", "[i32; 4]"),
    ("x: i32", "clamp(x, hi: 5, lo: -5)", "i32"),
    ("c: bool, a: (i8, [f32; 2])", "select(c, a, a)", "(i8, [f32; 2])"),
    ("c: [bool; 4], a: [i8; 4]", "select(c, a, 0)", "[i8; 4]"),
    ("a: [f32; 4]", "fma(a, 2.0, 1)", "[f32; 4]"),
    ("a: f16", "copysign(1.0, a)", "f16"),
    ("a: u16, c: bool", "add_carry(a, 1, c)", "(u16, bool)"),
    ("a: [i8; 4], b: [i8; 4]", "mul_wide(a, b)", "[i16; 4]"),
    ("a: [u8; 4], b: u8", "clmul(a, b)", "[u16; 4]"),
    ("a: u33", "clmul(a, 3)", "u64"),
    ("a: u1", "clmul(a, a)", "u2"),
    ("a: u32", "mul_wide(a, 3)", "u64"),
    ("x: u32", "rotl(x, 7)", "u32"),
    ("x: [u32; 3], n: u5", "rotr(x, n)", "[u32; 3]"),
    ("a: u3, b: i5, c: bool", "cat(a, b, c)", "u9"),
    ("x: f32", "bitcast::<u32>(x)", "u32"),
    ("x: [u16; 4]", "bitcast::<[fix<16, 4>; 4]>(x)", "[fix<16, 4>; 4]"),
    ("x: bool", "bitcast::<u1>(x)", "u1"),
    ("x: fix<24, 20>", "round_to::<fix<16, 8>>(x, half_even, saturate)", "fix<16, 8>"),
    ("x: [i32; 2]", "round_to::<ufix<16, 8>>(x, mode: floor, overflow: wrap)", "[ufix<16, 8>; 2]"),
    ("a: [i8; 2, 3]", "map(a, |x| x as i16 + 1)", "[i16; 2, 3]"),
    ("a: [i8; 3]", "map(a, |x| [x, x])", "[i8; 3, 2]"),
    ("a: [(u8, bool); 3]", "map(a, |(x, y)| if y { x } else { 0 })", "[u8; 3]"),
    ("a: [i8; 2, 3], b: [u4; 2, 3]", "zip(a, b, |x, y| (x, y))", "[(i8, u4); 2, 3]"),
    ("a: [i8; 4]", "reduce(a, 0i32, |acc, x| acc + x as i32)", "i32"),
    ("a: [i8; 4, 2]", "reduce(a, [0i8; 2], |acc, row| acc + row)", "[i8; 2]"),
    ("a: [i8; 4]", "scan(a, 0, |acc, x| acc + x)", "[i8; 4]"),
    ("a: [i8; 4]", "scan(a, (0, true), |acc, x| (acc.0 + x, !acc.1))", "[(i8, bool); 4]"),
    ("a: [i8; 4], x: i8", "shift_in(a, x)", "[i8; 4]"),
    ("a: [i8; 4, 2]", "shift_in(a, [1, 2])", "[i8; 4, 2]"),
    ("a: [i8; 4, 2]", "len(a)", "u32"),
    ("", "iota::<i8, 64>()", "[i8; 64]"),
    ("a: [i8; 8]", "reshape::<2, 4>(a)", "[i8; 2, 4]"),
    ("a: [i8; 2, 3]", "transpose(a)", "[i8; 3, 2]"),
    ("a: [i8; 2, 3, 4]", "permute(a, axes: (1, 0, 2))", "[i8; 3, 2, 4]"),
    ("a: [(i8, f32); 2, 3]", "permute(a, (1, 0))", "[(i8, f32); 3, 2]"),
    ("a: i8", "broadcast::<4, 2>(a)", "[i8; 4, 2]"),
    ("a: [i8; 3, 1]", "broadcast::<2, 3, 4>(a)", "[i8; 2, 3, 4]"),
    ("a: [i8; 2, 3], b: [i8; 2, 1]", "concat(a, b, axis: 1)", "[i8; 2, 4]"),
    ("a: [i8; 2, 3]", "pad(a, 1, 2, 7)", "[i8; 5, 6]"),
    ("a: [f32; 2, 3]", "pad(a, (0, 1), (2, 0), value: 0.0)", "[f32; 4, 4]"),
    ("a: [i8; 2]", "pad(a, 1, 0)", "[i8; 3]"),
    ("a: [i8; 2, 3]", "reverse(a, 0)", "[i8; 2, 3]"),
    ("a: [i8; 4, 3], i: [u2; 5]", "gather(a, i)", "[i8; 5, 3]"),
    ("x: [u8; 4, 3]", "sum(x)", "u8"),
    ("x: [u8; 4, 3]", "sum(x, axis: 1)", "[u8; 4]"),
    ("x: [fix<16, 8>; 4]", "sum(x, order: tree)", "fix<16, 8>"),
    ("x: [f32; 4, 3]", "sum(x, 0, sequential)", "[f32; 3]"),
    ("x: [f32; 4]", "sum(x, order: exact)", "f32"),
    ("x: [u8; 4]", "prod(x)", "u8"),
    ("x: [bool; 4, 3]", "any(x, axis: 0)", "[bool; 3]"),
    ("x: [bool; 4]", "all(x)", "bool"),
    ("x: [i8; 4, 3]", "min(x)", "i8"),
    ("x: [i8; 4, 3]", "max(x, axis: 1)", "[i8; 4]"),
    ("a: [f32; 4]", "argmin(a)", "u32"),
    ("a: [i8; 4, 3]", "argmax(a, axis: 1)", "[u32; 4]"),
    ("a: [f32; 4, 3]", "mean(a, axis: 1, order: tree)", "[f32; 4]"),
    ("a: [i8; 4], b: [i8; 4]", "dot(a, b)", "i8"),
    ("a: [f32; 4]", "dot(a, a, order: tree, mul: wide)", "f32"),
    ("a: [i32; 2, 3], b: [i32; 3, 4]", "matmul(a, b)", "[i32; 2, 4]"),
    ("a: [f32; 2, 3], b: [f32; 3, 4]", "matmul(a, b, mul: unfused)", "[f32; 2, 4]"),
    ("x: [i8; 3, 8, 8], w: [i8; 5, 3, 3, 3]", "conv2d(x, w, stride: 2, pad: 1)", "[i8; 5, 4, 4]"),
    ("x: [f32; 3, 8, 8], w: [f32; 5, 3, 3, 3]", "conv2d(x, w)", "[f32; 5, 6, 6]"),
    ("x: [i8; 3, 8, 8]", "max_pool2d(x, 2)", "[i8; 3, 4, 4]"),
    ("x: [f32; 3, 8, 8]", "avg_pool2d(x, size: 3, stride: 1, pad: 1)", "[f32; 3, 8, 8]"),
    ("a: [f32; 4, 3]", "softmax(a, axis: 1)", "[f32; 4, 3]"),
    ("a: [f32; 4]", "softmax(a)", "[f32; 4]"),
    ("a: [f16; 4, 3]", "layer_norm(a, axis: 0, eps: 1e-3)", "[f16; 4, 3]"),
    ("a: [f32; 4, 3]", "rms_norm(a, 1)", "[f32; 4, 3]"),
    ("q: [f32; 4, 8], v: [f32; 4, 8]", "attention(q, q, v)", "[f32; 4, 8]"),
    ("x: [f32; 4]", "to_host(pin(x))", "[f32; 4]"),
    ("x: device [f32; 4]", "to_remote(x)", "remote [f32; 4]"),
    ("x: [f32; 4]", "unify(x)", "unified [f32; 4]"),
    ("x: [f32; 4]", "to_device(x)", "device [f32; 4]"),
    ("x: [(u8, bool); 4]", "clone(x)", "[(u8, bool); 4]"),
)

EFFECTS: tuple[tuple[str, str, str, str], ...] = (
    ("x: f32", "print(\"x\", x, 1)", "()", "io"),
    ("", "read_tensor::<[f32; 4]>(\"name\")", "[f32; 4]", "fs.read"),
    ("x: [f32; 4]", "write_tensor(\"name\", x)", "()", "fs.write"),
    ("x: [f32; 4]", "send(\"peer\", x)", "()", "net"),
    ("", "recv::<u8>(\"peer\")", "u8", "net"),
    ("", "now()", "u64", "time"),
    ("", "random::<f32>(4, 2)", "[f32; 4, 2]", "rand"),
    ("", "random::<u32>()", "u32", "rand"),
)


@pytest.mark.parametrize(("params", "body", "result"), CASES, ids=[f"{case[1]}-{case[2]}" for case in CASES])
def test_built_in(params: str, body: str, result: str) -> None:
    program = accept(f"fn f({params}) -> {result} {{ {body} }}")
    verify_program(program)


@pytest.mark.parametrize(("params", "body", "result", "effect"), EFFECTS, ids=[case[1] for case in EFFECTS])
def test_effect(params: str, body: str, result: str, effect: str) -> None:
    program = accept(f"fn f({params}) -> {result} ! {effect} {{ {body} }}")
    verify_program(program)
    assert function(program, "f").effects == (effect,)


def test_every_built_in_is_tried() -> None:
    text = " ".join(case[1] for case in (*CASES, *EFFECTS))
    untried = [name for name in BUILTINS if f"{name}(" not in text and f"{name}::<" not in text]
    assert untried == ["assert", "cover", "assert_eq"]


def test_modes_are_spelled_out_for_floats_only() -> None:
    program = accept(
        "fn f(a: [f32; 4], b: [i32; 4]) -> (f32, i32, f32) { (dot(a, a), sum(b, order: tree), sum(a)) }"
    )
    body = function(program, "f").body
    assert body is not None and isinstance(body.result, hir.Aggregate)
    attrs = [item.attrs for item in body.result.items if isinstance(item, hir.Op)]
    assert attrs == [
        {"mul": "fused", "order": "lanes"},
        {"axis": -1, "order": ""},
        {"axis": -1, "order": "lanes"},
    ]


def test_names_may_be_shadowed() -> None:
    program = accept(
        "fn sum(x: u8) -> u8 { x } fn f(max: u8) -> u8 { let min = 3; sum(max + min) }"
    )
    assert [item.name for item in program.functions] == ["sum", "f"]
