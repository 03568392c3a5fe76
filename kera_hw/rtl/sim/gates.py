"""A design after synthesis, to be simulated like the one before: the netlist and models of its cells."""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kera_hw.rtl.emit.verilog import Emitted, model_text
from kera_hw.rtl.toolchain.cells import CellCounts, read_netlist
from kera_hw.rtl.toolchain.nextpnr import Chip, Family
from kera_hw.rtl.toolchain.process import scratch
from kera_hw.rtl.toolchain.tools import require
from kera_hw.rtl.toolchain.yosys import run_script

# Yosys declares these without contents; the models are ours.
_OWN_MODELS = ("MULT18X18D", "DP16KD")


@dataclass(frozen=True, slots=True)
class Gates:
    """The netlist with its cells' models as Verilog, and how many cells there are."""

    verilog: str
    counts: CellCounts


def synthesised(emitted: Emitted, chip: Chip) -> Gates:
    """The design in cells of a chip, as it is synthesised for a bitstream but for its pins.

    Raises ToolMissing, ToolFailed or ToolTimeout.
    """
    with scratch("gates") as work:
        (work / "design.v").write_text(emitted.verilog, encoding="utf-8")
        command = " ".join([f"synth_{chip.family}", *chip.synth_options, "-top", emitted.name])
        written = ["write_json netlist.json", "write_verilog -noattr netlist.v"]
        run_script(["read_verilog -sv design.v", command, *written], work)
        netlist = (work / "netlist.v").read_text("utf-8")
        counts = read_netlist(work / "netlist.json", emitted.name).counts
    return Gates("\n".join([*_needed(netlist, *_models(chip.family)), netlist]), counts)


def _needed(netlist: str, head: str, models: Mapping[str, str]) -> list[str]:
    """The models of the cells in a netlist, and of those inside them."""
    found: dict[str, str] = {}
    waiting = [netlist]
    while waiting:
        words = set(re.findall(r"\w+", waiting.pop()))
        for name in sorted((words & models.keys()) - found.keys()):
            found[name] = models[name]
            waiting.append(models[name])
    # Defaults of unconnected inputs read as drivers; a synthesised netlist connects all of them.
    return ["`define NO_ICE40_DEFAULT_ASSIGNMENTS", head, *found.values()]


@cache
def _models(family: Family) -> tuple[str, dict[str, str]]:
    """Yosys's models of a family's cells: what stands before them, and each by name.

    They come without their timing, which a cycle simulator does not read.
    """
    folder = require("pyosys") / "share" / family
    text = (folder / "cells_sim.v").read_text("utf-8")
    include = re.compile(r'`include "([^"]+)"')
    while include.search(text):
        text = include.sub(lambda found: (folder / Path(found[1]).name).read_text("utf-8"), text)
    text = re.sub(r"\bspecify\b.*?\bendspecify\b", "", text, flags=re.DOTALL)
    modules = re.finditer(r"^[^\S\n]*module\s+(\w+).*?\bendmodule\b", text, re.DOTALL | re.MULTILINE)
    found = {item[1]: item[0] for item in modules}
    head = text[: text.index("\nmodule")]
    return head, {**found, **{name: model_text(name) for name in _OWN_MODELS}}
