"""Writes pages of docs/reference (``PAGES``) from the tables and commands that they are about.

With ``--check`` nothing is written; the exit status is 1 if a page is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

RANGES = {
    "K00": "Lexical", "K01": "Syntax", "K02": "Names", "K03": "Types and shapes", "K04": "Ownership",
    "K05": "Effects and capabilities", "K06": "Hardware", "K07": "Target limits", "K08": "Artefacts",
    "K09": "Running",
}
MADE = "<!-- Made by tools/gen_reference.py: edit the tables there described, not this page. -->\n"


def errors_page() -> str:
    """Every diagnostic code."""
    from kera_hw.support import CODES

    lines = ["# Diagnostics", MADE,
             "Each mistake has a code that never changes its meaning; `kera explain CODE` prints it.", ""]
    for prefix, title in RANGES.items():
        found = {code: info for code, info in sorted(CODES.items()) if code.startswith(prefix)}
        if found:
            lines += [f"## {title}", ""]
            lines += [f"- **{code}**, {info.title}. {info.explanation}" for code, info in found.items()]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def devices_page() -> str:
    """Every part with its capacities."""
    from kera_hw.schedule.fpga.device import device_names, find_device

    parts = [part for name in device_names() if (part := find_device(name)) is not None]
    lines = ["# Devices", MADE, "What `--target fpga:NAME` accepts.", "",
             "| name | family | package | speed | LUTs | flip-flops | DSP | block RAM |",
             "|---|---|---|---|--:|--:|--:|--:|"]
    lines += [
        f"| {p.name} | {p.family} | {p.package} | {p.speed} | {p.lut} | {p.ff} | {p.dsp} | {p.bram} |"
        for p in parts
    ]
    lines += ["", "The delays and areas behind the estimates are data, one table a family, in",
              "[kera_hw/schedule/fpga/devices](../../kera_hw/schedule/fpga/devices)."]
    return "\n".join(lines) + "\n"


def cli_page() -> str:
    """Every command with its options."""
    import typer

    from kera_hw.cli.main import app
    from kera_hw.cli.output import EXIT_STATUSES

    command: Any = typer.main.get_command(app)
    lines = ["# The kera command", MADE, "| exit status | meaning |", "|--:|---|"]
    lines += [f"| {status} | {meaning} |" for status, meaning in EXIT_STATUSES.items()]
    lines += ["", "With `--json` one object goes to stdout and nothing else. It holds at most 1000",
              "diagnostics a file; how many more there were is then in `diagnostics_left_out`. Without it",
              "ten a file are shown."]
    for name, entry in command.commands.items():
        about = " ".join(line.strip() for line in (entry.help or "").splitlines() if line.strip())
        lines += ["", f"## kera {name}", "", about, "", "| | |", "|---|---|"]
        for param in entry.params:
            flags = " ".join(f"`{flag}`" for flag in param.opts) if param.param_type_name == "option" else ""
            metavar = f" `{param.metavar}`" if param.metavar else ""
            text = (getattr(param, "help", None) or "").replace("|", "\\|")
            lines.append(f"| {flags}{metavar} | {text} |")
    return "\n".join(lines) + "\n"


_BUILTINS_HEAD = """\
The names of the outermost scope, which items, parameters and locals may shadow. Each example is a
test; `kera explain NAME` shows a row. A *number* is an integer, fixed point or float; where scalars
are taken, tensors of one shape are too, element by element, and a scalar goes with every element.
`?` marks what may be left out, `::<..>` what is given as types or sizes. What they mean on edge
values is said by the [operations](ops.md) and the [semantics](../semantics.md).
"""


def builtins_page() -> str:
    """Every built-in and method."""
    from kera_hw.frontend.sema.names.builtin_docs import page

    return f"# Built-ins\n{MADE}\n{_BUILTINS_HEAD}\n{page()}"


_COVERAGE_HEAD = """\
Which operations of the graph each target computes, from the tables by which the targets work: `interp` is the
interpreter, `loops` are [loop programs](loops.md), `rtl` is hardware, `formal` are [proofs](formal.md).
*all* means on all types that the operation takes, in all its forms. What is refused is refused by name
(K0701; K0961 by proofs) and never approximated; a number is that of the [reason](#reasons).
`kera explain OPERATION` shows a row, and `kera explain TARGET` all that a target refuses.
"""


def coverage_page() -> str:
    """Every operation on every target."""
    from kera_hw.driver.coverage import TABLES
    from kera_hw.target.coverage import page

    return f"# Operations by target\n{MADE}\n{_COVERAGE_HEAD}\n{page(TABLES)}"


_NATIVE_HEAD = """\
Operations that x86-64, AArch64, RISC-V, WebAssembly and PTX each have almost one to one: what
[loop programs](loops.md#native-programs) for processors are written out in. Of operands beyond
what the last column says a machine makes any value, or stops, and native programs see to it that
nobody looks. A NaN may come out as any NaN. The amount of a shift is of the unsigned type of the
same width. Elements in memory are integers, f32 and f64; a bool is a u8 of 0 or 1 there, f16 and
bf16 are a u16.
"""


def native_page() -> str:
    """The native set and what is ready for machines with more."""
    from kera_hw.legal.document import page

    return f"# The native set\n{MADE}\n{_NATIVE_HEAD}\n{page()}"


PAGES: dict[str, Callable[[], str]] = {
    "builtins.md": builtins_page, "coverage.md": coverage_page, "errors.md": errors_page,
    "devices.md": devices_page, "cli.md": cli_page, "native.md": native_page,
}


def main() -> int:
    """Writes or checks the pages."""
    stale: list[str] = []
    for name, make in PAGES.items():
        path, text = ROOT / "docs" / "reference" / name, make()
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path.relative_to(ROOT)))
    if stale:
        print(f"stale: {', '.join(stale)}; run {Path(__file__).relative_to(ROOT)}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
