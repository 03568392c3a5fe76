"""What a search found is found again, bit for bit, and nothing that is kept can change a circuit."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kera_hw.driver import hardware, process, remembered, search
from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.process_design import ProcessDesign
from kera_hw.driver.session import compile_text
from kera_hw.graph import Graph
from kera_hw.support import SourceFile

SOURCES = {
    "products": "pub fn f(a: [i12; 3], b: [i12; 3]) -> i26 { dot(a as i26, b as i26) }",
    "states": """
pub stream f(go: bool, x: u8) -> u8 {
    state count: u8 = 3;
    state last: u8 = 0;
    if go { count = count + x; last = count ^ 85; }
    last
}
""",
    "folded": """
pub stream f(x: u16) -> u16 {
    state s: u16 = 1;
    s = (s / ((x % 7) + 1)) ^ x;
    s
}
""",
    "rounds": """
pub fn f(words: [u16; 96]) -> [u16; 4] {
    let mut sum = [1u16, 20, 300, 4000];
    for b in 0..6 {
        let mut w = [0u16; 16];
        for i in 0..16 { w[i] = words[16 * b + i]; }
        let mut s = sum;
        for t in 0..20 {
            let new = (w[1] ^ rotl(w[14], 3)) + w[0];
            w = shift_in(w, new);
            s = [s[3] + new, s[0] ^ (s[1] & w[3]), s[1], s[2] + (s[0] >> 1)];
        }
        for i in 0..4 { sum[i] += s[i]; }
    }
    sum
}
""",
    "logic": "pub fn f(x: u16) -> u5 { (popcount(x) + popcount(x & 3855)) as u5 }",
}  # fmt: skip


def graph_of(source: str) -> Graph:
    graph = compile_text(SourceFile("p.kera", source.encode()), Path("p.kera")).graph
    assert graph is not None
    return graph


def made(graph: Graph, **asked: Any) -> HardwareDesign:
    return design_hardware(graph, graph.exports[0], TargetOptions(**asked))


def everything(design: HardwareDesign) -> tuple[object, ...]:
    return design.plan_json(), design.netlist, design.plan, design.emitted.verilog, design.diagnostics


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(remembered.SWITCH, "on")
    monkeypatch.setattr(remembered, "cache_directory", lambda: tmp_path)
    return tmp_path / "decisions"


def refuse(*_: object) -> None:
    raise AssertionError("searched")


@pytest.mark.parametrize("name,asked", [
    ("products", {"clock_mhz": 200.0}), ("products", {"device": "ice40-hx8k"}), ("states", {}),
    ("states", {"device": "ice40-hx8k"}), ("folded", {}), ("folded", {"interval": 40, "interface": "none"}),
    ("logic", {}),
])  # fmt: skip
def test_the_same_design_without_a_search(
    name: str, asked: dict[str, Any], shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = graph_of(SOURCES[name])
    first = everything(made(graph, **asked))
    assert len(list(shelf.iterdir())) == 1
    monkeypatch.setattr(hardware, "choose", refuse)
    assert everything(made(graph_of(SOURCES[name]), **asked)) == first
    made(graph_of("\n// moved down, and otherwise the same\n\n" + SOURCES[name]), **asked)
    made(graph, **asked, emitter="amaranth")


def test_a_process_takes_its_clock_and_its_regions_from_before(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, asked = graph_of(SOURCES["rounds"]), {"interval": 166}
    first = made(graph, **asked)
    assert isinstance(first, ProcessDesign) and first.written_out is not None
    entries = sorted(shelf.iterdir())
    with monkeypatch.context() as forbidden:
        forbidden.setattr(search, "choose", refuse)
        forbidden.setattr(process, "_at_best_of", refuse)
        assert everything(made(graph_of(SOURCES["rounds"]), **asked)) == everything(first)
    assert sorted(shelf.iterdir()) == entries
    for entry in entries:  # each names the circuit it leads to, and now another
        entry.write_bytes(with_field("plan", "0" * 64)(entry.read_bytes()))
    assert everything(made(graph, **asked)) == everything(first)


def test_entries_lie_where_they_are_told_to(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(remembered.SWITCH, str(tmp_path / "others"))
    made(graph_of(SOURCES["logic"]))
    assert len(list((tmp_path / "others").iterdir())) == 1 and not shelf.exists()


def with_field(name: str, value: object) -> Callable[[bytes], bytes]:
    """An entry that says something else, its sum included."""

    def change(data: bytes) -> bytes:
        row = json.loads(data)
        row.pop("sum")
        row[name] = value
        return json.dumps({**row, "sum": remembered._sum(row)}).encode()  # pyright: ignore[reportPrivateUsage]

    return change


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut": lambda data: data[:-20],
    "no text": lambda data: b"\xff\xfe" + data,
    "no object": lambda _: b"[1, 2]",
    "deep": lambda _: b"[" * 100_000,
    "another number": lambda data: data.replace(b'"clock_ps": 5000', b'"clock_ps": 5001'),
    "another way": with_field("blocks", 0),
    "another clock": with_field("clock_ps", 20_000),
    "logic that is not there": with_field("finer", "7 best"),
    "controls that are not there": with_field("controls", "all"),
    "a wrong kind": with_field("interval", "1"),
    "another format": with_field("format", "kera-decision-0"),
    "figures of nothing": with_field("against", [{"dsp": 1}]),
    "large": lambda _: b" " * ((1 << 20) + 1),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_damaged_entry_is_as_good_as_none(damage: Callable[[bytes], bytes], shelf: Path) -> None:
    graph = graph_of(SOURCES["products"])
    first = everything(made(graph, clock_mhz=200.0))
    (entry,) = shelf.iterdir()
    sound = entry.read_bytes()
    assert damage(sound) != sound
    entry.write_bytes(damage(sound))
    assert everything(made(graph, clock_mhz=200.0)) == first
    assert entry.read_bytes() == sound


def test_a_change_of_anything_that_decides_is_another_entry(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = graph_of(SOURCES["logic"])
    made(graph)
    made(graph, clock_mhz=100.0)
    made(graph, device="ecp5-25k")
    made(graph_of(SOURCES["logic"].replace("3855", "3854")))
    assert len(list(shelf.iterdir())) == 4
    design = made(graph)
    hardware.design_again(design, 1.2)
    monkeypatch.setattr(remembered, "_compiler", lambda: "other sources")
    made(graph)
    assert len(list(shelf.iterdir())) == 6


def test_the_compiler_is_part_of_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "table.toml").write_text("a = 1\n")
    monkeypatch.setattr(remembered.kera_hw, "__file__", str(tmp_path / "__init__.py"))
    found = set[str]()
    for text in ("a = 1\n", "a = 2\n"):
        (tmp_path / "table.toml").write_text(text)
        found.add(remembered._compiler.__wrapped__())  # pyright: ignore[reportPrivateUsage]
    assert len(found) == 2


@pytest.mark.parametrize("word", ["off", "0", "No"])
def test_nothing_is_kept_when_switched_off(word: str, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(remembered.SWITCH, word)
    made(graph_of(SOURCES["logic"]))
    assert not shelf.exists()


def test_old_entries_go_and_a_full_disk_is_no_error(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MAX_ENTRIES", 2)
    graph = graph_of(SOURCES["logic"])
    for clock in (50.0, 60.0, 70.0):
        made(graph, clock_mhz=clock)
    assert len(list(shelf.iterdir())) == 2

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(remembered, "write_atomically", full)
    made(graph, clock_mhz=80.0)
