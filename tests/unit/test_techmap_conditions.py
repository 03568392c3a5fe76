"""Conditions made again: functions as decision diagrams, and the circuits whose conditions come sooner."""
from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from kera_hw.driver.session import compile_text
from kera_hw.graph import Export, Store
from kera_hw.interp.exports import run_export
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.rtl.techmap import MapOptions, map_design
from kera_hw.rtl.techmap.bdd import FALSE, TRUE, Diagrams, TooLargeError
from kera_hw.schedule.fpga.cells import Add, Input, StateOut
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.support import SourceFile
from tests.netlist_reference import evaluate

COUNT = 6
ROWS = range(1 << COUNT)


def value(diagrams: Diagrams, function: int, row: int) -> int:
    while function > TRUE:
        bit = row >> diagrams.variable[function] & 1
        function = diagrams.high[function] if bit else diagrams.low[function]
    return function


def variables(diagrams: Diagrams) -> list[int]:
    return [diagrams.node(k, FALSE, TRUE) for k in range(COUNT)]


@pytest.mark.parametrize("seed", range(20))
def test_a_diagram_is_its_table(seed: int) -> None:
    rng, diagrams = random.Random(seed), Diagrams(1000)
    bits = variables(diagrams)
    table, care = (rng.getrandbits(64) & rng.getrandbits(64) for _ in range(2))
    function, asked = diagrams.apply(table, bits), diagrams.apply(care, bits)
    assert [value(diagrams, function, row) for row in ROWS] == [table >> row & 1 for row in ROWS]
    assert diagrams.apply(table, bits) == function  # one number for one function
    again = diagrams.restricted(function, asked)
    for row in ROWS:
        assert not care >> row & 1 or value(diagrams, again, row) == table >> row & 1
    low, high = sorted(rng.choices(ROWS, k=2))
    inside = diagrams.within(bits, low, high)
    assert [value(diagrams, inside, row) for row in ROWS] == [int(low <= row <= high) for row in ROWS]


def test_a_function_that_does_not_depend_on_what_is_never_held_gets_smaller() -> None:
    diagrams = Diagrams(1000)
    a, b, *rest = variables(diagrams)
    function = diagrams.both(a, diagrams.choose(b, TRUE, rest[0]))
    assert diagrams.restricted(function, b) == a


def test_a_large_function_is_given_up() -> None:
    diagrams = Diagrams(20)
    with pytest.raises(TooLargeError):
        diagrams.apply(random.Random(1).getrandbits(64), variables(diagrams))


# Circuits

ARBITER = """pub stream f(request: u{n}, clear: bool) -> u{n} {{
    state first: u{n} = {initial};
    let twice = cat(request, request);
    let lowest = twice & !(twice - first as u{m});
    let grant = lowest.bits({h}, 0) | lowest.bits({t}, {n});
    if grant != 0 {{ first = rotl(grant, 1); }}{more}
    grant
}}"""


def arbiter(n: int, initial: int = 1, more: str = "") -> str:
    return ARBITER.format(n=n, m=2 * n, h=n - 1, t=2 * n - 1, initial=initial, more=more)


def compiled(text: str) -> tuple[Export, FlatDesign]:
    loaded = compile_text(SourceFile("a.kera", text.encode()), Path("a.kera"))
    assert loaded.graph is not None, loaded.diagnostics
    export = loaded.graph.exports[0]
    flat = flatten_export(export, Store(), 1, True)
    assert isinstance(flat, FlatDesign)
    return export, flat


def behind(netlist: Netlist, cell: int) -> set[int]:
    """The cells that a cell is made from."""
    found: set[int] = set()
    pending = [cell]
    while pending:
        for segment in (s for bits in netlist.cells[pending.pop()].operands() for s in bits):
            if segment.cell is not None and segment.cell not in found:
                found.add(segment.cell)
                pending.append(segment.cell)
    return found


def waits_for_sum(netlist: Netlist) -> bool:
    (control,) = netlist.states[0].controls
    assert control.enable is not None
    cells = [netlist.cells[k] for k in behind(netlist, control.enable)]
    assert any(isinstance(cell, Input) for cell in cells)
    return any(isinstance(cell, Add | StateOut) for cell in cells)


@pytest.mark.parametrize("n", [4, 8, 12])
def test_whether_an_arbiter_grants_does_not_wait_for_the_grant(n: int) -> None:
    _, flat = compiled(arbiter(n))
    netlist = map_design(flat, "ecp5-85k", 5_000, MapOptions())
    assert netlist.states[0].held == (1, (1 << n) - 1)
    assert not waits_for_sum(netlist)


def test_it_does_where_there_may_be_no_place_to_begin_at() -> None:
    for text in (arbiter(8, initial=0), arbiter(8, more=" if clear { first = request & 1; }")):
        _, flat = compiled(text)
        netlist = map_design(flat, "ecp5-85k", 5_000, MapOptions(controls="enables"))
        assert netlist.states[0].held is None
        assert not netlist.states[0].controls or waits_for_sum(netlist)


@pytest.mark.parametrize("text", [
    arbiter(5), arbiter(8), arbiter(8, initial=0), arbiter(8, more=" if clear { first = request & 1; }"),
    arbiter(6, initial=37, more=" if clear { first = 63; }"),
])
def test_arbiters_grant_what_their_graph_grants(text: str) -> None:
    export, flat = compiled(text)
    rng, count, width = random.Random(5), 500, flat.inputs[0].width_bits
    requests = [rng.getrandbits(width) & rng.getrandbits(width) for _ in range(count)]
    clears = [rng.random() < 0.2 for _ in range(count)]
    items = {"request": np.array(requests, np.uint8), "clear": np.array(clears)}
    granted = run_export(export, items, count)
    for controls in ("shared", "own", "none"):
        netlist = map_design(flat, "ecp5-85k", 5_000, MapOptions(controls=controls))
        words = evaluate(netlist, [{"in_request": r, "in_clear": int(c)} for r, c in zip(requests, clears)])
        assert [word["out_data"] for word in words] == granted.tolist()
