"""Place and route with nextpnr for ECP5 and iCE40, and its report as data."""
from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kera_hw.rtl.toolchain.files import move_into_place
from kera_hw.rtl.toolchain.process import ToolError, ToolFailed, run_tool, scratch, whole_log
from kera_hw.rtl.toolchain.tools import require
from kera_hw.schedule.fpga.device import device_names, find_device
from kera_hw.support.diagnostic import Diagnostic

DEFAULT_TIMEOUT_S = 1800.0
_TOOL_LIBRARY = re.compile(r"[/\\]share[/\\][^|]*\.v:|^wrapper\.v:")  # Yosys's cell maps, our harness
Family = Literal["ecp5", "ice40"]


@dataclass(frozen=True, slots=True)
class Chip:
    """A device as nextpnr and Yosys name it; ``synth_options`` are Yosys's own for the part."""

    name: str
    family: Family
    flag: str
    package: str
    speed: str
    synth_options: tuple[str, ...]


# Yosys's options for the speed grade that a device table names.
_SYNTH_OPTIONS = {
    "6": ("-abc9",), "hx": ("-abc9", "-device", "hx"), "up": ("-abc9", "-device", "u", "-dsp"),
}


def _chip(name: str) -> Chip:
    """nextpnr's option for a part is the last piece of its name."""
    device = find_device(name)
    assert device is not None and device.family in ("ecp5", "ice40")
    flag = "--" + name.rpartition("-")[2]
    return Chip(name, device.family, flag, device.package, device.speed, _SYNTH_OPTIONS[device.speed])


CHIPS: Mapping[str, Chip] = {name: _chip(name) for name in device_names()}


_KINDS = {
    "TRELLIS_COMB": "LUTs", "TRELLIS_FF": "flip-flops", "TRELLIS_IO": "pins", "MULT18X18D": "multipliers",
    "DP16KD": "block RAMs", "ICESTORM_LC": "logic cells", "SB_IO": "pins", "ICESTORM_DSP": "multipliers",
    "ICESTORM_RAM": "block RAMs",
}


class DoesNotFit(ToolError):
    """The design needs more of something than the chip has (K0604)."""

    def __init__(self, chip: Chip, kind: str, failure: ToolFailed) -> None:
        what = _KINDS.get(kind, kind)
        super().__init__(Diagnostic(
            "K0604", f"The design needs more {what} than {chip.name} ({chip.package}) has.",
            notes=("Choose a larger device, or a plan that needs less.", *whole_log(failure.kept)),
        ))
        self.log = failure.log


@dataclass(frozen=True, slots=True)
class PathStep:
    """One piece of a timing path: clock-to-output, logic, routing or set-up.

    ``sources`` are places in the design's text, ``file:line`` or ``file:line.column-line.column``: of the
    net travelled, or of the cell a signal leaves from; places in the tools' own libraries are left out.
    """

    kind: str
    delay_ps: int
    from_cell: str
    from_port: str
    to_cell: str
    to_port: str
    net: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TimingPath:
    """A slowest path between two clock domains, or between one and the pins (``<async>``)."""

    start: str
    end: str
    steps: tuple[PathStep, ...]

    @property
    def delay_ps(self) -> int:
        """Total delay, clock-to-output and set-up included."""
        return sum(step.delay_ps for step in self.steps)

    @property
    def routing_ps(self) -> int:
        """The wires' share of the delay."""
        return sum(step.delay_ps for step in self.steps if step.kind == "routing")

    @property
    def logic_levels(self) -> int:
        """Cells passed through between the two registers."""
        return sum(step.kind == "logic" for step in self.steps)

    @property
    def is_registered(self) -> bool:
        """Whether the path runs from register to register, so that it limits a clock."""
        return "async" not in self.start and "async" not in self.end

    def to_json(self) -> dict[str, object]:
        """Plain JSON object."""
        return {
            "start": self.start, "end": self.end, "delay_ps": self.delay_ps, "routing_ps": self.routing_ps,
            "logic_levels": self.logic_levels,
            "steps": [
                {
                    "kind": s.kind, "delay_ps": s.delay_ps, "from": f"{s.from_cell}.{s.from_port}",
                    "to": f"{s.to_cell}.{s.to_port}", "net": s.net, "sources": list(s.sources),
                }
                for s in self.steps
            ],
        }


@dataclass(frozen=True, slots=True)
class Usage:
    """Cells of one kind: used, and available on the device."""

    used: int
    available: int


@dataclass(frozen=True, slots=True)
class PlaceRoute:
    """What place and route achieved. ``config`` is the textual configuration a packer reads."""

    chip: Chip
    seed: int
    target_mhz: float
    fmax_by_clock_mhz: Mapping[str, float]
    utilisation: Mapping[str, Usage]
    paths: tuple[TimingPath, ...]
    config: Path | None
    log: str

    @property
    def fmax_mhz(self) -> float | None:
        """The slowest clock's achieved frequency; None for a design without registers."""
        return min(self.fmax_by_clock_mhz.values(), default=None)

    @property
    def critical_path(self) -> TimingPath | None:
        """The slowest register-to-register path."""
        registered = [path for path in self.paths if path.is_registered]
        return max(registered, key=lambda path: path.delay_ps, default=None)

    def to_json(self) -> dict[str, object]:
        """Plain JSON object, without the log."""
        critical = self.critical_path
        return {
            "chip": self.chip.name, "seed": self.seed, "target_mhz": self.target_mhz,
            "fmax_mhz": self.fmax_mhz, "fmax_by_clock_mhz": dict(self.fmax_by_clock_mhz),
            "utilisation": {
                kind: {"used": use.used, "available": use.available}
                for kind, use in self.utilisation.items() if use.used
            },
            "critical_path": critical.to_json() if critical else None,
        }


