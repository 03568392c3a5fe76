"""Streams over many items give what item after item gives, whichever way each part of the state is run."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import process_time

import numpy as np
import pytest

from kera_hw.driver.sampling import random_value
from kera_hw.driver.session import compile_text
from kera_hw.graph import Export
from kera_hw.graph.generate import GraphGenerator
from kera_hw.interp import flatten_value, run_export, streams
from kera_hw.interp.codes import from_words, pack, storage, unpack
from kera_hw.interp.evaluator import Context, Tape, Use
from kera_hw.interp.lanes import LaneStep, run_lanes, separate_ends
from kera_hw.interp.streams import Stream, initial_state, run_items
from kera_hw.numerics.arrays import Array, wrap
from kera_hw.support import SourceFile
from kera_hw.types import BF16, BOOL, F32, FixType, IntType, TensorType, Type

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "tests" / "programs").rglob("*.kera"))


def _exports(text: str, path: Path = Path("case.kera")) -> list[Export]:
    graph = compile_text(SourceFile(str(path), text.encode()), path).graph
    assert graph is not None
    return [export for export in graph.exports if export.kind == "stream"]


def _items(export: Export, count: int, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [
        leaf for _, kind in export.params
        for leaf in flatten_value(kind, random_value(kind, count, rng), count)
    ]


def _assert_same(found: list[Array], wanted: list[Array]) -> None:
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and np.array_equal(storage(a), storage(b))


def _check(export: Export, args: list[Array], cuts: tuple[int, ...] = ()) -> Stream:
    """All at once, and in pieces that hand the state on, against item after item."""
    items = len(args[0])
    wanted, _ = run_items(export, args, initial_state(export), items)
    stream = Stream(export)
    _assert_same(stream.run(args, initial_state(export), items)[0], wanted)
    state, parts = initial_state(export), list[list[Array]]()
    for first, last in zip((0, *cuts), (*cuts, items), strict=True):
        piece, state = stream.run([arg[first:last] for arg in args], state, last - first)
        parts.append(piece)
    _assert_same([np.concatenate(leaves) for leaves in zip(*parts, strict=True)], wanted)
    return stream


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs(path: Path) -> None:
    for export in _exports(path.read_text(), path):
        _check(export, _items(export, 700), (0, 1, 64, 64, 300))


@pytest.mark.parametrize("tables", [True, False], ids=["tables", "lanes"])
def test_random_graphs(tables: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not tables:
        monkeypatch.setattr(streams, "_SMALL_TABLE_BITS", 0)
        monkeypatch.setattr(streams, "_LARGE_TABLE_BITS", 0)
    seen = 0
    for seed in range(200):
        rng = Random(seed)
        export = GraphGenerator(rng.randrange, floats=seed % 2 == 0).graph(rng.randrange(2, 24)).exports[0]
        if export.kind == "stream" and export.params:
            args = _items(export, 150, seed)
            if args:
                seen += 1
                _check(export, args, (70,))
    assert seen > 40


def test_blocks_hand_the_state_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "BLOCK_ITEMS", 1)  # 1024 at least
    export, = _exports("pub stream s(x: i9) -> (i9, [i9; 3]) {"
                       " state t: i9 = 5; state z: [i9; 3] = [1; 3];"
                       " t += x; z = shift_in(z, t); (t, z) }")
    stream = Stream(export)
    assert stream.block_items == 1024
    args = _items(export, 3000)
    _assert_same(
        stream.run(args, initial_state(export), 3000)[0],
        run_items(export, args, initial_state(export), 3000)[0],
    )


# Each recurrence with how it should be run: by what kind of group, and whether lanes settle on it.
CASES = {
    "delay": "state z: i16 = 3; let y = z; z = x; y",
    "register": "state z: [i16; 40] = [7; 40]; z = shift_in(z, x); z[3] - z[38]",
    "accumulator": "state t: i16 = -9; t += x; t",
    "multiplied": "state t: i16 = 1; t = 5 * t + x; t",
    "held": "state t: i16 = 1; if x & 63 == 0 { t = x; } t",
    "parity": "state t: i16 = 1; t ^= x; t",
    "crc": "state c: i16 = -1; c ^= x;"
           " for _ in 0..8 { c = if c < 0 { (c << 1) ^ 0x1021 } else { c << 1 }; } c",
    "histogram": "state n: [i16; 64] = [0; 64]; let k = (x & 63) as u6; n[k] += 1; n[k]",
    "memory": "state m: [i16; 64] = [0; 64]; let k = (x & 63) as u6; let old = m[k]; m[k] = x;"
              " old - m[(x >> 6 & 63) as u6]",
    "exchanged": "state a: [i16; 20] = [1; 20]; state b: [i16; 20] = [2; 20]; let k = (x & 15) as u6;"
                 " let c = a; a[k] = x; b = if x < 0 { c } else { b }; b[k]",
    "swapped": "state a: [i16; 20] = [1; 20]; state b: [i16; 20] = [2; 20]; let k = (x & 15) as u6;"
               " let c = a; a = b; b = c; a[k] = x; a[0] + b[1]",
}


@pytest.mark.parametrize("name", CASES)
def test_recurrences_settle_in_few_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    export, = _exports(f"pub stream s(x: i16) -> i16 {{ {CASES[name]} }}")
    _check(export, _items(export, 3000), (1500,))
    runs = 0

    class Counted(Context):
        def execute(self, program: Tape, args: Sequence[Array]) -> list[Array]:
            nonlocal runs
            runs += 1
            return super().execute(program, args)

    for module in ("streams", "lanes", "tables"):
        monkeypatch.setattr(f"kera_hw.interp.{module}.Context", Counted)
    args, stream = _items(export, 60_000, 1), Stream(export)
    found, _ = stream.run(args, initial_state(export), 60_000)
    assert runs < 60_000 // 8, "evaluated nearly item by item"
    whole, _ = run_items(export, [arg[:4000] for arg in args], initial_state(export), 4000)
    _assert_same([leaf[:4000] for leaf in found], whole)


@pytest.mark.parametrize("count", [0, 1, 2, 63, 64, 65, 127, 128, 129, 300])
def test_few_items(count: int) -> None:
    """So few that a recurrence with a memory has them all in one lane, with none before it to agree with."""
    for name in ("memory", "exchanged", "crc"):
        export, = _exports(f"pub stream s(x: i16) -> i16 {{ {CASES[name]} }}")
        _check(export, _items(export, count), (count // 2,))


def test_what_lanes_do_not_fit_is_run_item_by_item() -> None:
    body = "state s: u40 = 12345; s = s * s + (s >> 17) + (x as u40); s"
    export, = _exports(f"pub stream s(x: u8) -> u40 {{ {body} }}")
    args = _items(export, 3000)
    group, = _check(export, args).schedule.groups
    feeds = streams.run_batch(group.feed, args, 3000)
    step = LaneStep(group.kinds, (0,), group.rows, group.advance, group.step)
    assert run_lanes(step, feeds, initial_state(export), 3000) is None


def test_state_that_no_result_needs_is_left_out() -> None:
    export, = _exports("pub stream s(x: u8) -> u8 { state a: u8 = 1; state b: u8 = 2; a += x; b += a; a }")
    assert [group.leaves for group in Stream(export).schedule.groups] == [(0,)]


def test_groups_are_as_small_as_the_program_allows() -> None:
    text = (
        "pub stream s(go: bool, x: u8) -> u8 { state at: u2 = 0; state kept: u8 = 0; state old: u8 = 0;"
        " match at { 0 => if go { at = 1; }, 1 => { at = 2; kept = x; } _ => { at = 0; } }"
        " let y = old; old = kept; y }"
    )
    export, = _exports(text)
    groups = Stream(export).schedule.groups
    assert [len(group.leaves) for group in groups] == [1, 1, 1]
    assert [group.recurrent for group in groups] == [True, True, False]
    _check(export, _items(export, 500))


def test_memories_are_updated_in_place_only_where_nobody_sees_it() -> None:
    counts: dict[str, int] = {}
    for name in ("histogram", "memory", "exchanged", "swapped"):
        export, = _exports(f"pub stream s(x: i16) -> i16 {{ {CASES[name]} }}")
        steps = [step for group in Stream(export).schedule.groups for step in group.step.steps]
        counts[name] = sum(step.use is Use.WRITE for step in steps)
    assert counts == {"histogram": 1, "memory": 1, "exchanged": 0, "swapped": 0}


def test_codes_hold_every_value() -> None:
    kinds = (IntType(5, True), BOOL, FixType(9, 4, False), TensorType(IntType(3, True), (2, 3)), BF16)
    codes = np.arange(1 << 12, dtype=np.uint64) * np.uint64(0x1F_0F35_9A3D)
    codes &= np.uint64((1 << 49) - 1)
    leaves = unpack(codes, kinds)
    again = pack(leaves, kinds, len(codes))
    _assert_same(unpack(again, kinds), leaves)
    exact = (1 << 33) - 1  # below the float, whose NaN all become one
    assert np.array_equal(again & np.uint64(exact), codes & np.uint64(exact))


@pytest.mark.parametrize("kind", [IntType(16, False), IntType(13, True), F32], ids=str)
def test_ends_of_a_chain_of_lanes_that_hold_add_or_replace(kind: Type) -> None:
    rng = np.random.default_rng(5)
    lanes = 37
    replace, amount = rng.integers(0, 3, lanes) == 0, rng.integers(0, 1000, lanes)

    def after(state: Array) -> Array:
        moved = wrap(state + amount.astype(state.dtype), kind) if isinstance(kind, IntType) else state
        return np.where(replace, amount.astype(state.dtype), moved)

    start = random_value(kind, lanes, rng)
    words, noise = storage(start), storage(random_value(kind, lanes, rng))
    probes = [from_words(changed, kind) for changed in (words + words.dtype.type(1), ~words, noise)]
    found = separate_ends(kind, start, probes, after(start), [after(probe) for probe in probes])
    current = start[:1]
    for lane in range(lanes):
        wanted = after(np.repeat(current, lanes))[lane : lane + 1]
        assert storage(found[lane : lane + 1]) == storage(wanted)
        current = wanted


def test_a_million_items_of_a_filter_take_less_than_two_seconds() -> None:
    path = Path(__file__).parents[2] / "examples" / "fir.kera"
    graph = compile_text(SourceFile(str(path), path.read_bytes()), path).graph
    assert graph is not None
    export, items = graph.exports[0], 1_000_000
    samples = np.random.default_rng(1).integers(-32768, 32768, items).astype(np.int16)
    start = process_time()
    found = run_export(export, {"x": samples}, items)
    assert process_time() - start < 2.0
    taps = [-12, -28, -33, 0, 98, 256, 430, 545, 545, 430, 256, 98, 0, -33, -28, -12]
    assert np.array_equal(found, np.convolve(samples.astype(np.int64), taps)[:items].astype(np.int32))
