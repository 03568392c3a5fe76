"""inspect and diff: looking at graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kera_hw.cli import complete
from kera_hw.cli.hardware import AS_PLANNED, HardwareRequest, takes_hardware
from kera_hw.cli.options import (
    FileArgument,
    FunctionOption,
    JsonOption,
    QuietOption,
    export_or_fail,
    load_or_fail,
)
from kera_hw.cli.output import AT_FAULT, OK, Output


def register(app: typer.Typer) -> None:
    """Adds this module's commands."""
    app.command("inspect")(inspect)
    app.command("diff")(diff)


@takes_hardware("hardware", without=("plan",))
def inspect(
    file: FileArgument,
    function: FunctionOption = None,
    optimised: Annotated[
        bool, typer.Option("--optimised", help="Show the graph after the standard passes.")
    ] = False,
    show_plan: Annotated[
        bool, typer.Option("--plan", help="Show the pipeline planned for --target as well (needs --fn).")
    ] = False,
    show_loops: Annotated[
        bool, typer.Option("--loops", help="Show each export as a loop program too.")
    ] = False,
    fuse: Annotated[
        bool, typer.Option("--fuse", help="With --loops: join loops where that keeps every bit.")
    ] = False,
    native: Annotated[
        bool, typer.Option("--native", help="With --loops: written out in what every processor has.")
    ] = False,
    capabilities: Annotated[
        list[str] | None,
        typer.Option(
            "--capability", metavar="NAME", autocompletion=complete.capabilities,
            help="With --native: what the processor has beside that, such as fma; may be given again.",
        ),
    ] = None,
    hardware: HardwareRequest = AS_PLANNED,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="OUT.svg", help="Draw the graph into a file.")
    ] = None,
    assembly: Annotated[
        str | None,
        typer.Option(
            "--asm", metavar="TARGET",
            help="Show machine code between lines of source: `cpu`, or a level by its name (needs --fn).",
        ),
    ] = None,
    keg: Annotated[
        Path | None, typer.Option("--keg", metavar="OUT.keg", help="Write the graph as a .keg.")
    ] = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Show a program's graph: nodes, types, hashes, loops and the plan; as text, SVG or .keg.

    Example: kera inspect fir.kera --fn fir --plan --svg fir.svg
    """
    from kera_hw.driver.build import full_plan
    from kera_hw.driver.files import write_atomically
    from kera_hw.driver.picture import graph_json, graph_svg
    from kera_hw.driver.report.theme import standalone
    from kera_hw.driver.session import identity, optimise, single_export_graph, source_files
    from kera_hw.graph import print_graph, write_keg

    output = Output(json, quiet)
    options = hardware.for_hardware()
    loaded, graph = load_or_fail(file, output)
    shown, names = graph, {"fingerprint": graph.fingerprint, "program_fingerprint": graph.fingerprint}
    if function is not None or show_plan:
        export = export_or_fail(loaded, function, output)
        shown, names = single_export_graph(graph, export), identity(graph, export)
    if optimised:
        shown = optimise(shown)
    output.text(print_graph(shown, hashes=True).rstrip("\n"))
    data: dict[str, object] = {**names, "graph": graph_json(shown)}
    if show_loops:
        from kera_hw.driver.loops import loop_texts, native_with

        extra = native_with(capabilities or ()) if native or capabilities else None
        texts, steps = loop_texts(shown, fuse, extra)
        output.text("\n" + "\n".join(texts.values()).rstrip("\n"))
        data |= {"loops": texts, "steps": steps}
    if show_plan:
        from kera_hw.driver.hardware import PLANNING_STEPS, plan_hardware
        from kera_hw.driver.report.chart import chart_rows
        from kera_hw.driver.report.text import pipeline_text

        export = export_or_fail(loaded, function, output)
        sources = source_files(loaded)
        with output.progress("planning", PLANNING_STEPS) as step:
            design = plan_hardware(graph, export, options, step, sources)
        rows = chart_rows(design.netlist, design.plan, sources)
        output.text("\n" + pipeline_text(rows, design.plan.latency_cycles))
        data["plan"] = full_plan(design)
    if assembly is not None:
        from kera_hw.driver.listings import assembly_text

        export = export_or_fail(loaded, function, output)
        text = assembly_text(graph, export, assembly, source_files(loaded))
        output.text("\n" + text.rstrip("\n"))
        data["asm"] = text
    if keg is not None:
        write_atomically(keg, write_keg(shown))
    if svg is not None:
        write_atomically(svg, standalone(graph_svg(shown)))
    output.finish({**data, "svg": svg, "keg": keg})


def diff(
    old: Annotated[
        Path,
        typer.Argument(metavar="OLD", help="A .keg or .kera file.", autocompletion=complete.programs),
    ],
    new: Annotated[
        Path,
        typer.Argument(metavar="NEW", help="A .keg or .kera file.", autocompletion=complete.programs),
    ],
    json: JsonOption = False,
) -> None:
    """Show what changed between two graphs, and that only what depends on it has new hashes.

    Exits 0 when the graphs are equal and 1 when they differ. Example: kera diff old.keg new.keg
    """
    from kera_hw.driver.difference import compare_graphs

    output = Output(json)
    _, before = load_or_fail(old, output)
    _, after = load_or_fail(new, output)
    report = compare_graphs(before, after)
    output.text(report.text())
    output.finish(report.to_json(), (), OK if report.equal else AT_FAULT)
