"""From emitted Verilog to a bitstream, and to the figures that place and route achieved for the core."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from kera_hw.rtl.emit.serial import serial_name, serial_verilog
from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.rtl.toolchain.harness import measure
from kera_hw.rtl.toolchain.nextpnr import CHIPS, Chip, PathStep, TimingPath, place_and_route
from kera_hw.rtl.toolchain.pack import pack, suffix
from kera_hw.rtl.toolchain.process import scratch
from kera_hw.rtl.toolchain.yosys import read_commands, synthesise

Progress = Callable[[str], None]
STEPS = 5

# Pins that a design may use, by package: general-purpose I/O, less a few that boards need for themselves.
USABLE_PINS: Mapping[str, int] = MappingProxyType(
    {"CABGA381": 190, "CABGA554": 240, "CABGA756": 360, "tq144": 90, "ct256": 200, "sg48": 34},
)

# A line that declares or drives a signal.
_DRIVEN = re.compile(r"(?:\b(?:wire|reg)(?: signed)? (?:\[\d+:0\] )?|assign |^ +)(\w+)(?: <?=|;| \()")


@dataclass(frozen=True, slots=True)
class Achieved:
    """Figures of the core after place and route, measured between registers, and the bitstream's place.

    ``fmax_mhz`` is None for a core without registers. ``shell`` names the generated serial shell in the
    bitstream when the ports exceed the package's pins.
    """

    lut: int
    ff: int
    dsp: int
    bram: int
    fmax_mhz: float | None
    critical_path: TimingPath | None
    seed: int
    chip: str
    bitstream: Path
    bitstream_bytes: int
    shell: str | None

    def to_json(self) -> dict[str, object]:
        """Plain JSON object: the headline figures, then what they rest on."""
        return {
            "lut": self.lut, "ff": self.ff, "dsp": self.dsp, "bram": self.bram,
            "fmax_mhz": None if self.fmax_mhz is None else round(self.fmax_mhz, 1),
            "seed": self.seed, "chip": self.chip, "bitstream": self.bitstream.name,
            "bitstream_bytes": self.bitstream_bytes, "serial_shell": self.shell,
            "critical_path": [] if self.critical_path is None else _steps(self.critical_path),
        }


def _steps(path: TimingPath) -> list[dict[str, object]]:
    """A timing path as rows: what the signal passes, how long it takes, and where that was written.

    The many short steps along one carry chain are one row.
    """
    rows: list[dict[str, object]] = []
    chain = ""
    for step in path.steps:
        inside = step.to_cell.partition(".slice[")[0] if step.kind == "logic" else ""
        if step.kind == "routing" and not step.delay_ps:
            continue
        if inside and inside == chain:
            rows[-1]["delay_ns"] = round(float(str(rows[-1]["delay_ns"])) + step.delay_ps / 1000, 3)
            continue
        chain = inside
        rows.append({
            "kind": step.kind, "cell": inside or step.to_cell, "net": step.net,
            "delay_ns": round(step.delay_ps / 1000, 3),
            "source": step.sources[0] if step.sources else None, "sources": list(step.sources),
        })
    return rows


def pins_needed(emitted: Emitted) -> int:
    """Pins that the design's own ports would take."""
    return sum(port.width for port in emitted.ports)


def implement(
    emitted: Emitted, device: str, clock_mhz: float, *, seed: int = 1, out_dir: Path,
    progress: Progress = lambda _: None,
) -> Achieved:
    """Measure the core on ``device`` and write its bitstream into ``out_dir``.

    A missed clock is no error: compare ``fmax_mhz``. Raises ToolError (missing, failed, out of time), as
    when the design does not fit; KeyError for a device that CHIPS does not know.
    """
    chip = CHIPS[device]
    out_dir.mkdir(parents=True, exist_ok=True)
    with scratch("flow") as work:
        source = work / f"{emitted.name}.v"
        source.write_text(emitted.verilog, encoding="utf-8")
        core = measure([source], emitted.name, chip, target_mhz=clock_mhz, seeds=(seed,), progress=progress)
        bitstream = out_dir / (emitted.name + suffix(chip))
        shell, size_bytes = _bitstream(emitted, chip, source, clock_mhz, seed, bitstream, work, progress)
    counts = core.counts
    return Achieved(
        counts.lut, counts.ff, counts.dsp, counts.bram, core.fmax_mhz,
        None if core.critical_path is None else with_source_places(core.critical_path, emitted),
        seed, chip.name, bitstream, size_bytes, shell,
    )


def with_source_places(path: TimingPath, emitted: Emitted) -> TimingPath:
    """The path with each step's places as the user's source lines, then lines of the emitted Verilog.

    Signals keep their names through synthesis, so that a net or cell leads back to its place; what synthesis
    made up in between is placed by the Verilog line it came from.
    """
    lines = _origin_by_line(emitted)
    return replace(path, steps=tuple(_with_places(step, emitted, lines) for step in path.steps))


def _with_places(step: PathStep, emitted: Emitted, lines: Mapping[int, str]) -> PathStep:
    found: list[str] = []
    name = _origin_by_name(step.net or step.from_cell, emitted)
    if name:
        found.append(name)
    for place in step.sources:
        match = re.search(r"([^/\\]+\.v):(\d+)(?:\.\d+-(\d+))?", place)
        if match is None:
            if not re.search(r"[/\\]share[/\\]", place):  # the tools' own cell libraries
                found.append(place)
            continue
        found.append(f"{match[1]}:{match[2]}")
        if not name and match[3] in (None, match[2]) and int(match[2]) in lines:
            found.insert(0, lines[int(match[2])])
    return replace(step, sources=tuple(dict.fromkeys(found)))


def _origin_by_name(net: str, emitted: Emitted) -> str | None:
    """The source place of a net or cell, one part of whose path begins with a signal of the datapath."""
    for component in net.split("."):
        stem = re.split(r"[\[$]", component, maxsplit=1)[0]
        while stem:
            origin = emitted.origins.get(stem)
            if origin is not None:
                return str(origin)
            stem = stem.rpartition("_")[0]
    return None


def _origin_by_line(emitted: Emitted) -> dict[int, str]:
    """The source place of each Verilog line that declares or drives a signal with a known origin."""
    places: dict[int, str] = {}
    for number, line in enumerate(emitted.verilog.splitlines(), start=1):
        match = _DRIVEN.search(line)
        origin = emitted.origins.get(match[1]) if match else None
        if origin is not None:
            places[number] = str(origin)
    return places


def _bitstream(
    emitted: Emitted, chip: Chip, source: Path, clock_mhz: float, seed: int, bitstream: Path, work: Path,
    progress: Progress,
) -> tuple[str | None, int]:
    """Write the bitstream; the shell's name, if one was needed, and the size in bytes."""
    sources, top, shell = [source], emitted.name, None
    if pins_needed(emitted) > USABLE_PINS[chip.package]:
        shell = top = serial_name(emitted)
        wrapper = work / f"{shell}.v"
        wrapper.write_text(serial_verilog(emitted), encoding="utf-8")
        sources.append(wrapper)
    netlist, config = work / "netlist.json", work / "design.config"
    progress("synthesis for the bitstream")
    synthesise(chip.family, read_commands(sources), top, netlist, options=chip.synth_options)
    progress("place and route for the bitstream")
    place_and_route(netlist, chip, target_mhz=clock_mhz, seed=seed, config=config)
    progress("packing the bitstream")
    return shell, pack(config, chip, bitstream)
