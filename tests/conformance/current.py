"""Whether the recorded results are about today's code: ``python -m tests.conformance.current``.

Lists the rows whose hash is no longer that of the graph (or, of the interpreter, of the code) that they were
found on, with the commands that make them anew; the status is 1 if there are any.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.conformance import exhaustive_rtl, exhaustive_units, float_units, formal, identity, rtl_elementwise
from tests.conformance.report import RESULTS

_BY_REFERENCE = ("arithmetic", "conversions", "elementary", "reductions")


@dataclass(frozen=True)
class Stale:
    """A row of a record, and the command that replaces it."""

    record: str
    row: Mapping[str, Any]
    command: str

    def __str__(self) -> str:
        what = self.row.get("unit") or f"{self.row['op']} {self.row['dtype']}"
        return f"{self.record}: {what} ({self.row.get('graph', 'no hash')}); run {self.command}"


def graph_of(record: str, row: Mapping[str, Any]) -> str:
    """Today's hash of what a record's row is about. Raises KeyError for a record of no known kind."""
    return _reader(record)(record, row)


def _reader(record: str) -> Callable[[str, Mapping[str, Any]], str]:
    kind, _, rest = record.partition("_")
    if record in _BY_REFERENCE:
        return lambda _, row: identity.reference(row["op"])
    if record == "formal":
        return formal.graph_of
    if record == "odd_formats":
        from tests.conformance import odd_formats  # makes its tables when loaded

        return odd_formats.graph_of
    if kind == "exhaustive":
        return exhaustive_units.graph_of
    if rest.split("_")[0] in ("compared", "converted", "integers", "functions"):
        return rtl_elementwise.graph_of
    if rest.split("_")[0] in float_units.SOURCES:
        return float_units.graph_of
    if rest in (exhaustive_rtl.NARROW, exhaustive_rtl.GENERAL, *exhaustive_rtl.FUNCTIONS_F32):
        return exhaustive_rtl.graph_of
    raise KeyError(record)


def stale() -> Iterator[Stale]:
    """All stale rows, by record."""
    for path in sorted(RESULTS.glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        for row in data["rows"]:
            if row.get("graph") != graph_of(path.stem, row):
                yield Stale(path.stem, row, row.get("command") or data["command"])


def main() -> int:
    """Prints what is stale."""
    found = list(stale())
    for item in found:
        print(item)
    print(f"{len(found)} rows are stale." if found else "Every row is about today's code.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
