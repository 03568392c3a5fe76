"""Arguments and options that several commands take, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kera_hw.cli.output import Output
from kera_hw.support import LINTS, Diagnostic

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
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing of progress on stderr.")
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
    typer.Option("--latency", metavar="N", help="Pipeline latency in cycles (default: the least)."),
]
IntervalOption = Annotated[
    int | None,
    typer.Option("--ii", metavar="N", help="Cycles between items (default: the least)."),
]
DspOption = Annotated[
    int | None,
    typer.Option("--dsp", metavar="N", help="Multiplier blocks that may be used (default: all)."),
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

def hardware_options(
    target: str,
    clock: str | None,
    latency: int | None = None,
    interface: str = "stream",
    interval: int | None = None,
    dsp: int | None = None,
    emitter: str = "text",
) -> TargetOptions:
    """The request as the driver takes it; raises KeraError for what it does not."""
    from kera_hw.driver.options import TargetOptions, clock_of_text

    return TargetOptions(target, clock_of_text(clock), latency, interface, interval, dsp, emitter)


def load_or_fail(file: Path, output: Output, lints: bool = False) -> tuple[Loaded, Graph]:
    """The compiled program; ends the command with its diagnostics when there are errors. ``lints``: whether
    to show these too, once the program is fine."""
    from kera_hw.driver.session import load_program

    loaded = load_program(file)
    if loaded.graph is None or loaded.has_errors:
        output.fail(loaded.diagnostics)
    output.diagnostics(item for item in loaded.diagnostics if lints or item.code not in LINTS)
    return loaded, loaded.graph


def export_or_fail(loaded: Loaded, name: str | None, output: Output) -> Export:
    """The named export, or the only one; ends the command when there is none such."""
    from kera_hw.driver.session import find_export

    found = find_export(loaded, name)
    if isinstance(found, Diagnostic):
        output.fail([found])
    return found
