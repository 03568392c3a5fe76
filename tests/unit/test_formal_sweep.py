"""Cut points: what is replaced is equal, and a circuit at fault is not talked into equality."""
from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import find_export, load_program
from kera_hw.graph import Export
from kera_hw.rtl.formal.circuit import Circuit, emitted_circuit
from kera_hw.rtl.formal.implementation import Clocked, Lowered
from kera_hw.rtl.formal.proof import Prover
from kera_hw.rtl.formal.specification import item_of
from kera_hw.rtl.formal.sweep import Simulation, Sweeper
from kera_hw.rtl.formal.terms import Terms, evaluate

ROOT = """
pub fn root(x: u16) -> u8 {
    let mut rem = 0u18;
    let mut root = 0u9;
    for i in 0..8 {
        rem = (rem << 2) | ((x >> (14 - 2 * i) as u32) & 3) as u18;
        let trial = (root as u18 << 2) | 1;
        if rem >= trial { rem -= trial; root = (root << 1) | 1; } else { root = root << 1; }
    }
    root as u8
}
"""


def made(tmp_path: Path, text: str = ROOT) -> tuple[Export, HardwareDesign]:
    path = tmp_path / "f.kera"
    path.write_text(text)
    program = load_program(path)
    assert program.graph is not None, program.diagnostics
    export = find_export(program, None)
    assert isinstance(export, Export)
    return export, design_hardware(program.graph, export, TargetOptions(interface="none"))


def clocked(design: HardwareDesign, circuit: Circuit) -> Clocked:
    return Clocked(circuit, design.flat, design.netlist, design.plan, design.emitted)


def test_a_root_is_proved_piece_by_piece(tmp_path: Path) -> None:
    export, design = made(tmp_path)
    found = Prover(export, clocked(design, emitted_circuit(design.emitted))).decide_by_cuts(
        Lowered(design.flat), 120, 1
    )
    assert found.status == "proved" and found.cases > 20


def test_replaced_words_have_the_values_they_had(tmp_path: Path) -> None:
    export, design = made(tmp_path)
    implementation, terms = clocked(design, emitted_circuit(design.emitted)), Terms()
    item, rng = item_of(terms, export), random.Random(2)
    right = [term for term in Lowered(design.flat).make(terms, item).results if term is not None]
    sweeper = Sweeper(terms, right, 100, 1, 1)
    plain = implementation.make(terms, item).results
    swept = implementation.make_by(terms, item, sweeper).results
    assert sweeper.replaced > 20
    for _ in range(50):
        model = {"in0": rng.getrandbits(16)}
        results = [evaluate([term for term in words if term], model) for words in (right, plain, swept)]
        assert results[0] == results[1] == results[2]


def test_a_table_with_one_wrong_entry_is_refuted(tmp_path: Path) -> None:
    export, design = made(tmp_path)
    circuit = emitted_circuit(design.emitted)
    tables = [k for k, cell in enumerate(circuit.cells) if cell.kind == "LUT4"]
    rng, refuted = random.Random(3), 0
    for number in rng.sample(tables, 4):
        cells = list(circuit.cells)
        table = int(cells[number].params["INIT"], 2) ^ 0xFFFF
        cells[number] = replace(cells[number], params={"INIT": f"{table:016b}"})
        wrong = clocked(design, replace(circuit, cells=tuple(cells)))
        found = Prover(export, wrong).decide_by_cuts(Lowered(design.flat), 120, 1)
        assert found.status == "refuted"
        shown = Prover(export, wrong).replay(wrong.make, found)
        refuted += shown.expected != shown.actual
    assert refuted == 4


def test_items_that_are_added_are_simulated(tmp_path: Path) -> None:
    terms = Terms()
    x, y = terms.var("x", 8), terms.var("y", 8)
    total = terms.arith("add", terms.arith("mul", x, y), x)
    simulation = Simulation(1)
    before = len(simulation.of(total))
    simulation.extend([{"x": 3, "y": 5}, {"x": 255}])
    assert simulation.of(total)[before:] == [18, 255]
    assert simulation.of(terms.arith("sub", x, y))[before:] == [254, 255]
