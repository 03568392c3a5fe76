"""Writes docs/reference/conformance.md from the result files of the long checks.

Reads ``tests/conformance/results/*.json`` and ``tests/exhaustive/results/*.json``; the form of a result is
said in ``tests/conformance/__init__.py``; the forms of tests/exhaustive are read too. With ``--check``
nothing is written; the exit status is 1 if the page is stale.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kera_hw.numerics.elementary import FUNCTIONS

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
PAGE = ROOT / "docs" / "reference" / "conformance.md"
SOURCES = ("tests/conformance/results", "tests/exhaustive/results")
FORMATS = ("f16", "bf16", "f32", "f64")
WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}

COLUMNS = {
    "interp": "interpreter", "model": "lowered graph", "rtl": "simulated Verilog", "formal": "proved",
    "native": "native program",
}
_EXECUTORS = {
    "interpreter": "interp", "lowered graph": "model", "verilator": "rtl", "verilog": "rtl", "netlist": "rtl",
    "proof": "formal", "solver": "formal", "native code": "native",
}
INTEGERS = "integers"
_SOFT_WIDTHS = "32 and 64 bits"
"""The note of conversions from integers that SoftFloat has."""
_INTEGER = re.compile(r"\b[iu]\d+\b")
_HEAD = """\
# Conformance
<!-- Made by tools/gen_conformance.py from the results of the long checks. -->

What every float operation was held against, on how many inputs, and how many results differed in a bit.
Unless a cell says otherwise, none differed.

- **Interpreter**: the registry's reference evaluation. **Lowered graph**: the integer operations that
  hardware is made of, run by the interpreter or as C++. **Simulated Verilog**: the emitted text in
  Verilator, every vector twice: at full rate, with the cycles planned, and under random stalls.
  **Proved**: for all inputs, by a solver, with a planted fault refuted. **Native program**: the operation
  written out for processors ([native set](native.md)), as C++ on x86-64.
- *All* means that every input there is was tried. Other vectors are heavy in edges: exponents at the
  ends and near each other, significands of few ones or zeros, operands that cancel, infinities, NaN.
- A NaN result counts as right only if it is the canonical one; in SoftFloat's results any NaN stands
  for it.
- Oracles: SoftFloat is Berkeley SoftFloat 3e (`softfloatpy`), rounding to nearest even; MPFR is used
  through `gmpy2`, at the format's own precision and exponent range with subnormals rounded once; exact
  integers and rationals are Python's; the definition on integers spells out on bit patterns what is
  meant by signs, extremes and classes of values.
- **stale**: what was compared has changed since; `python -m tests.conformance.current` says how to compare it
  again, and `make check-long` begins with that.
- A dash: not compared there by these checks.
"""


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
    stale: bool = False
    """Whether what was tried is no longer there."""


def read_results(root: Path = ROOT) -> list[Result]:
    """All rows of all result files, by file name. Raises ValueError for a file of no known form."""
    found: list[Result] = []
    for source in SOURCES:
        for path in sorted((root / source).glob("*.json")):
            try:
                found += list(_rows(path.stem, json.loads(path.read_text(encoding="utf-8"))))
            except (KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"{path.relative_to(root)} is no conformance result: {error!r}") from error
    return found


def _rows(record: str, data: Any) -> Iterator[Result]:
    from tests.conformance.current import graph_of

    if isinstance(data, Mapping) and "rows" in data:
        for row in data["rows"]:
            whole = {"command": data.get("command", ""), **row}
            result = _proof(whole) if "unit" in row else _result(whole)
            yield replace(result, stale=row.get("graph") != graph_of(record, row))
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
    width = WIDTHS.get(dtype, 0)
    exhaustive = bool(row.get("exhaustive", width and vectors == 1 << width))
    return Result(
        op if "." in op else f"floating.{op}", dtype, _EXECUTORS.get(executor, executor),
        row.get("oracle") or ("MPFR, close calls of libm" if "decided_by_libm" in row else "MPFR"),
        vectors, row["differences"], exhaustive and (not width or vectors in (1 << width, 1 << 2 * width)),
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


# The page


Cells = Mapping[str, Sequence[Result]]


def conformance_page(results: list[Result]) -> str:
    """The page as markdown."""
    lines = [_HEAD]
    families: dict[str, dict[tuple[str, str], dict[str, list[Result]]]] = {}
    for result in results:
        family = families.setdefault(_family(result), {})
        cells = family.setdefault((result.op, _row_type(result.dtype)), {})
        cells.setdefault(result.executor, []).append(result)
    for family in sorted(families, key=_family_rank):
        lines += _table(family, families[family])
    lines += ["## Commands", ""]
    lines += [f"- `{command}`" for command in sorted({result.command for result in results} - {""})]
    total = sum(result.vectors for result in results)
    wrong = sum(result.differences for result in results)
    lines += ["", f"{total:,} comparisons in all, {wrong:,} differences."]
    return "\n".join(lines) + "\n"


_TITLES = {
    "floating": "Arithmetic and signs", "functions": "Elementary functions", "compare": "Comparisons",
    "convert": "Conversions", "other": "Other formats", "reduce": "Reductions", "neural": "Neural composites",
}
_INTRODUCTIONS = {
    "functions": """\
