"""run and verify: executing a function, and comparing targets bit for bit."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

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
from kera_hw.cli.output import AT_FAULT, BAD_CALL, NOT_PROVED, OK, TOOL_MISSING, Output, status_of
from kera_hw.support import Diagnostic, KeraError

if TYPE_CHECKING:
    from kera_hw.driver.options import TargetOptions
    from kera_hw.graph import Export, Graph

WaveOption = Annotated[
    Path | None,
    typer.Option("--wave", metavar="OUT.vcd", help="Write the circuit's waveform: OUT.vcd, or OUT.fst."),
]


def register(app: typer.Typer) -> None:
    """Adds this module's commands."""
    app.command("run")(run)
    app.command("verify")(verify)


@takes_hardware("any")
def run(
    file: FileArgument,
    function: FunctionOption = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "-i", "--input", metavar="NAME=VALUE",
            help="A parameter: NAME=file.npy, NAME=file.npz (fields as dotted names) or NAME=JSON.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="OUT.npz", help="Write the result here.")
    ] = None,
    batch: Annotated[
        bool, typer.Option("--batch", help="The leading axis of every input counts items.")
    ] = False,
    wave: WaveOption = None,
    hardware: HardwareRequest = AS_PLANNED,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Run a function or stream on one target.

    Integers and bools are plain JSON, fixed point is its raw integer, floats are numbers or "nan", "inf",
    "-inf", structs are objects, tuples lists.
    Examples: kera run gcd.kera --fn gcd -i a=12 -i b=18;
    kera run fir.kera --fn fir -i x=x.npy -o out.npz --batch;
    kera run fir.kera -i x=x.npy --batch --wave fir.vcd
    """  # fmt: skip
    from kera_hw.driver.api import observe_inputs, run_inputs
    from kera_hw.driver.session import identity, source_files
    from kera_hw.driver.targets import make_executor
    from kera_hw.driver.values import describe_value, read_inputs, save_npz
    from kera_hw.driver.waves import check_wave
    from kera_hw.graph import probes_of

    output = Output(json, quiet)
    target, options = hardware.for_target(None if wave is None else "rtl")
    if wave is not None:
        check_wave(wave)
    loaded, graph = load_or_fail(file, output)
    export = export_or_fail(loaded, function, output)
    values = read_inputs(export, inputs or [])
    with output.progress(f"running on {target}", 2) as step:
        step("preparing")
        executor = make_executor(graph, export, target, options)
        step("evaluating")
        result = run_inputs(export, executor, values, batch, wave)
        observed, items = observe_inputs(graph, export, target, options, values, batch)
    if wave is not None:
        output.text(f"wrote {wave}")
    for line in observed.lines(batch):
        output.text(line)
    if out is not None:
        save_npz(out, result)
        output.text(f"wrote {out}")
    else:
        output.text(describe_value(result))
    data: dict[str, Any] = {**identity(graph, export), "function": export.name, "target": target}
    if target != "interp":
        data["device"] = options.device
    if probes_of(export):
        data |= observed.to_json()
    faults = observed.faults(export, items, source_files(loaded))
    output.finish({**data, "result": result, "out": out, "wave": wave}, faults)


@takes_hardware("any", usual="rtl")
def verify(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", autocompletion=complete.builds,
            help="A .kera file or a .keg; with --receipt a build directory.",
        ),
    ],
    function: FunctionOption = None,
    targets: Annotated[
        str | None,
        typer.Option(
            "--targets", metavar="A,B,...", autocompletion=complete.target_lists,
            help="Targets to compare, or all; the first is the reference (default: interp and --target).",
        ),
    ] = None,
    vectors: Annotated[
        int, typer.Option("--vectors", metavar="N", help="Items, random and corner.")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random items.")] = 1,
    inputs: Annotated[
        list[str] | None,
        typer.Option("-i", "--input", metavar="NAME=FILE", help="Further items of your own (batched)."),
    ] = None,
    netlist: Annotated[
        bool, typer.Option("--netlist", help="Simulate each circuit after synthesis as well.")
    ] = False,
    simulator: Annotated[
        str,
        typer.Option(
            "--simulator", metavar="NAME", autocompletion=complete.simulators,
            help="verilator; with icarus each simulation begins again there, cycle by cycle.",
        ),
    ] = "verilator",
    formal: Annotated[
        bool, typer.Option("--formal", help="Prove the circuit equal to the graph for all inputs instead.")
    ] = False,
    limit: Annotated[
        float,
        typer.Option("--time-limit", metavar="S", help="Seconds a formal proof may take."),
    ] = 60.0,
    faults: Annotated[
        int | None,
        typer.Option(
            "--mutate", metavar="N",
            help="Plant N faults in the circuit instead, one at a time, and count those that are caught.",
        ),
    ] = None,
    receipt: Annotated[
        bool,
        typer.Option("--receipt", help="Hold a build directory against its receipt.json instead."),
    ] = False,
    wave: WaveOption = None,
    hardware: HardwareRequest = AS_PLANNED,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Compare targets bit for bit on random, corner and your own inputs; exit 1 on any difference.

    Of --targets all, one that refuses the function or lacks a tool is said and passed over; one that is named
    is an error. From 100,000 items on, machine code that agrees with interp on a share of them stands for it.
    With --formal each export (or that of --fn) is proved for all inputs; exit 4 where no proof is found.
    With --mutate the items are tried on circuits with a fault; exit 1 where fewer than 95 % of those faults
    that make a difference are caught.
    --wave writes the smallest failing items; where none fails, those of -i or else the first.
    With --receipt the files of a build have the hashes, the graph the fingerprint that the receipt says, and
    plan and Verilog come out of the graph again; exit 1 where anything differs.
    Examples: kera verify fir.kera --fn fir --targets interp,rtl --vectors 10000;
    kera verify fir.kera --targets all; kera verify fir.kera --target cpu;
    kera verify fir.kera --plan build/fir/plan.json;
    kera verify fir.kera --netlist --simulator icarus; kera verify fir.kera --mutate 100;
    kera verify fir.kera --formal --time-limit 120;
    kera verify --receipt build/fir
    """
    from kera_hw.driver.session import source_files
    from kera_hw.driver.verify import verify_export

    output = Output(json, quiet)
    if receipt:
        _check_receipt(context, file, output)
    names, options = _compared(targets, hardware)
    if formal or faults is not None:
        options = hardware.for_hardware()
    if formal and wave is not None:
        raise typer.BadParameter("A proof has no waveform; compare without --formal.", param_hint="--wave")
    if formal:
        _prove(file, function, options, limit, seed, output)
    loaded, graph = load_or_fail(file, output)
    export = export_or_fail(loaded, function, output)
    if faults is not None:
        if wave is not None:
            message = "Faults have no waveform; compare without --mutate."
            raise typer.BadParameter(message, param_hint="--wave")
        _try_faults(graph, export, options, (faults, vectors, seed), inputs or [], output)
    with output.progress("comparing", len(names)) as step:
        files = source_files(loaded)
        report = verify_export(
            graph, export, names, vectors, seed, inputs or [], options, step, wave, files,
            passing=_is_all(targets), netlist=netlist, simulator=simulator,
        )  # fmt: skip
    output.text(report.text())
    if wave is not None:
        output.text(f"wrote {wave}")
    status = status_of(report.diagnostics) if report.equal else AT_FAULT
    output.finish({**report.to_json(), "wave": wave}, report.diagnostics, status)


