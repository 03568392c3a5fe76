"""In-file tests on a circuit: which calls it evaluates, and that it is the circuit that does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kera_hw.driver import circuit_calls
from kera_hw.driver.options import Executor, Stepper, TargetOptions
from kera_hw.driver.rtl_target import RtlExecutor
from kera_hw.driver.session import load_program
from kera_hw.driver.targets import make_executor
from kera_hw.driver.testing import TargetTest, run_tests_on
from kera_hw.graph import Export, Graph
from kera_hw.rtl.toolchain.process import ToolMissing
from kera_hw.support import Diagnostic, KeraError
from tests.unit.cli_support import Kera

PROGRAM = """
struct P { r: u8, g: i12 }
pub fn swap(p: P, k: [bool; 2]) -> (i12, u8) { (p.g, if k[0] { p.r } else { 0 }) }
pub stream acc(x: i16) -> i16 {
    state s: i16 = 0;
    s = s + x;
    s
}
pub stream pairs(x: u8, p: P) -> (u8, P) {
    state s: P = P { r: 1, g: 2 };
    s.r = s.r + x;
    s.g = p.g;
    (p.r, s)
}
pub fn add(a: u8, b: u8) -> u8 { a + b }
fn twice(a: u8) -> u8 { add(a, a) }
pub fn scale(x: f32) -> f32 { x * 1.5 }

test "all" {
    let a = acc([1i16, 2, 3]);
    assert_eq(a, [1i16, 3, 6]);
    assert_eq(swap(P { r: 3, g: -5 }, [true, false]), (-5i12, 3u8));
    let y = add(add(1, 2), add(3, 4));
    assert_eq(y, 10);
    assert_eq(scale(3.0), 4.5);
}
test "inner" {
    for i in 0..3 { assert_eq(add(i as u8, 1), i as u8 + 1); }
    if add(1, 1) == 2 { assert_eq(add(2, 2), 4); }
    assert_eq(twice(4), 8);
}
test "structs" {
    let o = pairs([1u8, 2], [P { r: 9, g: 1 }, P { r: 8, g: -1 }]);
    assert_eq(o[0].0, 9);
    assert_eq(o[1].1, P { r: 4, g: -1 });
}
test "none" { assert_eq(1u8 + 1, 2u8); }
"""


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "t.kera"
    path.write_text(PROGRAM)
    return path


class Wrong:
    """An executor whose results are those of the interpreter, but for one bit if it is asked to err."""

    def __init__(self, inner: Executor, errs: bool) -> None:
        self.inner, self.errs, self.batches = inner, errs, list[int]()

    @property
    def plan(self) -> Mapping[str, Any]:
        return self.inner.plan

    def run(self, inputs: Mapping[str, Any], batch: int) -> Any:
        self.batches.append(batch)
        result = self.inner.run(inputs, batch)
        if self.errs:
            result = result.copy()
            result[-1] ^= 1
        return result

    def stepper(self) -> Stepper:
        return self.inner.stepper()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, Wrong]:
    """Executors by export, in place of simulations; `acc` is refused, `add` errs."""
    found: dict[str, Wrong] = {}

    def make(graph: Graph, export: Export, target: str, options: TargetOptions) -> Executor:
        if export.name == "acc":
            raise KeraError([Diagnostic("K0601", "No plan for it.")])
        found[export.name] = Wrong(make_executor(graph, export, "interp", options), export.name == "add")
        return found[export.name]

    monkeypatch.setattr(circuit_calls, "make_executor", make)
    return found


def run(path: Path, name: str | None = None) -> dict[str, TargetTest]:
    return {item.result.name: item for item in run_tests_on(load_program(path), "rtl", TargetOptions(), name)}


def test_calls_in_a_tests_own_body_go_to_the_circuit(path: Path) -> None:
    tests = run(path)
    assert all(item.result.passed for item in tests.values()), [item.result for item in tests.values()]
    called = {name: [call.function for call in item.simulated] for name, item in tests.items()}
    assert sorted(called["all"]) == ["acc", "add", "add", "add", "scale", "swap"]
    assert called["inner"] == ["add"] and called["structs"] == ["pairs"] and called["none"] == []
    stayed = [(call.function, call.line) for call in tests["inner"].interpreted]
    assert sorted(stayed) == [("add", 16), ("add", 28), ("add", 29)]
    assert tests["all"].interpreted == ()


def test_it_is_the_circuit_whose_results_are_asserted(path: Path, made: dict[str, Wrong]) -> None:
    tests = run(path)
    passed = {name: item.result.passed for name, item in tests.items()}
    assert passed == {"all": False, "inner": True, "structs": True, "none": True}
    diagnostic = tests["all"].result.diagnostic
    assert diagnostic is not None and diagnostic.code == "K0920" and "left:  9" in diagnostic.notes
    assert made["add"].batches == [1] * 4 and made["pairs"].batches == [2]


def test_what_the_target_refuses_stays_and_says_why(path: Path, made: dict[str, Wrong]) -> None:
    tests = run(path)
    assert [(call.function, call.reason) for call in tests["all"].interpreted] == [("acc", "No plan for it.")]
    assert "acc" not in made


def test_the_simulation_really_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, int]] = []
    whole = RtlExecutor.run

    def noted(self: RtlExecutor, inputs: Mapping[str, Any], batch: int) -> Any:
        ran.append((self.design.export.name, batch))
        return whole(self, inputs, batch)

    monkeypatch.setattr(RtlExecutor, "run", noted)
    assert run(path, "structs")["structs"].result.passed
    assert ran == [("pairs", 2)]


def test_the_command_says_which_calls_were_simulated(kera: Kera, path: Path) -> None:
    done = kera("test", path, "--filter", "inner", "--target", "fpga:ecp5-25k")
    assert done.status == 0
    assert "rtl: add (line 29)" in done.out and "interp: add (line 28): in a loop" in done.out
    assert "1 passed, 0 failed" in done.out and "1 call simulated, 3 interpreted" in done.out
    data = kera("test", path, "--filter", "none", "--device", "ecp5-25k", "--json").json
    assert data["target"] == "rtl" and data["tests"] == [
        {"name": "none", "passed": True, "simulated": [], "interpreted": []}
    ]
    data = kera("test", path, "--filter", "none", "--json").json
    assert data["tests"] == [{"name": "none", "passed": True}]


def test_a_missing_tool_ends_with_3(kera: Kera, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kera_hw.rtl.toolchain import verilator

    def absent() -> Path:
        raise ToolMissing("verilator", "Install it.")

    monkeypatch.setattr(verilator, "_root", absent)
    done = kera("test", path, "--target", "rtl", "--filter", "inner")
    assert done.status == 3 and "K0950" in done.err
