"""Result files of the conformance checks."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Row:
    """One cell of the table: what was compared, by whom, how often, and how often it differed."""

    op: str
    dtype: str
    oracle: str
    vectors: int
    differences: int
    exhaustive: bool = False
    executor: str = "interp"
    note: str = ""


def write(name: str, rows: Iterable[Row], command: str) -> int:
    """Writes ``results/<name>.json`` as rows come, and returns how many differences there were."""
    started, found = time.monotonic(), list[Row]()
    for row in _announced(rows):
        found.append(row)
    data = {
        "command": command, "seconds": round(time.monotonic() - started),
        "differences": sum(row.differences for row in found), "vectors": sum(row.vectors for row in found),
        "rows": [{key: value for key, value in asdict(row).items() if value != ""} for row in found],
    }
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(data, indent=1).replace("{\n   ", "{").replace("\n   \"", " \"").replace("\n  }", "}")
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    return data["differences"]


def _announced(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        print(f"{row.op} {row.dtype}: {row.vectors} against {row.oracle}, {row.differences} differ",
              file=sys.stderr, flush=True)
        yield row