def _is_all(targets: str | None) -> bool:
    return targets is not None and targets.strip() == "all"


def _compared(targets: str | None, hardware: HardwareRequest) -> tuple[list[str], TargetOptions]:
    """The targets to compare, and how hardware among them is planned. Raises KeraError for no target."""
    from kera_hw.driver.targets import EVERY_MACHINE, resolve_target

    target, options = hardware.for_target()
    if targets is None:
        names = ["interp", target]
    elif hardware.isa is not None:
        raise typer.BadParameter("Beside --targets its name is one of them.", param_hint="--isa")
    elif target != "rtl":
        raise typer.BadParameter("Beside --targets it names a device.", param_hint="--target")
    else:
        listed = EVERY_MACHINE if _is_all(targets) else targets.split(",")
        names = [name.strip() for name in listed if name.strip()]
    names = list(dict.fromkeys(names))
    for name in names:
        resolve_target(name)
    if len(names) < 2:
        raise typer.BadParameter("Name at least two targets to compare.", param_hint="--targets")
    return names, options


def _try_faults(
    graph: Graph, export: Export, options: TargetOptions, numbers: tuple[int, int, int],
    inputs: Sequence[str], output: Output,
) -> NoReturn:
    """``numbers``: of faults, of items, and their seed."""
    from kera_hw.driver.mutation import STEPS, try_faults

    with output.progress("planting faults", STEPS) as step:
        report = try_faults(graph, export, options, *numbers, inputs, step)
    output.text(report.text())
    output.finish(report.to_json(), (), OK if report.fine else AT_FAULT)


