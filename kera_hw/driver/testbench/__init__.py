"""Benches that a build exports: self-checking, with vectors from the reference interpreter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

from kera_hw.driver.hardware import HardwareDesign
from kera_hw.driver.options import Count
from kera_hw.driver.testbench.vectors import Vectors, make_vectors
from kera_hw.driver.testbench.verilog import bench_text
from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.support import Diagnostic, KeraError

KINDS = ("verilog", "cocotb")
RANDOM_ITEMS = Count("number of random items (`--vectors`)", "items", 1, 100_000, 64)

_OTHERWISE = (
    "Leave out `--testbench`: `kera verify` with the same `--interface` drives these ports. A bench can "
    "be had with `--interface stream` and no tensor of more than 1,024 bits."
)


def make_testbench(
    design: HardwareDesign, kinds: Sequence[str], random: int, given: Sequence[str]
) -> dict[str, str]:
    """The files of the benches by name. Raises KeraError for items that do not fit."""
    if not kinds:
        return {}
    if design.ports.surrounds_core:
        message = "A test bench (`--testbench`) drives whole items, and ports that carry beats take none."
        raise KeraError([Diagnostic("K0908", message, notes=(_OTHERWISE,))])
    vectors, name = make_vectors(design, random, given), design.emitted.name
    files: dict[str, str] = {}
    if "verilog" in kinds:
        files[f"{name}_tb.sv"] = bench_text(design.emitted, vectors)
    if "cocotb" in kinds:
        bench = resources.files("kera_hw.driver.testbench").joinpath("cocotb_bench.py")
        files[f"{name}_cocotb.py"] = bench.read_text("utf-8")
        files[f"{name}_vectors.json"] = json.dumps(vectors_json(design.emitted, vectors)) + "\n"
    return files


def vectors_json(emitted: Emitted, vectors: Vectors) -> dict[str, Any]:
    """What the cocotb bench reads: buses, planned figures, items and results."""
    return {
        "top": emitted.name,
        "protocol": emitted.protocol,
        "latency_cycles": emitted.latency_cycles,
        "initiation_interval": emitted.initiation_interval,
        "latencies": vectors.latencies,
        "gaps": vectors.gaps,
        "reset_cycles": emitted.reset_cycles,
        "inputs": {port.name: port.width for port in emitted.data_inputs},
        "outputs": {port.name: port.width for port in emitted.data_outputs},
        "items": list(vectors.items),
        "expected": list(vectors.expected),
    }
