"""Every cell knows the source lines it is for: each operation its own, shared ones all of theirs."""
from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kera_hw.driver.hardware import plan_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.report.costs import listings
from kera_hw.driver.session import load_program, optimise, single_export_graph
from kera_hw.frontend import compile_source
from kera_hw.graph import Export, Graph, Node, Ref, Region, Store, print_graph, probes_of, read_keg, write_keg
from kera_hw.graph.node import Origin
from kera_hw.rtl.emit.verilog import Emitter, emit_verilog
from kera_hw.rtl.lower.builder import width_of
from kera_hw.rtl.lower.design import FlatDesign, FlatLeaf
from kera_hw.rtl.lower.flatten import flatten_export
from kera_hw.rtl.techmap import map_design
from kera_hw.schedule.explain import cell_label
from kera_hw.schedule.fpga.cells import Input, StateOut
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.support import SourceFile, Span
from kera_hw.types import IntType

DEVICE, CLOCK_PS = "ecp5-25k", 8_000

EMITTERS: tuple[Emitter, ...] = ("text", "amaranth")

PRODUCTS = """pub fn f(r: u8) -> (i32, i32) {
    let w = r as i32;
    let y = 19595 * w;
    let u = -11059 * (w + 3);
    (y, u)
}
"""
SHARED = """pub fn f(a: u8, b: u8) -> u8 {
    let c = a + b;
    let d = a + b;
    c ^ (d << 1)
}
pub fn g(a: u8, b: u8) -> u8 {
    a + b
}
"""
INLINED = """fn add(a: u8, b: u8) -> u8 {
    a + b
}
pub fn f(a: u8, b: u8, c: u8) -> u8 {
    add(a, b) ^
        add(c, 7)
}
pub fn g(a: u8, b: u8) -> u8 { (a + b) * 3 }
"""
SUM = """pub fn f(a: u8, b: u8, c: u8) -> u16 {
    let x = (a as u16) * 5;
    let y = (b as u16) * 9;
    x + y +
        (c as u16)
}
"""
PARITY = """pub stream f(x: u8) -> u32 {
    state crc: u32 = 0xffffffff;
    crc ^= x as u32;
    for i in 0..8 {
        let low = crc & 1;
        crc = if low == 1 { (crc >> 1) ^ 0xedb88320 } else { crc >> 1 };
    }
    crc
}
"""


def graph_of(text: str) -> Graph:
    front = compile_source(SourceFile.from_text(text, "a.kera"), lambda name: None)
    assert front.graph is not None, front.diagnostics
    return front.graph


def flat_of(graph: Graph, export: Export) -> FlatDesign | None:
    store = Store()
    optimised = optimise(single_export_graph(graph, export))
    store.origins.update(optimised.origins)
    store.scopes.update(optimised.scopes)
    flat = flatten_export(optimised.exports[0], store)
    return flat if isinstance(flat, FlatDesign) else None


def netlist_of(flat: FlatDesign) -> Netlist:
    return map_design(flat, DEVICE, CLOCK_PS)


def places(graph: Graph, name: str = "f") -> list[str]:
    """Of the cells that compute."""
    export = next(export for export in graph.exports if export.name == name)
    flat = flat_of(graph, export)
    assert flat is not None
    return [str(cell.origin) for cell in netlist_of(flat).cells if not isinstance(cell, (Input, StateOut))]


def test_each_product_is_credited_to_its_own_line() -> None:
    found = places(graph_of(PRODUCTS))
    assert set(found) == {"a.kera:3", "a.kera:4"}


def test_plan_verilog_and_report_say_the_same() -> None:
    graph = graph_of(PRODUCTS)
    planned = plan_hardware(graph, graph.exports[0], TargetOptions())
    labels = [cell_label(cell) for cell in planned.netlist.cells]
    assert any("(a.kera:3)" in label for label in labels) and any("(a.kera:4)" in label for label in labels)
    for emitter in EMITTERS:
        emitted = emit_verilog(planned.netlist, planned.plan, emitter=emitter)
        sources = set(re.findall(r'src = "(a\.kera:[^"]*)"', emitted.verilog))
        assert {"a.kera:3", "a.kera:4"} <= sources, (emitter, sources)
    (listing,) = listings(planned.netlist, planned.plan, {"a.kera": SourceFile.from_text(PRODUCTS, "a.kera")})
    assert {line.number for line in listing.lines if line.percent} == {3, 4}


def test_what_two_lines_share_lists_both_and_no_other_function() -> None:
    graph = graph_of(SHARED)
    assert "a.kera:2,3" in places(graph)
    assert set(places(graph, "g")) == {"a.kera:7"}
    text = print_graph(graph)
    assert "lines 2,3" in text and "line 7" in text and "lines 2,3,7" not in text


def test_places_are_told_apart_without_what_is_observed() -> None:
    graph = graph_of(SHARED.replace("    c ^ (d << 1)", "    assert(c != 3);\n    c ^ (d << 1)"))
    export = graph.exports[0]
    assert probes_of(export)
    planned = plan_hardware(graph, export, TargetOptions())
    found = {str(cell.origin) for cell in planned.netlist.cells if not isinstance(cell, (Input, StateOut))}
    assert found == {"a.kera:2,3", "a.kera:5"}


