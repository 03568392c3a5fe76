"""The .keg file: round trips, canonical form, both readers, and every kind of damage."""
from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kera_hw.driver.session import compile_text, load_program
from kera_hw.graph import Graph, read_keg, signature, write_keg
from kera_hw.graph.keg_format import ENTRY, HEADER, STRUCTS, Section, read_container, write_container
from kera_hw.support import SourceFile
from tests.graphs import loop_graph, observing_graph, stream_graph

GRAPHS = {"loop": loop_graph, "stream": stream_graph, "observing": observing_graph}

READER = "kera_hw/driver/web/keg.mjs"


@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("debug", [False, True])
def test_round_trip(make, debug: bool) -> None:
    graph = make()
    data = write_keg(graph, debug=debug)
    again, diagnostics = read_keg(data)
    assert not diagnostics
    assert again is not None and again.fingerprint == graph.fingerprint
    assert write_keg(again, debug=debug) == data


def test_a_changed_constant_changes_the_fingerprint() -> None:
    assert loop_graph(8).fingerprint != loop_graph(9).fingerprint
    assert loop_graph(8).fingerprint == loop_graph(8).fingerprint


def test_second_reader_agrees(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    paths, graphs = [], []
    for name, make in GRAPHS.items():
        for debug in (False, True):
            path = tmp_path / f"{name}{debug}.keg"
            path.write_bytes(write_keg(make(), debug=debug))
            paths.append(str(path))
            graphs.append(make())
    damaged = bytearray(write_keg(loop_graph()))
    damaged[-1] ^= 1
    (tmp_path / "bad.keg").write_bytes(damaged)
    done = subprocess.run(
        [node, READER, *paths, str(tmp_path / "bad.keg")], capture_output=True, text=True, check=True
    )
    *rows, bad = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["fingerprint"] for row in rows] == [graph.fingerprint for graph in graphs]
    assert [row["exports"][0]["name"] for row in rows] == [graph.exports[0].name for graph in graphs]
    assert "hash mismatch" in bad["error"]


def test_truncation_at_every_length_is_refused() -> None:
    data = write_keg(stream_graph())
    for length in range(len(data)):
        graph, diagnostics = read_keg(data[:length])
        assert graph is None and diagnostics[0].code.startswith("K08")


def test_every_flipped_bit_is_refused() -> None:
    data = write_keg(stream_graph(), debug=False)
    for position in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[position // 8] ^= 1 << position % 8
        graph, diagnostics = read_keg(bytes(damaged))
        assert graph is None and len(diagnostics) == 1, position


def reseal(data: bytes, kind: int, edit) -> bytes:
    """The container with one section edited and its hashes made right again."""
    sections = read_container(data)
    sections[kind] = edit(sections[kind])
    return write_container([Section(k, d) for k, d in sections.items()])


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_resealed_damage_never_crashes(data: st.DataObject) -> None:
    """Hashes say nothing against somebody who writes them anew, so the decoder must hold by itself."""
    original = write_keg(data.draw(st.sampled_from([loop_graph(), stream_graph()])), debug=False)
    kind = data.draw(st.integers(1, 6))

    def edit(section: bytes) -> bytes:
        damaged = bytearray(section)
        for _ in range(data.draw(st.integers(1, 4))):
            choice = data.draw(st.integers(0, 2))
            at = data.draw(st.integers(0, len(damaged)))
            if choice == 0 and at < len(damaged):
                damaged[at] = data.draw(st.integers(0, 255))
            elif choice == 1:
                damaged[at:at] = data.draw(st.binary(max_size=4))
            else:
                del damaged[at:at + 2]
        return bytes(damaged)

    graph, diagnostics = read_keg(reseal(original, kind, edit))
    if graph is None:
        assert diagnostics and diagnostics[0].code.startswith("K08")
    else:
        assert isinstance(graph, Graph) and write_keg(graph, debug=False)


def test_unused_entries_are_refused() -> None:
    data = write_keg(loop_graph(), debug=False)
    extra = reseal(data, 1, lambda s: bytes([s[0] + 1]) + s[1:] + b"\x03zzz")
    graph, diagnostics = read_keg(extra)
    assert graph is None and diagnostics[0].code == "K0806"


def test_structs_keep_their_names_and_only_names_are_taken(tmp_path: Path) -> None:
    text = b"pub struct In { a: u4 } pub fn f(p: [In; 2], q: (In, bool)) -> (In, [In; 2]) { (q.0, p) }"
    graph = compile_text(SourceFile("f.kera", text), tmp_path).graph
    assert graph is not None
    data = write_keg(graph)
    again, _ = read_keg(data)
    assert again is not None and signature(again.exports[0]) == signature(graph.exports[0])
    assert "[In; 2]" in signature(again.exports[0]) and write_keg(again) == data
    for name in (b"I\n", b"1n", b"", b"a::", b"`x"):
        damaged = reseal(data, STRUCTS, lambda section, name=name: bytes([len(name)]) + name + section[3:])
        graph, diagnostics = read_keg(damaged)
        assert graph is None and diagnostics[0].code == "K0805", name
    for section in (b"\x02In", b"\x02In" * 5):
        graph, diagnostics = read_keg(reseal(data, STRUCTS, lambda _, section=section: section))
        assert graph is None and diagnostics[0].code == "K0805"


def test_a_huge_count_costs_nothing() -> None:
    for kind in range(1, 7):
        graph, diagnostics = read_keg(
            reseal(write_keg(loop_graph()), kind, lambda s: b"\xff\xff\xff\xff\x7f" + s)
        )
        assert graph is None and diagnostics[0].code == "K0805"


def test_container_fields() -> None:
    data = write_keg(loop_graph())
    assert data[:4] == bytes.fromhex("4B454700")
    wrong = HEADER.pack(b"KEG\0", 2, 0) + data[HEADER.size:]
    assert read_keg(wrong)[1][0].code == "K0802"
    moved = bytearray(data)
    struct.pack_into("<Q", moved, HEADER.size + 4, ENTRY.size)
    assert read_keg(bytes(moved))[1][0].code == "K0803"


def test_second_reader_agrees_on_every_program_of_the_project(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    sources = sorted([*Path("examples").glob("*.kera"), *Path("bench/kernels").glob("*.kera"),
                      *Path("tests/programs").rglob("*.kera")])
    expected: dict[str, str] = {}
    for number, source in enumerate(sources):
        graph = load_program(source).graph
        if graph is not None:
            path = tmp_path / f"{number}.keg"
            path.write_bytes(write_keg(graph))
            expected[str(path)] = graph.fingerprint
    assert len(expected) >= 10
    done = subprocess.run([node, READER, *expected], capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row.get("fingerprint") for row in rows] == list(expected.values())
