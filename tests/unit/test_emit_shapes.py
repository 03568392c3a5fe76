"""The ports of a kernel in Amaranth: shapes that follow the types, values as Python writes and reads them."""
from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Shape, ShapeLike, signed, unsigned
from amaranth.lib import data
from amaranth.sim import Simulator, SimulatorContext

import kera_hw
from kera_hw.numerics.floatbits import to_bits
from kera_hw.rtl.emit.component import Kernel
from kera_hw.rtl.emit.shapes import FloatLayout, shape_of_type
from kera_hw.types import BF16, F16, F32, F64, FloatType, numpy_dtype

FIR = """
pub stream fir(x: i16) -> i32 {
    state taps: [i16; 3] = [0; 3];
    let now = [x, taps[0], taps[1]];
    taps = now;
    (now[0] as i32) * 3 - (now[1] as i32) * 2 + (now[2] as i32)
}
"""
KINDS = """
struct Inner { eq: i5, class: u3, real: f16 }
struct Pair { low: i8, on: bool, inner: Inner, tail: [i6; 2, 3] }

pub fn kinds(p: Pair, many: [Inner; 2], q: fix<12, 4>, b: bf16, none: (), lambda: u64) -> Pair {
    Pair {
        low: p.low - 1, on: !p.on,
        inner: Inner { eq: many[1].eq, class: p.inner.class + 1, real: p.inner.real * -2.0 },
        tail: [[p.tail[1, 0], p.tail[1, 1], p.tail[1, 2]], [p.tail[0, 0], p.tail[0, 1], many[0].eq as i6]],
    }
}
"""
TUPLE = """
pub fn both(a: i7, f: f32, s: fix<9, 2>) -> (i7, f32, (bool, i3), fix<9, 2>) {
    (-a, f + 0.5, (a > 3, -1), s + s)
}
"""


def component(text: str, name: str, folder: Path, **options: Any) -> Kernel:
    path = folder / f"{name}.kera"
    path.write_text(text)
    return kera_hw.load(path).component(name, **options)


def answers(kernel: Kernel, items: list[dict[str, Any]]) -> list[Any]:
    """The results of items by streams that never stall, read as Python reads them."""
    found: list[Any] = []

    async def bench(ctx: SimulatorContext) -> None:
        ctx.set(kernel.o.ready, 1)
        ctx.set(kernel.i.valid, 1)
        sent = 0
        while len(found) < len(items):
            ctx.set(kernel.i.payload, items[min(sent, len(items) - 1)])
            signals = (kernel.i.ready, kernel.o.valid, kernel.o.payload)
            _, _, ready, valid, payload = await ctx.tick().sample(*signals)
            sent += ready
            if valid:
                found.append(payload)

    simulator = Simulator(kernel)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found


def test_a_signed_filter_reads_as_signed(tmp_path: Path) -> None:
    kernel = component(FIR, "fir", tmp_path)
    items = [-4, 100, -32768, 7, 7, 7]
    found = [result.data for result in answers(kernel, [{"x": x} for x in items])]
    before = [0, 0, *items]
    assert found == [3 * c - 2 * b + a for a, b, c in zip(before, before[1:], before[2:])]
    assert found[0] == -12


def test_structs_and_tensors_by_name(tmp_path: Path) -> None:
    kernel = component(KINDS, "kinds", tmp_path)
    inner = {"eq_": -7, "class_": 5, "real": 1.5}
    pair = {"low": -128, "on": 1, "inner": inner, "tail": [[1, -2, 3], [-32, 31, 0]]}
    item = {
        "p": pair, "many": [{**inner, "eq_": 11}, {**inner, "eq_": -16}], "q": -9, "b": 0.1,
        "lambda_": (1 << 64) - 1,
    }
    (result,) = answers(kernel, [item])
    value = result.data
    assert (value.low, value.on) == (127, 0)
    assert (value.inner.eq_, value.inner.class_) == (-16, 6)
    assert float(value.inner.real) == -3.0 and value.inner.real.sign == 1
    assert [[value.tail[i][j] for j in range(3)] for i in range(2)] == [[-32, 31, 0], [1, -2, 11]]


def test_tuples_by_number(tmp_path: Path) -> None:
    kernel = component(TUPLE, "both", tmp_path)
    (result,) = answers(kernel, [{"a": 5, "f": 0x3F800000, "s": -20}])
    assert (result["0"], float(result["1"]), result["3"]) == (-5, 1.5, -40)
    assert (result["2"]["0"], result["2"]["1"]) == (1, -1)


@pytest.mark.parametrize("emitter", ["amaranth", "text"])
def test_ports_have_the_shapes_of_the_types(emitter: str, tmp_path: Path) -> None:
    payload = component(KINDS, "kinds", tmp_path, emitter=emitter).i.payload.shape()
    assert isinstance(payload, data.StructLayout)
    shapes: dict[str, ShapeLike] = dict(payload.members)
    assert list(shapes) == ["p", "many", "q", "b", "lambda_"]  # what holds no bit has no field
    inner = data.StructLayout({"eq_": signed(5), "class_": unsigned(3), "real": FloatLayout(F16)})
    tail = data.ArrayLayout(data.ArrayLayout(signed(6), 3), 2)
    pair = {"low": signed(8), "on": unsigned(1), "inner": inner, "tail": tail}
    assert shapes["p"] == data.StructLayout(pair)
    assert shapes["many"] == data.ArrayLayout(inner, 2)
    assert (shapes["q"], shapes["lambda_"]) == (signed(12), unsigned(64))


@pytest.mark.parametrize("kind", [F16, BF16, F32, F64], ids=str)
def test_floats_round_once_and_read_back(kind: FloatType) -> None:
    shape = shape_of_type(kind)
    assert isinstance(shape, FloatLayout) and Shape.cast(shape).width == kind.width_bits
    for value in (0.1, -0.0, 1.0, -3.75, 1e300, 5e-8, math.inf, -math.inf, 2.0**-149):
        with np.errstate(over="ignore"):
            stored = np.array([value]).astype(numpy_dtype(kind))
        constant = shape.const(value)
        assert constant.as_bits() == int(to_bits(stored)[0])
        assert float(constant) == float(stored[0])
    assert shape.const(math.nan).as_bits() == kind.canonical_nan
    assert math.isnan(float(shape.const(kind.canonical_nan)))
    fields = {"sign": 1, "exponent": 0, "fraction": 3}
    assert shape.const(fields).as_bits() == (1 << (kind.width_bits - 1)) | 3


def test_without_a_handshake_state_has_valid_bits(tmp_path: Path) -> None:
    bare = component(TUPLE, "both", tmp_path, interface="none")
    assert bare.protocol == "none" and not hasattr(bare, "in_valid")
    kernel = component(FIR, "fir", tmp_path, interface="none")
    found: list[int] = []

    async def bench(ctx: SimulatorContext) -> None:
        for x in [-4, None, None, 100, None, -1, None, None, None, None, None, None, None, None]:
            ctx.set(kernel.in_valid, x is not None)
            ctx.set(kernel.i, {"x": 99 if x is None else x})
            _, _, valid, value = await ctx.tick().sample(kernel.out_valid, kernel.o.data)
            if valid:
                found.append(value)

    simulator = Simulator(kernel)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert found == [-12, 308, -3 - 200 - 4]
