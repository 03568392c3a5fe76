"""From a placed and routed design's textual configuration to the bitstream a device loads."""
from __future__ import annotations

from pathlib import Path

from kera_hw.rtl.toolchain.files import move_into_place
from kera_hw.rtl.toolchain.nextpnr import Chip
from kera_hw.rtl.toolchain.process import run_tool, scratch
from kera_hw.rtl.toolchain.tools import require

DEFAULT_TIMEOUT_S = 300.0


def pack(config: Path, chip: Chip, bitstream: Path, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> int:
    """Write ``bitstream`` from nextpnr's ``config`` and return its size in bytes.

    The result depends on the configuration alone, so equal inputs give equal files.
    """
    tool = "ecppack" if chip.family == "ecp5" else "icepack"
    program = require(tool)
    with scratch("pack") as work:
        (work / "design.config").write_bytes(config.read_bytes())
        options = ["--compress"] if chip.family == "ecp5" else []
        argv = [str(program), *options, "design.config", "design.bit"]
        run_tool(tool, argv, cwd=work, timeout_s=timeout_s)
        size_bytes = (work / "design.bit").stat().st_size
        move_into_place(work / "design.bit", bitstream)
    return size_bytes


def suffix(chip: Chip) -> str:
    """The file name suffix by which the family's bitstreams are known."""
    return ".bit" if chip.family == "ecp5" else ".bin"
