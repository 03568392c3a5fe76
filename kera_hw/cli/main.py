"""The `kera` command. Each command parses its request, calls the driver and prints the result."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import typer

from kera_hw.cli import (
    bench_commands,
    graph_commands,
    hardware_commands,
    program_commands,
    run_commands,
    tool_commands,
)
from kera_hw.cli.output import BAD_CALL, EXIT_STATUSES, INTERNAL, INTERRUPTED, OK, Exit, Output, status_of
from kera_hw.support import Diagnostic, KeraError

_HELP = f"""Kera: programs that are graphs, with the same bits on every target.

Examples:

  kera check fir.kera

  kera run fir.kera --fn fir -i x=samples.npy -o out.npz --batch

  kera build fir.kera --fn fir --target fpga:ecp5-85k --clock 150MHz -o build/fir

  kera verify fir.kera --fn fir --targets interp,rtl

Every command takes --json. Exit status: {"; ".join(f"{k} {text}" for k, text in EXIT_STATUSES.items())}.
"""

app = typer.Typer(
    help=_HELP,
    no_args_is_help=False,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (
    program_commands, graph_commands, hardware_commands, run_commands, bench_commands, tool_commands,
):
    module.register(app)


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context, show: bool = typer.Option(False, "--version", help="Print the version and exit.")
) -> None:
    """Options that stand before a command."""
    if show:
        from kera_hw import __version__

        print(f"kera {__version__}")
        raise Exit(OK)
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise Exit(BAD_CALL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit status."""
    if arguments is None:
        # Compiling makes many small objects that live to the end: looking for garbage costs a fifth, and
        # a million objects are 100 MB at most.
        gc.set_threshold(1_000_000, 50, 50)
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given
    try:
        status = _run(given, as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output went away: not an error, and nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return status


def _run(given: list[str], as_json: bool) -> int:
    command = typer.main.get_command(app)
    try:
        result = command.main(given, prog_name="kera", standalone_mode=False)
        return result if isinstance(result, int) else OK
    except Exit as done:
        return done.status
    except BrokenPipeError:
        raise
    except (typer.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except KeraError as fault:
        return _fail(fault.diagnostics, as_json)
    except MemoryError as fault:
        notes = (f"{fault}.",) if str(fault) else ()
        return _fail([Diagnostic("K0907", "There is not enough memory for this.", notes=notes)], as_json)
    except OSError as fault:
        if fault.filename is None:
            return _report_bug(fault, given, as_json)
        message = f"The file {fault.filename} cannot be written: {fault.strerror}."
        return _fail([Diagnostic("K0906", message)], as_json)
    except Exception as fault:
        # Typer carries its own copy of click, so its exceptions are known by what they can do.
        show = getattr(fault, "show", None)
        if show is None:
            return _report_bug(fault, given, as_json)
        if as_json:
            return _fail([Diagnostic("K0905", fault.format_message())], True)  # type: ignore[attr-defined]
        show()
        return BAD_CALL


def _fail(items: list[Diagnostic], as_json: bool) -> int:
    try:
        Output(as_json).fail(items)
    except Exit:
        return status_of(items)


def _report_bug(fault: Exception, given: list[str], as_json: bool) -> int:
    """A short report; the whole of it goes to a file."""
    from kera_hw.cli.crash import describe, save

    report: dict[str, Any] = describe(fault, given)
    path = save(report)
    if as_json:
        short = {key: report[key] for key in ("error", "place", "versions")}
        print(json.dumps({"ok": False, "internal_error": short, "report": path, "diagnostics": []}))
    else:
        print(
            f"kera: {report['error']}\n  at {report['place']}\n  {report['versions']}\n"
            "This is a bug in kera, not in your program. Please report it"
            + (f" with {path}." if path else "."),
            file=sys.stderr,
        )
    return INTERNAL


def entry() -> None:
    """Console-script entry point."""
    status = main()
    # The process ends, and its memory with it: no last search for garbage among a million objects.
    gc.freeze()
    sys.exit(status)


if __name__ == "__main__":
    entry()
