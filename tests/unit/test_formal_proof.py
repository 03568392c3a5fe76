"""Proofs: right circuits are proved, wrong ones refuted with an item that shows it, empty proofs rejected."""
from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kera_hw.cli.output import AT_FAULT, NOT_PROVED, OK, TOOL_MISSING
from kera_hw.driver.formal import prove_export
from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import find_export, load_program
from kera_hw.graph import Export, Graph, Ref
from kera_hw.rtl.formal import cells, unroll
from kera_hw.rtl.formal.circuit import Circuit, emitted_circuit, mapped_circuit
from kera_hw.rtl.formal.implementation import Clocked, Item, Lowered, Made
from kera_hw.rtl.formal.proof import Verdict, check
from kera_hw.rtl.formal.terms import Term, Terms
from kera_hw.rtl.lower.builder import Builder
from tests.unit.cli_support import Kera

BARE = TargetOptions(interface="none")


def loaded(tmp_path: Path, text: str, name: str | None = None) -> tuple[Graph, Export]:
    path = tmp_path / "f.kera"
    path.write_text(text)
    program = load_program(path)
    assert program.graph is not None, program.diagnostics
    export = find_export(program, name)
    assert isinstance(export, Export)
    return program.graph, export


KERNELS = {
    "arithmetic": "pub fn f(a: i16, b: i16) -> i16 { min(max(a, b), a - b) + a * 5 }",
    "products": "pub fn f(a: u8, b: u8, c: i9) -> (u16, i18) { (mul_wide(a, b), mul_wide(c, c)) }",
    "carry-less": "pub fn f(a: u9, b: u9, c: u40) -> (u18, u64) { (clmul(a, b), clmul(c, 0x1_db71_0641)) }",
    "division": "pub fn f(a: i7, b: i7) -> (i7, i7) { (a / b, a % b) }",
    "fixed": "pub fn f(a: fix<9, 4>, b: fix<9, 4>) -> fix<9, 4> { (a * b) as fix<9, 4> }",
    "table": "pub fn f(i: u4) -> u8 { let t = [3u8, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]; t[i] }",
    "tensor": "pub fn f(x: [u8; 4], i: u8) -> u8 { sum(x) + x.clamped(i) }",
    "stream": "pub stream f(x: u8) -> u16 { state s: u16 = 3; s += x as u16; s }",
    "controls": """pub stream f(load: bool, step: bool, x: u8) -> (u8, u8) {
        state a: u8 = 0;
        state b: u8 = 129;
        let r = (a, b);
        if load { a = x; } else if step { a = rotl(a, 1); }
        if x == 7 { b = 129; } else if load && step { b = x; }
        r
    }""",
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_proved_at_both_levels(tmp_path: Path, name: str) -> None:
    graph, export = loaded(tmp_path, KERNELS[name])
    proof = prove_export(graph, export, TargetOptions(), 60)
    assert [verdict.level for verdict in proof.verdicts] == ["lowered graph", "Verilog"]
    assert proof.proved, proof.text()
    for verdict in proof.verdicts:
        assert verdict.fault is not None
        assert verdict.fault.shown_by.expected != verdict.fault.shown_by.actual


def clocked(graph: Graph, export: Export, mapped: bool = False) -> Clocked:
    design = design_hardware(graph, export, BARE)
    circuit = mapped_circuit(design.emitted, ("-abc9",)) if mapped else emitted_circuit(design.emitted)
    return Clocked(circuit, design.flat, design.netlist, design.plan, design.emitted)


def test_the_synthesised_netlist_is_proved(tmp_path: Path) -> None:
    graph, export = loaded(tmp_path, KERNELS["arithmetic"])
    verdict = check(export, clocked(graph, export, mapped=True), 60)
    assert (verdict.level, verdict.outcome) == ("synthesised netlist", "proved")


def test_another_function_is_refuted_with_an_item(tmp_path: Path) -> None:
    graph, _ = loaded(tmp_path, "pub fn f(a: u16, b: u16) -> u16 { (a ^ b) + 2 * (a & b) }")
    _, other = loaded(tmp_path, "pub fn f(a: u16, b: u16) -> u16 { if a == 513 { b } else { a + b } }")
    flat = design_hardware(graph, graph.exports[0], BARE).flat
    verdict = check(other, Lowered(flat), 60)
    found = verdict.counterexample
    assert verdict.outcome == "refuted" and found is not None
    assert found.inputs[0] == 513 and found.expected[0] == found.inputs[1] != found.actual[0]


def test_a_register_too_few_is_refuted(tmp_path: Path) -> None:
    """An operand that comes a cycle early mixes two items, which only distinct inputs a cycle can show."""
    graph, export = loaded(tmp_path, "pub fn f(a: u18, b: u18, c: u36) -> u36 { mul_wide(a, b) + c }")
    design = design_hardware(graph, export, TargetOptions(interface="none", clock_mhz=250))
    circuit = emitted_circuit(design.emitted)
    registers = [k for k, cell in enumerate(circuit.cells) if cell.kind == "$dff"]
    # Those of a delay line may hold what they show: a wire in their place would be a loop.
    registers = [k for k in registers if "delay_" not in circuit.cells[k].name]
    assert registers
    skipped = 0
    for number in registers:
        bypassed = _without_register(circuit, number)
        circuit_at_fault = Clocked(bypassed, design.flat, design.netlist, design.plan, design.emitted)
        skipped += check(export, circuit_at_fault, 60).outcome == "refuted"
    assert skipped == len(registers)


def _without_register(circuit: Circuit, number: int) -> Circuit:
    """The circuit with one register made a wire."""
    cells = list(circuit.cells)
    cell = cells[number]
    width = str(bin(len(cell.outputs["Q"]))[2:])
    wire = {"A_SIGNED": "0", "A_WIDTH": width, "Y_WIDTH": width}
    cells[number] = replace(
        cell, kind="$pos", params=wire, inputs={"A": cell.inputs["D"]}, outputs={"Y": cell.outputs["Q"]}
    )
    return replace(circuit, cells=tuple(cells))


@pytest.fixture
def wrong_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    """A builder that takes x + 5 for x + 4."""
    right = Builder.op

    def op(self: Builder, opcode: str, *inputs: Ref, **attrs: object) -> Ref:
        if opcode == "integer.add" and self.value(inputs[1]) == 5:
            inputs = (inputs[0], self.const(inputs[1].type, 4))
        return right(self, opcode, *inputs, **attrs)  # type: ignore[arg-type]

    monkeypatch.setattr(Builder, "op", op)


@pytest.mark.usefixtures("wrong_lowering")
def test_a_wrong_lowering_is_refuted_at_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "f.kera"
    path.write_text("pub fn f(a: u8) -> u8 { a + 5 }\n")
    done = Kera(capsys)("verify", path, "--formal")
    assert done.status == AT_FAULT
    assert "lowered graph: DIFFERS" in done.out and "expected 0b00000101\n    actual   0b00000100" in done.out


@dataclass
class Pretender:
    """An implementation that hands back whatever ``answer`` makes, with and without a fault."""

    answer: Callable[[Terms, Item], Made]
    label: str = "pretender"

    def make(self, terms: Terms, item: Item) -> Made:
        return self.answer(terms, item)

    def make_faulty(self, terms: Terms, item: Item, rng: random.Random) -> Made:
        return Made(self.answer(terms, item).results, "nothing changed")

    def held(self, terms: Terms, states: Sequence[Term]) -> list[tuple[Term, Term]]:
        return []


def verdict_of(tmp_path: Path, answer: Callable[[Terms, Item], Made]) -> Verdict:
    _, export = loaded(tmp_path, "pub fn f(a: u8, b: u8) -> u8 { a + b }")
    return check(export, Pretender(answer), 10)


def test_a_proof_without_a_refuted_fault_does_not_count(tmp_path: Path) -> None:
    def sound(terms: Terms, item: Item) -> Made:
        return Made((terms.arith("add", item.inputs[1], item.inputs[0]),))

    verdict = verdict_of(tmp_path, sound)
    assert verdict.outcome == "unconfirmed" and "nothing changed" in verdict.note


def test_contradictory_facts_do_not_prove_anything(tmp_path: Path) -> None:
    """Facts that no values meet make every claim hold; the planted fault gives it away."""

    def impossible(terms: Terms, item: Item) -> Made:
        ghost = terms.fresh("ghost", 8)
        terms.define(ghost, terms.less(ghost, terms.const(0, 8), signed=False))
        return Made((terms.bit_xor(item.inputs[0], ghost),))

    assert verdict_of(tmp_path, impossible).outcome == "unconfirmed"


def test_what_is_not_finished_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.kera"
    path.write_text("pub fn f(a: u32, b: u32, c: u32) -> u32 { a * (b * c) / (c | 1) % (a | 3) }\n")
    done = Kera(capsys)("verify", path, "--formal", "--time-limit", "0.2", "--json")
    assert done.status == NOT_PROVED
    assert {row["code"] for row in done.json["diagnostics"]} == {"K0960"}
    assert done.json["proofs"][0]["proved"] is False


def test_every_export_is_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.kera"
    path.write_text("pub fn f(a: u8) -> u8 { a + 5 }\npub fn g(a: u8, b: u8) -> bool { a < b }\n")
    done = Kera(capsys)("verify", path, "--formal", "--json")
    assert done.status == OK
    assert [row["function"] for row in done.json["proofs"]] == ["f", "g"]
    levels = [level for row in done.json["proofs"] for level in row["levels"]]
    assert all(level["result"] == "proved" and level["planted_fault"]["refuted"] for level in levels)




def test_an_operation_without_a_theory_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.kera"
    path.write_text("pub fn f(a: f16) -> f16 { rsqrt(a) }\npub fn g(a: u8) -> u8 { a + 1 }\n")
    done = Kera(capsys)("verify", path, "--formal", "--json")
    assert done.status == NOT_PROVED
    assert [row["code"] for row in done.json["diagnostics"]] == ["K0961"]
    assert "`floating.rsqrt` on f16" in done.json["diagnostics"][0]["message"]
    assert [row["function"] for row in done.json["proofs"]] == ["g"]


def test_a_cell_without_a_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, export = loaded(tmp_path, "pub fn f(a: u8, b: u8) -> u8 { a + b }")
    monkeypatch.setattr(cells, "RULES", {})
    monkeypatch.setattr(unroll, "RULES", {})
    proof = prove_export(graph, export, TargetOptions(), 10)
    assert [verdict.outcome for verdict in proof.verdicts] == ["proved", "not modelled"]
    assert not proof.proved and proof.diagnostics[0].code == "K0961"


def test_floats_are_proved(tmp_path: Path) -> None:
    text = "pub fn f(a: f16, b: f16) -> (f16, bool, f16) { (min(a, -b), a < b, abs(a)) }"
    graph, export = loaded(tmp_path, text)
    assert prove_export(graph, export, TargetOptions(), 120).proved


def test_a_missing_solver_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f.kera"
    path.write_text("pub fn f(a: u8) -> u8 { a + 5 }\n")
    for name in ("bitwuzla", "kera_hw.driver.formal", "kera_hw.rtl.formal.solver"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "bitwuzla", None)
    done = Kera(capsys)("verify", path, "--formal")
    assert done.status == TOOL_MISSING and "K0950" in done.err and "pip install bitwuzla" in done.err
