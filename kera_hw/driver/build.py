"""`kera build`: everything an engineer takes away, in one directory, with the receipt last."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kera_hw.driver.files import write_atomically
from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.receipt import make_receipt
from kera_hw.driver.report import render_report
from kera_hw.driver.session import Loaded, single_export_graph
from kera_hw.graph import Export, Graph, write_keg
from kera_hw.rtl.toolchain.process import ToolError
from kera_hw.support import KeraError, SourceFile

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What was built: the design, the directory, its files, and `plan.json`'s content."""

    design: HardwareDesign
    directory: Path
    files: tuple[str, ...]
    plan: dict[str, Any]


def build(
    loaded: Loaded,
    graph: Graph,
    export: Export,
    options: TargetOptions,
    directory: Path,
    verilog_only: bool,
    seed: int,
    progress: Progress,
) -> BuildResult:
    """Builds one export into ``directory``. Raises KeraError for what cannot be made or a tool's failure."""
    design = design_hardware(graph, export, options, progress, source_files(loaded))
    name = export.name
    directory.mkdir(parents=True, exist_ok=True)
    write_atomically(directory / f"{name}.keg", write_keg(single_export_graph(graph, export)))
    write_atomically(directory / f"{name}.v", design.emitted.verilog)
    files = [f"{name}.keg", f"{name}.v"]
    achieved: dict[str, Any] | None = None
    if not verilog_only:
        progress("synthesis, place and route")
        achieved, bitstream = _implement(design, seed, directory)
        files.append(bitstream)
    plan = full_plan(design, achieved)
    write_atomically(directory / "plan.json", json.dumps(plan, indent=1) + "\n")
    progress("report")
    write_atomically(directory / "report.html", render_report(design, plan, source_files(loaded)))
    files += ["plan.json", "report.html"]
    receipt = make_receipt(graph, name, plan, directory, files)
    write_atomically(directory / "receipt.json", json.dumps(receipt, indent=1) + "\n")
    return BuildResult(design, directory, (*files, "receipt.json"), plan)


def _implement(design: HardwareDesign, seed: int, directory: Path) -> tuple[dict[str, Any], str]:
    """Figures after place and route, and the bitstream's file name."""
    from kera_hw.rtl.flow import implement

    try:
        done = implement(
            design.emitted, design.device.name, design.plan.clock_mhz, seed=seed, out_dir=directory
        )
    except ToolError as fault:
        raise KeraError([fault.diagnostic]) from None
    return done.to_json(), done.bitstream.name


def full_plan(design: HardwareDesign, achieved: dict[str, Any] | None) -> dict[str, Any]:
    """`plan.json`: headline figures, estimated and achieved, then the schedule cell by cell."""
    data = design.plan_json()
    if achieved is not None:
        data["achieved"] = achieved
    data["schedule"] = design.plan.to_json()
    return data


def source_files(loaded: Loaded) -> dict[str, SourceFile]:
    """The sources by path, for diagnostics and the report; empty for a `.keg`."""
    program = loaded.frontend.program if loaded.frontend is not None else None
    if program is None:
        return {}
    files = {function.file.path: function.file for function in program.functions}
    return {**files, program.root.path: program.root}
