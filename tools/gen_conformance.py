"""Writes docs/reference/conformance.md from the result files of the long checks.

Reads ``tests/conformance/results/*.json`` and ``tests/exhaustive/results/*.json``; the form of a result is
said in ``tests/conformance/__init__.py``; the forms of tests/exhaustive are read too. With ``--check``
nothing is written; the exit status is 1 if the page is stale.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "conformance.md"
SOURCES = ("tests/conformance/results", "tests/exhaustive/results")
FORMATS = ("f16", "bf16", "f32", "f64")

COLUMNS = {
    "interp": "interpreter", "model": "lowered graph", "rtl": "simulated Verilog", "formal": "proved",
}
_EXECUTORS = {
    "interpreter": "interp", "lowered graph": "model", "verilator": "rtl", "verilog": "rtl", "netlist": "rtl",
    "proof": "formal", "solver": "formal",
}


@dataclass(frozen=True)
class Result:
    """One comparison: see ``tests/conformance/__init__.py``."""

    op: str
    dtype: str
    executor: str
    oracle: str
    vectors: int
    differences: int
    exhaustive: bool
    note: str
    command: str


def read_results(root: Path = ROOT) -> list[Result]:
    """All rows of all result files, by file name. Raises ValueError for a file of no known form."""
    found: list[Result] = []
    for source in SOURCES:
        for path in sorted((root / source).glob("*.json")):
            try:
                found += list(_rows(json.loads(path.read_text(encoding="utf-8"))))
            except (KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"{path.relative_to(root)} is no conformance result: {error!r}") from error
    return found


def _rows(data: Any) -> Iterator[Result]:
    if isinstance(data, Mapping) and "rows" in data:
        for row in data["rows"]:
            whole = {"command": data.get("command", ""), **row}
            yield _proof(whole) if "unit" in row else _result(whole)
    elif isinstance(data, Mapping) and "functions" in data:
        for name, row in data["functions"].items():
            yield _within_an_ulp(name, data, row)
    elif isinstance(data, list):
        for row in data:
            yield _result(row)
    else:
        yield _result(data)


def _result(row: Mapping[str, Any]) -> Result:
    op = row.get("op") or row.get("operation") or row["function"]
    dtype = row.get("dtype") or row["type"]
    vectors = row["vectors"] if "vectors" in row else row["inputs"]
    executor = str(row.get("executor", "interp")).lower()
    width = {"f16": 16, "bf16": 16, "f32": 32}.get(dtype, 0)
    return Result(
        op if "." in op else f"floating.{op}", dtype, _EXECUTORS.get(executor, executor),
        row.get("oracle") or ("MPFR, close calls of libm" if "decided_by_libm" in row else "MPFR"),
        vectors, row["differences"], bool(row.get("exhaustive", width and vectors == 1 << width)),
        row.get("note", ""), row.get("command", ""),
    )


def _proof(row: Mapping[str, Any]) -> Result:
    """A solver's verdict about a unit, for all inputs at once."""
    verb, _, kind = row["unit"].rpartition("-")
    what = f"{row['level']} {row['result']} against {row['against']} in {row['seconds']:.0f} s"
    return Result(
        f"floating.{verb}", kind, "formal", what, 0, int(row["result"] in ("refuted", "differs")),
        row["result"] == "proved", "", row["command"],
    )


def _within_an_ulp(name: str, data: Mapping[str, Any], row: Mapping[str, Any]) -> Result:
    """A function with an error bound instead of one right answer."""
    worst = row["greatest_error_ulp"]
    return Result(
        f"floating.{name}", data["type"], "interp", "MPFR", row["inputs"], int(worst >= 1), False,
        f"below 1 ulp; at most {worst:.3f} found", data["command"],
    )


def conformance_page(results: list[Result]) -> str:
    """The page as markdown."""
    lines = [
        "# Conformance", "<!-- Made by tools/gen_conformance.py from the results of the long checks. -->\n",
        "What every float operation was held against, on how many inputs, and how many results differed in a",
        "bit. *All* means every input there is. Unless a cell says otherwise, none differed.", "",
    ]
    families: dict[str, dict[tuple[str, str], dict[str, list[Result]]]] = {}
    for result in results:
        family = families.setdefault(result.op.partition(".")[0], {})
        cells = family.setdefault((result.op, result.dtype), {})
        cells.setdefault(result.executor, []).append(result)
    for family in sorted(families, key=_family_rank):
        lines += _table(family, families[family])
    lines += ["## Commands", ""]
    lines += [f"- `{command}`" for command in sorted({result.command for result in results} - {""})]
    total = sum(result.vectors for result in results)
    wrong = sum(result.differences for result in results)
    lines += ["", f"{total:,} comparisons in all, {wrong:,} differences."]
    return "\n".join(lines) + "\n"


def _family_rank(family: str) -> int:
    known = ["floating", "compare", "convert", "reduce", "neural"]
    return known.index(family) if family in known else len(known)


def _table(family: str, rows: Mapping[tuple[str, str], Mapping[str, list[Result]]]) -> list[str]:
    titles = {"floating": "Arithmetic and functions", "compare": "Comparisons", "convert": "Conversions",
              "reduce": "Reductions", "neural": "Neural composites"}
    present = {executor for cells in rows.values() for executor in cells} | {"interp"}
    columns = {key: name for key, name in COLUMNS.items() if key in present}
    columns |= {key: key for key in sorted(present - set(COLUMNS))}
    lines = [f"## {titles.get(family, family)}", "",
             f"| operation | type | {' | '.join(columns.values())} |", "|---|---|" + "---|" * len(columns)]
    for (op, dtype), cells in sorted(rows.items(), key=lambda item: (item[0][0], _format_rank(item[0][1]))):
        shown = [_cell(cells.get(executor, [])) for executor in columns]
        lines.append(f"| `{op}` | {dtype} | {' | '.join(shown)} |")
    return [*lines, ""]


def _format_rank(dtype: str) -> tuple[int, str]:
    return (FORMATS.index(dtype) if dtype in FORMATS else len(FORMATS)), dtype


def _cell(results: list[Result]) -> str:
    """Comparisons by one oracle together: notes of the same oracle tell what was varied."""
    by: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        label = result.note if not result.note.startswith(("order", "mul")) else ""
        by.setdefault((result.oracle, label), []).append(result)
    parts: list[str] = []
    for (oracle, note), group in by.items():
        count, wrong = sum(item.vectors for item in group), sum(item.differences for item in group)
        complete = all(item.exhaustive for item in group)
        text = f"{'all ' if complete else ''}{count:,} against {oracle}" if count else oracle
        text += f" ({note})" if note else ""
        parts.append(text + (f" **{wrong:,} differ**" if wrong else ""))
    return "; ".join(parts) or "–"


def main() -> int:
    """Writes or checks the page."""
    text = conformance_page(read_results())
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"stale: {PAGE.relative_to(ROOT)}; run {Path(__file__).relative_to(ROOT)}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