def place_and_route(
    netlist: Path,
    chip: Chip,
    *,
    target_mhz: float,
    seed: int = 1,
    config: Path | None = None,
    constraints: Path | None = None,
    out_of_context: bool = False,
    options: Sequence[str] = (),
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> PlaceRoute:
    """Place and route a mapped JSON ``netlist``; the same inputs and seed give the same result.

    A missed ``target_mhz`` is no failure: compare it with the result's ``fmax_mhz``. ``config`` is where
    the textual configuration goes (none is written without it); ``constraints`` is an LPF or PCF file,
    and ports it leaves out are placed freely. ``out_of_context`` inserts no I/O buffers, for a block
    without pins (no configuration comes of it). Raises DoesNotFit, ToolMissing, ToolFailed, ToolTimeout.
    """
    tool = f"yowasp-nextpnr-{chip.family}"
    program = require(tool)
    if out_of_context and (config or chip.family != "ecp5"):
        raise ValueError("out_of_context is for ECP5 blocks, and yields no configuration")
    with scratch("pnr") as work:
        design = netlist.read_bytes()
        (work / "netlist.json").write_bytes(design)
        argv = [
            str(program), chip.flag, "--package", chip.package, "--json", "netlist.json",
            "--freq", f"{target_mhz:g}", "--seed", str(seed), "--timing-allow-fail",
            "--report", "report.json", *options,
        ]
        if chip.family == "ecp5":
            argv += ["--speed", chip.speed, "--lpf-allow-unconstrained"]
            pins, output = "lpf", "textcfg"
        else:
            argv += ["--pcf-allow-unconstrained"]
            pins, output = "pcf", "asc"
        if out_of_context:
            argv.append("--out-of-context")
        if constraints:
            (work / f"pins.{pins}").write_bytes(constraints.read_bytes())
            argv += [f"--{pins}", f"pins.{pins}"]
        if config:
            argv += [f"--{output}", "design.config"]
        try:
            log = run_tool(tool, argv, cwd=work, timeout_s=timeout_s).log
        except ToolFailed as error:
            raise _explained(error, chip) from error
        report: dict[str, Any] = json.loads((work / "report.json").read_text("utf-8"))
        if config:
            move_into_place(work / "design.config", config)
    return PlaceRoute(
        chip, seed, target_mhz,
        {clock: float(row["achieved"]) for clock, row in report["fmax"].items()},
        {kind: Usage(row["used"], row["available"]) for kind, row in report["utilization"].items()},
        _paths(report.get("critical_paths", []), design),
        config, log,
    )


def _explained(error: ToolFailed, chip: Chip) -> ToolError:
    """The failure in the reader's terms where it is a lack of room, else as it is."""
    full = re.search(r"no BELs remaining to implement cell type '(\w+)'", error.log)
    if full:
        return DoesNotFit(chip, full[1], error)
    if re.search(r"Unable to find a placement location for cell '\S*\$sb_io'", error.log):
        return DoesNotFit(chip, "SB_IO", error)
    return error


def _paths(rows: Sequence[Mapping[str, Any]], design: bytes) -> tuple[TimingPath, ...]:
    places = _cell_sources(design)
    return tuple(
        TimingPath(row["from"], row["to"], tuple(_step(step, places) for step in row["path"]))
        for row in rows
    )


def _step(row: Mapping[str, Any], places: Mapping[str, list[str]]) -> PathStep:
    cell = row["from"]["cell"]
    net_sources = [source for source in row.get("sources", ()) if not _TOOL_LIBRARY.search(source)]
    sources = dict.fromkeys([*net_sources, *_source_of(cell, places)])
    return PathStep(
        row["type"], round(row["delay"] * 1000), cell, row["from"]["port"],
        row["to"]["cell"], row["to"]["port"], row.get("net", ""),
        tuple(sources),
    )


def _source_of(cell: str, places: Mapping[str, list[str]]) -> list[str]:
    """A cell's ``src``, or that of the register it feeds.

    nextpnr cuts a carry cell in two and marks the halves after a dollar sign. A LUT has lost its own
    ``src`` in technology mapping, but is named after the register behind it.
    """
    name = cell.partition("$")[0]
    while name:
        if name in places:
            return places[name]
        name = name.rpartition("_")[0]
    return []


def _cell_sources(design: bytes) -> dict[str, list[str]]:
    """Where each cell comes from in the design's text, by full name: instances joined by dots."""
    modules: dict[str, Any] = json.loads(design)["modules"]
    found: dict[str, list[str]] = {}

    def walk(module: str, prefix: str) -> None:
        for name, cell in modules[module]["cells"].items():
            if cell["type"] in modules and modules[cell["type"]]["cells"]:
                walk(cell["type"], f"{prefix}{name}.")
                continue
            places = cell["attributes"].get("src", "").split("|")
            own = [place for place in places if place and not _TOOL_LIBRARY.search(place)]
            if own:
                found[prefix + name] = own

    for name, module in modules.items():
        if "top" in module["attributes"]:
            walk(name, "")
    return found
