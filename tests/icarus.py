"""Icarus Verilog for tests, where the machine has it."""
from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from kera_hw.rtl.toolchain.process import run_tool
from kera_hw.rtl.toolchain.tools import TOOLS, locate

REFUSED = re.compile(r"error|sorry|warning", re.IGNORECASE)
DISCARDED = "Attributes are not supported on net declaration assignments"  # the places of source lines


def icarus_problems(
    verilog: Sequence[Path], top: str, work: Path, *, output: Path | None = None, generation: str = "2005",
) -> list[str]:
    """What Icarus says against a design; skips the test, with the reason, on a machine without it."""
    program = locate("iverilog")
    if program is None:
        pytest.skip(f"Icarus Verilog is not installed. {TOOLS['iverilog'].remedy}")
    argv = [
        str(program), f"-g{generation}", "-Wall", "-Wno-timescale", "-s", top,
        "-o", str(output or work / "icarus.vvp"), *map(str, verilog),
    ]
    done = run_tool("iverilog", argv, cwd=work, timeout_s=120, check=False)
    found = [line for line in done.log.splitlines() if REFUSED.search(line) and DISCARDED not in line]
    return found or ([done.log or "no reason given"] if done.status else [])


def icarus_output(verilog: Sequence[Path], top: str, work: Path) -> str:
    """What a bench prints."""
    compiled = work / "bench.vvp"
    problems = icarus_problems(verilog, top, work, output=compiled, generation="2012")
    assert not problems, problems
    vvp = (locate("iverilog") or Path("iverilog")).with_name("vvp")
    return run_tool("vvp", [str(vvp), "-n", str(compiled)], cwd=work, timeout_s=120).log
