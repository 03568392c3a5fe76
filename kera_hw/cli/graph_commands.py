"""inspect and diff: looking at graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kera_hw.cli.options import FileArgument, FunctionOption, JsonOption, export_or_fail, load_or_fail
from kera_hw.cli.output import AT_FAULT, OK, Output
from kera_hw.driver.files import write_atomically
from kera_hw.driver.session import optimise, single_export_graph
from kera_hw.graph import Graph, print_graph, write_keg


def register(app: typer.Typer) -> None:
    app.command("inspect")(inspect)
    app.command("diff")(diff)


def inspect(
    file: FileArgument,
    function: FunctionOption = None,
    optimised: Annotated[
        bool, typer.Option("--optimised", help="Show the graph after the standard passes.")
    ] = False,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="OUT.svg", help="Draw the graph into a file.")
    ] = None,
    keg: Annotated[
        Path | None, typer.Option("--keg", metavar="OUT.keg", help="Write the graph as a .keg.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show a program's graph: nodes, types, hashes; as text, SVG or .keg.

    Example: kera inspect fir.kera --fn fir --svg fir.svg
    """
    from kera_hw.driver.picture import graph_json, graph_svg

    output = Output(json)
    loaded, graph = load_or_fail(file, output)
    shown: Graph = graph
    if function is not None:
        shown = single_export_graph(graph, export_or_fail(loaded, function, output))
    if optimised:
        shown = optimise(shown).graph
    if keg is not None:
        write_atomically(keg, write_keg(shown))
    if svg is not None:
        write_atomically(svg, graph_svg(shown))
    output.console.print(print_graph(shown), markup=False, end="")
    output.finish({"fingerprint": graph.fingerprint, "graph": graph_json(shown), "svg": svg, "keg": keg})


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A .keg or .kera file.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="A .keg or .kera file.")],
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
    output.console.print(report.text(), markup=False)
    output.finish(report.to_json(), (), OK if report.equal else AT_FAULT)
