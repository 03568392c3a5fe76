"""check, fmt, test, explain: what a writer of programs uses all day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kera_hw.cli import complete
from kera_hw.cli.hardware import AS_PLANNED, HardwareRequest, takes_hardware
from kera_hw.cli.options import FileArgument, FilesArgument, JsonOption, QuietOption, load_or_fail
from kera_hw.cli.output import AT_FAULT, OK, Output
from kera_hw.support import CODES, Diagnostic, SourceFile

if TYPE_CHECKING:
    from kera_hw.driver.testing import TargetTest


def register(app: typer.Typer) -> None:
    """Adds this module's commands."""
    app.command("check")(check)
    app.command("test")(test)
    app.command("fmt")(fmt)
    app.command("explain")(explain)


def check(
    files: FilesArgument,
    deny_warnings: Annotated[
        bool, typer.Option("--deny-warnings", help="Exit with 1 for warnings as well.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check programs: syntax, types, index ranges, lints; print what is wrong.

    Examples: kera check fir.kera; kera check --deny-warnings fir.kera
    """
    from kera_hw.driver.session import load_program

    output = Output(json)
    diagnostics: list[Diagnostic] = []
    rows: list[dict[str, object]] = []
    for path in files:
        loaded = load_program(path)
        diagnostics += loaded.diagnostics
        graph = None if loaded.has_errors else loaded.graph
        exports = [] if graph is None else [{"name": e.name, "kind": e.kind} for e in graph.exports]
        rows.append({"path": path, "fingerprint": graph and graph.fingerprint, "exports": exports})
        if graph is not None:
            listed = ", ".join(f"{e.kind} {e.name}" for e in graph.exports) or "no exports"
            count = len(loaded.diagnostics)
            warned = f", {count} {'warning' if count == 1 else 'warnings'}" if count else ""
            output.text(f"{path}: fine ({listed}){warned}\n  {graph.fingerprint}")
    denied = deny_warnings and diagnostics and not any(item.is_error for item in diagnostics)
    output.finish({"files": rows}, diagnostics, AT_FAULT if denied else None)


@takes_hardware("any")
def test(
    file: FileArgument,
    name: Annotated[
        str | None, typer.Option("--filter", metavar="TEXT", help="Run tests whose name holds TEXT.")
    ] = None,
    hardware: HardwareRequest = AS_PLANNED,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Run the tests written in a program.

    With a hardware target the simulated circuit evaluates the calls of exported functions and streams in a
    test's own body; assertions, and calls in loops, branches and other functions, stay with the interpreter.
    Examples: kera test fir.kera; kera test fir.kera --target rtl
    """
    from kera_hw.driver.testing import TargetTest, cover_counts, run_program_tests, run_tests_on

    output = Output(json, quiet)
    target, options = hardware.for_target()
    loaded, _ = load_or_fail(file, output)
    with output.progress(f"testing on {target}", 1) as step:
        step("evaluating")
        if target == "interp":
            tests = [TargetTest(result, ()) for result in run_program_tests(loaded, name)]
        else:
            tests = run_tests_on(loaded, target, options, name)
    for item in tests:
        output.text(f"{'ok    ' if item.result.passed else 'FAILED'} {item.result.name}")
        for line in item.result.printed:
            output.text(f"         {line}")
        for words, calls in ((target, item.simulated), ("interp", item.interpreted)):
            for call, times in Counter(calls).items():
                output.text(f"         {words}: {call}{f', {times} times' if times > 1 else ''}")
    failed = [item.result for item in tests if not item.result.passed]
    covers = cover_counts([item.result for item in tests])
    for cover in covers:
        output.text(cover.text())
    output.text(f"{len(tests) - len(failed)} passed, {len(failed)} failed{_none_run(tests, name)}")
    if target != "interp":
        simulated = sum(len(item.simulated) for item in tests)
        stayed = sum(len(item.interpreted) for item in tests)
        calls = "call" if simulated == 1 else "calls"
        output.text(f"{simulated} {calls} simulated, {stayed} interpreted")
    rows = [_test_row(item, target) for item in tests]
    faults = [result.diagnostic for result in failed if result.diagnostic is not None]
    faults += [cover.warning() for cover in covers if not cover.tests]
    data: dict[str, object] = {"target": target, "tests": rows}
    if covers:
        data["covers"] = [cover.to_json() for cover in covers]
    output.finish(data, faults, AT_FAULT if failed else OK)


def _none_run(tests: Sequence[object], name: str | None) -> str:
    """Why nothing was run, if nothing was."""
    if tests:
        return ""
    return f": no test has `{name}` in its name" if name is not None else ": there are no tests"


def _test_row(item: TargetTest, target: str) -> dict[str, object]:
    row: dict[str, object] = {"name": item.result.name, "passed": item.result.passed}
    if item.result.printed:
        row["printed"] = list(item.result.printed)
    if target != "interp":
        row["simulated"] = [{"function": call.function, "line": call.line} for call in item.simulated]
        row["interpreted"] = [
            {"function": call.function, "line": call.line, "reason": call.reason} for call in item.interpreted
        ]
    return row


def fmt(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Source files.", autocompletion=complete.programs),
    ],
    check_only: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit 1 if a file is not formatted.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Format source files in place; only white space changes.

    Example: kera fmt --check *.kera
    """
    from kera_hw.driver.files import read_bytes, write_atomically
    from kera_hw.frontend.parser import format_source

    output = Output(json)
    diagnostics: list[Diagnostic] = []
    rows: list[dict[str, object]] = []
    for path in files:
        data = read_bytes(path)
        if isinstance(data, Diagnostic):
            diagnostics.append(data)
            continue
        formatted, faults = format_source(SourceFile(str(path), data))
        diagnostics += faults
        changed = formatted is not None and formatted != data
        rows.append({"path": path, "changed": changed})
        if changed and formatted is not None:
            if not check_only:
                write_atomically(path, formatted)
            output.text(f"{'would format' if check_only else 'formatted'} {path}")
    unformatted = check_only and any(row["changed"] for row in rows)
    output.finish({"files": rows}, diagnostics, AT_FAULT if unformatted and not diagnostics else None)


def explain(
    code: Annotated[
        str,
        typer.Argument(
            metavar="WORD", autocompletion=complete.explained,
            help="A diagnostic code (K0301), a built-in (sum), an operation (reduce.sum) or a target (rtl).",
        ),
    ],
    json: JsonOption = False,
) -> None:
    """Explain a diagnostic code, a built-in, an operation of the graph, or what a target refuses.

    Examples: kera explain K0301; kera explain round_to; kera explain floating.sin; kera explain rtl
    """
    from kera_hw.driver.targets import COVERED
    from kera_hw.frontend.sema.names.builtin_docs import DESCRIBED, to_json, to_text
    from kera_hw.frontend.sema.names.scope import closest
    from kera_hw.ops.registry import OPS

    output = Output(json)
    name = code.upper()
    info = CODES.get(name)
    if info is not None:
        output.text(f"{name}: {info.title}\n\n{info.explanation}")
        output.finish({"code": name, "title": info.title, "explanation": info.explanation})
    elif code in DESCRIBED:
        from kera_hw.driver.coverage import refused_json, refused_text

        operations = DESCRIBED[code].operations
        output.text(to_text(code) + refused_text(operations))
        output.finish({**to_json(code), "refused": refused_json(operations)})
    elif code in OPS:
        from kera_hw.driver.coverage import operation_json, operation_text

        output.text(operation_text(code))
        output.finish(operation_json(code))
    elif code in COVERED:
        from kera_hw.driver.coverage import target_json, target_text

        output.text(target_text(code))
        output.finish(target_json(code))
    else:
        close = closest(code, [*CODES, *DESCRIBED, *OPS, *COVERED])
        hint = f" Did you mean {close}?" if close else ""
        message = f"There is no diagnostic, built-in, operation or target {code}.{hint}"
        raise typer.BadParameter(message, param_hint="WORD")
