"""Which values states hold: intervals as narrow as programs keep them, and never left."""
from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import compile_text
from kera_hw.graph import Export, Store
from kera_hw.graph.node import Graph
from kera_hw.interp.exports import run_export
from kera_hw.rtl.formal.circuit import emitted_circuit
from kera_hw.rtl.formal.implementation import Clocked, Lowered
from kera_hw.rtl.formal.proof import Prover
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.rtl.techmap import MapOptions, map_design
from kera_hw.rtl.techmap.reach import state_intervals
from kera_hw.schedule.fpga.cells import Lut
from kera_hw.support import SourceFile
from tests.netlist_reference import evaluate


def compiled(text: str) -> tuple[Graph, Export]:
    loaded = compile_text(SourceFile("r.kera", text.encode()), Path("r.kera"))
    assert loaded.graph is not None, loaded.diagnostics
    return loaded.graph, loaded.graph.exports[0]


def flat_of(export: Export) -> FlatDesign:
    flat = flatten_export(export, Store(), 1, True)
    assert isinstance(flat, FlatDesign)
    return flat


def held(text: str) -> dict[str, str]:
    """What is found of every state."""
    flat = flat_of(compiled(text)[1])
    return {state.name: str(found) for state, found in zip(flat.states, state_intervals(flat))}


@pytest.mark.parametrize(("body", "interval"), [
    ("if s == 99 { s = 0; } else { s += 1; }", "0 to 99"),
    ("if c { s = 7; } else if s != 0 { s -= 1; }", "0 to 7"),
    ("if s > 0 && c { s -= 1; } else { s = x as u16; }", "0 to 255"),
    ("s = if s < 10 { s + 3 } else { 2 };", "0 to 12"),
    ("if !(s == 20 || c) { s += 2; } else { s = 4; }", "None"),  # 19 and 21 are stepped over
    ("if s >= 20 || c { s = 4; } else { s += 2; }", "0 to 21"),
    ("s = (x % 10) as u16;", "0 to 9"),
    ("s = min(s + 1, 300);", "0 to 300"),
    ("s = max(s + 1, 300);", "None"),  # s + 1 may wrap
    ("s = saturating_sub(s, 1);", "0"),
    ("s += 1;", "None"),
    ("s -= 1;", "None"),
    ("match s { 0 => { s = 5; } 5 => { s = 9; } _ => { s = 0; } }", "0 to 9"),
    ("if c { s = 1000; } if s == 1000 { s = 3; }", "0 to 999"),
])
def test_a_state_holds_what_its_program_lets_it_hold(body: str, interval: str) -> None:
    found = held(f"pub stream f(c: bool, x: u8) -> u16 {{ state s: u16 = 0; {body} s }}")
    assert found == {"s": interval}


def test_intervals_of_several_states_grow_together() -> None:
    text = """pub stream f(c: bool) -> u8 {
        state a: u8 = 3;
        state b: u8 = 1;
        state level: i8 = -2;
        let old = a;
        a = if c { b } else { a };
        b = if old < 40 { old + 1 } else { 0 };
        if level < 5 { level += 1; } else { level = -7; }
        a + (level as u8)
    }"""
    assert held(text) == {"a": "0 to 40", "b": "0 to 40", "level": "-7 to 5"}


def test_many_operations_are_left_alone() -> None:
    steps = "".join(f"if s != {k} && x > {k} {{ s = s + x; }} " for k in range(300))
    assert held(f"pub stream f(x: u16) -> u16 {{ state s: u16 = 0; {steps} s }}") == {"s": "None"}


def test_a_narrow_state_takes_few_flip_flops() -> None:
    text = "pub stream f(c: bool) -> bool { state t: u32 = 0; let r = t == 0; " \
        "if c { t = 11; } else if t != 0 { t -= 1; } r }"
    (state,) = map_design(flat_of(compiled(text)[1]), "ecp5-85k", 10_000).states
    assert (state.width, state.held) == (4, (0, 11))


# Never left


