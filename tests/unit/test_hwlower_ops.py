"""Tensors, reductions, fixed point, conversions and control: flat and mapped, against the interpreter."""
from __future__ import annotations

import pytest

from kera_hw.graph.node import Ref
from kera_hw.graph.store import Store
from kera_hw.types import BOOL, FixType, IntType, TensorType, Type

from .hw_random import check

U8, U32 = IntType(8, False), IntType(32, False)
I8, I16, I32 = IntType(8, True), IntType(16, True), IntType(32, True)


def t(*shape: int, element: Type = I8) -> TensorType:
    return TensorType(element, shape)


def outs(store: Store, opcode: str, *inputs: Ref, **attrs: object) -> list[Ref]:
    node = store.node(opcode, inputs, attrs)
    return [Ref(node, i) for i in range(len(node.types))]


@pytest.mark.parametrize("index", [U8, I8, IntType(2, False), IntType(3, True), U32])
def test_dynamic_positions(index: IntType) -> None:
    s = Store()
    a, i, j, v = s.param(0, t(3, 5)), s.param(1, index), s.param(2, index), s.param(3, I8)
    patch = s.param(4, t(2, 2))
    results = [
        s.op("tensor.index", a, i, j),
        s.op("tensor.update", a, v, i, j),
        s.op("tensor.slice", a, i, j, sizes=(2, 3)),
        s.op("tensor.update_slice", a, patch, i, j),
    ]
    check(s, [t(3, 5), index, index, I8, t(2, 2)], results)


def test_shaping() -> None:
    s = Store()
    a, b, v = s.param(0, t(2, 3)), s.param(1, t(2, 3)), s.param(2, I8)
    line, indices = s.param(3, t(4)), s.param(4, t(3, element=U8))
    results = [
        s.op("tensor.reshape", a, shape=(3, 2)),
        s.op("tensor.permute", a, axes=(1, 0)),
        s.op("tensor.broadcast", a, shape=(2, 2, 3)),
        s.op("tensor.broadcast", v, shape=(2, 2)),
        s.op("tensor.concat", a, b, axis=1),
        s.op("tensor.concat", a, b, axis=0),
        s.op("tensor.pad", a, v, high=(0, 2), low=(1, 0)),
        s.op("tensor.reverse", a, axis=1),
        s.op("tensor.gather", a, indices),
        s.op("tensor.gather", line, indices),
        s.op("tensor.stack", a, b),
        s.op("tensor.stack", v, v),
        s.op("tensor.shift_in", line, v),
        s.op("tensor.iota", size=5, type=U8),
    ]
    check(s, [t(2, 3), t(2, 3), I8, t(4), t(3, element=U8)], results)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_reductions(axis: int) -> None:
    s = Store()
    a, flags = s.param(0, t(3, 4)), s.param(1, t(3, 4, element=BOOL))
    results = [
        s.op("reduce.sum", a, axis=axis, order=""),
        s.op("reduce.prod", a, axis=axis, order=""),
        s.op("reduce.min", a, axis=axis),
        s.op("reduce.max", a, axis=axis),
        s.op("reduce.argmin", a, axis=axis),
        s.op("reduce.argmax", a, axis=axis),
        s.op("reduce.any", flags, axis=axis),
        s.op("reduce.all", flags, axis=axis),
    ]
    check(s, [t(3, 4), t(3, 4, element=BOOL)], results)


def test_products_of_tensors() -> None:
    s = Store()
    x, y = s.param(0, t(6)), s.param(1, t(6))
    a, b = s.param(2, t(2, 3)), s.param(3, t(3, 2))
    results = [s.op("reduce.dot", x, y, mul="", order=""), s.op("reduce.matmul", a, b, mul="")]
    check(s, [t(6), t(6), t(2, 3), t(3, 2)], results)


@pytest.mark.parametrize("stride,pad", [(1, 0), (2, 1)])
def test_convolution_and_pooling(stride: int, pad: int) -> None:
    s = Store()
    x, w = s.param(0, t(2, 4, 4)), s.param(1, t(2, 2, 3, 3))
    results = [
        s.op("reduce.conv2d", x, w, mul="", pad=pad, stride=stride),
        s.op("reduce.max_pool2d", x, pad=pad, size=2, stride=stride),
    ]
    check(s, [t(2, 4, 4), t(2, 2, 3, 3)], results, count=12)


FORMATS = [FixType(16, 8, True), FixType(12, 12, True), FixType(9, 0, False), FixType(32, 5, True)]


