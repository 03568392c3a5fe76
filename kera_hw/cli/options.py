"""Arguments and options that several commands take, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kera_hw.cli import complete
from kera_hw.cli.output import Output
from kera_hw.support import LINTS, Diagnostic

if TYPE_CHECKING:
    from kera_hw.driver.session import Loaded
    from kera_hw.graph import Export, Graph

FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A .kera source file or a .keg.", autocompletion=complete.programs
    ),
]
FilesArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="Source files or .keg files.", autocompletion=complete.programs
    ),
]
FunctionOption = Annotated[
    str | None,
    typer.Option(
        "--fn", metavar="NAME", autocompletion=complete.functions,
        help="The exported function or stream; needed if there are several.",
    ),
]  # fmt: skip
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing of progress on stderr.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]

def load_or_fail(file: Path, output: Output, lints: bool = False) -> tuple[Loaded, Graph]:
    """The compiled program; ends the command with its diagnostics when there are errors. ``lints``: whether
    to show these too, once the program is fine."""
    from kera_hw.driver.session import load_program

    loaded = load_program(file)
    if loaded.graph is None or loaded.has_errors:
        output.fail(loaded.diagnostics)
    output.diagnostics(item for item in loaded.diagnostics if lints or item.code not in LINTS)
    return loaded, loaded.graph


def export_or_fail(loaded: Loaded, name: str | None, output: Output) -> Export:
    """The named export, or the only one; ends the command when there is none such."""
    from kera_hw.driver.session import find_export

    found = find_export(loaded, name)
    if isinstance(found, Diagnostic):
        output.fail([found])
    return found
