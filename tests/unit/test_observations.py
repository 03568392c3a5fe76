"""assert, cover and print in functions and streams: on the interpreter, in simulation, in tests, at the
command line; and that they change neither results nor circuits."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kera_hw.driver import verify as verify_module
from kera_hw.driver.observing import Observed, Point, observe
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import compile_text
from kera_hw.driver.testing import cover_counts, run_program_tests, run_tests_on
from kera_hw.graph import Graph, probes_of, read_keg, verify_graph, without_probes, write_keg
from kera_hw.graph.node import Export, Region
from kera_hw.graph.store import Store
from kera_hw.interp import run_export
from kera_hw.passes import pipeline, run_pipeline
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.support import SourceFile
from kera_hw.types import BOOL
from tests.unit.cli_support import Kera

CHECKED = """
fn check(x: u8) -> u8 { assert(x < 200, "small"); cover(x == 7, "seven"); x + 1 }
pub fn f(x: u8) -> u8 ! io {
    print("x", x);
    let mut s = 0u8;
    for i in 0..3 {
        if x > 10 { print("step", i, s); }
        s += check(x);
    }
    assert(s != 6);
    s
}
pub fn m(a: [u8; 4]) -> u8 { sum(map(a, |x| check(x))) + reduce(a, 0, |t, x| t + check(x)) }
pub fn w(n: u4) -> u4 ! io {
    let mut i = 0u4;
    while i < n, max 5 { i += 1; print("i", i); }
    match n { 0 => { cover(true, "zero"); 1 } 3 => { print("three"); 2 } _ => i }
}
pub stream g(x: i16) -> i16 ! io {
    state t: i16 = 0;
    t += x;
    if t < 0 { print("neg", t, [x, t], t == -6, 0.5f16); }
    cover(t > 100, "large");
    assert(t < 1000, "bound");
    t
}
pub stream two(x: i16) -> i16 ! io { state a: g; state b: g; a.step(x) + b.step(x + 1) }
"""


def _graph(text: str) -> Graph:
    loaded = compile_text(SourceFile("case.kera", text.encode()), Path("case.kera"))
    assert loaded.graph is not None, loaded.diagnostics
    return loaded.graph


def _export(graph: Graph, name: str) -> Export:
    found = graph.export(name)
    assert found is not None
    return found


GRAPH = _graph(CHECKED)


def _observe(name: str, target: str = "interp", graph: Graph = GRAPH, **inputs: Any) -> Observed:
    arrays = {key: np.asarray(value) for key, value in inputs.items()}
    count = len(next(iter(arrays.values())))
    return observe(graph, _export(graph, name), target, TargetOptions(), arrays, count)


def _counts(found: Observed) -> dict[str, tuple[int, ...]]:
    return {point.label: point.items for point in found.points}


@pytest.mark.parametrize("target", ["interp", "rtl"])
def test_a_function_with_loops_and_calls(target: str) -> None:
    found = _observe("f", target, x=np.array([12, 7, 1, 250], np.uint8))
    assert _counts(found) == {"small": (3,), "seven": (1,), "": (2,)}
    assert found.lines(numbered=True)[:5] == [
        "item 0: x: 12", "item 0: step: 0, 0", "item 0: step: 1, 13", "item 0: step: 2, 26", "item 1: x: 7",
    ]


@pytest.mark.parametrize("target", ["interp", "rtl"])
def test_a_stream_with_instances_of_another(target: str) -> None:
    found = _observe("two", target, x=np.array([-6, 5, 2000], np.int16))
    assert _counts(found) == {"large": (2,), "bound": (2,)}
    assert found.lines(numbered=True) == [
        "item 0: neg: -6, [-6, -6], true, 0.5", "item 0: neg: -5, [-5, -5], false, 0.5",
        "item 1: neg: -1, [5, -1], false, 0.5",
    ]


@pytest.mark.parametrize("target", ["interp", "rtl"])
def test_while_and_match(target: str) -> None:
    found = _observe("w", target, n=np.array([0, 3, 15], np.uint8))
    assert [line for item, line in found.printed if item == 1] == ["i: 1", "i: 2", "i: 3", "three"]
    assert [line for item, line in found.printed if item == 2] == [f"i: {k}" for k in range(1, 6)]
    assert _counts(found) == {"zero": (0,)}


def test_lambdas_of_map_and_reduce() -> None:
    found = _observe("m", a=np.array([[1, 2, 3, 4], [1, 7, 3, 200], [0, 0, 0, 0]], np.uint8))
    assert _counts(found) == {"small": (1,), "seven": (1,)}
    empty = "pub fn e(a: [u8; 0], y: u8) -> u8 { assert(y > 1); let b = map(a, |x| { assert(x > 9); x }); y }"
    inputs = {"a": np.zeros((2, 0), np.uint8), "y": np.array([1, 2], np.uint8)}
    graph = _graph(empty)
    found = observe(graph, _export(graph, "e"), "interp", TargetOptions(), inputs, 2)
    assert [point.items for point in found.points] in ([(0,), ()], [(0,)])


def test_they_change_neither_results_nor_circuit() -> None:
    for text, bare in (
        ("assert(x > 3); cover(x == 9); x * 3", "x * 3"),
        ("if x > 4 { assert(false); x } else { cover(true); 1 }", "if x > 4 { x } else { 1 }"),
    ):
        graphs = [_graph(f"pub fn f(x: u8) -> u8 {{ {body} }}") for body in (text, bare)]
        assert graphs[0].fingerprint != graphs[1].fingerprint
        x = np.arange(256, dtype=np.uint8)
        a, b = (run_export(_export(graph, "f"), {"x": x}, 256) for graph in graphs)
        assert np.array_equal(a, b)
        plain = [
            run_pipeline(Graph([without_probes(_export(graph, "f"))]), pipeline("standard"))
            for graph in graphs
        ]
        flat = [flatten_export(graph.exports[0], Store()) for graph in plain]
        hashes = [item.region.hash for item in flat if isinstance(item, FlatDesign)]
        assert len(hashes) == 2 and hashes[0] == hashes[1]


def test_without_any_the_fingerprint_is_as_ever() -> None:
    graph = _graph("pub fn f(x: u8) -> u8 { x + 1 }")
    assert not probes_of(graph.exports[0]) and without_probes(graph.exports[0]) is graph.exports[0]


def test_files_and_passes_keep_them() -> None:
    again, faults = read_keg(write_keg(GRAPH), "x.keg")
    assert not faults and again is not None and again.fingerprint == GRAPH.fingerprint
    x = np.array([-6, 5, 2000], np.int16)
    optimised = run_pipeline(GRAPH, pipeline("standard"))
    for graph in (again, optimised):
        found = _observe("two", graph=graph, x=x)
        wanted = _observe("two", x=x)
        assert found.printed == wanted.printed and _counts(found) == _counts(wanted)
    points = _observe("two", graph=again, x=x).points
    assert {point.origin and point.origin.line for point in points} == {23, 24}


def test_the_verifier_wants_observations_last_whole_and_apart() -> None:
    store = Store()
    flag = store.param(0, BOOL)
    mark = store.op("effect.assert", flag, label="", site=0)

    def faults(*results: Any) -> list[str]:
        export = Export("f", "fn", (("c", BOOL),), BOOL, Region((BOOL,), results))
        return [item.message for item in verify_graph(Graph([export]))]

    assert faults(flag, mark) == []
    assert any("last" in text for text in faults(mark, flag))
    assert any("once" in text for text in faults(flag, mark, mark))
    assert any("from an observation" in text for text in faults(store.op("bits.not", mark), mark))


def test_too_much_to_print_is_refused_and_so_is_a_program_of_nothing() -> None:
    text = 'pub fn f(a: [u8; 300]) -> u8 ! io { for i in 0..300 { print("a", a); } a[0] }'
    loaded = compile_text(SourceFile("case.kera", text.encode()), Path("case.kera"))
    assert [item.code for item in loaded.diagnostics] == ["K0505", "K0506"]
    assert loaded.graph is None and loaded.has_errors
    text = "pub fn f() -> u64 ! time { now() }\npub fn g() -> u64 ! time { f() }"
    loaded = compile_text(SourceFile("case.kera", text.encode()), Path("case.kera"))
    assert [item.code for item in loaded.diagnostics] == ["K0502", "K0506"]
    assert loaded.graph is None and "`f`, `g`" in loaded.diagnostics[1].message


def test_a_constant_is_computed_without() -> None:
    inner = "fn h(x: u8) -> u8 { assert(x > 3); x + 1 } const C: u8 = h(1);"
    graph = _graph(f"{inner} pub fn f(x: u8) -> u8 {{ x + C }}")
    assert run_export(_export(graph, "f"), {"x": 1}) == 3


TESTED = CHECKED + """
test "prints" { print("hello"); assert_eq(f(12), 39); let y = g([1, -5, 200]); assert_eq(y, [1, -4, 196]); }
test "fails inside" { assert_eq(f(1), 6); }
test "labelled" { assert(m([1, 2, 3, 4]) == 0, "zero sum"); }
"""


@pytest.mark.parametrize("target", ["interp", "rtl"])
def test_tests_show_what_is_printed_and_fail_where_an_assertion_does(target: str) -> None:
    loaded = compile_text(SourceFile("case.kera", TESTED.encode()), Path("case.kera"))
    if target == "interp":
        first, second, third = run_program_tests(loaded)
    else:
        found = run_tests_on(loaded, target, TargetOptions())
        first, second, third = (item.result for item in found)
        assert [call.function for call in found[0].simulated] == ["f"]
    assert first.passed, first.diagnostic
    assert first.printed == (
        "hello", "x: 12", "step: 0, 0", "step: 1, 13", "step: 2, 26", "neg: -4, [-5, -4], false, 0.5",
    )
    assert not second.passed and second.diagnostic is not None and second.diagnostic.code == "K0921"
    assert second.diagnostic.span is not None
    assert third.diagnostic is not None and "zero sum" in third.diagnostic.message
    counts = {count.site.label: count.tests for count in cover_counts([first, second, third])}
    assert counts == {"seven": 0, "large": 1}


def test_a_difference_between_targets_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "case.kera"
    path.write_text(CHECKED)
    points = Point("assert", "small", None, ()), Point("cover", "seven", None, (2, 5))
    shown = {
        "interp": Observed(points, ((0, "x: 1"), (1, "x: 2"))),
        "rtl": Observed((Point("assert", "small", None, (4,)), Point("cover", "seven", None, (2,))),
                        ((0, "x: 1"),)),
    }
    monkeypatch.setattr(verify_module, "observe", lambda graph, export, name, *rest: shown[name])
    done = Kera(capsys)("verify", path, "--fn", "f", "--vectors", 8)
    assert done.status == 1 and "K0923" in done.err
    for line in (
        "assert `small` (an unknown line) fails for item 4 on rtl, not on interp",
        "cover `seven` (an unknown line) is reached by item 5 on interp, not on rtl (items: 2 on",
        "printed on interp: item 1: x: 2; on rtl: nothing",
    ):
        assert line in " ".join(done.err.split())


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kera, path = Kera(capsys), tmp_path / "case.kera"
    path.write_text(TESTED)
    done = kera("run", path, "--fn", "g", "-i", "x=[3, -9, 2000]", "--batch")
    assert done.status == 1 and "item 1: neg: -6, [-9, -6], true, 0.5" in done.out and "1994" in done.out
    assert "K0921" in done.err and "fails for item 2" in done.err and "x = 2000" in done.err
    row = kera("run", path, "--fn", "f", "-i", "x=12", "--json").json
    assert row["ok"] and row["printed"][0] == {"item": 0, "line": "x: 12"}
    assert [item["failures"] for item in row["assertions"]] == [0, 0]
    done = kera("verify", path, "--fn", "w", "--vectors", 40)
    assert done.status == 0 and "cover `zero`" in done.out
    done = kera("test", path)
    assert done.status == 1 and "         hello" in done.out and "cover `large` (line 23): 1 test" in done.out
    assert "K0922" in done.err and "`seven`" in done.err
    path.write_text("pub fn f() -> u64 ! time { now() }")
    done = kera("check", path)
    assert done.status == 1 and "K0506" in done.err
