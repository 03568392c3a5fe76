"""What every command shares: diagnostics on stderr or in the JSON object, exit statuses, colour.

Exit status: 0 fine; 1 the program or the comparison is at fault; 2 the call is at fault; 3 a tool is missing;
70 a bug of ours. With ``--json`` exactly one object goes to stdout and nothing else.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from rich.console import Console

from kera_hw.support import Diagnostic, render_diagnostic

OK, AT_FAULT, BAD_CALL, TOOL_MISSING, INTERNAL = 0, 1, 2, 3, 70

# Codes whose cause is the call, not the program.
_CALL_CODES = frozenset({"K0901", "K0902", "K0903", "K0905"})
_TOOL_CODES = frozenset({"K0950"})


class Exit(Exception):
    """Ends a command with a status once its output is written."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(status)


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command writes. Human text goes to stdout, progress and diagnostics to stderr."""

    json: bool

    @property
    def console(self) -> Console:
        """Rich console on stdout; quiet in JSON mode. Rich itself respects NO_COLOR."""
        return Console(quiet=self.json, highlight=False, soft_wrap=True)

    @property
    def progress(self) -> Console:
        """Console on stderr for progress bars; silent in JSON mode and off a terminal."""
        return Console(stderr=True, quiet=self.json, highlight=False)

    def diagnostics(self, items: Iterable[Diagnostic]) -> None:
        """Writes diagnostics to stderr unless they will be in the JSON object."""
        if self.json:
            return
        colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
        for item in items:
            print(render_diagnostic(item, colour), end="\n\n", file=sys.stderr)

    def finish(
        self, data: Mapping[str, Any], items: Iterable[Diagnostic] = (), status: int | None = None
    ) -> NoReturn:
        """Writes the diagnostics and the JSON object, then ends with a status (from the errors by default)."""
        listed = list(items)
        self.diagnostics(listed)
        code = status if status is not None else status_of(listed)
        if self.json:
            payload = {"ok": code == OK, **data, "diagnostics": [item.to_json() for item in listed]}
            print(json.dumps(payload, default=_plain))
        raise Exit(code)

    def fail(self, items: Iterable[Diagnostic]) -> NoReturn:
        self.finish({}, items)


def status_of(items: Iterable[Diagnostic]) -> int:
    """The exit status that a list of diagnostics stands for."""
    codes = [item.code for item in items if item.is_error]
    if not codes:
        return OK
    if any(code in _TOOL_CODES for code in codes):
        return TOOL_MISSING
    return BAD_CALL if all(code in _CALL_CODES for code in codes) else AT_FAULT


def _plain(value: Any) -> Any:
    """NumPy scalars and arrays, paths and bytes as JSON values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
