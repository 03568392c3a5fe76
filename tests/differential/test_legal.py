"""Native programs give what their graphs give, on the machine that does its worst."""
from __future__ import annotations

from pathlib import Path

import pytest

from kera_hw.driver.session import load_program
from kera_hw.graph import Export
from kera_hw.graph.generate import generatable_ops
from kera_hw.legal.legalise import legalise
from kera_hw.legal.native import CAPABILITIES, NATIVE, NOTHING_MORE, Native
from kera_hw.legal.verifier import verify_native
from kera_hw.loops.parser import parse_program
from kera_hw.loops.printer import print_program
from kera_hw.loops.transforms.planner import planned
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_export
from kera_hw.support import KeraError
from tests.loop_programs import random_export
from tests.native_machine import differing_native
from tests.tidy.repo import ROOT

PROGRAMS = sorted((ROOT / "tests" / "programs").rglob("*.kera"))
_CHUNKS = 8
ALL: Native = {row: domain for native in CAPABILITIES.values() for row, domain in native.items()}


def _checked(export: Export, lanes: int, seed: int, extra: Native = NOTHING_MORE) -> bool:
    """Whether the export has loops; natively they are sound and native, read back, and give its bits."""
    try:
        program = lower_export(export)
    except KeraError as error:
        assert {item.code for item in error.diagnostics} == {"K0701"}
        return False
    if seed % 2:
        program = planned(program).after
    native = legalise(program, extra)
    assert verify_native(native, extra) == []
    assert verify_loops(native) == []
    assert parse_program(print_program(native)) == native
    assert differing_native(export, native, lanes, seed, {**NATIVE, **extra}) == []
    return True


def _seeded(seed: int) -> bool:
    return _checked(random_export(seed), 5, seed, ALL if seed % 5 == 0 else NOTHING_MORE)


@pytest.mark.parametrize("chunk", range(_CHUNKS))
def test_random_graphs(chunk: int) -> None:
    """Three graphs for every operation, and nearly all of them have loops."""
    seeds = range(chunk, 3 * len(generatable_ops()), _CHUNKS)
    made = [_seeded(seed) for seed in seeds]
    assert sum(made) >= 0.9 * len(made)


@pytest.mark.long
def test_many_random_graphs() -> None:
    made = [_seeded(seed) for seed in range(20_000)]
    assert sum(made) > 0.95 * len(made)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs(path: Path) -> None:
    loaded = load_program(path)
    assert loaded.graph is not None
    for export in loaded.graph.exports:
        assert _checked(export, 2, 2), export.name
