"""The Verilog that a build writes shows assertions, cover points and prints in any simulator, and synthesis
sees nothing of them."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.observed_verilog import file_verilog
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import compile_text
from kera_hw.rtl.toolchain.verilator import lint
from kera_hw.support import SourceFile
from tests.unit.cli_support import Kera

TEXT = """
pub stream g(x: i16) -> i16 ! io {
    state t: i16 = 0;
    t += x;
    if t < 0 { print("100% \\"neg\\"", t, [x, t], t == -6, 1.5f32, t as fix<20, 2>); }
    cover(t > 100, "large");
    assert(t < 1000, "bound");
    t
}
"""
BENCH = """
module bench; reg clk = 0, rst = 1, valid = 0, ready = 0; reg signed [15:0] x;
  wire taken, offered; wire [15:0] y; integer sent = 0;
  always #1 clk = ~clk;
  g dut(.clk(clk), .rst(rst), .in_valid(valid), .in_x(x), .in_ready(taken),
        .out_ready(ready), .out_valid(offered), .out_data(y));
  always @(negedge clk) begin
    ready = ~ready;
    if (!rst) begin valid = sent < 4; x = sent == 0 ? 3 : sent == 1 ? -9 : sent == 2 ? 2000 : 0; end
  end
  always @(posedge clk) if (valid && taken) sent <= sent + 1;
  initial begin #7 rst = 0; #60 $finish; end
endmodule
"""
SHOWN = [
    'g: item 1: 100% "neg": -6, [-9, -6], 1, 0x3fc00000, -6.00',
    "g: item 2: point large (case.kera:6) reached", "ERROR: g: item 2: assertion bound (case.kera:7) fails",
    "ERROR: g: item 3: assertion bound (case.kera:7) fails",
]


def _verilog(text: str = TEXT, **options: object) -> str:
    graph = compile_text(SourceFile("case.kera", text.encode()), Path("case.kera")).graph
    assert graph is not None
    wanted = TargetOptions(**options)  # pyright: ignore[reportArgumentType]
    return file_verilog(design_hardware(graph, graph.exports[0], wanted))


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs Icarus Verilog")
@pytest.mark.parametrize("emitter", ["text", "amaranth"])
def test_icarus_shows_them(emitter: str, tmp_path: Path) -> None:
    (tmp_path / "g.v").write_text(_verilog(emitter=emitter))
    (tmp_path / "bench.v").write_text(BENCH)
    done = subprocess.run(
        ["iverilog", "-g2005", "-o", "bench", "bench.v", "g.v"], cwd=tmp_path, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr
    shown = subprocess.run(["vvp", "./bench"], cwd=tmp_path, capture_output=True, text=True).stdout
    assert [line for line in shown.splitlines() if line.startswith(("g:", "ERROR"))] == SHOWN


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs Icarus Verilog")
def test_synthesis_sees_the_same_circuit_as_ever(tmp_path: Path) -> None:
    graph = compile_text(SourceFile("case.kera", TEXT.encode()), Path("case.kera")).graph
    assert graph is not None
    design = design_hardware(graph, graph.exports[0], TargetOptions())
    texts: list[list[str]] = []
    for verilog in (file_verilog(design), design.emitted.verilog):
        (tmp_path / "g.v").write_text(verilog)
        done = subprocess.run(
            ["iverilog", "-E", "-DSYNTHESIS", "-o", "-", "g.v"], cwd=tmp_path, capture_output=True, text=True,
        )
        assert done.returncode == 0, done.stderr
        lines = [line.strip() for line in done.stdout.splitlines()]
        texts.append([line for line in lines if line and not line.startswith(("//", "`"))])
    assert len(texts[0]) > 40 and texts[0] == texts[1]


def test_verilator_takes_the_file_with_all_warnings(tmp_path: Path) -> None:
    source = tmp_path / "g.v"
    source.write_text(_verilog())
    assert lint([source], "g") == []


def test_an_interface_that_does_not_tell_items_says_so() -> None:
    pure = _verilog("pub fn f(x: u8) -> u8 { assert(x < 9); x }", interface="none")
    assert pure.startswith("// Without assertions, cover points and prints: the interface does not tell")
    strobed = _verilog(interface="none")
    assert "g__observed observed (" in strobed and "in_valid & in_ready" not in strobed


def test_the_receipt_holds_with_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kera, path = Kera(capsys), tmp_path / "case.kera"
    path.write_text(TEXT)
    assert kera("build", path, "--emit", "verilog", "-o", tmp_path / "out").status == 0
    assert kera("verify", "--receipt", tmp_path / "out").status == 0
    assert "$display" in (tmp_path / "out" / "g.v").read_text()
