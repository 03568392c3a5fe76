"""`kera build`: everything an engineer takes away, in one directory, with the receipt last.

All files are made in a directory of their own and moved when the last one is finished, so that a build that
fails or is interrupted leaves an earlier one as it was.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kera_hw.driver.files import replace_files
from kera_hw.driver.hardware import PLANNING_STEPS, HardwareDesign, design_again, design_hardware
from kera_hw.driver.observed_verilog import file_verilog
from kera_hw.driver.options import PLACEMENT_SEED, TargetOptions, check_choice
from kera_hw.driver.receipt import Request, make_receipt
from kera_hw.driver.registers import driver_text, header_text
from kera_hw.driver.report import render_report
from kera_hw.driver.session import Loaded, source_files
from kera_hw.driver.testbench import KINDS, RANDOM_ITEMS, make_testbench
from kera_hw.graph import Export, Graph, write_keg
from kera_hw.rtl.emit.portmap import port_map
from kera_hw.rtl.emit.register_map import RegisterMap
from kera_hw.rtl.emit.template import INSTANCE, amaranth_template, verilog_template
from kera_hw.rtl.lower.flatten import parameter_buses, result_buses
from kera_hw.rtl.toolchain.process import ToolError, keep_logs
from kera_hw.support import Diagnostic, KeraError, Severity

Progress = Callable[[str], None]

# Of a build with one round of place and route.
BUILD_STEPS = PLANNING_STEPS + 6
LOGS = "logs"
# Rounds of place and route until the clock is met; each gives the next one's wires the delays it found.
_MAX_ROUNDS = 3
_LEAST_STRETCH = 1.05


@dataclass(frozen=True, slots=True)
class Benches:
    """Which test benches a build exports, with how many random items and which of the user's."""

    kinds: tuple[str, ...] = ()
    random: int = RANDOM_ITEMS.example
    given: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        RANDOM_ITEMS.check(self.random)
        for kind in self.kinds:
            check_choice("kind of test bench (`--testbench`)", kind, KINDS)


NO_BENCHES = Benches()


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What was built: the design, the directory, its files, and `plan.json`'s content.

    ``logs`` are what the tools printed, beside the files, and no part of what was built.
    """

    design: HardwareDesign
    directory: Path
    files: tuple[str, ...]
    logs: tuple[str, ...]
    plan: dict[str, Any]
    diagnostics: tuple[Diagnostic, ...]

    def __repr__(self) -> str:
        return f"<BuildResult {self.directory}: {', '.join(self.files)}>"


def build(
    loaded: Loaded,
    graph: Graph,
    export: Export,
    options: TargetOptions,
    directory: Path,
    verilog_only: bool,
    seed: int,
    progress: Progress,
    benches: Benches = NO_BENCHES,
) -> BuildResult:
    """Builds one export into ``directory``. Raises KeraError for what cannot be made or a tool's failure.

    What tools print is kept under ``directory``/logs, also of a build that fails: of the last that ran any.
    """
    seed = PLACEMENT_SEED.check(seed)
    directory.mkdir(parents=True, exist_ok=True)
    files, name = source_files(loaded), export.name
    with (
        tempfile.TemporaryDirectory(dir=directory, prefix=".build-") as temporary,
        keep_logs(directory / LOGS) as kept,
    ):
        work = Path(temporary)
        design = design_hardware(graph, export, options, progress, files)
        rounds: list[dict[str, Any]] = []
        if not verilog_only:
            _refuse_too_large(design)
            design, rounds = _close_timing(design, options, seed, work, progress)
        (work / f"{name}.keg").write_bytes(write_keg(design.graph))
        for file, text in verilog_files(design).items():
            (work / file).write_text(text, encoding="utf-8")
        plan = full_plan(design, rounds)
        if benches.kinds:
            progress("test benches")
            for file, text in make_testbench(design, benches.kinds, benches.random, benches.given).items():
                (work / file).write_text(text, encoding="utf-8")
        (work / "plan.json").write_text(json.dumps(plan, indent=1) + "\n", encoding="utf-8")
        progress("report")
        # Those of the report's own simulation do not count: whether it compiles depends on a cache.
        logs = tuple(f"{LOGS}/{item}" for item in kept.names)
        request = Request(options, design.scale, seed, "verilog" if verilog_only else "bitstream")
        shown = make_receipt(plan, request, work, sorted(path.name for path in work.iterdir()))
        (work / "report.html").write_text(render_report(design, plan, files, shown, logs), encoding="utf-8")
        made = sorted(path.name for path in work.iterdir())
        receipt = make_receipt(plan, request, work, made)
        (work / "receipt.json").write_text(json.dumps(receipt, indent=1) + "\n", encoding="utf-8")
        replace_files(work, directory, [*made, "receipt.json"])
        logs = tuple(f"{LOGS}/{item}" for item in kept.names)
        if not logs:
            kept.clear()
    notes = (*design.diagnostics, *_missed_clock(design, rounds))
    return BuildResult(design, directory, (*made, "receipt.json"), logs, plan, notes)


def _refuse_too_large(design: HardwareDesign) -> None:
    """Place and route of what cannot fit would take long and end in the tool's words."""
    over = [item for item in design.diagnostics if item.code == "K0604"]
    if over:
        raise KeraError([Diagnostic(item.code, item.message) for item in over])


