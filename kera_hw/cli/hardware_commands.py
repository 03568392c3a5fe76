"""plan and build: from a function to its circuit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kera_hw.cli import complete
from kera_hw.cli.hardware import AS_PLANNED, HardwareRequest, takes_hardware
from kera_hw.cli.loop_plans import LoopRequest, show_loop_plan
from kera_hw.cli.options import (
    FileArgument,
    FunctionOption,
    JsonOption,
    QuietOption,
    export_or_fail,
    load_or_fail,
)
from kera_hw.cli.output import Output

if TYPE_CHECKING:
    from rich.table import Table

    from kera_hw.driver.options import TargetOptions
    from kera_hw.driver.web.build import Items
    from kera_hw.graph import Export, Graph
    from kera_hw.support import SourceFile

_FIGURES = ("lut", "ff", "dsp", "bram", "fmax_mhz")


def register(app: typer.Typer) -> None:
    """Adds this module's commands."""
    app.command("plan")(plan)
    app.command("build")(build)


@takes_hardware("hardware")
def plan(
    file: FileArgument,
    function: FunctionOption = None,
    hardware: HardwareRequest = AS_PLANNED,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="OUT.svg", help="Draw the pipeline chart into a file.")
    ] = None,
    loops: Annotated[
        bool, typer.Option("--loops", help="Plan the loops instead, for no target in particular.")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", metavar="P.toml",
            help="Write the plan into a file: the circuit's where a target or an option of it is named.",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Loops: say why each step was taken, and what is copied.")
    ] = False,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep", help="Compare intervals from 1 to --ii, or while the area falls; --svg plots it."
        ),
    ] = False,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Show the pipeline that would be built: latency, interval, resources, and the chart of cycles.

    For ptx or amdgcn: the launches, and what crosses between host and device. With --loops, --explain, or
    --save and no option of hardware: the plan of the loops. Either plan may be
    edited; --plan takes it again, here and, a circuit's, in build, verify, run and test.
    Examples: kera plan fir.kera --fn fir --clock 200MHz; kera plan fir.kera --save loops.toml;
    kera plan fir.kera --plan loops.toml --explain;
    kera plan fir.kera --target fpga:ecp5-25k --save fir.toml; kera plan fir.kera --target ptx;
    kera plan fir.kera --sweep --svg sweep.svg
    """
    from kera_hw.driver.hardware import PLANNING_STEPS, plan_hardware
    from kera_hw.driver.options import GPU_TARGETS
    from kera_hw.driver.session import source_files

    output = Output(json, quiet)
    if hardware.software in GPU_TARGETS and not loops and not explain and svg is None and save is None:
        _plan_for_gpu(hardware.software, file, function, output)
        return
    request = LoopRequest(hardware.plan, save, explain)
    asked = replace(hardware, plan=None)
    if loops or explain or _is_of_loops(hardware, save):
        if svg is not None or asked != AS_PLANNED:
            message = "A plan of loops is for no target in particular, and has no chart."
            raise typer.BadParameter(message, param_hint="--loops")
        show_loop_plan(file, function, request, output)
        return
    if sweep and (save is not None or hardware.plan is not None):
        raise typer.BadParameter("A sweep makes many plans; name one by its --ii.", param_hint="--sweep")
    options = hardware.for_hardware()
    loaded, graph = load_or_fail(file, output, lints=True)
    export = export_or_fail(loaded, function, output)
    sources = source_files(loaded)
    if sweep:
        _sweep(graph, export, options, output, svg, sources)
        return
    with output.progress("planning", PLANNING_STEPS) as step:
        design = plan_hardware(graph, export, options, step, sources)

    # What shows a plan comes once there is one: a refusal does not wait for it.
    from kera_hw.driver.build import full_plan
    from kera_hw.driver.files import write_atomically
    from kera_hw.driver.report.chart import chart_rows, chart_svg
    from kera_hw.driver.report.text import pipeline_text
    from kera_hw.driver.report.theme import standalone

    data = full_plan(design)
    rows = chart_rows(design.netlist, design.plan, sources)
    if svg is not None:
        write_atomically(svg, standalone(chart_svg(rows, design.plan.latency_cycles)))
    _print_headline(output, data)
    _print_choice(output, data["choice"])
    output.text("\n" + pipeline_text(rows, design.plan.latency_cycles))
    if save is not None:
        write_atomically(save, design.saved.to_toml())
        output.text(f"wrote {save}")
    output.finish({**data, "saved": save}, [*(loaded.diagnostics if json else ()), *design.diagnostics])


def _plan_for_gpu(target: str, file: Path, function: str | None, output: Output) -> None:
    """Shows the launches and what crosses between host and device."""
    from kera_hw.driver.gpu.plan import plan_text
    from kera_hw.driver.software_build import MAKERS

    loaded, graph = load_or_fail(file, output, lints=True)
    plan = MAKERS[target](graph, export_or_fail(loaded, function, output), {}).plan
    for row in plan_text(plan):
        output.text(row)
    output.finish(plan, loaded.diagnostics if output.json else ())


def _sweep(
    graph: Graph, export: Export, options: TargetOptions, output: Output, svg: Path | None,
    sources: dict[str, SourceFile],
) -> None:
    """The circuits for one interval after another, as a table and a plot."""
    from rich.table import Table

    from kera_hw.driver.files import write_atomically
    from kera_hw.driver.pace import rate_text
    from kera_hw.driver.report.theme import standalone
    from kera_hw.driver.report.tradeoff import tradeoff_svg
    from kera_hw.driver.sweep import LONGEST, sweep

    with output.progress("planning", options.interval or LONGEST) as step:
        found = sweep(graph, export, options, step, sources)
    output.text(f"{found.function} on {found.target} at {found.clock_mhz:g} MHz; area is {found.measure}")
    table = Table(box=None, pad_edge=False)
    for label in ("", "interval", "items", "latency", "area", "LUT", "FF", "DSP", "BRAM"):
        table.add_column(label, justify="right")
    table.add_column("")
    for point in found.points:
        figures = ("-",) * 7
        if point.area is not None:
            counts = (point.latency_cycles, point.area, point.lut, point.ff, point.dsp, point.bram)
            figures = (rate_text(point.items_per_s), *(f"{count:,}" for count in counts))
        again = f"the circuit for {point.made_for:,}" if point.made_for != point.interval else ""
        note = "; ".join(filter(None, [again, point.note or ""]))
        table.add_row("*" if point.on_front else "", f"{point.interval:,}", *figures, note)
    if not output.json:
        output.console.print(table)
    output.text("* nothing beats it in area, items a second and latency")
    if svg is not None:
        write_atomically(svg, standalone(tradeoff_svg(found)))
        output.text(f"wrote {svg}")
    output.finish({**found.to_json(), "svg": svg}, [])


def _is_of_loops(hardware: HardwareRequest, save: Path | None) -> bool:
    """Whether a plan given, or one to be saved, is that of loops: no option says what hardware it is for."""
    from kera_hw.driver.plan_file import is_circuit_plan

    if hardware.plan is not None:
        return not is_circuit_plan(hardware.plan)
    return save is not None and hardware == AS_PLANNED


@takes_hardware("built")
def build(
    file: FileArgument,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Directory for the results.")],
    function: FunctionOption = None,
    hardware: HardwareRequest = AS_PLANNED,
    emit: Annotated[
        str | None,
        typer.Option(
            "--emit", metavar="WHAT", autocompletion=complete.products,
            help="verilog: stop there; bitstream (the default): all the way. For cpu: obj, header, so, or "
            "several with commas (the default: all).",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of placement.")] = 1,
    benches: Annotated[
        list[str] | None,
        typer.Option(
            "--testbench", metavar="KIND", autocompletion=complete.benches,
            help="Export a self-checking bench as well: verilog or cocotb; may be given twice.",
        ),
    ] = None,
    vectors: Annotated[
        int, typer.Option("--vectors", metavar="N", help="Random items of benches, or of a page without -i.")
    ] = 64,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "-i", "--input", metavar="NAME=FILE", help="Further items of benches; those of a page (batched)."
        ),
    ] = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Build a function into Verilog, a bitstream, a report and a receipt; for wasm, ptx or amdgcn, into a
    module;
    for web, into a page; for cpu, into an object, a shared library and a C header.

    With --clock the plan is made again, up to twice, until place and route meets it; --plan takes the one
    in that file.
    Examples: kera build fir.kera --fn fir --target fpga:ecp5-85k --clock 150MHz -o build/fir;
    kera build fir.kera --emitter amaranth --emit verilog -o build/fir;
    kera build fir.kera --emit verilog --testbench verilog -o build/fir;
    kera build dense.kera --interface axis --lanes 4 --emit verilog -o build/dense;
    kera build dense.kera --interface axi-lite --emit verilog -o build/dense;
    kera build fir.kera --plan build/fir/plan.json -o build/again;
    kera build fir.kera --target wasm -o build/fir; kera build fir.kera --target web -i x=x.npy -o build/page;
    kera build fir.kera --target x86-64-avx2 --emit obj,header -o build/fir
    """
    from kera_hw.driver.build import BUILD_STEPS, Benches
    from kera_hw.driver.build import build as build_export
    from kera_hw.driver.options import PRODUCTS, check_choice

    output = Output(json, quiet)
    if hardware.software is not None:
        from kera_hw.driver.web.build import Items

        if hardware.software != "web" and inputs:
            raise typer.BadParameter("Items are for a bench or a page.", param_hint="-i")
        items = Items(tuple(inputs or ()), vectors)
        _build_software(hardware.software, file, out, function, emit, items, output)
        return
    emit = check_choice("product (`--emit`)", emit or "bitstream", PRODUCTS)
    options = hardware.for_hardware()
    exported = Benches(tuple(benches or ()), vectors, tuple(inputs or ()))
    if inputs and not benches:
        raise typer.BadParameter("Items are for a bench; name one with --testbench.", param_hint="-i")
    loaded, graph = load_or_fail(file, output, lints=True)
    export = export_or_fail(loaded, function, output)
    with output.progress("building", BUILD_STEPS) as step:
        result = build_export(loaded, graph, export, options, out, emit == "verilog", seed, step, exported)
    _print_headline(output, result.plan)
    for name in result.files:
        output.text(f"wrote {result.directory / name}")
    headline = {key: value for key, value in result.plan.items() if key != "schedule"}
    data = {**headline, "directory": result.directory, "files": result.files, "logs": result.logs}
    output.finish(data, [*(loaded.diagnostics if json else ()), *result.diagnostics])


