"""Traced functions are the programs that the same Kera text is."""
from __future__ import annotations

import copy
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kera_hw
from kera_hw import fn
from kera_hw.frontend.sema.names.builtins import BUILTINS
from kera_hw.support import KeraError

ROOT = Path(__file__).resolve().parents[2]

A = np.array([[1, -2], [3, 4]], np.int16)

#: A function, the types of its parameters, and the Kera text whose graph it has.
PAIRS: tuple[tuple[Callable[..., Any], tuple[str, ...], str], ...] = (
    (lambda x, y: (x + y) * 3 - 1, ("i16", "i16"), "pub fn f(x: i16, y: i16) -> i16 { (x + y) * 3 - 1 }"),
    (lambda x: 2.5 / x, ("f32",), "pub fn f(x: f32) -> f32 { 2.5 / x }"),
    (lambda x, y: x // y % 7, ("u8", "u8"), "pub fn f(x: u8, y: u8) -> u8 { x / y % 7 }"),
    (lambda x: ~(x << 2) ^ -x & 5 | x >> 1, ("i8",), "pub fn f(x: i8) -> i8 { !(x << 2) ^ -x & 5 | x >> 1 }"),
    (lambda x: np.where((x > 3) & (x <= 9), x, abs(x)), ("[i32; 4]",),
     "pub fn f(x: [i32; 4]) -> [i32; 4] { select((x > 3) & (x <= 9), x, abs(x)) }"),
    (lambda x: A + x, ("[i16; 2, 2]",),
     "pub fn f(x: [i16; 2, 2]) -> [i16; 2, 2] { [[1i16, -2], [3, 4]] + x }"),
    (lambda x: np.int16(-7) < x, ("i16",), "pub fn f(x: i16) -> bool { x > -7 }"),
    (lambda x: x.sum(axis=1, order="tree"), ("[f32; 3, 4]",),
     "pub fn f(x: [f32; 3, 4]) -> [f32; 3] { sum(x, axis: 1, order: tree) }"),
    (lambda x: np.sum(x), ("[f32; 3, 4]",), "pub fn f(x: [f32; 3, 4]) -> f32 { sum(x) }"),
    (lambda x: fn.softmax(x, axis=1), ("[f32; 4, 8]",),
     "pub fn f(x: [f32; 4, 8]) -> [f32; 4, 8] { softmax(x, axis: 1) }"),
    (lambda x: x @ np.ones((8, 2), np.float32), ("[f32; 4, 8]",),
     "pub fn f(x: [f32; 4, 8]) -> [f32; 4, 2] { matmul(x, [1f32; 8, 2]) }"),
    (lambda x: x[1:3, -1], ("[u8; 4, 5]",), "pub fn f(x: [u8; 4, 5]) -> [u8; 2] { x[1..3, 4] }"),
    (lambda x, i: x[..., i & 3], ("[u8; 2, 4]", "u8"),
     "pub fn f(x: [u8; 2, 4], i: u8) -> [u8; 2] { x[.., i & 3] }"),
    (lambda x, i: x.at(i, otherwise=0) + x.clamped(i), ("[u8; 5]", "u8"),
     "pub fn f(x: [u8; 5], i: u8) -> u8 { x.at(i, else: 0) + x.clamped(i) }"),
    (lambda x: x.bits(5, 2), ("u8",), "pub fn f(x: u8) -> u4 { x.bits(5, 2) }"),
    (lambda x: x.reshape(2, -1).T.astype("i32"), ("[i8; 6]",),
     "pub fn f(x: [i8; 6]) -> [i32; 3, 2] { permute(reshape::<2, 3>(x), axes: (1, 0)) as [i32; 3, 2] }"),
    (lambda x: fn.bitcast["u32"](x), ("f32",), "pub fn f(x: f32) -> u32 { bitcast::<u32>(x) }"),
    (lambda x: fn.iota["u32", 8]() + x, ("u32",), "pub fn f(x: u32) -> [u32; 8] { iota::<u32, 8>() + x }"),
    (lambda x: fn.round_to["fix<16, 8>"](x, "half_up", overflow="saturate"), ("fix<32, 16>",),
     "pub fn f(x: fix<32, 16>) -> fix<16, 8> { round_to::<fix<16, 8>>(x, half_up, saturate) }"),
    (lambda x: fn.reduce(x, np.int32(1), lambda acc, v: acc * 3 + v), ("[i32; 9]",),
     "pub fn f(x: [i32; 9]) -> i32 { reduce(x, 1i32, |acc, v| acc * 3 + v) }"),
    (lambda x, y: fn.map(x, lambda v: fn.max(v, y)), ("[i32; 9]", "i32"),
     "pub fn f(x: [i32; 9], y: i32) -> [i32; 9] { map(x, |v| max(v, y)) }"),
    (lambda a, b: kera_hw.kera("if a < b { a } else { b }", a=b, b=a), ("u8", "u8"),
     "pub fn f(a: u8, b: u8) -> u8 { if b < a { b } else { a } }"),
    (lambda x: tuple(fn.add_carry(x, x, False))[::-1], ("u8",),
     "pub fn f(x: u8) -> (bool, u8) { let (s, c) = add_carry(x, x, false); (c, s) }"),
    (lambda x: x + kera_hw.constant("[fix<16, 8>; 2]", np.array([128, -3], np.int16)), ("[fix<16, 8>; 2]",),
     "pub fn f(x: [fix<16, 8>; 2]) -> [fix<16, 8>; 2] { x + [0.5, -0.01171875] }"),
    (lambda x: [x, 1, x + 1], ("u8",), "pub fn f(x: u8) -> [u8; 3] { [x, 1, x + 1] }"),
    (lambda x: np.concatenate([x, x[:0], A[0]]), ("[i16; 3]",),
     "pub fn f(x: [i16; 3]) -> [i16; 5] { concat(concat(x, x[0..0]), [1i16, -2]) }"),
    (lambda x: np.minimum(np.sqrt(x), np.float16(2)), ("f16",),
     "pub fn f(x: f16) -> f16 { min(sqrt(x), 2f16) }"),
)


@pytest.mark.parametrize("function, types, text", PAIRS, ids=[text.split("{", 1)[1] for *_, text in PAIRS])
def test_a_traced_function_has_the_graph_of_its_text(
    function: Callable[..., Any], types: tuple[str, ...], text: str
) -> None:
    function.__name__ = "f"
    traced = kera_hw.trace(function, *types)
    assert traced.fingerprint == kera_hw.compile(text).fingerprint, traced.source


def _example() -> Any:
    spec = importlib.util.spec_from_file_location("traced", ROOT / "examples/traced.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_traced_stream_is_that_of_the_file() -> None:
    fir = _example().fir
    loaded = kera_hw.load(ROOT / "examples/fir.kera")
    assert fir.fingerprint == loaded.fingerprint
    assert kera_hw.compile(fir.source).fingerprint == fir.fingerprint
    items = np.array([1000, 0, 3, -4], np.int16)
    want = loaded.function("fir").batch(x=items)
    assert np.array_equal(fir.function("fir", target="cpu").batch(x=items), want)
    with fir.stream("fir") as live:
        assert [live.step(x=item) for item in items] == list(want)


def test_two_states_and_a_helper() -> None:
    def blended(old: Any, new: Any) -> Any:
        return old + (new - old) / 4

    @kera_hw.trace(x="f32")
    def both(x: Any) -> Any:
        slow = kera_hw.state("f32", 0.5, name="slow")
        count = kera_hw.state("u8")
        slow.value = blended(slow, x)
        count.value = count.value + 1
        return slow, count.value

    text = """pub stream both(x: f32) -> (f32, u8) {
        state slow: f32 = 0.5; state count: u8 = 0;
        slow = slow + (x - slow) / 4; count = count + 1; (slow, count)
    }"""
    assert both.fingerprint == kera_hw.compile(text).fingerprint
    assert [var.name for var in both.graph.exports[0].state] == ["slow", "state1"]


def test_an_element_is_set_and_its_array_is_the_changed_one() -> None:
    def f(x: Any) -> Any:
        y = x
        y[1] = 7
        return x + y

    traced = kera_hw.trace(f, "[u8; 3]")
    assert list(traced.function("f")(x=np.array([1, 2, 3], np.uint8))) == [2, 14, 6]


def test_nodes_are_at_lines_of_python() -> None:
    program = _example().layer
    text = (ROOT / "examples/traced.py").read_text().splitlines()
    places = [place for origin in program.graph.origins.values() for place in origin.places]
    lines = {text[place.line - 1].strip() for place in places}
    assert {"hidden = x @ WEIGHTS", "return fn.softmax(hidden, axis=1)"} <= lines
    assert all(origin.path.endswith("traced.py") for origin in program.graph.origins.values())
    assert not any(origin.name for origin in program.graph.origins.values())


@pytest.mark.parametrize("value", [
    np.array([np.inf, -np.inf, np.nan, -0.0], np.float32), np.array([5e-324, 1e300], np.float64),
    np.array([[0.1, 3e-5], [-1, 65504]], np.float16), np.array([1.5, -3e38], ml_dtypes.bfloat16),
    np.array([-2**63, 2**63 - 1]), np.array([True, False]), np.float32(-np.inf), np.int8(-128),
], ids=repr)  # fmt: skip
def test_constants_keep_their_bits(value: Any) -> None:
    traced = kera_hw.trace(lambda: value)
    assert np.asarray(traced.function("traced")()).tobytes() == np.asarray(value).tobytes()


def test_large_constants_are_given_by_their_values() -> None:
    weights = np.arange(-300, 300, dtype=np.int16).reshape(20, 30)
    indices = np.arange(600, dtype=np.uint16)[::-1].copy()  # whose values the proof of indices needs
    lines = ", ".join(f"[{', '.join(map(str, row))}]" for row in weights.tolist())
    text = f"""const W: [i16; 20, 30] = [{lines}];
    pub fn f(x: [i16; 20, 30]) -> [i16; 600] {{
        gather(reshape::<600>(x + W), [{', '.join(map(str, indices.tolist()))}u16])
    }}""".replace("[599,", "[599u16,").replace("0u16]", "0]")

    def f(x: Any) -> Any:
        return fn.gather((x + weights).reshape(600), indices)

    traced = kera_hw.trace(f, "[i16; 20, 30]")
    assert traced.fingerprint == kera_hw.compile(text).fingerprint
    assert kera_hw.compile(traced.source).fingerprint == traced.fingerprint
    weights[:] = 0
    zeros = np.zeros((20, 30), np.int16)
    assert traced.function("f")(x=zeros)[0] == 299


def test_every_builtin_has_its_name() -> None:
    assert dir(fn) == sorted(BUILTINS)
    assert all(getattr(fn, name).__name__ == name for name in BUILTINS)
    assert not hasattr(fn, "sqroot")


def test_annotations_that_were_left_as_text() -> None:
    names: dict[str, Any] = {"kera_hw": kera_hw, "np": np}
    head = "def f(x: '[i16; 4]', y: np.int16) -> '[i16; 4]'"
    exec(f"from __future__ import annotations\n{head}: return x + y\n", names)
    assert repr(kera_hw.trace(names["f"])).endswith("fn f(x: [i16; 4], y: i16) -> [i16; 4]>")


# ---------------------------------------------------------------- in place


def _same_as_in_numpy(function: Callable[..., Any], x: Any) -> bool:
    wanted = function(x.copy())
    found = kera_hw.trace("[i32; 4]")(function).function("traced")(x=x)
    return [np.asarray(one).tolist() for one in found] == [np.asarray(one).tolist() for one in wanted]


def _aliased(x: Any) -> Any:
    y = x
    y += 1
    y[1:] *= x[0]
    y ^= x[2]
    return x, y


def _copied(x: Any) -> Any:
    y, z, w = x.copy(), copy.copy(x), copy.deepcopy(x)
    y -= 1
    z[0] = 5
    w |= 64
    x <<= 2
    return x, y, z, w, divmod(7, 2)[0], x.reshape([2, 2])


def _numbers(x: Any) -> Any:
    a = b = x[1]
    a += 3
    return a, b, x


@pytest.mark.parametrize("function", [_aliased, _copied, _numbers])
def test_values_change_in_place_as_arrays_do(function: Callable[..., Any]) -> None:
    function.__name__, before = "traced", function.__name__
    try:
        assert _same_as_in_numpy(function, np.arange(3, 7, dtype=np.int32)), before
    finally:
        function.__name__ = before


def test_states_change_in_place() -> None:
    """None of these may be lost: not by an index, not by an operator, not by another name."""
    @kera_hw.trace
    def summed(x: np.int32) -> Any:
        a, b = kera_hw.state("[i32; 2]"), kera_hw.state("i32")
        a.value[0] = x
        a.value[1:] += x
        b += x
        held = a.value
        held += 1
        a[0] = a[0] * 2
        old = a.value
        a.value = old.copy()
        old[0] = 99
        return a.value, b.value

    found = summed.function("summed").batch(x=np.arange(1, 5, dtype=np.int32))
    assert found[0].tolist() == [[4, 2], [6, 5], [8, 9], [10, 14]] and found[1].tolist() == [1, 3, 6, 10]


REFUSED: tuple[tuple[Callable[[Any], Any], str], ...] = (
    (lambda x: x[0].__setitem__(0, 1), "part of another value"),
    (lambda x: x.spread, "has no `spread`"),
    (lambda x: round(x[0, 0]), "rounded"),
    (lambda x: pow(x[0, 0], 2, 3), "no operation for `**`"),
    (lambda x: kera_hw.constant("[i32; 2]", [1, x[0, 0]]), "known before the program runs"),
    (lambda x: kera_hw.state("i32", x[0, 0]), "known before the program runs"),
    (lambda x: x[0, -4], "The index is -4"),
)


@pytest.mark.parametrize("function, message", REFUSED)
def test_what_has_no_meaning_is_said(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(KeraError, match=re.escape(message)):
        kera_hw.trace("[i32; 2, 3]")(function)


def test_any_name_may_be_a_parameters() -> None:
    program = kera_hw.compile("pub fn f(self: i32, inputs: i32) -> i32 { self - inputs }")
    assert program.function("f")(self=5, inputs=2) == 3
    assert program.function("f").batch(self=np.array([5]), inputs=np.array([2])).tolist() == [3]
    stream = kera_hw.compile("pub stream g(self: i32) -> i32 { state s: i32 = 0; s = s + self; s }")
    assert stream.stream("g").step(self=4) == 4

    @kera_hw.trace("i32", "i32")
    def h(expression: Any, /, self: Any) -> Any:
        return kera_hw.kera("expression - self", expression=expression, self=self)

    assert h.function("h")(expression=9, self=2) == 7
