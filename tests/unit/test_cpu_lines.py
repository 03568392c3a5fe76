"""Lines of source in objects and libraries, as binutils and gdb read them."""
from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kera_hw.cpu_gpu.architectures import LEVELS
from kera_hw.cpu_gpu.dwarf import rows_of
from kera_hw.cpu_gpu.engine import compile_export
from kera_hw.cpu_gpu.machine.level import Level
from kera_hw.driver.cpu.build import code_files
from kera_hw.driver.session import load_program
from kera_hw.driver.software import graph_to_compile
from tests.tidy.repo import ROOT

SOURCE = """pub fn f(x: [f32; 64]) -> [f32; 64] {
    let y = exp(x);
    let z = y / (x + 1);

    z * 3
}
"""


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name}")
    return found


def _said(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def _files(tmp_path: Path, level: Level) -> list[tuple[int, int]]:
    """Writes the files of a build, and gives what they should say: offsets and lines."""
    path = tmp_path / "f.kera"
    path.write_text(SOURCE, encoding="utf-8")
    graph = load_program(path).graph
    assert graph is not None
    compiled = graph_to_compile(graph, graph.exports[0])
    function = compile_export(compiled.exports[0], level=level, graph=compiled)
    for name, contents in code_files(graph.exports[0], function, "").items():
        (tmp_path / name).write_bytes(contents)
    return [(row.offset, row.line) for row in rows_of(function.machine)]


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_binutils_read_the_lines(tmp_path: Path, level: Level) -> None:
    readelf, wanted = _tool("readelf"), _files(tmp_path, level)
    assert {line for _, line in wanted} == {2, 3, 5} and wanted[0][0] == 0
    for name in ("f.o", "libf.so"):
        shown = _said(readelf, "--debug-dump=decodedline", tmp_path / name)
        rows = re.findall(r"^\S*f\.kera\s+(\d+)\s+(0x[0-9a-f]+|0)", shown, re.MULTILINE)
        start = int(rows[0][1], 16)
        assert [(int(at, 16) - start, int(line)) for line, at in rows] == wanted, shown
        facts = _said(readelf, "--debug-dump=info", tmp_path / name)
        assert facts.count("f_kernel") == 1 and "f.kera" in facts
        lows = {int(found, 16) for found in re.findall(r"DW_AT_low_pc\s+: (0x[0-9a-f]+|0)\b", facts)}
        symbols = _said(readelf, "-sW", tmp_path / name)
        place = re.search(r"([0-9a-f]{16})\s+\d+ FUNC\s+GLOBAL DEFAULT\s+\d+ f_kernel", symbols)
        assert place is not None and lows == {int(place[1], 16)} == {start}


def test_a_program_that_links_the_object_keeps_the_lines(tmp_path: Path) -> None:
    """Beside another object with debugging information, so that no section begins at 0."""
    gcc, readelf = _tool("gcc"), _tool("readelf")
    level = next(level for level in LEVELS if level.name == "x86-64-sse2")
    wanted = _files(tmp_path, level)
    (tmp_path / "main.c").write_text("extern char f_kernel; int main(void) { return !&f_kernel; }\n")
    made = subprocess.run(
        [gcc, "-g", "main.c", "f.o", "-o", "main"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if "incompatible" in made.stderr:
        pytest.skip("gcc here is for another processor")
    assert made.returncode == 0, made.stderr
    shown = _said(readelf, "--debug-dump=decodedline", tmp_path / "main")
    rows = re.findall(r"^\S*f\.kera\s+(\d+)\s+(0x[0-9a-f]+)", shown, re.MULTILINE)
    start = int(rows[0][1], 16)
    assert start > 0 and [(int(at, 16) - start, int(line)) for line, at in rows] == wanted
    assert "main.c" in shown
    if shutil.which("gdb"):
        found = _said("gdb", "-nx", "-batch", "-ex", "info line f_kernel", "-ex", "info symbol f_kernel",
                      tmp_path / "main")
        begins = rf"Line {wanted[0][1]} of \".*f\.kera\" starts at address 0x[0-9a-f]+ <f_kernel>"
        assert re.search(begins, found), found


def test_code_is_the_same_with_places_and_without() -> None:
    graph = load_program(ROOT / "examples" / "fir.kera").graph
    assert graph is not None
    compiled = graph_to_compile(graph, graph.exports[0])
    for level in LEVELS:
        with_places = compile_export(compiled.exports[0], level=level, graph=compiled).machine
        without = compile_export(compiled.exports[0], level=level).machine
        assert with_places.code == without.code and rows_of(with_places) and not rows_of(without)
