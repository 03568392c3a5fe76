"""Poolings cost what their windows cost: padding adds nothing, and what it repeats is compared once."""
from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from kera_hw.driver.session import compile_text, optimise
from kera_hw.graph import Export, Store
from kera_hw.interp import run_region
from kera_hw.ops.unrolled import window_places
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.support import SourceFile
from kera_hw.types import BF16, FloatType, IntType, TensorType, Type
from tests.loop_programs import same_bits, values_of


def flat(text: str) -> FlatDesign:
    loaded = compile_text(SourceFile("pool.kera", text.encode()), Path("."))
    assert loaded.graph is not None, [item.message for item in loaded.diagnostics]
    found = flatten_export(optimise(loaded.graph).exports[0], Store())
    assert isinstance(found, FlatDesign)
    return found


@pytest.mark.parametrize(
    ("kind", "pool", "all_four"),
    [
        ("i16", "avg_pool2d", "sum(x) / 4"),
        ("bf16", "avg_pool2d", "sum(x, order: sequential) / 4.0"),
        ("f32", "max_pool2d", "max(x)"),
        ("fix<12, 5>", "max_pool2d", "max(x)"),
    ],
)
def test_a_window_around_the_image_is_the_image(kind: str, pool: str, all_four: str) -> None:
    """Four windows of nine places, each of which has the four pixels in another corner."""
    head = f"pub fn f(x: [{kind}; 1, 2, 2]) -> [{kind}; 1, 2, 2] {{ "
    pooled = flat(f"{head}{pool}(x, size: 3, stride: 1, pad: 1) }}")
    plain = flat(f"{head}let s = {all_four}; reshape::<1, 2, 2>([s, s, s, s]) }}")
    assert pooled.region.hash == plain.region.hash


@pytest.mark.parametrize("kind", [IntType(9, True), IntType(32, False), BF16])
@pytest.mark.parametrize(("stride", "pad"), [(1, 0), (1, 1), (2, 1), (1, 2), (3, 2)])
def test_convolutions_give_the_bits_and_pay_for_no_padding(kind: Type, stride: int, pad: int) -> None:
    store = Store()
    floats = isinstance(kind, FloatType)
    x = TensorType(kind, (1, 2, 2) if floats else (2, 3, 4))
    w = TensorType(kind, (1, 1, 2, 2) if floats else (2, 2, 3, 2))
    attrs = {"mul": "unfused" if floats else "", "pad": pad, "stride": stride}
    result = store.op("reduce.conv2d", store.param(0, x), store.param(1, w), **attrs)
    export = Export("f", "fn", (("x", x), ("w", w)), result.type, store.region([x, w], [result]))
    flat = flatten_export(export, Store())
    assert isinstance(flat, FlatDesign)
    below = random.Random(stride * 10 + pad)
    images, kernels = (values_of(item, 20, below) for item in (x, w))
    (wanted,) = run_region(export.region, [images, kernels], 20)
    columns = [*images.reshape(20, -1).T, *kernels.reshape(20, -1).T]
    found = np.stack(run_region(flat.region, columns, 20), axis=1)
    assert same_bits(found, np.asarray(wanted).reshape(found.shape))
    if not floats:
        real = (window_places((2, 3, 4), (3, 2), stride, pad) >= 0).sum(axis=(2, 3, 4))
        counts = Counter(node.opcode for node in flat.region.nodes())
        assert counts["integer.mul"] == 2 * real.sum()
        assert counts["integer.add"] == 2 * np.maximum(real - 1, 0).sum()
