"""Comparing targets: a wrong one is caught, and the smallest input that shows it is found."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kera_hw.cli.main import main
from kera_hw.driver import cpu_target, targets
from kera_hw.driver.interp_target import InterpExecutor
from kera_hw.driver.options import Stepper, TargetOptions
from kera_hw.driver.reference import MANY_ITEMS, SHARE, SwiftReference
from kera_hw.driver.sampling import draw_items, from_bits, map_leaves, random_value, to_bits
from kera_hw.driver.session import find_export, load_program
from kera_hw.driver.verify import VerifyReport, compare_executors
from kera_hw.graph import Export, Graph
from kera_hw.support import Diagnostic, KeraError
from kera_hw.types import BOOL, FixType, IntType, TensorType, TupleType
from tests.unit.cli_support import Kera

ADD = "pub fn f(a: u16, b: u16) -> u16 { a + b }\n"
ACCUMULATE = "pub stream f(x: u8) -> u16 { state s: u16 = 0; s += x as u16; s }\n"


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


class Broken:
    """The reference with its result changed where ``wrong`` says so."""

    def __init__(self, graph: Graph, export: Export, wrong: Callable[[Mapping[str, Any], Any], Any]) -> None:
        self._honest = InterpExecutor(graph, export)
        self._wrong = wrong
        self.plan: Mapping[str, Any] = {}

    def run(self, inputs: Mapping[str, Any], batch: int) -> Any:
        return self._wrong(inputs, self._honest.run(inputs, batch))

    def stepper(self) -> Stepper:
        return self._honest.stepper()


def compare(
    tmp_path: Path, text: str, wrong: Callable[[Mapping[str, Any], Any], Any], vectors: int = 500
) -> VerifyReport:
    path = tmp_path / "f.kera"
    path.write_text(text)
    loaded = load_program(path)
    export = find_export(loaded, "f")
    assert loaded.graph is not None and isinstance(export, Export)
    inputs, batch = draw_items(export, vectors, 3, [])
    executors = {
        "interp": InterpExecutor(loaded.graph, export),
        "broken": Broken(loaded.graph, export, wrong),
    }
    return compare_executors(loaded.graph, export, executors, inputs, batch)


def test_equal_targets_are_equal(tmp_path: Path) -> None:
    report = compare(tmp_path, ADD, lambda _, result: result)
    assert report.equal and report.bits_per_target == 500 * 16


def test_one_wrong_bit_is_found_and_the_input_shrunk(tmp_path: Path) -> None:
    def wrong(inputs: Mapping[str, Any], result: Any) -> Any:
        # Wrong wherever bit 9 of `a` and bit 3 of `b` are set.
        bad = (inputs["a"] >> 9 & 1) & (inputs["b"] >> 3 & 1)
        return result ^ (bad << 15).astype(result.dtype)

    report = compare(tmp_path, ADD, wrong)
    assert not report.equal
    (found,) = report.mismatches
    assert found.inputs["a"].tolist() == [1 << 9] and found.inputs["b"].tolist() == [1 << 3]
    assert found.expected_bits == f"0b{(1 << 9) + (1 << 3):016b}"
    assert found.actual_bits == f"0b{(1 << 15) + (1 << 9) + (1 << 3):016b}"
    text = report.text()
    assert "DIFFERS" in text and found.expected_bits in text and found.actual_bits in text
    assert "a = [512]" in text and "b = [8]" in text


def test_a_streams_failure_is_a_short_sequence_from_reset(tmp_path: Path) -> None:
    def wrong(inputs: Mapping[str, Any], result: Any) -> Any:
        # Wrong from the third odd item on: needs three of them, wherever they stand.
        odd = np.cumsum(inputs["x"] & 1) >= 3
        return result ^ odd.astype(result.dtype)

    report = compare(tmp_path, ACCUMULATE, wrong, vectors=60)
    (found,) = report.mismatches
    sequence = found.inputs["x"].tolist()
    assert sorted(sequence, reverse=True)[:3] == [1, 1, 1] and sum(sequence) == 3
    assert len(sequence) <= 16


def test_a_wrong_leaf_of_a_tensor_is_named(tmp_path: Path) -> None:
    def wrong(_: Mapping[str, Any], result: Any) -> Any:
        pair = (result[0].copy(), result[1])
        pair[0][:, 1, 2] ^= 4
        return pair

    text = "pub fn f(x: [u8; 2, 3]) -> ([u8; 2, 3], bool) { (x, true) }\n"
    (found,) = compare(tmp_path, text, wrong).mismatches
    assert (found.leaf, found.element, found.item) == ("0", (1, 2), 0)
    assert found.expected_bits == "0b00000000" and found.actual_bits == "0b00000100"
    assert found.inputs["x"].tolist() == [[[0, 0, 0], [0, 0, 0]]]


def test_the_command_ends_with_1_on_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def make(graph: Graph, export: Export, options: TargetOptions) -> Broken:
        return Broken(graph, export, lambda inputs, result: result | (inputs["a"] == 77))

    monkeypatch.setitem(targets.TARGETS, "broken", make)
    path = tmp_path / "f.kera"
    path.write_text(ADD)
    np.save(tmp_path / "a.npy", np.array([5, 77], np.uint16))
    np.save(tmp_path / "b.npy", np.array([1, 3], np.uint16))
    own = ["-i", f"a={tmp_path}/a.npy", "-i", f"b={tmp_path}/b.npy"]
    command = ["verify", str(path), "--targets", "interp,broken", "--vectors", "10", *own]
    assert main(command) == 1
    out = capsys.readouterr().out
    assert "broken  DIFFERS" in out and "keg:sha3-256:" in out and "12 items, 192 bits" in out
    assert main([*command, "--json"]) == 1


def test_a_target_that_refuses_is_said_and_counts_where_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kera: Kera
) -> None:
    def lacking(code: str, graph: Graph, export: Export, options: TargetOptions) -> InterpExecutor:
        raise KeraError([Diagnostic(code, f"There is no {export.name}.")])

    path = tmp_path / "f.kera"
    path.write_text(ADD)
    for code, status in (("K0701", 1), ("K0950", 3)):
        monkeypatch.setattr(targets, "TARGETS", {
            "interp": targets.TARGETS["interp"], "cpu": targets.TARGETS["cpu"],
            "rtl": functools.partial(lacking, code),
        })  # fmt: skip
        monkeypatch.setattr(targets, "EVERY_MACHINE", ("interp", "cpu", "rtl"))
        done = kera("verify", path, "--targets", "all", "--vectors", "10")
        assert done.status == 0 and done.err.count(code) == 0
        rows = [line.split() for line in done.out.splitlines()[2:]]
        assert rows[0] == ["interp", "reference"] and rows[1][:2] == ["cpu", "equal,"]
        assert rows[2][:4] == ["rtl", "not", "compared", f"{code}:"]
        data = kera("verify", path, "--targets", "all", "--vectors", "10", "--json").json
        assert [row["verdict"] for row in data["results"]] == ["reference", "equal", "refused"]
        assert data["targets"] == ["interp", "cpu"] and data["ok"]
        done = kera("verify", path, "--targets", "interp,rtl,cpu", "--vectors", "10")
        assert done.status == status and f"error[{code}]" in done.err and "equal, 0 differing" in done.out
        monkeypatch.setattr(targets, "EVERY_MACHINE", ("interp", "rtl"))
        assert kera("verify", path, "--targets", "all", "--vectors", "10").status == status


def test_a_circuit_that_departs_from_its_plan_fails_and_the_others_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kera: Kera
) -> None:
    def make(graph: Graph, export: Export, options: TargetOptions) -> Broken:
        def wrong(_: Mapping[str, Any], result: Any) -> Any:
            raise KeraError([Diagnostic("K0910", "It stumbled.")])

        return Broken(graph, export, wrong)

    monkeypatch.setitem(targets.TARGETS, "broken", make)
    path = tmp_path / "f.kera"
    path.write_text(ADD)
    done = kera("verify", path, "--targets", "interp,broken,cpu", "--vectors", "10")
    assert done.status == 1 and "error[K0910]" in done.err
    assert "FAILED" in done.out and "equal, 0 differing bits" in done.out


def test_a_target_that_executes_is_compared_by_its_name(kera: Kera, tmp_path: Path) -> None:
    path = tmp_path / "f.kera"
    path.write_text(ADD)
    data = kera("verify", path, "--target", "cpu", "--vectors", "10", "--json").json
    assert data["equal"] and data["targets"] == ["interp", "cpu"]
    assert kera("verify", path, "--target", "cpu", "--targets", "interp,rtl").status == 2
    assert kera("verify", path, "--target", "interp").status == 2


@pytest.mark.parametrize("text", [ADD, ACCUMULATE])
def test_machine_code_stands_for_the_interpreter_where_they_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    path = tmp_path / "f.kera"
    path.write_text(text)
    loaded = load_program(path)
    export = find_export(loaded, "f")
    assert loaded.graph is not None and isinstance(export, Export)
    graph = loaded.graph
    honest = cpu_target.cpu_executor(graph, export)

    class Counting(InterpExecutor):
        items = 0

        def run(self, inputs: Mapping[str, Any], batch: int) -> Any:
            self.items += batch
            return super().run(inputs, batch)

    def found(swift: Any) -> tuple[Any, int, str]:
        def make(_: Graph, __: Export) -> Any:
            return swift

        monkeypatch.setattr(cpu_target, "cpu_executor", make)
        exact = Counting(graph, export)
        reference = SwiftReference(graph, export, exact)
        inputs, batch = draw_items(export, MANY_ITEMS, 3, [])
        return reference.run(inputs, batch), exact.items, reference.checked

    inputs, batch = draw_items(export, MANY_ITEMS, 3, [])
    wanted = InterpExecutor(graph, export).run(inputs, batch)
    result, items, said = found(honest)
    assert np.array_equal(result, wanted) and 0 < items <= MANY_ITEMS // SHARE and "agrees" in said

    def wrong(_: Mapping[str, Any], result: Any) -> Any:
        return result ^ 1

    result, items, said = found(Broken(graph, export, wrong))
    assert np.array_equal(result, wanted) and items > MANY_ITEMS and "DIFFERS" in said


def test_own_items_must_be_a_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.kera"
    path.write_text(ADD)
    assert main(["verify", str(path), "--targets", "interp,rtl", "-i", "a=1", "-i", "b=[1]"]) == 2
    assert "K0915" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [IntType(7, True), IntType(64, False), FixType(12, 5, True), BOOL])
def test_drawn_values_keep_their_bits_and_reach_the_corners(kind: Any) -> None:
    values = random_value(kind, 4000, np.random.default_rng(5))
    width = getattr(kind, "width_bits", 1)
    bits = to_bits(kind, values)
    assert np.array_equal(from_bits(kind, bits), values)
    seen = set(bits.tolist())
    corners = {0, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1}
    assert corners <= seen and max(seen) < 1 << width


def test_drawn_structures_have_the_items_first() -> None:
    kind = TensorType(TupleType((IntType(3, False), TensorType(BOOL, (2,)))), (4, 5))
    value = random_value(kind, 6, np.random.default_rng(1))
    shapes: list[tuple[int, ...]] = []
    map_leaves(value, lambda leaf: shapes.append(leaf.shape) or leaf)
    assert shapes == [(6, 4, 5), (6, 4, 5, 2)]
