"""Icarus Verilog, the second simulator: slow, with unknown values, and written by other people."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kera_hw.rtl.toolchain.process import run_tool
from kera_hw.rtl.toolchain.tools import require

TIMEOUT_S = 600.0


def run_icarus(sources: Sequence[Path], top: str, work: Path, *, timeout_s: float = TIMEOUT_S) -> str:
    """Compiles and runs a bench in the directory ``work``; what it prints.

    Raises ToolMissing, ToolFailed or ToolTimeout.
    """
    compiler = require("iverilog")
    argv = [str(compiler), "-g2012", "-s", top, "-o", "bench.vvp", *(str(path.resolve()) for path in sources)]
    run_tool("iverilog", argv, cwd=work, timeout_s=timeout_s)
    # The compiler comes with its run-time.
    runtime = str(compiler.with_name("vvp"))
    return run_tool("vvp", [runtime, "-n", "bench.vvp"], cwd=work, timeout_s=timeout_s).log
