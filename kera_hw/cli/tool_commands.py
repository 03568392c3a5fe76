"""doctor: which external tools are here."""

from __future__ import annotations

import typer

from kera_hw.cli.options import JsonOption
from kera_hw.cli.output import OK, TOOL_MISSING, Output


def register(app: typer.Typer) -> None:
    """Adds this module's commands."""
    app.command("doctor")(doctor)


def doctor(json: JsonOption = False) -> None:
    """Show every external tool: where it was found, its version, and how to get what is missing.

    Exits 3 when one that is needed is missing. Example: kera doctor --json
    """
    from rich.markup import escape
    from rich.table import Table

    from kera_hw.driver.targets import TARGETS
    from kera_hw.rtl.toolchain.doctor import all_present
    from kera_hw.rtl.toolchain.doctor import doctor as examine
    from kera_hw.schedule.fpga.device import device_names

    output = Output(json)
    rows = examine()
    table = Table("tool", "version", "found", box=None, pad_edge=False)
    for row in rows:
        if row.ok:
            found = escape(str(row.path))
        else:
            state = row.broken or ("missing (optional)" if row.optional else "missing")
            colour = "yellow" if row.optional else "red"
            found = f"[{colour}]{escape(state)}[/]: {row.purpose}. {escape(row.remedy or '')}"
        table.add_row(row.name, row.version or "", found)
    output.console.print(table)
    output.text(f"\ntargets: {', '.join(TARGETS)}\ndevices: {', '.join(device_names())}")
    data = {
        "tools": [row.to_json() for row in rows],
        "targets": list(TARGETS),
        "devices": list(device_names()),
    }
    output.finish(data, (), OK if all_present(rows) else TOOL_MISSING)
