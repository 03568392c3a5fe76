"""Loops cut at the edges of images: the same bits, and no question left where most rounds are."""
from __future__ import annotations

from pathlib import Path

import pytest

from kera_hw.driver.session import load_program
from kera_hw.loops.program import For, LoopProgram, statements
from kera_hw.loops.transforms.planner import planned
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_with_updates
from kera_hw.lower.options import LoweringOptions
from kera_hw.schedule.software.edges import edges_apart
from kera_hw.schedule.software.folding import folded
from kera_hw.schedule.software.tiling import Registers, has_product, tiled_products
from tests.loop_programs import runs

WASM = Registers(12, 128, fused=False, engine=True)


def tiled(
    tmp_path: Path, channels: int, width: int, kernel: int, pad: int, mul: str = "unfused"
) -> LoopProgram:
    path = tmp_path / "f.kera"
    path.write_text(
        f"pub fn f(x: [f32; {channels}, 3, {width}], w: [f32; 9, {channels}, 3, {kernel}]) -> "
        f"[f32; 9, {1 + 2 * pad}, {width + 2 * pad - kernel + 1}] {{ conv2d(x, w, 1, {pad}, mul: {mul}) }}",
        encoding="utf-8",
    )
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    lowered, _ = lower_with_updates(loaded.graph.exports[0], options=LoweringOptions(roomy=True))
    return tiled_products(folded(planned(lowered, has_product).after, settled=False), WASM).after


# Of the last: a width that leaves columns over, and none beyond the edge.
@pytest.mark.parametrize("shape", [(2, 40, 3, 1), (1, 33, 5, 2), (3, 25, 3, 0)], ids=str)
def test_loops_cut_keep_their_bits(tmp_path: Path, shape: tuple[int, int, int, int]) -> None:
    *_, pad = shape
    before = tiled(tmp_path, *shape)
    after = edges_apart(before)
    assert verify_loops(after) == []
    assert runs(folded(after)) == runs(before)
    assert (after == before) == (pad == 0)


def test_most_rounds_are_apart_from_those_at_an_edge(tmp_path: Path) -> None:
    """The first and the last of five tiles of columns, and there one of three columns of the window."""
    before = tiled(tmp_path, 2, 40, 3, 1)
    assert set(counts(before)) == {3}
    assert sorted(counts(edges_apart(before))) == sorted([1, 2, 3, 2, 1] * len(counts(before)))


def counts(program: LoopProgram) -> list[int]:
    """Rounds of the innermost loops of sums."""
    sums = [item for item in statements(program.body) if isinstance(item, For) and item.carried]
    return [item.count for item in sums if not any(isinstance(one, For) for one in item.body.body)]


def test_products_that_are_written_out_stay_in_one_loop(tmp_path: Path) -> None:
    program = tiled(tmp_path, 2, 40, 3, 1, "fused")
    assert edges_apart(program) == program
