"""Streams whose state is memories: cells, plans and emitted Verilog against the interpreter."""
from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kera_hw.driver.formal import prove_export
from kera_hw.driver.hardware import HardwareDesign, plan_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.pace import memory_text
from kera_hw.driver.packing import pack_leaves
from kera_hw.driver.rtl_target import scalar_columns, unpack_outputs
from kera_hw.driver.sampling import random_value
from kera_hw.driver.session import compile_text, find_export
from kera_hw.graph import Export
from kera_hw.interp import flatten_value, run_export
from kera_hw.rtl.emit.verilog import Emitter, Interface, Style, emit_verilog, model_text
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.rtl.sim.words import from_words, to_words
from kera_hw.rtl.toolchain.process import scratch
from kera_hw.rtl.toolchain.tools import require
from kera_hw.rtl.toolchain.yosys import run_script
from kera_hw.schedule.accesses import memories
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.simulate import simulate_netlist
from kera_hw.schedule.verifier import verify_plan
from kera_hw.support import KeraError, SourceFile
from tests.icarus import icarus_output
from tests.memory_programs import BLOCKS, SOURCES
from tests.netlist_reference import evaluate

DEVICES = ("ecp5-85k", "ice40-hx8k")


@cache
def ecp5_models() -> list[str]:
    """Yosys' models of the cells around block RAM."""
    library = require("pyosys") / "share" / "ecp5"
    texts = [(library / name).read_text() for name in ("common_sim.vh", "ccu2c_sim.vh")]
    apart = r"specify.*?endspecify|`include[^\n]*|\$error[^\n]*"
    return [re.sub(apart, "", text, flags=re.DOTALL) for text in texts]


def synthesised(design: HardwareDesign) -> Counter[str]:
    """How often each cell is in the netlist that Yosys makes."""
    family = {"ecp5": "synth_ecp5 -abc9", "ice40": "synth_ice40 -abc9 -device hx"}[design.device.family]
    with scratch("memories") as work:
        (work / "design.v").write_text(design.emitted.verilog)
        name = design.emitted.name
        passes = ["read_verilog -D SYNTHESIS design.v", f"{family} -top {name}", "write_json design.json"]
        run_script(passes, work)
        module = json.loads((work / "design.json").read_text())["modules"][name]
    return Counter(cell["type"] for cell in module["cells"].values())


@cache
def design_of(name: str, device: str = "ecp5-85k", interval: int | None = None) -> HardwareDesign:
    path = Path(f"{name}.kera")
    loaded = compile_text(SourceFile(str(path), BLOCKS[name].encode()), path)
    assert loaded.graph is not None, name
    export = find_export(loaded, name)
    assert isinstance(export, Export)
    return plan_hardware(loaded.graph, export, TargetOptions(device, interval=interval))


class _Case:
    """Items for a design, and the results that the interpreter gives."""

    def __init__(self, design: HardwareDesign, count: int, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        export = design.export
        self.inputs = {name: random_value(kind, count, rng) for name, kind in export.params}
        self.expected = run_export(export, self.inputs, batch=True)
        columns = [
            column for name, kind in export.params
            for column in scalar_columns(flatten_value(kind, self.inputs[name], count, name), count)
        ]
        self.words = pack_leaves(design.flat.inputs, columns, design.flat.in_buses, count)
        self.count, self._design = count, design

    def agrees(self, words: dict[str, Any]) -> bool:
        """Whether these are the expected results, by bus."""
        got: Any = unpack_outputs(self._design, words, self.count)
        wanted: Any = self.expected
        several = len(self._design.flat.out_buses) > 1
        pairs = list(zip(got, wanted)) if several else [(got, wanted)]
        return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SOURCES)