def machine(rng: random.Random) -> str:
    """A stream of two states whose next values hang on comparisons with constants."""
    kinds = [rng.choice(["u4", "u8", "i6"]) for _ in range(2)]

    def literal(kind: str) -> int:
        bits = int(kind[1:])
        return rng.randrange(-(1 << bits - 1), 1 << bits - 1) if kind[0] == "i" else rng.randrange(1 << bits)

    def condition() -> str:
        k = rng.randrange(2)
        plain = f"s{k} {rng.choice(['==', '!=', '<', '<=', '>', '>='])} {literal(kinds[k])}"
        extra = rng.choice(["", "", " && c", " || c"])
        return f"!({plain}{extra})" if rng.random() < 0.3 else plain + extra

    def change(depth: int) -> str:
        k = rng.randrange(2)
        if depth and rng.random() < 0.7:
            return f"if {condition()} {{ {change(depth - 1)} }} else {{ {change(depth - 1)} }}"
        value = rng.choice([
            f"s{k} + 1", f"s{k} - 1", f"s{k} + 1", str(literal(kinds[k])), f"s{1 - k} as {kinds[k]}",
            f"x as {kinds[k]}", f"s{k}",
        ])
        return f"s{k} = {value};"

    body = " ".join(change(3) for _ in range(2))
    states = "".join(f"state s{k}: {kind} = {abs(literal(kind))}; " for k, kind in enumerate(kinds))
    states = states.replace("i6 = 3", "i6 = 1").replace("i6 = 32", "i6 = 0")
    return f"pub stream f(c: bool, x: u3) -> ({kinds[0]}, {kinds[1]}) {{ {states}{body} (s0, s1) }}"


@pytest.mark.parametrize("seed", range(40))
def test_no_item_leads_out_and_the_circuit_is_that_of_the_graph(seed: int) -> None:
    rng = random.Random(seed)
    _, export = compiled(machine(rng))
    flat = flat_of(export)
    count = 400
    items = {"c": np.array([rng.random() < 0.5 for _ in range(count)])}
    items["x"] = np.array([rng.randrange(8) for _ in range(count)], np.uint8)
    first, second = run_export(export, items, count)
    for values, found in zip((first, second), state_intervals(flat)):
        if found is not None:
            assert found.low <= int(values.min()) and int(values.max()) <= found.high
    netlist = map_design(flat, "ecp5-85k" if seed % 3 else "ice40-hx8k", 8_000, MapOptions())
    words = evaluate(netlist, [
        {"in_c": int(c), "in_x": int(x)} for c, x in zip(items["c"].tolist(), items["x"].tolist())
    ])
    masks = [(1 << leaf.width_bits) - 1 for leaf in flat.outputs]
    for word, *results in zip(words, first.tolist(), second.tolist()):
        assert list(word.values()) == [result & mask for result, mask in zip(results, masks)]


# Proofs

TIMER = """pub stream f(c: bool) -> bool {
    state t: u16 = 0;
    let r = t == 0;
    if c { t = 11; } else if t != 0 { t -= 1; }
    r
}"""


def design_of(text: str) -> tuple[Export, HardwareDesign]:
    graph, export = compiled(text)
    return export, design_hardware(graph, export, TargetOptions(interface="none"))


def clocked(design: HardwareDesign) -> Clocked:
    circuit = emitted_circuit(design.emitted)
    return Clocked(circuit, design.flat, design.netlist, design.plan, design.emitted)


def test_a_circuit_that_relies_on_what_a_state_holds_is_proved() -> None:
    export, design = design_of(TIMER)
    assert design.netlist.states[0].held == (0, 11)
    prover = Prover(export, clocked(design))
    assert prover.decide(prover.implementation.make, 60).status == "proved"
    assert prover.decide_by_cuts(Lowered(design.flat), 60, 1).status == "proved"


def test_what_a_state_is_said_to_hold_is_proved_as_well() -> None:
    export, design = design_of(TIMER)
    (state,) = design.netlist.states
    for bounds in ((0, 10), (1, 11), (0, 12)):  # left by an item, left, never left but in the type's own way
        wrong = clocked(design)
        wrong.netlist = replace(design.netlist, states=(replace(state, held=bounds),))
        found = Prover(export, wrong).decide(wrong.make, 60)
        assert found.status == ("proved" if bounds == (0, 12) else "refuted")


def test_parities_of_counts_are_no_sums() -> None:
    text = "pub fn f(x: u64, y: u8) -> bool { (popcount(x) + popcount(y)).bit(0) }"
    netlist = map_design(flat_of(compiled(text)[1]), "ecp5-85k", 10_000)
    assert all(isinstance(cell, Lut) or cell.leaf for cell in netlist.cells)
    assert sum(cell.width for cell in netlist.cells if isinstance(cell, Lut)) == 24  # of 72 bits, 3 a LUT
