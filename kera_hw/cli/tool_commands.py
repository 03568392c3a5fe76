"""doctor: which external tools are here."""

from __future__ import annotations

import typer
from rich.table import Table

from kera_hw.cli.options import JsonOption
from kera_hw.cli.output import OK, TOOL_MISSING, Output
from kera_hw.rtl.toolchain.doctor import all_present
from kera_hw.rtl.toolchain.doctor import doctor as examine


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(json: JsonOption = False) -> None:
    """Show every external tool: where it was found, its version, and how to get what is missing.

    Example: kera doctor --json
    """
    output = Output(json)
    rows = examine()
    table = Table("tool", "version", "found", "used for")
    for row in rows:
        if row.ok:
            found = str(row.path)
        else:
            state = row.broken or ("missing (optional)" if row.optional else "missing")
            found = f"[{'yellow' if row.optional else 'red'}]{state}[/]: {row.remedy or ''}"
        table.add_row(row.name, row.version or "", found, row.purpose)
    output.console.print(table)
    output.finish({"tools": [row.to_json() for row in rows]}, (), OK if all_present(rows) else TOOL_MISSING)