On f16, bf16 and f32 each is the real function's value rounded once; f64 has published algorithms, which are
the definition there, within 1 ulp.""",
    "convert": """\
Integers of several widths share a row: a cell says how many types there are, and sums their vectors.""",
    "other": """\
Units are generic in exponent and fraction bits. These are the formats of 2 to 6 exponent bits and 1 to 10
fraction bits.""",
}


def _family(result: Result) -> str:
    if "odd formats" in result.dtype:
        return "other"
    family, _, verb = result.op.partition(".")
    return "functions" if family == "floating" and verb in FUNCTIONS else family


def _row_type(dtype: str) -> str:
    """Conversions of any integer type share a row."""
    return _INTEGER.sub(INTEGERS, dtype).replace("integers of 1 to 64 bits", INTEGERS)


def _family_rank(family: str) -> int:
    known = list(_TITLES)
    return known.index(family) if family in known else len(known)


def _table(family: str, rows: Mapping[tuple[str, str], Cells]) -> list[str]:
    present = {executor for cells in rows.values() for executor in cells}
    columns = {key: name for key, name in COLUMNS.items() if key in present}
    columns |= {key: key for key in sorted(present - set(COLUMNS))}
    lines = [f"## {_TITLES.get(family, family)}", ""]
    if family in _INTRODUCTIONS:
        lines += [_INTRODUCTIONS[family], ""]
    lines += [f"| operation | type | {' | '.join(columns.values())} |", "|---|---|" + "---|" * len(columns)]
    for (op, dtype), cells in sorted(rows.items(), key=lambda item: (item[0][0], _format_rank(item[0][1]))):
        shown = [_cell(cells.get(executor, [])) for executor in columns]
        lines.append(f"| `{op}` | {dtype} | {' | '.join(shown)} |")
    return [*lines, ""]


def _format_rank(dtype: str) -> tuple[int, str]:
    return (FORMATS.index(dtype) if dtype in FORMATS else len(FORMATS)), dtype


def _cell(results: Sequence[Result]) -> str:
    """Comparisons by one oracle together: notes of the same oracle tell what was varied."""
    by: dict[tuple[str, str, bool], list[Result]] = {}
    for result in results:
        label = result.note if not result.note.startswith(("order", "mul")) else ""
        by.setdefault((result.oracle, label, result.exhaustive), []).append(result)
    return "; ".join(_compared(*key, group) for key, group in by.items()) or "–"


def _compared(oracle: str, note: str, exhaustive: bool, group: Sequence[Result]) -> str:
    count, wrong = sum(item.vectors for item in group), sum(item.differences for item in group)
    text = f"{'all ' if exhaustive else ''}{count:,} against {oracle}" if count else oracle
    notes = [part for part in (_types(group) if note != _SOFT_WIDTHS else "", note) if part]
    text += f" ({'; '.join(notes)})" if notes else ""
    text += f" **{wrong:,} differ**" if wrong else ""
    return text + (" **stale**" if any(item.stale for item in group) else "")


def _types(group: Sequence[Result]) -> str:
    """Which integer types a conversion was tried with."""
    if any("integers of 1 to 64 bits" in item.dtype for item in group):
        return "every type of 1 to 64 bits"
    found = sorted({name for item in group for name in _INTEGER.findall(item.dtype)}, key=_type_rank)
    return f"{len(found)} types: {' '.join(found)}" if len(found) > 1 else "".join(found)


def _type_rank(name: str) -> tuple[int, str]:
    return int(name[1:]), name


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
