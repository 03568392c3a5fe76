"""Counting the cells of a mapped netlist in the units that reports and comparisons use."""
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# One four-input LUT's worth of logic per cell. A carry cell holds two LUTs; a distributed RAM block
# takes six, two of them for its write port. An iCE40 carry shares the LUT behind it, which counts on its own.
_LUTS = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6, "SB_LUT4": 1}
_FLIP_FLOPS = frozenset({"TRELLIS_FF"})
_DSPS = frozenset({"MULT18X18D", "SB_MAC16"})
_BLOCK_RAMS = frozenset({
    "DP16KD", "PDPW16KD", "SB_RAM40_4K", "SB_RAM40_4KNR", "SB_RAM40_4KNW", "SB_RAM40_4KNRNW",
})


@dataclass(frozen=True, slots=True)
class CellCounts:
    """How many cells of each type a module holds, and the four sums that matter."""

    by_type: Mapping[str, int]

    @property
    def lut(self) -> int:
        """Four-input LUTs, those inside carry cells and distributed RAM included."""
        return sum(_LUTS.get(kind, 0) * count for kind, count in self.by_type.items())

    @property
    def ff(self) -> int:
        """Flip-flops in the fabric; registers inside DSP and RAM blocks are not counted."""
        return sum(
            count for kind, count in self.by_type.items()
            if kind in _FLIP_FLOPS or kind.startswith("SB_DFF")
        )

    @property
    def dsp(self) -> int:
        """Multiplier blocks."""
        return sum(count for kind, count in self.by_type.items() if kind in _DSPS)

    @property
    def bram(self) -> int:
        """Block RAMs."""
        return sum(count for kind, count in self.by_type.items() if kind in _BLOCK_RAMS)

    @property
    def carry(self) -> int:
        """Carry cells (two bits each on ECP5, one on iCE40)."""
        return self.by_type.get("CCU2C", 0) + self.by_type.get("SB_CARRY", 0)

    def to_json(self) -> dict[str, object]:
        """Plain JSON object: the sums and the counts by type."""
        return {
            "lut": self.lut, "ff": self.ff, "dsp": self.dsp, "bram": self.bram, "carry": self.carry,
            "cells": dict(sorted(self.by_type.items())),
        }


@dataclass(frozen=True, slots=True)
class Netlist:
    """A mapped design: the JSON that nextpnr reads and the cells of every module in it."""

    json_path: Path
    top: str
    modules: Mapping[str, CellCounts]

    @property
    def counts(self) -> CellCounts:
        """Cells of the top module alone (everything, when the design was flattened)."""
        return self.modules[self.top]


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a module: name, direction (``input``, ``output`` or ``inout``), width in bits."""

    name: str
    direction: str
    width_bits: int


def read_netlist(json_path: Path, top: str) -> Netlist:
    """Read Yosys's JSON; library cells without contents are left out."""
    modules: dict[str, Any] = json.loads(json_path.read_text("utf-8"))["modules"]
    counted = {
        name: CellCounts(Counter(str(cell["type"]) for cell in module["cells"].values()))
        for name, module in modules.items()
        if "blackbox" not in module.get("attributes", {}) and "whitebox" not in module.get("attributes", {})
    }
    return Netlist(json_path, top, counted)


def read_ports(json_path: Path, module: str) -> tuple[Port, ...]:
    """The ports of one module in Yosys's JSON, in declaration order."""
    ports: dict[str, Any] = json.loads(json_path.read_text("utf-8"))["modules"][module]["ports"]
    return tuple(Port(name, port["direction"], len(port["bits"])) for name, port in ports.items())
