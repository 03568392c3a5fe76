"""Three kernels in one design, by each emitter: synthesised for both families, simulated twice."""
from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.rtl.emit.ports import Value, plan_ports
from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.rtl.sim.bench import simulate
from kera_hw.rtl.sim.words import from_words, to_words
from kera_hw.rtl.toolchain.yosys import check, synth_ecp5, synth_ice40
from tests.icarus import icarus_output, icarus_problems

# Each has a product, sums and selections of its own, so that all kinds of helper modules occur several times.
SOURCE = """
const T: [u8; 32] = [7, 9, 1, 3, 250, 8, 4, 4, 4, 99, 98, 97, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
    15, 16, 17, 18, 19, 20];

pub fn square(x: i16) -> i16 {
    let y = mul_wide(x, x);
    if x > 100 { (y >> 7) as i16 } else { (y as i16) ^ (x + 5) }
}

pub fn square_ecp5(x: i16) -> i16 {
    let k = x & 3;
    let y = match k { 0 => x, 1 => x + 77, 2 => x ^ 0x5a5, _ => x - 9 };
    (mul_wide(y, x + 3) >> 3) as i16
}

pub stream settle(x: i16) -> i16 {
    state level: i16 = 40;
    level = level - (level >> 2) + x;
    level ^ (T[(x & 31) as u5] as i16)
}
"""
NAMES = ("square", "square_ecp5", "settle")
ITEMS = 200

BENCH = """
module bench;
  reg clk = 0, rst = 1; reg [15:0] items [0:{last}]; reg [15:0] wanted [0:{last}];
  integer sent = 0, got = 0, wrong = 0; wire ready, valid; wire [15:0] result;
  trio dut(.clk(clk), .rst(rst), .in_valid(sent < {count}), .in_ready(ready),
    .in_x(items[sent < {count} ? sent : 0]), .out_valid(valid), .out_ready(1'b1), .out_data(result));
  always #5 clk = ~clk;
  initial begin
    $readmemh("items.hex", items); $readmemh("wanted.hex", wanted);
    repeat (3) @(negedge clk);
    rst = 0;
  end
  always @(negedge clk) if (!rst) begin
    if (valid) begin
      if (result !== wanted[got]) wrong = wrong + 1;
      got = got + 1;
    end
    if (got == {count}) begin $display("%0d wrong of %0d", wrong, got); $finish; end
  end
  always @(posedge clk) if (!rst && ready && sent < {count}) sent <= sent + 1;
endmodule
"""


def chained(parts: list[Emitted]) -> Emitted:
    """The kernels one behind the other."""
    lines = ["module trio(input clk, input rst, input in_valid, output in_ready, input [15:0] in_x,"]
    lines.append("  output out_valid, input out_ready, output [15:0] out_data);")
    count = len(parts)
    lines.append(f"  wire [{count}:0] valid, ready; wire [{16 * count + 15}:0] data;")
    lines.append("  assign valid[0] = in_valid, in_ready = ready[0], data[15:0] = in_x;")
    lines.append(f"  assign out_valid = valid[{count}], ready[{count}] = out_ready;")
    lines.append(f"  assign out_data = data[{16 * count + 15}:{16 * count}];")
    for k, part in enumerate(parts):
        lines.append(
            f"  {part.name} stage{k}(.clk(clk), .rst(rst), .in_valid(valid[{k}]), .in_ready(ready[{k}]), "
            f".in_x(data[{16 * k + 15}:{16 * k}]), .out_valid(valid[{k + 1}]), .out_ready(ready[{k + 1}]), "
            f".out_data(data[{16 * k + 31}:{16 * k + 16}]));"
        )
    plan = plan_ports([Value("in_x", 16)], [Value("out_data", 16)], "stream", "stream", 1)
    latency = sum(part.latency_cycles for part in parts)
    text = "\n".join([*(part.verilog for part in parts), *lines, "endmodule", ""])
    return Emitted("trio", text, "ecp5", plan, plan.pace(latency, 1), None, 0, {})


def expected(program: kera_hw.Program, items: list[int]) -> list[int]:
    values = np.array(items, np.uint16).view(np.int16)
    for name in NAMES:
        values = program.function(name).batch(x=values)
    return values.view(np.uint16).tolist()


@pytest.mark.parametrize("device", ["ecp5-85k", "ice40-hx8k"])
@pytest.mark.parametrize("emitter", ["text", "amaranth"])
def test_three_kernels_side_by_side(emitter: str, device: str, tmp_path: Path) -> None:
    source = tmp_path / "trio.kera"
    source.write_text(SOURCE)
    program = kera_hw.load(source)
    options = TargetOptions(device, 40.0, emitter=emitter)
    exports = {export.name: export for export in program.graph.exports}
    parts = [design_hardware(program.graph, exports[name], options).emitted for name in NAMES]
    modules = [re.findall(r"^module (\w+)", part.verilog, re.MULTILINE) for part in parts]
    assert all(set(a).isdisjoint(b) for a, b in combinations(modules, 2))
    if device.startswith("ecp5"):
        assert all(sum("__ecp5_" in module for module in found) >= 2 for found in modules)
    whole = chained(parts)
    verilog = tmp_path / "trio.v"
    verilog.write_text(whole.verilog)

    family = "ecp5" if device.startswith("ecp5") else "ice40"
    assert check([verilog], "trio", family=family) == []
    synthesise = synth_ecp5 if family == "ecp5" else synth_ice40
    netlist = synthesise([verilog], "trio", tmp_path / "trio.json")
    assert netlist.counts.lut > 50

    rng = np.random.default_rng(4)
    items = [int(v) for v in rng.integers(0, 1 << 16, ITEMS)]
    wanted = expected(program, items)
    run = simulate(whole, [to_words(items, 16)])
    assert run.fault is None
    assert from_words(run.outputs[0]) == wanted

    for name, rows in (("items.hex", items), ("wanted.hex", wanted)):
        (tmp_path / name).write_text("".join(f"{row:04x}\n" for row in rows))
    bench = tmp_path / "bench.v"
    bench.write_text(BENCH.format(last=ITEMS - 1, count=ITEMS))
    assert icarus_problems([verilog], "trio", tmp_path) == []
    assert f"0 wrong of {ITEMS}" in icarus_output([verilog, bench], "bench", tmp_path)
