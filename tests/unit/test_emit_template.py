"""The port map and the templates of a build: a struct of mixed fields goes in and out where they say."""
from __future__ import annotations

import itertools
import json
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal, Value

import kera_hw
from kera_hw.cli.main import main
from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.interp_target import InterpExecutor
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.sampling import random_value, to_bits
from kera_hw.rtl.emit.convert import module_verilog
from kera_hw.rtl.emit.ports import Value as Carried
from kera_hw.rtl.emit.ports import plan_ports
from kera_hw.rtl.emit.template import verilog_template
from kera_hw.rtl.sim.bench import simulate
from kera_hw.rtl.sim.words import from_words, to_words
from kera_hw.rtl.toolchain.verilator import lint
from kera_hw.types import BOOL, FixType, IntType, Type, numpy_dtype
from tests.icarus import icarus_problems

SOURCE = """
struct Inner { begin: i5, class: u3, real: f16 }
struct Pair { low: i8, on: bool, inner: Inner, tail: [i6; 2, 3] }

pub fn kinds(p: Pair, many: [Inner; 4], q: fix<12, 4>, wire: u1, nothing: (), table: [[bool; 3]; 2]) -> Pair {
    let k = if wire == 1 { many[3] } else { many[2] };
    Pair {
        low: p.low - 1, on: !p.on ^ table[1, 2],
        inner: Inner { begin: many[1].begin, class: p.inner.class + k.class, real: k.real },
        tail: [[p.tail[1, 0], p.tail[1, 1], p.tail[1, 2]], [p.tail[0, 0], p.tail[0, 1], many[0].begin as i6]],
    }
}

pub stream both(x: i9, p: Inner) -> (i9, Inner) {
    state last: i9 = -3;
    let before = last;
    last = x;
    (before, Inner { begin: p.begin + 1, class: p.class, real: p.real })
}
"""
ITEMS = 40


@pytest.fixture(params=["stream", "none"])
def interface(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["kinds", "both"])
def built(request: pytest.FixtureRequest, interface: str, tmp_path: Path) -> tuple[HardwareDesign, Path]:
    """A design, and the directory it was built into."""
    path, out = tmp_path / "kinds.kera", tmp_path / "out"
    path.write_text(SOURCE)
    flags = ["--emit", "verilog", "--interface", interface, "--clock", "80MHz", "-o", str(out)]
    assert main(["build", str(path), "--fn", request.param, *flags]) == 0
    program = kera_hw.load(path)
    export = next(item for item in program.graph.exports if item.name == request.param)
    options = TargetOptions(interface=interface, clock_mhz=80)
    return design_hardware(program.graph, export, options), out


TYPES: dict[str, Type] = {
    "bool": BOOL, "f16": kera_hw.types.F16, "fix<12, 4>": FixType(12, 4, True),
    **{f"{sign}{width}": IntType(width, sign == "i") for sign in "iu" for width in (1, 3, 5, 6, 8, 9)},
}


def leaf_bits(leaf: dict[str, Any], value: Any, item: int) -> list[tuple[int, int]]:
    """(lowest bit, pattern) of every scalar of a leaf, its value found by the path that a user writes."""
    _, *fields = leaf["path"].replace("[", ".[").split(".")
    axes = 0
    for field in fields:
        if field.startswith("["):
            axes += field.count(",") + 1
        else:
            value = value[int(field) if field.isdecimal() else field]
    shape, strides = leaf.get("shape", []), leaf.get("strides_bits", [])
    assert axes == len(shape)
    kind = TYPES[leaf["type"]]
    array = np.asarray(value)[item].astype(numpy_dtype(kind))
    found: list[tuple[int, int]] = []
    for place in itertools.product(*map(range, shape)):
        low = leaf["low"] + sum(k * step for k, step in zip(place, strides))
        found.append((low, int(to_bits(kind, array[place].reshape(1))[0])))
    return found


