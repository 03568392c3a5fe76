"""Result files of the conformance checks."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.conformance import identity

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Row:
    """One cell of the table: what was compared, by whom, how often, and how often it differed.

    ``graph`` tells a stale row (see ``identity``): of hardware, the first sixteen digits of its flat region's
    hash; of the interpreter, which is filled in here, of the code that evaluates the operation.
    """

    op: str
    dtype: str
    oracle: str
    vectors: int
    differences: int
    exhaustive: bool = False
    executor: str = "interp"
    note: str = ""
    graph: str = ""


def write(name: str, rows: Iterable[Row], command: str) -> int:
    """Writes ``results/<name>.json`` and returns how many differences there were."""
    started, found = time.monotonic(), list(_announced(rows))
    head = {"command": command, "seconds": round(time.monotonic() - started)}
    _save(name, head, [_plain(row) for row in found])
    return sum(row.differences for row in found)


def replace(name: str, rows: Iterable[Row]) -> int:
    """Puts rows in the place of older ones of the same op, dtype, oracle and executor; others stay."""
    data = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    found = {(row.op, row.dtype, row.oracle, row.executor): row for row in _announced(rows)}
    keys = [(old["op"], old["dtype"], old["oracle"], old["executor"]) for old in data["rows"]]
    kept = [_plain(found[key]) if key in found else old for key, old in zip(keys, data["rows"])]
    _save(name, {"command": data["command"], "seconds": data["seconds"]}, kept)
    return sum(row.differences for row in found.values())


def _plain(row: Row) -> dict[str, Any]:
    graph = row.graph or (identity.reference(row.op) if row.executor == "interp" else "")
    assert graph, f"{row.op} {row.dtype} does not say what was tried"
    return {key: value for key, value in (asdict(row) | {"graph": graph}).items() if value != ""}


def _save(name: str, head: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    data = {
        **head, "differences": sum(row["differences"] for row in rows),
        "vectors": sum(row["vectors"] for row in rows), "rows": rows,
    }
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(data, indent=1).replace("{\n   ", "{").replace("\n   \"", " \"").replace("\n  }", "}")
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def _announced(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        print(f"{row.op} {row.dtype}: {row.vectors} against {row.oracle}, {row.differences} differ",
              file=sys.stderr, flush=True)
        yield row
