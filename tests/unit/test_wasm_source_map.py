"""Names and source maps of modules, read by code that shares nothing with what wrote them."""
from __future__ import annotations

import json
import re
import shutil
import subprocess
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

import pytest

from kera_hw.driver.session import load_program
from kera_hw.driver.wasm.build import make_wasm
from tests.node import ABSENT, node_path
from tests.wasm_engines import NO_WABT

_SOURCE = """\
pub fn mixed(x: [f32; 16], y: [f32; 16], n: u32) -> ([f32; 16], u32) {
    let scaled = x * 3.0f32;
    let root = sqrt(y);
    let mut steps = n;
    for _ in 0..5 {
        steps = steps * 7 + 1;
    }
    (scaled - root, steps)
}
"""
_LINES = {  # instructions of those operations, and the line on which they are written
    b"\xfd\xe6\x01": 2, b"\xfd\xe3\x01": 3, b"\xfd\xe5\x01": 8,  # f32x4.mul, f32x4.sqrt, f32x4.sub
    b"\x6c": 6,  # i32.mul
}


class Place(NamedTuple):
    """From which byte on; the rest is None where a map says that nothing is known."""

    offset: int
    source: str | None = None
    line: int | None = None
    name: str | None = None


def places_of(data: bytes) -> list[Place]:
    """The mappings of a map of one line, by the text of ECMA-426."""
    found = json.loads(data)
    assert found["version"] == 3 and ";" not in found["mappings"]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    totals, places = [0] * 5, list[Place]()
    for segment in found["mappings"].split(","):
        values, shift, value = list[int](), 0, 0
        for letter in segment:
            digit = alphabet.index(letter)
            value += (digit & 31) << shift
            shift += 5
            if digit < 32:
                values.append(-(value >> 1) if value & 1 else value >> 1)
                shift = value = 0
        assert shift == 0 and len(values) in (1, 5)
        totals = [a + b for a, b in zip(totals, [*values, *[0] * (5 - len(values))])]
        offset, source, line, column, name = totals
        assert column == 0
        known = Place(offset, found["sources"][source], line + 1, found["names"][name])
        places.append(known if len(values) == 5 else Place(offset))
    return places


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("map") / "mixed.kera"
    path.write_text(_SOURCE, encoding="utf-8")
    loaded = load_program(path)
    assert loaded.graph is not None
    return dict(make_wasm(loaded.graph, loaded.graph.exports[0], {}).files)


def place_at(files: dict[str, bytes], offset: int) -> Place:
    places = places_of(files["mixed.wasm.map"])
    return places[bisect_right([place.offset for place in places], offset) - 1]


def test_every_operation_is_mapped_to_its_line(files: dict[str, bytes]) -> None:
    binary = files["mixed.wasm"]
    places = places_of(files["mixed.wasm.map"])
    offsets = [place.offset for place in places]
    assert offsets == sorted(set(offsets)) and offsets[-1] < len(binary)
    assert places[-1].source is None, "what follows the function is of no line"
    for code, line in _LINES.items():
        offsets = [found.start() for found in re.finditer(re.escape(code), binary)] if len(code) > 1 else []
        assert offsets or len(code) == 1
        for offset in offsets:
            found = place_at(files, offset)
            assert (Path(found.source or "").name, found.line) == ("mixed.kera", line)
    assert {place.name for place in places} >= {"floating.mul", "floating.sqrt", "for 5", "store out.1"}
    lines = {place.line for place in places if place.name == "integer.mul"}
    assert lines == {_LINES[b"\x6c"]}


def test_the_module_says_where_its_map_is(files: dict[str, bytes]) -> None:
    name, url = b"\x10sourceMappingURL", b"\x0emixed.wasm.map"
    assert files["mixed.wasm"].endswith(b"\x00" + bytes([len(name + url)]) + name + url)


def test_names_as_another_reader_has_them(files: dict[str, bytes], tmp_path: Path) -> None:
    if shutil.which("wasm-objdump") is None:
        pytest.skip(NO_WABT)
    path = tmp_path / "mixed.wasm"
    path.write_bytes(files["mixed.wasm"])
    call = ["wasm-objdump", "-x", "-j", "name", str(path)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    names = re.findall(r" - (?:func\[0\] )?(\w+\[\d+\]) <(.*)>", done.stdout)
    assert ("local[0]", "items") in names and ("local[1]", "in.x") in names
    parts = {part for what, name in names if what.startswith("local") for part in name.split("/")}
    assert parts >= {"scaled", "root"}


def test_blocks_are_named_by_their_lines(files: dict[str, bytes]) -> None:
    """Of the function `run`, from the subsection of labels: a map by function of maps by block."""
    binary = files["mixed.wasm"]
    at = binary.index(b"\x04name\x00") + 5
    while binary[at] != 3:
        size, after = number(binary, at + 1)
        at = after + size
    _, at = number(binary, at + 1)
    functions, at = number(binary, at)
    function, at = number(binary, at)
    count, at = number(binary, at)
    found: dict[int, str] = {}
    for _ in range(count):
        block, at = number(binary, at)
        size, at = number(binary, at)
        found[block], at = binary[at : at + size].decode(), at + size
    assert (functions, function) == (2, 0)
    assert [Path(name).name for name in found.values()] == ["mixed.kera:5", "mixed.kera:8"]
    assert list(found) == [2, 3], "the first two are for the items of a batch"


def number(binary: bytes, at: int) -> tuple[int, int]:
    """An unsigned LEB128 and where it ends."""
    value = shift = 0
    while True:
        value |= (binary[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if binary[at - 1] < 128:
            return value, at


def test_the_place_of_a_trap_in_node(files: dict[str, bytes], tmp_path: Path) -> None:
    """A result that would lie outside of the memory: Node.js says at which byte, the map at which line."""
    node = node_path()
    if node is None:
        pytest.skip(ABSENT)
    (tmp_path / "mixed.wasm").write_bytes(files["mixed.wasm"])
    script = """
const { readFileSync } = require("node:fs");
WebAssembly.instantiate(readFileSync("mixed.wasm")).then(({ instance }) => {
  instance.exports.run(1, 1024, 1024, 1024, 0x7fffffc0, 1024);
}).catch((error) => console.log(error.stack));
"""
    call = [node, "-e", script]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    found = re.search(r"at mixed\.run .*wasm-function\[0\]:0x([0-9a-f]+)", done.stdout)
    assert found is not None, done.stdout
    place = place_at(files, int(found[1], 16))
    assert (place.line, place.name) == (8, "store out.0")
