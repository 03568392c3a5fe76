"""Arguments and options that several commands take, declared once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kera_hw.cli.output import Output
from kera_hw.support import Diagnostic

if TYPE_CHECKING:
    from kera_hw.driver.options import TargetOptions
    from kera_hw.driver.session import Loaded
    from kera_hw.graph import Export, Graph

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
DeviceOption = Annotated[
    str, typer.Option("--device", metavar="DEVICE", help="The device that hardware targets are planned for.")
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
IntervalOption = Annotated[
    int | None,
    typer.Option("--ii", metavar="N", min=1, help="Cycles between items (default: the least)."),
]
DspOption = Annotated[
    int | None,
    typer.Option("--dsp", metavar="N", min=0, help="Multiplier blocks that may be used (default: all)."),
]
InterfaceOption = Annotated[
    str,
    typer.Option("--interface", metavar="KIND", help="stream (valid/ready) or none (clock and data alone)."),
]
EmitterOption = Annotated[
    str,
    typer.Option(
        "--emitter", metavar="HOW", help="text (fast), or amaranth: Verilog by way of one Amaranth design."
    ),
]

_UNITS_MHZ = {"hz": 1e-6, "khz": 1e-3, "mhz": 1.0, "ghz": 1e3}


def parse_clock(text: str | None) -> float | None:
    """MHz from `150MHz`, `0.15GHz`, `150000kHz` or a bare number of MHz; raises typer.BadParameter."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,12})?)\s*([kMG]?Hz)?\s*", text, re.IGNORECASE | re.ASCII)
    if match is None:
        raise typer.BadParameter(f"`{text}` is no frequency; write e.g. 150MHz.", param_hint="--clock")
    mhz = float(match[1]) * _UNITS_MHZ[(match[2] or "MHz").lower()]
    if not 1 <= mhz <= 1000:
        raise typer.BadParameter(f"{text} is outside 1 to 1000 MHz.", param_hint="--clock")
    return mhz


def hardware_options(
    target: str,
    clock: str | None,
    latency: int | None = None,
    interface: str = "stream",
    interval: int | None = None,
    dsp: int | None = None,
    emitter: str = "text",
) -> TargetOptions:
    """The request as the driver takes it; raises typer.BadParameter for what cannot be read."""
    from kera_hw.driver.options import EMITTERS, INTERFACES, TargetOptions

    if interface not in INTERFACES:
        known = " or ".join(INTERFACES)
        raise typer.BadParameter(f"`{interface}` is not {known}.", param_hint="--interface")
    if emitter not in EMITTERS:
        known = " or ".join(EMITTERS)
        raise typer.BadParameter(f"`{emitter}` is not {known}.", param_hint="--emitter")
    device = target.removeprefix("fpga:")
    return TargetOptions(device, parse_clock(clock), latency, interface, interval, dsp, emitter)


def load_or_fail(file: Path, output: Output) -> tuple[Loaded, Graph]:
    """The compiled program; ends the command with its diagnostics when there are errors."""
    from kera_hw.driver.session import load_program

    loaded = load_program(file)
    if loaded.graph is None or loaded.has_errors:
        output.fail(loaded.diagnostics)
    output.diagnostics(item for item in loaded.diagnostics if not item.is_error)
    return loaded, loaded.graph


def export_or_fail(loaded: Loaded, name: str | None, output: Output) -> Export:
    """The named export, or the only one; ends the command when there is none such."""
    from kera_hw.driver.session import find_export

    found = find_export(loaded, name)
    if isinstance(found, Diagnostic):
        output.fail([found])
    return found