def test_cells_mean_what_the_program_says(name: str, device: str) -> None:
    """Random addresses, of which many are equal; planning has the independent verifier agree."""
    design = design_of(name, device)
    assert memories(design.netlist), f"{name} is kept in registers"
    case = _Case(design, 400)
    columns = {bus: from_words(words) for bus, words in case.words.items()}
    found = simulate_netlist(design.netlist, columns)
    rows = evaluate(design.netlist, [dict(zip(columns, row)) for row in zip(*columns.values())])
    assert found == {bus: [row[bus] for row in rows] for bus in found}
    widths = dict(design.flat.out_buses)
    assert case.agrees({bus: to_words(values, widths[bus]) for bus, values in found.items()})


_SIMULATED: tuple[tuple[str, str, Interface, Style, Emitter], ...] = (
    ("counted", "ecp5-85k", "stream", "ecp5", "text"),
    ("conditional", "ecp5-85k", "stream", "generic", "amaranth"),
    ("read_behind", "ecp5-85k", "stream", "ecp5", "amaranth"),
    ("two_writes", "ecp5-85k", "stream", "generic", "text"),
    ("started", "ecp5-85k", "none", "ecp5", "text"),
    ("either", "ice40-hx8k", "stream", "generic", "text"),
    ("banks", "ecp5-85k", "none", "generic", "amaranth"),
    ("looped", "ice40-hx8k", "stream", "generic", "amaranth"),
    ("file", "ecp5-85k", "stream", "ecp5", "text"),
)