def by_the_map(ports: list[dict[str, Any]], kind: str, values: Any) -> dict[str, list[int]]:
    """The words on each data port, put together from plan.json alone."""
    words: dict[str, list[int]] = {}
    for port in (port for port in ports if port["kind"] == kind):
        name = port["leaves"][0]["path"].replace("[", ".").split(".")[0]
        given = values if kind == "result" else values[name]
        words[port["name"]] = [
            sum(bits << low for leaf in port["leaves"] for low, bits in leaf_bits(leaf, given, item))
            for item in range(ITEMS)
        ]
    return words


def inputs_and_results(design: HardwareDesign) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(6)
    inputs = {name: random_value(kind, ITEMS, rng) for name, kind in design.export.params}
    return inputs, InterpExecutor(design.program, design.export).run(inputs, ITEMS)


def test_values_lie_where_the_map_says(built: tuple[HardwareDesign, Path]) -> None:
    design, out = built
    plan = json.loads((out / "plan.json").read_text())
    ports: list[dict[str, Any]] = plan["ports"]
    assert [(p["name"], p["direction"], p["width"]) for p in ports] == [
        (p.name, p.direction, p.width) for p in design.emitted.ports
    ]
    for port in ports:  # every bit belongs to one leaf
        if port["kind"] in ("parameter", "result"):
            covered = [
                low + k
                for leaf in port["leaves"]
                for place in itertools.product(*map(range, leaf.get("shape", [])))
                for low in [leaf["low"] + sum(a * b for a, b in zip(place, leaf.get("strides_bits", [])))]
                for k in range(leaf["high"] - leaf["low"] + 1)
            ]
            assert sorted(covered) == list(range(port["width"]))
    inputs, results = inputs_and_results(design)
    given, wanted = by_the_map(ports, "parameter", inputs), by_the_map(ports, "result", results)
    run = simulate(design.emitted, [to_words(given[p.name], p.width) for p in design.emitted.data_inputs])
    assert run.fault is None
    for port, words in zip(design.emitted.data_outputs, run.outputs):
        assert from_words(words) == wanted[port.name]


def test_the_map_is_shown(built: tuple[HardwareDesign, Path]) -> None:
    design, out = built
    head = (out / f"{design.emitted.name}.v").read_text().split("`default_nettype")[0]
    page = (out / "report.html").read_text()
    leaf = "p.inner.begin" if design.export.name == "kinds" else "result.1.begin"
    assert f"{leaf}: i5" in head and leaf in page
    if design.export.name == "kinds":
        assert "[19 + 24*i +: " not in head and "[24*i +: 5]" in head and "many[i].begin: i5" in head
        assert "p.tail[i, j]: i6" in head


def test_the_verilog_template(built: tuple[HardwareDesign, Path], tmp_path: Path) -> None:
    """It elaborates with the module, and its ports are the values."""
    design, out = built
    emitted = design.emitted
    core, template = out / f"{emitted.name}.v", out / f"{emitted.name}_instance.v"
    name = f"{emitted.name}__instance"
    assert lint([core, template], name, allowed=("DECLFILENAME", "UNUSEDSIGNAL")) == []
    assert icarus_problems([core, template], name, tmp_path) == []
    inputs, results = inputs_and_results(design)
    sides: dict[str, list[Carried]] = {"input": [], "output": []}
    columns: dict[str, list[int]] = {}
    for port in emitted.port_map:
        for leaf in port.leaves:
            own = "_".join(leaf.names) + ("_" if leaf.names[-1] == "wire" or leaf.names == ("table",) else "")
            side = sides[port.direction]
            side.append(Carried(own, leaf.width * leaf.count, len(side)))
            given = results if port.kind == "result" else inputs[leaf.names[0]]
            row = leaf.to_json()
            columns[own] = [
                sum(bits << k * leaf.width for k, (_, bits) in enumerate(leaf_bits(row, given, item)))
                for item in range(ITEMS)
            ]
    plan = plan_ports(sides["input"], sides["output"], emitted.interface, emitted.protocol, 1)
    whole = replace(emitted, name=name, port_plan=plan, verilog=core.read_text() + template.read_text())
    run = simulate(whole, [to_words(columns[p.name], p.width) for p in whole.data_inputs])
    assert run.fault is None
    for port, words in zip(whole.data_outputs, run.outputs):
        assert from_words(words) == columns[port.name], port.name