def _close_timing(
    design: HardwareDesign,
    options: TargetOptions,
    seed: int,
    work: Path,
    progress: Progress,
) -> tuple[HardwareDesign, list[dict[str, Any]]]:
    """Place and route until the clock asked for is met: what a round misses stretches the next plan's wires.

    Without a clock asked for, or with a plan given, there is one round. The design given back is that of the
    best round, whose bitstream is in ``work``; its row in the list is the last.
    """
    rounds: list[dict[str, Any]] = []
    best: tuple[float, HardwareDesign, dict[str, Any], bytes] | None = None
    scale = design.scale
    asked_mhz = options.clock_mhz if options.plan is None else None
    for number in range(1, _MAX_ROUNDS + 1):
        again = f" (round {number})" if number > 1 else ""
        achieved = _implement(design, seed, work, lambda step, again=again: progress(step + again))
        reached = achieved["fmax_mhz"] or float("inf")
        rounds.append({"scale": scale, "latency_cycles": design.pace.latency_cycles, **achieved})
        if best is None or reached > best[0]:
            best = (reached, design, rounds[-1], (work / achieved["bitstream"]).read_bytes())
        if asked_mhz is None or reached >= asked_mhz or number == _MAX_ROUNDS:
            break
        # Rounded, so that what the receipt says gives this plan again.
        scale = round(scale * max(_LEAST_STRETCH, asked_mhz / reached), 3)
        try:
            design = design_again(design, scale)
        except KeraError:
            break  # no plan bears wires that slow: the best one so far stands
    assert best is not None
    _, design, row, bitstream = best
    (work / row["bitstream"]).write_bytes(bitstream)
    return design, [*(other for other in rounds if other is not row), row]


def _implement(design: HardwareDesign, seed: int, directory: Path, progress: Progress) -> dict[str, Any]:
    """Figures after place and route, as plain data; the bitstream goes to ``directory``."""
    from kera_hw.rtl.flow import implement

    try:
        done = implement(
            design.emitted, design.device.name, design.clock_mhz,
            seed=seed, out_dir=directory, progress=progress,
        )  # fmt: skip
    except ToolError as fault:
        raise KeraError([fault.diagnostic]) from None
    return dict(done.to_json())


def verilog_files(design: HardwareDesign) -> dict[str, str]:
    """The module and how it is instantiated, by file name."""
    emitted = design.emitted
    name, ports = emitted.name, emitted.port_map
    files = {f"{name}.v": file_verilog(design), f"{name}_{INSTANCE}.v": verilog_template(name, ports)}
    if emitted.interface in ("stream", "none"):  # others are for tools that know them by their names
        files[f"{name}_{INSTANCE}.py"] = amaranth_template(name, ports, emitted.port_plan)
    if emitted.interface == "axi-lite":
        types = {**dict(parameter_buses(design.export)), **dict(result_buses(design.export))}
        known = name, design.graph.fingerprint, RegisterMap.of(emitted.port_plan), types
        files |= {f"{name}.h": header_text(*known), f"{name}_driver.py": driver_text(*known)}
    return files


def full_plan(design: HardwareDesign, rounds: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """`plan.json`: headline figures, estimated and achieved, then the schedule cell by cell."""
    data = design.plan_json()
    if rounds:
        data["achieved"] = rounds[-1]
        data["rounds"] = [
            {
                **{key: row[key] for key in ("scale", "latency_cycles", "lut", "ff", "fmax_mhz")},
                "slowest": _slowest(row["critical_path"]),
            }
            for row in rounds
        ]
    plan = design.ports
    data["channels"] = [channel.to_json() for channel in plan.channels]
    if plan.interface == "axi-lite":
        data["registers"] = [entry.to_json() for entry in RegisterMap.of(plan).entries]
    data["ports"] = [port.to_json() for port in port_map(design.export, plan)]
    data["schedule"] = design.plan.to_json()
    return data


def _slowest(path: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Between which cells a round's slowest path runs, and how much of it are wires."""
    if not path:
        return None
    wires_ns = sum(step["delay_ns"] for step in path if step["kind"] == "routing")
    total_ns = sum(step["delay_ns"] for step in path)
    return {
        "from": path[0]["cell"], "to": path[-1]["cell"],
        "wires_ns": round(wires_ns, 3), "logic_ns": round(total_ns - wires_ns, 3),
    }  # fmt: skip


def _missed_clock(design: HardwareDesign, rounds: list[dict[str, Any]]) -> list[Diagnostic]:
    """K0606 as a warning, with the source line at which the slowest path ends."""
    reached = rounds[-1]["fmax_mhz"] if rounds else None
    if reached is None or reached >= design.clock_mhz:
        return []
    places = [step["source"] for step in rounds[-1]["critical_path"] if step.get("source")]
    where = f" The slowest path ends at {places[-1]}." if places else ""
    message = (
        f"Place and route reached {reached:g} MHz of the {design.clock_mhz:g} MHz planned for.{where} "
        "Ask for more latency, another seed or a slower clock."
    )
    return [Diagnostic("K0606", message, severity=Severity.WARNING)]
