"""From Verilog to a bitstream and to a simulation, with the real tools on small designs."""
from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from kera_hw.rtl.toolchain import harness, nextpnr, pack, process, verilator, yosys
from kera_hw.rtl.toolchain.cells import CellCounts, Port

MAC = """\
module mac(input clk, input rst, input [7:0] a, input [7:0] b, output [15:0] y);
  (* src = "mac.kera:3" *)
  reg [15:0] product;
  (* src = "mac.kera:4" *)
  reg [15:0] sum;
  always @(posedge clk) begin
    product <= a * b;
    if (rst) sum <= 0; else sum <= sum + product;
  end
  assign y = sum;
endmodule
"""
BENCH = """\
#include "Vdut.h"
#include "verilated.h"
#include <cstdio>
int main() {
    VerilatedContext context;
    Vdut dut(&context);
    dut.rst = 1;
    unsigned expected = 0, before = 0;
    for (unsigned n = 0; n < 100; ++n) {
        dut.a = n; dut.b = n + 1;
        dut.clk = 0; dut.eval();
        dut.clk = 1; dut.eval();
        expected = n == 0 ? 0 : (expected + before) & 0xffff;
        before = n * (n + 1);
        dut.rst = 0;
        if (n && dut.y != expected) { std::printf("%u: %u\\n", n, unsigned(dut.y)); return 1; }
    }
    dut.final();
    std::printf("%u\\n", expected);
}
"""
RTLIL = """\
attribute \\top 1
module \\top
  attribute \\src "a.kera:7"
  wire width 8 input 0 \\a
  wire width 8 output 1 \\y
  process $1
    assign \\y [7:0] 8'00000000
    switch \\a [0]
      case 1'1
        assign \\y [7:0] \\a
    end
  end
end
"""


@pytest.fixture
def mac(tmp_path: Path) -> Path:
    path = tmp_path / "mac with space.v"
    path.write_text(MAC)
    return path


def test_rtlil_becomes_readable_verilog() -> None:
    verilog = yosys.rtlil_to_verilog(RTLIL)
    assert "module top(" in verilog
    assert '(* src = "a.kera:7" *)' in verilog
    assert "src" not in yosys.rtlil_to_verilog(RTLIL, source_attributes=False)


def test_yosys_refusal_is_a_diagnostic() -> None:
    with pytest.raises(process.ToolFailed) as caught:
        yosys.rtlil_to_verilog("not rtlil")
    assert caught.value.diagnostic.code == "K0951"
    assert "ERROR" in caught.value.log


def test_ports_and_check(mac: Path, tmp_path: Path) -> None:
    assert yosys.module_ports([mac], "mac") == (
        Port("clk", "input", 1), Port("rst", "input", 1), Port("a", "input", 8), Port("b", "input", 8),
        Port("y", "output", 16),
    )
    assert yosys.check([mac], "mac") == []
    bad = tmp_path / "bad.v"
    bad.write_text("module bad(input a, output y); assign y = a; assign y = ~a; endmodule\n")
    assert any("drivers" in line for line in yosys.check([bad], "bad"))
    bad.write_text("module bad(input a, output y); wire u; assign y = a & u; endmodule\n")
    assert yosys.check([bad], "bad") == ["Wire bad.\\u is used but has no driver."]


def test_ecp5_from_verilog_to_bitstream(mac: Path, tmp_path: Path) -> None:
    chip = nextpnr.CHIPS["ecp5-25k"]
    netlist = yosys.synth_ecp5([mac], "mac", tmp_path / "mac.json")
    counts = netlist.counts
    assert (counts.dsp, counts.ff, counts.bram) == (1, 32, 0)
    assert counts.lut >= 2 * counts.carry > 0

    results: list[tuple[float | None, bytes]] = []
    for run in range(2):
        routed = nextpnr.place_and_route(
            netlist.json_path, chip, target_mhz=150, seed=3, config=tmp_path / f"mac{run}.config"
        )
        assert routed.config is not None
        bitstream = tmp_path / f"mac{run}{pack.suffix(chip)}"
        assert pack.pack(routed.config, chip, bitstream) == bitstream.stat().st_size > 50_000
        results.append((routed.fmax_mhz, bitstream.read_bytes()))
    assert results[0] == results[1]

    critical = routed.critical_path
    assert critical is not None and routed.fmax_mhz is not None
    assert critical.delay_ps == pytest.approx(1e6 / routed.fmax_mhz, abs=10)
    assert any("mac.kera:" in source for step in critical.steps for source in step.sources)
    assert routed.utilisation["MULT18X18D"] == nextpnr.Usage(1, 28)
    assert json.loads(json.dumps(routed.to_json()))["chip"] == "ecp5-25k"


