"""The pairs of `python -m bench control`: the Verilog by hand does what the Kera program does."""
from __future__ import annotations

import random
from pathlib import Path

import pytest

from bench.control import KERNELS, PAIRS
from kera_hw.driver.formal import prove_export
from kera_hw.driver.session import load_program
from kera_hw.driver.targets import TargetOptions
from kera_hw.graph import Store
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.rtl.techmap import MapOptions, map_design
from kera_hw.rtl.techmap.bitwise.refine import refined
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.fpga.simulate import simulate_netlist
from tests.icarus import icarus_output

ITEMS = 3000
FEWER = 1000
"""For each netlist of refined logic, of which there are up to ten; what is planned is proved besides."""
BENCH = """
module bench;
  reg clk = 0, rst = 1, in_valid = 0, out_ready = 0;
  wire in_ready, out_valid;
  wire [{out_high}:0] out_data;
  reg [{in_high}:0] items [0:{last}];
  reg [{in_high}:0] item;
  integer sent = 0, got = 0, seed = 3;
  {name} dut (.clk(clk), .rst(rst), .in_valid(in_valid), .in_ready(in_ready), .out_valid(out_valid),
    .out_ready(out_ready), .out_data(out_data){ports});
  always #5 clk = !clk;
  initial $readmemh("items.hex", items);
  always @(posedge clk) begin
    rst <= 0;
    if (in_valid && in_ready) sent = sent + 1;
    if (out_valid && out_ready) begin
      $display("%h", out_data);
      got = got + 1;
      if (got == {last} + 1) $finish;
    end
    in_valid <= #1 !rst && sent <= {last} && (in_valid && !in_ready || $dist_uniform(seed, 0, 9) < 7);
    item <= #1 items[sent <= {last} ? sent : 0];
    out_ready <= #1 $dist_uniform(seed, 0, 9) < 7;
  end
endmodule
"""


@pytest.mark.parametrize("name", PAIRS)
def test_by_hand_and_by_kera_are_equal(name: str, tmp_path: Path) -> None:
    loaded = load_program(KERNELS / f"{name}.kera")
    assert loaded.graph is not None, loaded.diagnostics
    flat = flatten_export(loaded.graph.exports[0], Store(), 1, True)
    assert isinstance(flat, FlatDesign)
    netlist = map_design(flat, "ecp5-85k", 10_000, MapOptions(controls="none"))
    rng = random.Random(name)
    # Bits that stay for a while, as levels and buttons do, and bits that do not.
    steady = {bus: rng.getrandbits(width) for bus, width in flat.in_buses}
    given: dict[str, list[int]] = {bus: [] for bus, _ in flat.in_buses}
    for k in range(ITEMS):
        for bus, width in flat.in_buses:
            if k // 500 % 2 or rng.random() < 0.3:
                steady[bus] = rng.getrandbits(width)
            given[bus].append(steady[bus])
    want = simulate_netlist(netlist, given, ITEMS)["out_data"]
    part = find_device("ecp5-85k")
    assert part is not None
    some = {bus: values[:FEWER] for bus, values in given.items()}
    for _, finer in refined(netlist, DelayModel(part), 5000):
        assert simulate_netlist(finer, some, FEWER)["out_data"] == want[:FEWER]
    low, ports, lines = 0, "", [0] * ITEMS
    for bus, width in flat.in_buses:
        ports += f", .{bus}(item[{low + width - 1}:{low}])"
        lines = [line | value << low for line, value in zip(lines, given[bus])]
        low += width
    (tmp_path / "items.hex").write_text("\n".join(f"{line:x}" for line in lines) + "\n")
    bench = tmp_path / "bench.v"
    out_high = dict(flat.out_buses)["out_data"] - 1
    bench.write_text(BENCH.format(name=name, in_high=low - 1, out_high=out_high, last=ITEMS - 1, ports=ports))
    log = icarus_output([KERNELS / f"{name}.v", bench], "bench", tmp_path)
    assert [int(line, 16) for line in log.split()[: ITEMS]] == want


@pytest.mark.parametrize("name", [name for name in PAIRS if name not in ("crc32", "gray32", "scrambler64")])
def test_what_is_planned_is_proved_equal(name: str) -> None:
    """For all inputs, at a clock where logic is restructured; wide parities are slow for a solver."""
    loaded = load_program(KERNELS / f"{name}.kera")
    assert loaded.graph is not None, loaded.diagnostics
    proof = prove_export(loaded.graph, loaded.graph.exports[0], TargetOptions(clock_mhz=150), 120)
    assert proof.proved, proof.text()
