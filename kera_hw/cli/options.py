"""Arguments and options that several commands take, declared once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from kera_hw.cli.output import Output
from kera_hw.driver.session import Loaded, find_export, load_program
from kera_hw.graph import Export, Graph
from kera_hw.support import Diagnostic

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A .kera source file or a .keg.")]
FunctionOption = Annotated[
    str | None,
    typer.Option(
        "--fn", metavar="NAME", help="The exported function or stream; needed if there are several."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
TargetOption = Annotated[
    str,
    typer.Option(
        "--target", metavar="fpga:DEVICE", help="The device: ecp5-25k, -45k, -85k, ice40-hx8k, ice40-up5k."
    ),
]
ClockOption = Annotated[
    str | None,
    typer.Option(
        "--clock", metavar="FREQ", help="Clock to plan for, e.g. 150MHz (default: the device's own)."
    ),
]
LatencyOption = Annotated[
    int | None,
    typer.Option("--latency", metavar="N", min=1, help="Pipeline latency in cycles (default: the least)."),
]
InterfaceOption = Annotated[
    str,
    typer.Option("--interface", metavar="KIND", help="stream (valid/ready) or none (clock and data alone)."),
]


def parse_clock(text: str | None) -> float | None:
    """MHz from `150MHz`, `0.15GHz`, `150000kHz` or a bare number of MHz; raises typer.BadParameter."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMG]?Hz)?\s*", text, re.IGNORECASE)
    if match is None:
        raise typer.BadParameter(f"`{text}` is no frequency; write e.g. 150MHz.", param_hint="--clock")
    unit = (match[2] or "MHz").lower()
    mhz = float(match[1]) * {"hz": 1e-6, "khz": 1e-3, "mhz": 1.0, "ghz": 1e3}[unit]
    if not 1 <= mhz <= 1000:
        raise typer.BadParameter(f"{text} is outside 1 to 1000 MHz.", param_hint="--clock")
    return mhz


def parse_device(text: str) -> str:
    """`ecp5-85k` from `fpga:ecp5-85k` or the bare device name."""
    return text.removeprefix("fpga:")


def load_or_fail(file: Path, output: Output) -> tuple[Loaded, Graph]:
    """The compiled program; ends the command with its diagnostics when there are errors."""
    loaded = load_program(file)
    if loaded.graph is None or loaded.has_errors:
        output.fail(loaded.diagnostics)
    output.diagnostics(item for item in loaded.diagnostics if not item.is_error)
    return loaded, loaded.graph


def export_or_fail(loaded: Loaded, name: str | None, output: Output) -> Export:
    found = find_export(loaded, name)
    if isinstance(found, Diagnostic):
        output.fail([found])
    return found
