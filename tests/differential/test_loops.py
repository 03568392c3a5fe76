"""Loop programs give what their graphs give: on random graphs that reach every operation, and on programs."""
from __future__ import annotations

from pathlib import Path

import pytest

from kera_hw.driver.session import load_program
from kera_hw.graph import Export
from kera_hw.graph.generate import generatable_ops
from kera_hw.loops.parser import parse_program
from kera_hw.loops.printer import print_program
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_export
from tests.loop_programs import differing, random_export
from tests.tidy.repo import ROOT

PROGRAMS = sorted((ROOT / "tests" / "programs").rglob("*.kera"))
_CHUNKS = 8


def _check(export: Export, lanes: int, seed: int) -> None:
    """The export has loops; they are sound, print and parse to themselves, and give its bits."""
    program = lower_export(export)
    assert verify_loops(program) == []
    assert parse_program(print_program(program)) == program
    assert differing(export, program, lanes, seed) == [], (export.name, seed)


@pytest.mark.parametrize("chunk", range(_CHUNKS))
def test_random_graphs(chunk: int) -> None:
    """Three graphs for every operation."""
    for seed in range(chunk, 3 * len(generatable_ops()), _CHUNKS):
        _check(random_export(seed), 5, seed)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs(path: Path) -> None:
    loaded = load_program(path)
    assert loaded.graph is not None
    for export in loaded.graph.exports:
        _check(export, 2, 1)


def test_a_wrong_program_is_seen() -> None:
    """An addition made a subtraction, in a program that has one."""
    loaded = load_program(ROOT / "examples" / "fir.kera")
    assert loaded.graph is not None
    (export,) = loaded.graph.exports
    text = print_program(lower_export(export)).replace("integer.add", "integer.sub")
    assert differing(export, parse_program(text), 4, 0) != []


def test_observations_follow_the_results(tmp_path: Path) -> None:
    path = tmp_path / "observed.kera"
    path.write_text(
        "pub fn f(x: u8) -> u8 ! io {\n"
        '    assert(x < 200, "small");\n'
        '    if x > 10 { cover(x == 50, "fifty"); print("large", x); }\n'
        "    x + 1\n}\n"
    )
    loaded = load_program(path)
    assert loaded.graph is not None
    (export,) = loaded.graph.exports
    _check(export, 64, 3)
    names = [buffer.name for buffer in lower_export(export).of_kind("result")]
    assert names[0] == "out.0" and len(names) > 3 and all(name.startswith("observed.") for name in names[1:])
