"""What every command shares: diagnostics on stderr or in the JSON object, exit statuses, colour, progress.

The exit statuses are those of EXIT_STATUSES. With ``--json`` exactly one object goes to stdout and nothing
else.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from kera_hw.cli import progress
from kera_hw.support import Diagnostic, render_diagnostic

if TYPE_CHECKING:
    from rich.console import Console

OK, AT_FAULT, BAD_CALL, TOOL_MISSING, NOT_PROVED = 0, 1, 2, 3, 4
INTERNAL, INTERRUPTED = 70, 130
EXIT_STATUSES: Mapping[int, str] = {
    OK: "fine",
    AT_FAULT: "the program or the comparison is at fault",
    BAD_CALL: "the call is at fault",
    TOOL_MISSING: "a tool is missing",
    NOT_PROVED: "a proof is not to be had",
    INTERNAL: "a bug in kera",
    INTERRUPTED: "interrupted",
}

# Codes whose cause is the call, not the program: files, names, targets and devices, arguments, input values.
_CALL_CODES = frozenset(
    {"K0605", "K0908", "K0925", *(f"K090{k}" for k in range(1, 7)), *(f"K091{k}" for k in range(1, 7))}
)
_TOOL_CODES = frozenset({"K0950"})

# A file that is no program at all gives thousands; nobody reads them, and terminals suffer.
_MOST_SHOWN = 10
_MOST_IN_JSON = 1000

class Exit(Exception):
    """Ends a command with a status once its output is written."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(status)


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command writes. Human text goes to stdout, progress and diagnostics to stderr."""

    json: bool
    quiet: bool = False

    def text(self, line: str = "") -> None:
        """Plain text on stdout; nothing in JSON mode."""
        if not self.json:
            print(line)

    @property
    def console(self) -> Console:
        """Rich console on stdout, quiet in JSON mode; it respects NO_COLOR, and is plain off a terminal."""
        from rich.console import Console

        return Console(quiet=self.json, highlight=False, width=None if sys.stdout.isatty() else 120)

    @contextmanager
    def progress(self, title: str, steps: int) -> Generator[progress.Report]:
        """Tells of each call on stderr: a bar on a terminal, else lines; nothing when asked to be quiet."""
        if self.quiet:
            yield lambda _: None
            return
        on_terminal = sys.stderr.isatty() and not self.json
        with progress.bar(title, steps) if on_terminal else progress.lines(title) as step:
            yield step

    def diagnostics(self, items: Iterable[Diagnostic]) -> None:
        """Writes diagnostics to stderr unless they will be in the JSON object."""
        if self.json:
            return
        sys.stdout.flush()
        colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        for path, listed in _by_file(items).items():
            shown = _foremost(listed, _MOST_SHOWN)
            for item in shown:
                print(render_diagnostic(item, colour), end="\n\n", file=sys.stderr)
            if len(listed) > len(shown):
                where = f" in {path}" if path else ""
                print(f"... and {len(listed) - len(shown)} more{where}; --json has them.\n", file=sys.stderr)

    def finish(
        self, data: Mapping[str, Any], items: Iterable[Diagnostic] = (), status: int | None = None
    ) -> NoReturn:
        """Writes diagnostics and the JSON object, then ends with a status (by default that of the errors)."""
        listed = list(items)
        self.diagnostics(listed)
        code = status if status is not None else status_of(listed)
        if self.json:
            kept = [item for rows in _by_file(listed).values() for item in _foremost(rows, _MOST_IN_JSON)]
            payload = {"ok": code == OK, **data, "diagnostics": [item.to_json() for item in kept]}
            if len(kept) < len(listed):
                payload["diagnostics_left_out"] = len(listed) - len(kept)
            print(json.dumps(_strict(payload), allow_nan=False))
        raise Exit(code)

    def fail(self, items: Iterable[Diagnostic]) -> NoReturn:
        """Ends the command with these diagnostics and nothing else."""
        self.finish({}, items)


def _by_file(items: Iterable[Diagnostic]) -> dict[str | None, list[Diagnostic]]:
    """The diagnostics of each file, in the order in which the files first occur."""
    found: dict[str | None, list[Diagnostic]] = {}
    for item in items:
        found.setdefault(item.file.path if item.file is not None else None, []).append(item)
    return found


def _foremost(items: list[Diagnostic], most: int) -> list[Diagnostic]:
    """At most so many, in their order; no error makes way for a warning."""
    errors = [item for item in items if item.is_error]
    others = [item for item in items if not item.is_error]
    kept = {id(item) for item in [*errors, *others][:most]}
    return [item for item in items if id(item) in kept]


def status_of(items: Iterable[Diagnostic]) -> int:
    """The exit status that a list of diagnostics stands for."""
    codes = [item.code for item in items if item.is_error]
    if not codes:
        return OK
    if any(code in _TOOL_CODES for code in codes):
        return TOOL_MISSING
    return BAD_CALL if all(code in _CALL_CODES for code in codes) else AT_FAULT


def _strict(value: Any) -> Any:
    """The value in strict JSON: arrays as lists, bytes as hex, paths as text, NaN and infinities as text."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _strict(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