def _build_software(
    target: str, file: Path, out: Path, function: str | None, emit: str | None, items: Items, output: Output
) -> None:
    """Writes what the target makes, the graph, the plan and the receipt."""
    from kera_hw.driver.software_build import build_software, endings_of

    endings = endings_of(target, emit)
    loaded, graph = load_or_fail(file, output, lints=True)
    export = export_or_fail(loaded, function, output)
    result = build_software(target, graph, export, out, endings, items)
    output.text(result.summary)
    for name in result.files:
        output.text(f"wrote {result.directory / name}")
    data = {**result.plan, "directory": result.directory, "files": result.files}
    output.finish(data, loaded.diagnostics if output.json else ())


def _print_headline(output: Output, data: dict[str, Any]) -> None:
    """The figures and what set the interval."""
    from kera_hw.driver.pace import (
        interval_text,
        latency_text,
        memory_text,
        region_text,
        reset_text,
        side_by_side_text,
    )

    if output.json:
        return
    latency, interval = data["latency_cycles"], data["initiation_interval"]
    output.text(
        f"{data['function']} on {data['target']} at {data['clock_mhz']:g} MHz: latency "
        f"{latency_text(latency)}, {interval_text(interval)}"
    )
    for region in data["regions"]:
        output.text(region_text(region))
    if data["side_by_side"]:
        output.text(side_by_side_text(data["side_by_side"]))
    for memory in data["memories"]:
        output.text(memory_text(memory))
    if data["reset_cycles"]:
        output.text(reset_text(data["reset_cycles"]))
    if data["recurrence"]:
        output.text(data["recurrence"])
    output.console.print(figures_table(data))
    shell = data.get("achieved", {}).get("serial_shell")
    if shell:
        output.text(f"The ports exceed the package's pins: the bitstream wraps the core in `{shell}`.")


def _print_choice(output: Output, choice: dict[str, Any]) -> None:
    """By which measure the circuit was chosen, and against what; nothing where there was one way alone."""
    from rich.table import Table

    if output.json or not choice["against"]:
        return
    output.text(f"\nThe cheapest of {len(choice['against']) + 1} circuits by {choice['measure']}:")
    table = Table(box=None, pad_edge=False)
    for label in ("cost", "DSP", "LUT", "FF", "latency", "interval"):
        table.add_column(label, justify="right")
    for row in (choice, *choice["against"]):
        keys = ("cost", "dsp", "lut", "ff", "latency_cycles", "initiation_interval")
        table.add_row(*(str(row[key]) for key in keys))
    output.console.print(table)


def figures_table(data: dict[str, Any]) -> Table:
    """The estimate and, when there is one, the result beside it."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for label in ("LUT", "FF", "DSP", "BRAM", "Fmax MHz"):
        table.add_column(label, justify="right")
    for label in ("estimate", "achieved"):
        row = data.get(label)
        if row is not None:
            table.add_row(label, *("-" if row[key] is None else str(row[key]) for key in _FIGURES))
    return table
