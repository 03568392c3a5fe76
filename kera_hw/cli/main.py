"""The `kera` command. Each command parses its request, calls the driver and prints the result."""

from __future__ import annotations

import os
import sys
import traceback

import click
import typer

from kera_hw.cli import graph_commands, hardware_commands, program_commands, run_commands, tool_commands
from kera_hw.cli.output import BAD_CALL, INTERNAL, OK, Exit, status_of
from kera_hw.support import KeraError, render_diagnostics

_HELP = """Kera: programs that are graphs, with the same bits on every target.

Examples:

  kera check fir.kera

  kera run fir.kera --fn fir -i x=samples.npy -o out.npz --batch

  kera build fir.kera --fn fir --target fpga:ecp5-85k --clock 150MHz -o build/fir

  kera verify fir.kera --fn fir --targets interp,rtl
"""

app = typer.Typer(
    help=_HELP,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (program_commands, graph_commands, hardware_commands, run_commands, tool_commands):
    module.register(app)


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context, show: bool = typer.Option(False, "--version", help="Print the version and exit.")
) -> None:
    """Options that stand before a command."""
    if show:
        from importlib.metadata import version as installed

        print(f"kera {installed('kera-hw')}")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(BAD_CALL)


def main(arguments: list[str] | None = None) -> int:
    """Runs one command line and returns its exit status."""
    command = typer.main.get_command(app)
    try:
        result = command.main(arguments, prog_name="kera", standalone_mode=False)
        return result if isinstance(result, int) else OK
    except Exit as done:
        return done.status
    except click.ClickException as fault:
        fault.show()
        return BAD_CALL
    except (click.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return 130
    except KeraError as fault:
        print(render_diagnostics(fault.diagnostics), file=sys.stderr)
        return status_of(fault.diagnostics)
    except BrokenPipeError:
        # The reader of our output went away: not an error, and nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception:
        traceback.print_exc()
        print(
            "\nThis is a bug in kera, not in your program. Please report it with the text above.",
            file=sys.stderr,
        )
        return INTERNAL


def entry() -> None:
    """Console-script entry point."""
    sys.exit(main())


if __name__ == "__main__":
    entry()
