"""Plans of loops: made or read, shown, explained and saved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kera_hw.cli.options import export_or_fail, load_or_fail
from kera_hw.cli.output import Output


@dataclass(frozen=True, slots=True)
class LoopRequest:
    """What was asked of a plan of loops."""

    given: Path | None = None
    save: Path | None = None
    explain: bool = False


def show_loop_plan(file: Path, function: str | None, request: LoopRequest, output: Output) -> None:
    """Plans the loops of a function and prints what was saved, the reasons where asked, and the program."""
    from kera_hw.driver.files import write_atomically
    from kera_hw.driver.loops import plan_loops
    from kera_hw.loops.printer import print_program

    loaded, graph = load_or_fail(file, output, lints=True)
    export = export_or_fail(loaded, function, output)
    found = plan_loops(graph, export, request.given)
    if request.save is not None:
        write_atomically(request.save, found.text)
    output.text(found.headline())
    if request.explain:
        output.text("")
        for step, reason in found.explanation():
            output.text(f"{step}: {reason}" if step else reason)
    output.text("\n" + print_program(found.program).rstrip("\n"))
    data = {**found.to_json(), "saved": request.save}
    output.finish(data, loaded.diagnostics if output.json else ())
