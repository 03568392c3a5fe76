"""Float laws in the passes: each one bit for bit on f16 values, and the tempting false ones not applied."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from kera_hw.graph import Export, Graph, Ref, Region, Store
from kera_hw.interp import run_region
from kera_hw.passes import pipeline, run_pipeline
from kera_hw.types import F16, F32, F64, FloatType, TensorType, Type
from tests.conformance.vectors import draw, every, special_bits, values_of

Build = Callable[[Store, Sequence[Ref]], Ref]


def constant(store: Store, value: float, kind: FloatType = F16) -> Ref:
    return store.constant(kind, np.array(value).astype(f"f{kind.width_bits // 8}"))


def before_and_after(build: Build, params: Sequence[Type]) -> tuple[Region, Region]:
    store = Store()
    result = build(store, [store.param(k, kind) for k, kind in enumerate(params)])
    region = store.region(params, [result])
    names = tuple((f"x{k}", kind) for k, kind in enumerate(params))
    graph = Graph([Export("f", "fn", names, result.type, region)])
    return region, run_pipeline(graph, pipeline("standard")).exports[0].region


def opcodes(region: Region) -> list[str]:
    return sorted(node.opcode for node in region.nodes() if not node.opcode.startswith("core."))


def inputs(count: int) -> list[np.ndarray]:
    """Many values against a few: zeros, infinities, NaN and subnormals on both sides."""
    others = np.array(special_bits(F16), np.uint16)
    columns = [np.repeat(every(F16)[::7], len(others)), np.tile(others, len(every(F16)[::7]))]
    columns.append(draw(F16, len(columns[0]), np.random.default_rng(3)))
    return [values_of(column, F16) for column in columns[:count]]


def bits(region: Region, columns: Sequence[np.ndarray]) -> np.ndarray:
    out = run_region(region, columns, len(columns[0]))[0]
    return np.ascontiguousarray(out).view(f"u{out.dtype.itemsize}")


def f(name: str) -> str:
    return f"floating.{name}"


LAWS: dict[str, tuple[int, Build, list[str]]] = {
    "x + -0": (1, lambda s, x: s.op(f("add"), x[0], constant(s, -0.0)), []),
    "x - 0": (1, lambda s, x: s.op(f("sub"), x[0], constant(s, 0.0)), []),
    "x * 1": (1, lambda s, x: s.op(f("mul"), x[0], constant(s, 1.0)), []),
    "1 * x": (1, lambda s, x: s.op(f("mul"), constant(s, 1.0), x[0]), []),
    "x * -1": (1, lambda s, x: s.op(f("mul"), x[0], constant(s, -1.0)), [f("neg")]),
    "x / 1": (1, lambda s, x: s.op(f("div"), x[0], constant(s, 1.0)), []),
    "x / 8": (1, lambda s, x: s.op(f("div"), x[0], constant(s, 8.0)), [f("mul")]),
    "x / -2^14": (1, lambda s, x: s.op(f("div"), x[0], constant(s, -(2.0**14))), [f("mul")]),
    "x / 2^-14": (1, lambda s, x: s.op(f("div"), x[0], constant(s, 2.0**-14)), [f("mul")]),
    "--x": (1, lambda s, x: s.op(f("neg"), s.op(f("neg"), x[0])), []),
    "|-x|": (1, lambda s, x: s.op(f("abs"), s.op(f("neg"), x[0])), [f("abs")]),
    "||x||": (1, lambda s, x: s.op(f("abs"), s.op(f("abs"), x[0])), [f("abs")]),
    "min(x, x)": (1, lambda s, x: s.op(f("min"), x[0], x[0]), []),
    "max(x, x)": (1, lambda s, x: s.op(f("max"), x[0], x[0]), []),
    "x + -y": (2, lambda s, x: s.op(f("add"), x[0], s.op(f("neg"), x[1])), [f("sub")]),
    "-x + y": (2, lambda s, x: s.op(f("add"), s.op(f("neg"), x[0]), x[1]), [f("sub")]),
    "x - -y": (2, lambda s, x: s.op(f("sub"), x[0], s.op(f("neg"), x[1])), [f("add")]),
    "-x * -y": (2, lambda s, x: s.op(f("mul"), s.op(f("neg"), x[0]), s.op(f("neg"), x[1])), [f("mul")]),
    "-x / -y": (2, lambda s, x: s.op(f("div"), s.op(f("neg"), x[0]), s.op(f("neg"), x[1])), [f("div")]),
    "fma(x, y, -0)": (2, lambda s, x: s.op(f("fma"), x[0], x[1], constant(s, -0.0)), [f("mul")]),
    "fma(1, x, y)": (2, lambda s, x: s.op(f("fma"), constant(s, 1.0), x[0], x[1]), [f("add")]),
    "fma(x, -1, y)": (2, lambda s, x: s.op(f("fma"), x[0], constant(s, -1.0), x[1]), [f("sub")]),
    "x as f32 as f16": (
        1, lambda s, x: s.op("convert.cast", s.op("convert.cast", x[0], type=F32), type=F16), []
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_a_law_simplifies_and_keeps_every_bit(law: str) -> None:
    count, build, left = LAWS[law]
    before, after = before_and_after(build, [F16] * count)
    assert opcodes(after) == left
    columns = inputs(count)
    assert np.array_equal(bits(before, columns), bits(after, columns))


FALSE: dict[str, tuple[int, Build]] = {
    "x + 0": (1, lambda s, x: s.op(f("add"), x[0], constant(s, 0.0))),
    "x - -0": (1, lambda s, x: s.op(f("sub"), x[0], constant(s, -0.0))),
    "x * 0": (1, lambda s, x: s.op(f("mul"), x[0], constant(s, 0.0))),
    "x - x": (1, lambda s, x: s.op(f("sub"), x[0], x[0])),
    "x / x": (1, lambda s, x: s.op(f("div"), x[0], x[0])),
    "x / 3": (1, lambda s, x: s.op(f("div"), x[0], constant(s, 3.0))),
    "x / 2^15": (1, lambda s, x: s.op(f("div"), x[0], constant(s, 2.0**15))),
    "x == x": (1, lambda s, x: s.op("compare.eq", x[0], x[0])),
    "x <= x": (1, lambda s, x: s.op("compare.le", x[0], x[0])),
    "x != x": (1, lambda s, x: s.op("compare.ne", x[0], x[0])),
    "fma(x, y, 0)": (2, lambda s, x: s.op(f("fma"), x[0], x[1], constant(s, 0.0))),
    "-(x - y)": (2, lambda s, x: s.op(f("neg"), s.op(f("sub"), x[0], x[1]))),
}


@pytest.mark.parametrize("law", FALSE)
def test_what_is_no_law_is_left_alone(law: str) -> None:
    count, build = FALSE[law]
    before, after = before_and_after(build, [F16] * count)
    columns = inputs(count)
    assert np.array_equal(bits(before, columns), bits(after, columns))
    assert opcodes(after) == opcodes(before)


def test_narrowing_and_back_is_kept() -> None:
    def build(store: Store, x: Sequence[Ref]) -> Ref:
        return store.op("convert.cast", store.op("convert.cast", x[0], type=F32), type=F64)

    assert len(opcodes(before_and_after(build, [F64])[1])) == 2


def test_a_constant_over_a_tensor_counts_and_a_shape_stays() -> None:
    kind = TensorType(F16, (3,))

    def ones(store: Store, x: Sequence[Ref]) -> Ref:
        return store.op(f("mul"), x[0], store.constant(kind, np.ones(3, np.float16)))

    assert opcodes(before_and_after(ones, [kind])[1]) == []
    assert opcodes(before_and_after(ones, [F16])[1]) == [f("mul")]  # else the type would change


def test_constants_fold_to_what_the_interpreter_says() -> None:
    def build(store: Store, x: Sequence[Ref]) -> Ref:
        third = store.op(f("div"), constant(store, 1.0, F32), constant(store, 3.0, F32))
        return store.op(f("rsqrt"), store.op(f("exp"), third))

    before, after = before_and_after(build, [])
    assert opcodes(after) == []
    assert np.array_equal(run_region(before, [], 1)[0], run_region(after, [], 1)[0])