def test_a_shared_place_reaches_verilog() -> None:
    graph = graph_of(SHARED)
    planned = plan_hardware(graph, graph.exports[0], TargetOptions())
    for emitter in EMITTERS:
        emitted = emit_verilog(planned.netlist, planned.plan, emitter=emitter)
        assert 'src = "a.kera:2,3"' in emitted.verilog


def test_what_is_inlined_keeps_its_lines() -> None:
    graph = graph_of(INLINED)
    found = places(graph)
    assert {line for place in found for line in place.removeprefix("a.kera:").split(",")} == {"2", "5"}
    assert set(places(graph, "g")) == {"a.kera:8"}


def test_a_sum_is_credited_to_all_that_is_added_in_it() -> None:
    lines = {line for place in places(graph_of(SUM)) for line in place.removeprefix("a.kera:").split(",")}
    assert lines >= {"2", "3", "4"}


def test_rebuilt_parities_keep_their_lines() -> None:
    found = places(graph_of(PARITY))
    lines = {line for place in found for line in place.removeprefix("a.kera:").split(",")}
    assert lines >= {"3", "6"} and "None" not in found


def test_places_survive_a_file() -> None:
    for text in (PRODUCTS, SHARED, INLINED, PARITY):
        graph = graph_of(text)
        read, _ = read_keg(write_keg(graph))
        assert read is not None and write_keg(read) == write_keg(graph)
        for export in graph.exports:
            assert places(read, export.name) == places(graph, export.name)


#: Operations that become cells, unless they turn out to be wires.
_LOGIC = frozenset((
    "integer.add", "integer.sub", "integer.mul", "integer.mul_wide", "bits.xor", "bits.and", "bits.or",
    "control.select", *(f"compare.{verb}" for verb in ("lt", "le", "gt", "ge", "eq", "ne")),
))
_MOST_NODES = 400
#: Lines of which nothing is left in cells: a sum that others cancel, as ``2 * x + 3 - 3``.
_CANCELLED = {("numbers.kera", 3)}
PROGRAMS = [
    path for root in ("tests/programs", "examples")
    for path in sorted((Path(__file__).parents[2] / root).rglob("*.kera"))
]


def is_wiring(flat: FlatDesign, node: Node) -> bool:
    """Whether an operation adds no cell to what its operands take."""
    held = [FlatLeaf(f"s{k}", 0, state.width_bits, state.type) for k, state in enumerate(flat.states)]

    def size(refs: list[Ref]) -> int:
        outputs = tuple(FlatLeaf(f"o{k}", 0, width_of(ref.type), ref.type) for k, ref in enumerate(refs))
        alone = replace(
            flat, region=Region(flat.region.params, tuple(refs)), inputs=(*flat.inputs, *held), states=(),
            in_buses=(*flat.in_buses, *((leaf.bus, leaf.width_bits) for leaf in held)),
            outputs=outputs, out_buses=tuple((leaf.bus, leaf.width_bits) for leaf in outputs),
        )
        return sum(not isinstance(cell, Input) for cell in netlist_of(alone).cells)

    return size([*node.inputs, Ref(node, 0)]) == size(list(node.inputs))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_cell_has_a_place_and_every_line_that_stays_a_cell(path: Path) -> None:
    graph = load_program(path).graph
    if graph is None:
        pytest.skip("not a program of its own")
    for export in graph.exports:
        flat = flat_of(graph, export)
        if flat is None or len(flat.region.nodes()) > _MOST_NODES:
            continue
        cells = netlist_of(flat).cells
        assert [cell for cell in cells if cell.origin is None] == [], export.name
        credited = {(p.path, p.line) for cell in cells if cell.origin is not None for p in cell.origin.places}
        for node in flat.region.nodes():
            origin = flat.origins.get(node)
            if node.opcode not in _LOGIC or origin is None:
                continue
            missing = [p.line for p in origin.places if (p.path, p.line) not in credited
                       and (Path(p.path).name, p.line) not in _CANCELLED]
            assert not missing or is_wiring(flat, node), (export.name, node.opcode, missing)


def test_what_stands_on_many_lines_is_credited_to_each_once() -> None:
    store, kind = Store(), IntType(8, False)
    places = [Origin("p.kera", Span(line, line + 1), line) for line in range(1, 3000)]
    given: list[Ref] = [store.param(0, kind), store.param(1, kind)]
    node = store.op("integer.add", *given).node
    for place in (*places, *reversed(places)):
        store.origin = place
        assert store.op("integer.add", *given).node is node
    assert [str(place) for place in store.origins[node].others] == [str(place) for place in places[1:]]
    store.credit(node, places[0].joined(Origin("q.kera", Span(0, 1), 7)))
    store.credit(node, Origin("q.kera", Span(0, 1), 7))
    store.credit(node, Origin("q.kera", Span(0, 1), 8))
    assert [str(place) for place in store.origins[node].others[-2:]] == ["q.kera:7", "q.kera:8"]
