"""bench: the time that a function takes on this machine."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated

import typer

from kera_hw.cli import complete
from kera_hw.cli.hardware import AS_PLANNED, HardwareRequest, takes_hardware
from kera_hw.cli.options import (
    FunctionOption,
    JsonOption,
    QuietOption,
    export_or_fail,
    load_or_fail,
)
from kera_hw.cli.output import Output


def register(app: typer.Typer) -> None:
    """Adds this module's command."""
    app.command("bench")(bench)


@takes_hardware("any", usual="cpu")
def bench(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE[:FUNCTION]", autocompletion=complete.programs,
            help="A .kera source file or a .keg, and the function if there are several.",
        ),
    ],
    function: FunctionOption = None,
    items: Annotated[
        int | None,
        typer.Option("--items", metavar="N", help="Items a call, as a batch (default: one item, no batch)."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="MODULE:FUNCTION",
            help="A Python function, or FILE.py:FUNCTION, called with the same arrays in their order.",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="S", help="How long each function is measured.")
    ] = 1.0,
    inputs: Annotated[
        list[str] | None,
        typer.Option("-i", "--input", metavar="NAME=VALUE", help="A parameter, as of `kera run`."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the other parameters' values.")] = 1,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="OUT.json", help="Write the figures here.")
    ] = None,
    hardware: HardwareRequest = AS_PLANNED,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Measure a function on this machine: minimum, median, spread and throughput of calls from Python.

    The target is cpu unless one is named; rtl and fpga:DEVICE measure the simulation, not the circuit.
    Parameters that -i does not give hold ordinary numbers. With --against another function is measured on the
    same arrays, and its results are compared bit for bit, which changes no exit status.
    Examples: kera bench filters.kera:fir --items 1000000;
    kera bench net.kera --fn layer --target x86-64-avx2 --against reference.py:layer;
    kera bench exp.kera --items 65536 --against numpy:exp --json -o exp.json
    """  # fmt: skip
    from kera_hw.driver.bench import bench_export
    from kera_hw.driver.files import write_atomically

    output = Output(json, quiet)
    target, options = hardware.for_target()
    place, named = _parted(file)
    if named is not None and function is not None:
        raise typer.BadParameter("It is named in FILE:FUNCTION already.", param_hint="--fn")
    loaded, graph = load_or_fail(place, output)
    export = export_or_fail(loaded, function or named, output)
    with output.progress("measuring", 2 + (against is not None)) as step:
        figures = bench_export(
            graph, export, target, options, items=items, seconds=seconds, against=against,
            inputs=inputs or [], seed=seed, step=step,
        )  # fmt: skip
    output.text(figures.text())
    if out is not None:
        write_atomically(out, json_text.dumps(figures.to_json(), indent=2) + "\n")
        output.text(f"wrote {out}")
    output.finish({**figures.to_json(), "out": out})


def _parted(file: str) -> tuple[Path, str | None]:
    """FILE and FUNCTION; a file whose name has a colon is one."""
    head, colon, name = file.rpartition(":")
    whole = not colon or not name.isidentifier() or Path(file).exists()
    return (Path(file), None) if whole else (Path(head), name)