def test_ice40_from_verilog_to_bitstream(mac: Path, tmp_path: Path) -> None:
    chip = nextpnr.CHIPS["ice40-up5k"]
    # Without this the whole design fits into one DSP block and there is no path in the fabric to time.
    mac.write_text(MAC.replace("assign y = sum", "assign y = sum ^ {sum[7:0], product[15:8]}")
                   .replace("sum + product", "sum - {product[7:0], product[15:8]}"))
    reading = yosys.read_commands([mac])
    netlist = yosys.synthesise("ice40", reading, "mac", tmp_path / "mac.json", options=chip.synth_options)
    assert netlist.counts.dsp == 1
    routed = nextpnr.place_and_route(netlist.json_path, chip, target_mhz=20, config=tmp_path / "mac.asc")
    assert routed.config is not None and routed.fmax_mhz is not None and routed.fmax_mhz > 10
    assert pack.pack(routed.config, chip, tmp_path / ("mac" + pack.suffix(chip))) > 50_000


def test_design_that_does_not_fit_is_refused_with_the_reason(tmp_path: Path) -> None:
    wide = tmp_path / "wide.v"
    wide.write_text("module wide(input clk, input [99:0] a, output reg [99:0] y);\n"
                    "always @(posedge clk) y <= ~a;\nendmodule\n")
    chip = nextpnr.CHIPS["ice40-up5k"]
    netlist = yosys.synth_ice40([wide], "wide", tmp_path / "wide.json")
    with pytest.raises(nextpnr.DoesNotFit) as caught:
        nextpnr.place_and_route(netlist.json_path, chip, target_mhz=20)
    assert caught.value.diagnostic.code == "K0604"
    assert "more pins than ice40-up5k (sg48)" in caught.value.diagnostic.message


def test_harness_counts_the_core_alone(mac: Path, tmp_path: Path) -> None:
    chip = nextpnr.CHIPS["ecp5-85k"]
    measured = harness.measure([mac], "mac", chip, seeds=(1,))
    alone = yosys.synth_ecp5([mac], "mac", tmp_path / "alone.json").counts
    assert (measured.input_bits, measured.output_bits) == (16, 16)
    counts = measured.counts
    assert (counts.lut, counts.ff, counts.dsp) == (alone.lut, alone.ff, alone.dsp)
    assert measured.fmax_mhz is not None and 50 < measured.fmax_mhz < 500
    assert harness.measure([mac], "mac", chip, seeds=()).fmax_mhz is None


def test_harness_times_more_ports_than_any_package_has(tmp_path: Path) -> None:
    wide = tmp_path / "wide.v"
    wide.write_text("module wide(input clk, input [219:0] a, output reg [219:0] y);\n"
                    "always @(posedge clk) y <= {a[219:40], a[39:0] + a[99:60]};\nendmodule\n")
    measured = harness.measure([wide], "wide", nextpnr.CHIPS["ecp5-25k"], target_mhz=50)
    assert measured.counts.ff == 220
    path = measured.critical_path
    assert path is not None and any(harness.in_core(step.to_cell) for step in path.steps)


def test_cell_sums() -> None:
    counts = CellCounts({
        "LUT4": 5, "CCU2C": 3, "TRELLIS_DPR16X4": 2, "TRELLIS_FF": 7, "MULT18X18D": 1, "DP16KD": 4,
        "PFUMX": 9,
    })
    assert (counts.lut, counts.ff, counts.dsp, counts.bram, counts.carry) == (23, 7, 1, 4, 3)
    assert CellCounts({"SB_LUT4": 2, "SB_DFFESR": 3, "SB_CARRY": 1}).ff == 3


def test_simulation_builds_and_agrees(mac: Path, tmp_path: Path) -> None:
    program = verilator.build(BENCH, [mac], "mac", tmp_path / "work")
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    total = sum(n * (n + 1) for n in range(1, 99)) & 0xFFFF
    assert (done.returncode, done.stdout) == (0, f"{total}\n")


def test_broken_bench_is_a_diagnostic(mac: Path, tmp_path: Path) -> None:
    with pytest.raises(process.ToolFailed) as caught:
        verilator.build("#error deliberate\n", [mac], "mac", tmp_path / "work")
    assert "deliberate" in caught.value.diagnostic.notes[0]


def test_lint_names_what_is_wrong(mac: Path, tmp_path: Path) -> None:
    assert verilator.lint([mac], "mac") == []
    bad = tmp_path / "bad.v"
    bad.write_text("module bad(input [7:0] a, output [3:0] y); assign y = a; endmodule\n")
    assert any("WIDTHTRUNC" in line for line in verilator.lint([bad], "bad"))
    bad.write_text("module bad(input a; endmodule\n")
    assert any("syntax error" in line for line in verilator.lint([bad], "bad"))


def test_waveforms_on_request(mac: Path, tmp_path: Path) -> None:
    bench = BENCH.replace('#include "verilated.h"', '#include "verilated.h"\n#include "verilated_vcd_c.h"')
    bench = bench.replace(
        "    dut.rst = 1;",
        '    context.traceEverOn(true); VerilatedVcdC wave; dut.trace(&wave, 9); wave.open("wave.vcd");\n'
        "    dut.rst = 1; wave.dump(0);",
    ).replace("    dut.final();", "    wave.dump(100); wave.close(); dut.final();")
    program = verilator.build(bench, [mac], "mac", tmp_path / "work", trace="vcd")
    assert subprocess.run([program], cwd=tmp_path, capture_output=True, timeout=60).returncode == 0
    assert "$var wire 16" in (tmp_path / "wave.vcd").read_text()
