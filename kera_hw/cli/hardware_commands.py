"""plan and build: from a function to its circuit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from kera_hw.cli.options import (
    ClockOption,
    FileArgument,
    FunctionOption,
    InterfaceOption,
    JsonOption,
    LatencyOption,
    TargetOption,
    export_or_fail,
    load_or_fail,
    parse_clock,
    parse_device,
)
from kera_hw.cli.output import Output
from kera_hw.driver.options import TargetOptions


def register(app: typer.Typer) -> None:
    app.command("plan")(plan)
    app.command("build")(build)


def plan(
    file: FileArgument,
    function: FunctionOption = None,
    target: TargetOption = "fpga:ecp5-85k",
    clock: ClockOption = None,
    latency: LatencyOption = None,
    interface: InterfaceOption = "stream",
    json: JsonOption = False,
) -> None:
    """Show the pipeline that would be built: latency, interval, resources, and the chart of cycles.

    Example: kera plan fir.kera --fn fir --clock 200MHz
    """
    from kera_hw.driver.build import full_plan, source_files
    from kera_hw.driver.hardware import design_hardware
    from kera_hw.driver.report.chart import chart_rows
    from kera_hw.driver.report.text import pipeline_text

    output = Output(json)
    loaded, graph = load_or_fail(file, output)
    export = export_or_fail(loaded, function, output)
    options = TargetOptions(parse_device(target), parse_clock(clock), latency, interface)
    with output.progress.status("planning") as status:
        design = design_hardware(
            graph, export, options, lambda step: status.update(step), source_files(loaded)
        )
    data = full_plan(design, None)
    output.console.print(_figures(data))
    rows = chart_rows(design.netlist, design.plan, source_files(loaded))
    output.console.print(pipeline_text(rows, design.plan.latency_cycles), markup=False)
    output.finish(data, design.diagnostics)


def build(
    file: FileArgument,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Directory for the results.")],
    function: FunctionOption = None,
    target: TargetOption = "fpga:ecp5-85k",
    clock: ClockOption = None,
    latency: LatencyOption = None,
    interface: InterfaceOption = "stream",
    emit: Annotated[
        str, typer.Option("--emit", metavar="WHAT", help="verilog: stop there; bitstream: all the way.")
    ] = "bitstream",
    seed: Annotated[int, typer.Option("--seed", help="Seed of placement.")] = 1,
    json: JsonOption = False,
) -> None:
    """Build a function into Verilog, a bitstream, a report and a receipt.

    Example: kera build fir.kera --fn fir --target fpga:ecp5-85k --clock 150MHz -o build/fir
    """
    from kera_hw.driver.build import build as build_export

    if emit not in ("verilog", "bitstream"):
        raise typer.BadParameter(f"`{emit}` is neither verilog nor bitstream.", param_hint="--emit")
    output = Output(json)
    loaded, graph = load_or_fail(file, output)
    export = export_or_fail(loaded, function, output)
    options = TargetOptions(parse_device(target), parse_clock(clock), latency, interface)
    with output.progress.status("building") as status:
        result = build_export(
            loaded, graph, export, options, out, emit == "verilog", seed, lambda step: status.update(step)
        )
    output.console.print(_figures(result.plan))
    for name in result.files:
        output.console.print(f"wrote {result.directory / name}", markup=False)
    headline = {key: value for key, value in result.plan.items() if key != "schedule"}
    output.finish(
        {**headline, "directory": result.directory, "files": result.files}, result.design.diagnostics
    )


def _figures(data: dict[str, Any]) -> Table:
    """Estimate and, when there is one, the result beside it."""
    title = (
        f"{data['function']} on {data['target']} at {data['clock_mhz']:g} MHz: latency "
        f"{data['latency_cycles']} cycles, one item every {data['initiation_interval']}"
    )
    achieved = data.get("achieved")
    table = Table("", "LUT", "FF", "DSP", "BRAM", "Fmax MHz", title=title, title_justify="left")
    for label, row in (("estimate", data["estimate"]), ("achieved", achieved)):
        if row is not None:
            table.add_row(label, *(str(row[key]) for key in ("lut", "ff", "dsp", "bram", "fmax_mhz")))
    return table
