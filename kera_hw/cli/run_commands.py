"""run and verify: executing a function, and comparing targets bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kera_hw.cli.options import (
    ClockOption,
    FileArgument,
    FunctionOption,
    JsonOption,
    export_or_fail,
    load_or_fail,
    parse_clock,
    parse_device,
)
from kera_hw.cli.output import AT_FAULT, OK, Output
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.targets import make_executor

_DeviceOption = Annotated[
    str, typer.Option("--device", metavar="DEVICE", help="The device that hardware targets are planned for.")
]


def register(app: typer.Typer) -> None:
    app.command("run")(run)
    app.command("verify")(verify)


def run(
    file: FileArgument,
    function: FunctionOption = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "-i",
            "--input",
            metavar="NAME=VALUE",
            help="A parameter: NAME=file.npy, NAME=file.npz or NAME=literal.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="OUT.npz", help="Write the result here.")
    ] = None,
    batch: Annotated[
        bool, typer.Option("--batch", help="The leading axis of every input counts items.")
    ] = False,
    target: Annotated[str, typer.Option("--target", metavar="TARGET", help="interp or rtl.")] = "interp",
    device: _DeviceOption = "ecp5-85k",
    clock: ClockOption = None,
    json: JsonOption = False,
) -> None:
    """Run a function or stream on one target.

    Examples: kera run gcd.kera --fn gcd -i a=12 -i b=18;
    kera run fir.kera --fn fir -i x=x.npy -o out.npz --batch
    """
    from kera_hw.driver.values import describe_value, read_inputs, run_inputs, save_npz

    output = Output(json)
    loaded, graph = load_or_fail(file, output)
    export = export_or_fail(loaded, function, output)
    values = read_inputs(export, inputs or [], batch)
    executor = make_executor(graph, export, target, TargetOptions(parse_device(device), parse_clock(clock)))
    result = run_inputs(export, executor, values, batch)
    if out is not None:
        save_npz(out, result)
        output.console.print(f"wrote {out}", markup=False)
    else:
        output.console.print(describe_value(result), markup=False)
    data = {"fingerprint": graph.fingerprint, "function": export.name, "target": target}
    output.finish({**data, "result": result, "out": out})


def verify(
    file: FileArgument,
    function: FunctionOption = None,
    targets: Annotated[
        str,
        typer.Option("--targets", metavar="A,B,...", help="Targets to compare; the first is the reference."),
    ] = "interp,rtl",
    vectors: Annotated[
        int, typer.Option("--vectors", metavar="N", min=1, help="Random items beside the corner cases.")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random items.")] = 1,
    inputs: Annotated[
        list[str] | None,
        typer.Option("-i", "--input", metavar="NAME=FILE", help="Further items of your own (batched .npy)."),
    ] = None,
    device: _DeviceOption = "ecp5-85k",
    clock: ClockOption = None,
    json: JsonOption = False,
) -> None:
    """Compare targets bit for bit on random, corner and your own inputs; exit 1 on any difference.

    Example: kera verify fir.kera --fn fir --targets interp,rtl --vectors 10000
    """
    from kera_hw.driver.verify import verify_export

    output = Output(json)
    loaded, graph = load_or_fail(file, output)
    export = export_or_fail(loaded, function, output)
    options = TargetOptions(parse_device(device), parse_clock(clock))
    names = [name.strip() for name in targets.split(",") if name.strip()]
    with output.progress.status(f"comparing {', '.join(names)}"):
        report = verify_export(graph, export, names, vectors, seed, inputs or [], options)
    output.console.print(report.text(), markup=False)
    output.finish(report.to_json(), (), OK if report.equal else AT_FAULT)
