"""Poolings cost what their windows cost: padding adds nothing, and what it repeats is compared once."""
from __future__ import annotations

from pathlib import Path

import pytest

from kera_hw.driver.session import compile_text, optimise
from kera_hw.graph import Store
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.support import SourceFile


def flat(text: str) -> FlatDesign:
    loaded = compile_text(SourceFile("pool.kera", text.encode()), Path("."))
    assert loaded.graph is not None, [item.message for item in loaded.diagnostics]
    found = flatten_export(optimise(loaded.graph).graph.exports[0], Store())
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
