"""`kera doctor` as data: every tool, where it was found, its version, and what to do about the rest."""
from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kera_hw.rtl.toolchain.process import ToolError, run_tool
from kera_hw.rtl.toolchain.tools import TOOLS, ToolInfo, locate, version_of_package

_PROBE_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class ToolStatus:
    """What is known about one tool; ``path`` is None when it is missing, ``remedy`` says how to get it.

    ``broken`` holds the reason when the tool is there and does not start.
    """

    name: str
    purpose: str
    path: str | None
    version: str | None
    optional: bool
    remedy: str | None
    broken: str | None = None

    @property
    def ok(self) -> bool:
        """Whether everything that needs the tool will find it working."""
        return self.path is not None and self.broken is None

    def to_json(self) -> dict[str, object]:
        """Plain JSON object for ``kera doctor --json``."""
        return {
            "name": self.name, "purpose": self.purpose, "found": self.path is not None, "path": self.path,
            "version": self.version, "optional": self.optional, "ok": self.ok, "remedy": self.remedy,
            "broken": self.broken,
        }


def doctor() -> list[ToolStatus]:
    """The state of every tool in TOOLS, in table order; takes about a second, never raises for a tool."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(_examine, TOOLS.values()))


def all_present(statuses: list[ToolStatus]) -> bool:
    """Whether every tool that is not optional works; ``kera doctor`` exits with 3 otherwise."""
    return all(status.ok or status.optional for status in statuses)


def _examine(tool: ToolInfo) -> ToolStatus:
    path = locate(tool.name)
    if path is None:
        return ToolStatus(tool.name, tool.purpose, None, None, tool.optional, tool.remedy)
    version, broken = None, None
    # A wheel's metadata is its version: the programs in them print none, or take seconds to start.
    if tool.distribution:
        version = version_of_package(tool.distribution)
    else:
        version, broken = _ask_version(tool, path)
    remedy = tool.remedy if broken else None
    return ToolStatus(tool.name, tool.purpose, str(path), version, tool.optional, remedy, broken)


def _ask_version(tool: ToolInfo, path: Path) -> tuple[str | None, str | None]:
    """Version and reason for not working of a program of the operating system."""
    argv = [str(path), "-V" if tool.name == "iverilog" else "--version"]
    try:
        log = run_tool(tool.name, argv, cwd=Path.cwd(), timeout_s=_PROBE_LIMIT_S).log
        if tool.name == "perl":  # a bare perl-base lacks the modules that Verilator's script uses
            argv = [str(path), "-MPod::Usage", "-MGetopt::Long", "-e", "1"]
            run_tool("perl with Pod::Usage", argv, cwd=Path.cwd(), timeout_s=_PROBE_LIMIT_S)
    except ToolError as error:
        return None, error.diagnostic.message
    match = re.search(r"\bv?(\d+(?:\.\d+)+)", log)
    return (match[1] if match else None), None