class Outer(Elaboratable):
    """A design with the ports of the module, around the component of the template."""

    def __init__(self, design: HardwareDesign, component: Any) -> None:
        self.component, self.protocol = component, design.emitted.protocol
        self.signals = {port.name: Signal(port.width, name=port.name) for port in design.emitted.ports}

    def elaborate(self, platform: object) -> Module:
        m, s, k = Module(), self.signals, self.component
        m.domains.sync = sync = ClockDomain("sync", reset_less="rst" not in s)
        sync.clk = s["clk"]
        taken, given = k.i, k.o
        if "rst" in s:
            sync.rst = s["rst"]
        if self.protocol == "stream":
            taken, given = k.i.payload, k.o.payload
            m.d.comb += [k.i.valid.eq(s["in_valid"]), s["in_ready"].eq(k.i.ready)]
            m.d.comb += [s["out_valid"].eq(k.o.valid), k.o.ready.eq(s["out_ready"])]
        elif self.protocol == "valid":
            m.d.comb += [k.in_valid.eq(s["in_valid"]), s["out_valid"].eq(k.out_valid)]
        for name, signal in s.items():
            if name.startswith("in_") and name not in ("in_valid", "in_ready"):
                m.d.comb += Value.cast(taken[name.removeprefix("in_")]).eq(signal)
            if name.startswith("out_") and name not in ("out_valid", "out_ready"):
                m.d.comb += signal.eq(Value.cast(given[name.removeprefix("out_")]))
        m.submodules.inner = k
        return m


def test_the_amaranth_template(built: tuple[HardwareDesign, Path], interface: str, tmp_path: Path) -> None:
    design, out = built
    emitted = design.emitted
    found = runpy.run_path(str(out / f"{emitted.name}_instance.py"))
    component = found[f"{emitted.name.capitalize()}Kernel"]()
    source = tmp_path / "kinds.kera"
    kernel = kera_hw.load(source).component(emitted.name, interface=interface, clock_mhz=80)
    assert component.signature == kernel.signature
    outer = Outer(design, component)
    wrapper = module_verilog(outer, "outer", list(outer.signals.values()))
    quiet = "/* verilator lint_off WIDTH */\n"
    whole = replace(emitted, name="outer", verilog=quiet + emitted.verilog + wrapper)
    inputs, results = inputs_and_results(design)
    ports = [port.to_json() for port in emitted.port_map]
    given, wanted = by_the_map(ports, "parameter", inputs), by_the_map(ports, "result", results)
    run = simulate(whole, [to_words(given[p.name], p.width) for p in emitted.data_inputs])
    assert run.fault is None
    for port, words in zip(emitted.data_outputs, run.outputs):
        assert from_words(words) == wanted[port.name]


def test_names_of_the_template_are_legal_and_differ(tmp_path: Path) -> None:
    source = tmp_path / "odd.kera"
    source.write_text(
        "struct S { clk: u4, wire_: u4 }\n"
        "pub fn odd(begin: S, begin_clk: u4, wire: u4, i: [u4; 2], result: u4, kernel: u4, s: [S; 2],\n"
        "    s_clk_i: u4, in_s: u4) -> S {\n"
        "    S { clk: begin.clk + begin_clk + kernel + s[0].clk + in_s + s[1].wire_,\n"
        "        wire_: wire + i[0] + result + i[1] + s_clk_i }\n}\n"
    )
    graph = kera_hw.load(source).graph
    emitted = design_hardware(graph, graph.exports[0], TargetOptions()).emitted
    core, template = tmp_path / "odd.v", tmp_path / "odd_instance.v"
    core.write_text(emitted.verilog)
    template.write_text(verilog_template("odd", emitted.port_map))
    assert lint([core, template], "odd__instance", allowed=("DECLFILENAME", "UNUSEDSIGNAL")) == []
    assert icarus_problems([core, template], "odd__instance", tmp_path) == []