def _check_receipt(context: typer.Context, place: Path, output: Output) -> NoReturn:
    """The receipt says with which options the build was made; none can be given beside it."""
    from kera_hw.driver.recheck import recheck

    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and name not in ("file", "receipt", "json"):
            raise typer.BadParameter("The receipt says how the build was made; give no other option.")
    found = recheck(place)
    output.text(found.text())
    output.finish(found.to_json(), found.faults, OK if found.holds else AT_FAULT)


def _prove(
    file: Path, function: str | None, options: TargetOptions, limit_s: float, seed: int, output: Output
) -> NoReturn:
    """Proofs for one export or all of them; the worst outcome is the exit status."""
    from kera_hw.driver.session import source_files
    from kera_hw.graph import probes_of

    loaded, graph = load_or_fail(file, output)
    try:
        from kera_hw.driver.assertions import prove_checks
        from kera_hw.driver.formal import STEPS, prove_export
    except ModuleNotFoundError as lack:
        if lack.name != "bitwuzla":
            raise
        remedy = f"Install it with: {sys.executable} -m pip install bitwuzla"
        message = "The solver Bitwuzla is needed here and was not found."
        output.fail([Diagnostic("K0950", message, notes=(remedy,))])
    exports = graph.exports if function is None else (export_or_fail(loaded, function, output),)
    diagnostics: list[Diagnostic] = []
    rows: list[dict[str, Any]] = []
    checked: list[dict[str, Any]] = []
    statuses = [OK] if exports else [NOT_PROVED]
    steps = sum(STEPS + bool(probes_of(export)) for export in exports)
    with output.progress("proving", steps) as step:
        for export in exports:
            try:
                if probes_of(export):
                    step("assertions")
                    checks = prove_checks(graph, export, limit_s)
                    found = [check.diagnostic(source_files(loaded)) for check in checks.checks]
                    diagnostics += [item for item in found if item is not None]
                    checked.append(checks.to_json())
                    output.text(checks.text())
                    statuses.append(AT_FAULT if checks.refuted else OK if checks.proved else NOT_PROVED)
                proof = prove_export(graph, export, options, limit_s, seed, step)
            except KeraError as lack:
                diagnostics += lack.diagnostics
                statuses.append(status_of(lack.diagnostics) or NOT_PROVED)
                continue
            diagnostics += proof.diagnostics
            rows.append(proof.to_json())
            output.text(proof.text())
            statuses.append(AT_FAULT if proof.refuted else OK if proof.proved else NOT_PROVED)
    worst = next((s for s in (AT_FAULT, TOOL_MISSING, BAD_CALL, NOT_PROVED) if s in statuses), OK)
    data = {"time_limit_s": limit_s, "proofs": rows, **({"assertions": checked} if checked else {})}
    output.finish(data, diagnostics, worst)