@pytest.mark.parametrize("kind", FORMATS)
def test_fixed_arithmetic(kind: FixType) -> None:
    s = Store()
    a, b = s.param(0, kind), s.param(1, kind)
    names = ("add", "sub", "min", "max", "saturating_add", "saturating_sub", "saturating_mul", "mul")
    results = [s.op(f"fixed.{name}", a, b) for name in names]
    results += [s.op(f"fixed.{name}", a) for name in ("neg", "abs", "sign")]
    results += [s.op("compare.lt", a, b), s.op("compare.eq", a, b)]
    results += [s.op("control.select", s.op("compare.ge", a, b), a, b)]
    check(s, [kind, kind], results)


@pytest.mark.parametrize("mode", ["floor", "trunc", "half_up", "half_even"])
@pytest.mark.parametrize("overflow", ["wrap", "saturate"])
def test_rounding(mode: str, overflow: str) -> None:
    for source in (*FORMATS, FixType(1, 1, True), FixType(8, 8, False)):
        s = Store()
        x = s.param(0, source)
        targets = [*FORMATS, FixType(5, 2, True), FixType(4, 4, False), FixType(20, 15, True)]
        how = {"mode": mode, "overflow": overflow}
        results = [s.op("convert.round_to", x, type=target, **how) for target in targets]
        check(s, [source], results, count=40)


def test_conversions() -> None:
    for source in (*FORMATS, I8, U32, BOOL):
        s = Store()
        x = s.param(0, source)
        targets: list[Type] = [I16, U8, IntType(3, True)]
        targets += [] if source == BOOL else FORMATS
        check(s, [source], [s.op("convert.cast", x, type=target) for target in targets], count=40)


def test_calls_loops_and_scans() -> None:
    s = Store()
    scaled = s.op("integer.mul", s.param(1, I16), s.param(2, I16))
    counter = s.op("convert.cast", s.param(0, U8), type=I16)
    step = s.region([U8, I16, I16], [s.op("integer.add", scaled, counter)])
    callee = s.region([I16, I16], [s.op("integer.sub", s.param(0, I16), s.param(1, I16)), s.param(0, I16)])
    a, b, items = s.param(0, I16), s.param(1, I16), s.param(2, t(4, element=I16))
    loop = outs(s, "control.loop", a, b, carried=1, count=5, index_type=U8, region=step, start=240, step=3)
    call = outs(s, "control.call", a, b, region=callee)
    body = s.region([I16, I16, I16], [
        s.op("integer.add", s.param(0, I16), s.param(1, I16)),
        s.op("bits.xor", s.param(0, I16), s.param(2, I16)),
    ])
    scan = outs(s, "control.scan", a, items, b, carried=1, items=1, length=4, region=body)
    pair = s.region([I16, I16, I16], [s.op("integer.max", s.param(0, I16), s.param(2, I16)), s.param(1, I16)])
    mapped = outs(s, "control.map", items, items, b, arity=2, region=pair)
    check(s, [I16, I16, t(4, element=I16)], [*loop, *call, *scan, *mapped])


def test_while_and_branch() -> None:
    s = Store()
    x, y, c, k = s.param(0, U8), s.param(1, U8), s.param(2, BOOL), s.param(3, IntType(3, False))
    goes = s.region([U8, U8], [s.op("compare.ne", s.param(1, U8), s.constant(U8, 0))])
    body = s.region([U8, U8], [s.param(1, U8), s.op("integer.rem", s.param(0, U8), s.param(1, U8))])
    loop = outs(s, "control.while", x, y, body=body, carried=2, cond=goes, max=4)
    sides = tuple(
        s.region([U8, U8], [s.op(op, s.param(0, U8), s.param(1, U8)), s.param(0, U8)])
        for op in ("integer.add", "integer.sub", "bits.xor")
    )
    two = outs(s, "control.branch", c, x, y, regions=sides[:2])
    three = outs(s, "control.branch", k, x, y, regions=sides)
    check(s, [U8, U8, BOOL, IntType(3, False)], [*loop, *two, *three])


def test_elementwise_over_tensors() -> None:
    s = Store()
    a, b, c = s.param(0, t(3)), s.param(1, t(3)), s.param(2, t(3, element=BOOL))
    one = s.param(3, I8)
    results = [
        s.op("integer.mul", a, b), s.op("integer.add", a, one), s.op("control.select", c, a, b),
        s.op("convert.cast", a, type=I32), s.op("bits.not", c), s.op("convert.bitcast", a, type=U8),
        *outs(s, "integer.add_carry", a, b, c),
    ]
    check(s, [t(3), t(3), t(3, element=BOOL), I8], results)


def test_table_lookup_is_a_rom() -> None:
    s = Store()
    table = s.constant(t(64, element=U8), [(i * 37) % 251 for i in range(64)])
    kind = IntType(6, False)
    _, netlist = check(s, [kind], [s.op("tensor.index", table, s.param(0, kind))], count=80)
    assert any(type(cell).__name__ == "Rom" for cell in netlist.cells)