@pytest.mark.parametrize(("name", "device", "interface", "style", "emitter"), _SIMULATED)
def test_verilog_means_what_the_program_says(
    name: str, device: str, interface: Interface, style: Style, emitter: Emitter
) -> None:
    """In every cycle as planned, with stalls on both sides, and after a reset from the initial words on."""
    design = design_of(name, device)
    plan = replace(design.plan, interface=interface)
    emitted = emit_verilog(design.netlist, plan, interface, style, emitter)
    assert emitted.register_bits == plan.register_bits and emitted.reset_cycles == plan.reset_cycles > 0
    case = _Case(design, 500)
    items = [case.words[port.name] for port in emitted.data_inputs]
    resets = (plan.reset_cycles + 200, plan.reset_cycles // 2)  # while items pass, and words are initialised
    traffics = [
        Traffic(), Traffic(60, 60, 1), Traffic(100, 30, 2), *(Traffic(80, 70, 3, at) for at in resets),
    ]
    for traffic in traffics:
        run = simulate(emitted, items, traffic)
        assert run.fault is None, traffic
        assert case.agrees(dict(zip((port.name for port in emitted.data_outputs), run.outputs))), traffic
        if traffic.unhindered:
            assert set(run.emit_cycles - run.accept_cycles) == {plan.latency_cycles}
            assert set(run.accept_cycles[1:] - run.accept_cycles[:-1]) == {plan.initiation_interval}


@pytest.mark.parametrize("name", ["started", "deep", "nibbles", "bytes"])
def test_block_rams_mean_what_the_program_says(name: str) -> None:
    """What synthesis reads, with the vendor's cell: words of 18, 9, 4, 2 and 1 bits, blocks behind blocks."""
    design = design_of(name)
    emitted = design.emitted
    assert "DP16KD" in emitted.verilog and "__ecp5_ram #" in emitted.verilog
    cells = ecp5_models()
    text = emitted.verilog.replace("`ifdef SYNTHESIS", "`ifndef SYNTHESIS")
    as_synthesised = replace(emitted, verilog="\n".join([text, *cells, model_text("DP16KD")]))
    case = _Case(design, 600)
    items = [case.words[port.name] for port in emitted.data_inputs]
    for traffic in (Traffic(), Traffic(70, 60, 2, design.plan.reset_cycles + 300)):
        run = simulate(as_synthesised, items, traffic)
        assert run.fault is None, traffic
        assert case.agrees(dict(zip((port.name for port in emitted.data_outputs), run.outputs))), traffic


@pytest.mark.parametrize(("name", "device", "cell", "count"), [
    ("counted", "ecp5-85k", "DP16KD", 2), ("bytes", "ecp5-85k", "DP16KD", 2),
    ("deep", "ecp5-85k", "DP16KD", 6), ("file", "ecp5-85k", "TRELLIS_DPR16X4", 16),
    ("counted", "ice40-hx8k", "SB_RAM40_4K", 2),
])
def test_synthesis_gives_the_cells_that_are_counted(name: str, device: str, cell: str, count: int) -> None:
    design = design_of(name, device)
    found = synthesised(design)
    assert found.get(cell) == count
    estimate = design.plan.estimate
    assert estimate.bram == (0 if cell == "TRELLIS_DPR16X4" else count)
    if design.device.family == "ecp5":
        luts = found["LUT4"] + 2 * found["CCU2C"] + 6 * found.get("TRELLIS_DPR16X4", 0)
        assert 0.75 * luts < estimate.lut < 1.25 * luts
        assert 0.75 * found["TRELLIS_FF"] < estimate.ff < 1.25 * found["TRELLIS_FF"]


def test_without_forwarding_counts_are_lost() -> None:
    """The comparison does fail: equal addresses come close behind each other."""
    design = design_of("counted")
    emitted = emit_verilog(design.netlist, design.plan)
    broken = replace(emitted, verilog=emitted.verilog.replace(".FORWARD(1)", ".FORWARD(0)"))
    assert broken.verilog != emitted.verilog
    case = _Case(design, 500)
    run = simulate(broken, [case.words[port.name] for port in emitted.data_inputs])
    assert not case.agrees(dict(zip((port.name for port in emitted.data_outputs), run.outputs)))


def test_proofs_refuse_memories() -> None:
    design = design_of("flags")
    with pytest.raises(KeraError) as refusal:
        prove_export(design.program, design.export, design.options, 10.0)
    (diagnostic,) = refusal.value.diagnostics
    assert diagnostic.code == "K0961" and "memories (`seen`)" in diagnostic.message


@pytest.mark.parametrize(("name", "interval", "distances"), [
    ("counted", 1, {1}), ("banks", 1, {40}), ("two_writes", 2, {1}), ("either", 1, {1}),
])
def test_plans_follow_from_how_accesses_meet(name: str, interval: int, distances: set[int]) -> None:
    """Writes in two branches are one, two in every item take turns, a counter's addresses are known."""
    design = design_of(name)
    assert design.plan.initiation_interval == interval
    assert {storage.distance for storage, _ in memories(design.netlist)} == distances


def test_a_plan_that_lets_accesses_meet_is_refused() -> None:
    """By the verifier, which knows nothing of the constraints: a write a stage later, or one sooner."""
    design = design_of("counted")
    ((_, accesses),) = memories(design.netlist)
    (write,) = (access.cell for access in accesses if not access.reads)
    for step in (-1, 1):
        stage = [at + step * (k == write) for k, at in enumerate(design.plan.stage)]
        plan = replace(design.plan, stage=tuple(stage), available=tuple(stage))
        faults = verify_plan(design.netlist, plan, DelayModel(design.device))
        assert any("meets memory count" in fault for fault in faults), step


def test_a_request_that_leaves_no_turn_is_refused() -> None:
    with pytest.raises(KeraError) as refusal:
        design_of("two_writes", interval=1)
    (diagnostic,) = refusal.value.diagnostics
    assert diagnostic.code == "K0603"
    assert "2 that take turns in each item. The smallest interval for them is 2." in diagnostic.message


def test_the_plan_says_what_memories_are_made_of() -> None:
    plan = design_of("counted").plan_json()
    (memory,) = plan["memories"]
    assert memory == {
        "name": "count", "words": 256, "bits": 32, "read_ports": 1, "style": "block", "blocks": 2,
        "hands_over": True, "distance": 1,
    }
    assert plan["reset_cycles"] == 256 and plan["estimate"]["bram"] == 2
    assert memory_text(memory) == (
        "Memory `count`: 256 words of 32 bits in 2 block RAMs; reads are handed what is on its way."
    )


@pytest.mark.parametrize("synthesised_cells", [False, True], ids=["as simulated", "as synthesised"])
def test_words_are_there_at_power_up(synthesised_cells: bool, tmp_path: Path) -> None:
    """Without any reset, in Icarus: items meet the initial words from the first cycle on."""
    design = design_of("started")
    text = design.emitted.verilog
    if synthesised_cells:
        text = text.replace("`ifdef SYNTHESIS", "`ifndef SYNTHESIS")
        text = "\n".join([text, *ecp5_models(), model_text("DP16KD")])
    (tmp_path / "design.v").write_text(text)
    addresses = [*range(32), 3, 3, 29, 31, 7]
    inputs = {
        "a": np.array(addresses, np.uint8), "x": np.arange(len(addresses), dtype=np.uint32),
        "go": np.array([k > 31 for k in range(len(addresses))]),
    }
    items = ", ".join(f"5'd{a}" for a in reversed(addresses))
    (tmp_path / "bench.sv").write_text(f"""
module bench;
  reg clk = 1'b0;
  integer sent = 0, got = 0;
  wire in_ready, out_valid;
  wire [18:0] out_data;
  wire [{5 * len(addresses) - 1}:0] items = {{{items}}};
  started dut(
    .clk(clk), .rst(1'b0), .in_valid(sent < {len(addresses)}), .in_ready(in_ready), .in_a(items[5*sent +: 5]),
    .in_x(sent[18:0]), .in_go(sent > 31), .out_valid(out_valid), .out_ready(1'b1), .out_data(out_data)
  );
  always @(posedge clk) begin
    if (in_ready) sent <= sent + 1;
    if (out_valid) begin $display("%0d", out_data); got <= got + 1; end
    if (got == {len(addresses)}) $finish;
  end
  initial repeat (1000) #5 clk = ~clk;
endmodule
""")
    printed = icarus_output([tmp_path / "design.v", tmp_path / "bench.sv"], "bench", tmp_path)
    found = [int(line) for line in printed.split() if line.isdigit()]
    assert found == np.asarray(run_export(design.export, inputs, batch=True)).tolist()


@pytest.mark.parametrize("name", ["nibbles", "bytes", "deep"])
def test_narrow_blocks_begin_with_the_initial_word(name: str, tmp_path: Path) -> None:
    """As synthesised, without any reset: the very first item, of zeros."""
    design = design_of(name)
    text = design.emitted.verilog.replace("`ifdef SYNTHESIS", "`ifndef SYNTHESIS")
    (tmp_path / "design.v").write_text("\n".join([text, *ecp5_models(), model_text("DP16KD")]))
    zeros = "".join(f".{port.name}({port.width}'d0), " for port in design.emitted.data_inputs)
    (port,) = design.emitted.data_outputs
    (tmp_path / "bench.sv").write_text(f"""
module bench;
  reg clk = 1'b0;
  wire in_ready, out_valid;
  wire [{port.width - 1}:0] out_data;
  {name} dut(
    .clk(clk), .rst(1'b0), .in_valid(1'b1), .in_ready(in_ready), {zeros}.out_valid(out_valid),
    .out_ready(1'b1), .out_data(out_data)
  );
  always @(posedge clk) if (out_valid) begin $display("%0d", out_data); $finish; end
  initial repeat (200) #5 clk = ~clk;
endmodule
""")
    printed = icarus_output([tmp_path / "design.v", tmp_path / "bench.sv"], "bench", tmp_path)
    (first,) = [int(line) for line in printed.split() if line.isdigit()]
    (storage,) = [storage for storage, _ in memories(design.netlist)]
    assert storage.initial is not None and first == storage.initial[0]
