"""Diagnostic codes: each is listed once, in its range, and exactly those listed are used."""
from __future__ import annotations

import re
from collections import Counter

from kera_hw.support import codes
from kera_hw.support.codes import CODES
from tests.tidy.repo import ROOT, files_with_suffix, relative

_CODE = re.compile(r"[\"'](K\d{4})[\"']")
_TABLES = sorted((ROOT / "kera_hw" / "support" / "codes").glob("*.py"))


def _rows() -> list[str]:
    row = re.compile(r"^    \(\"(K\d{4})\"", re.MULTILINE)
    return [code for table in _TABLES for code in row.findall(table.read_text("utf-8"))]


def test_every_code_is_listed_once() -> None:
    rows = _rows()
    assert [code for code, times in Counter(rows).items() if times > 1] == []
    assert sorted(rows) == sorted(CODES)


def test_every_code_stands_in_the_table_of_its_range() -> None:
    ranges = {
        "lexical": "K00", "syntax": "K01", "names": "K02", "typing": "K03", "ownership": "K04",
        "effects": "K05", "hardware": "K06", "targets": "K07", "artefacts": "K08", "runtime": "K09",
    }
    astray = [
        row[0] for module, prefix in ranges.items()
        for row in getattr(codes, module).TABLE if not row[0].startswith(prefix)
    ]
    assert astray == []


def test_codes_used_and_codes_listed_are_the_same() -> None:
    used: set[str] = set()
    for path in files_with_suffix(".py"):
        name = relative(path)
        if name.startswith("kera_hw/") and not name.startswith("kera_hw/support/codes/"):
            used |= set(_CODE.findall(path.read_text("utf-8")))
    assert used - set(CODES) == set(), "used and not in a table"
    assert set(CODES) - used == set(), "in a table and never used"


def test_every_code_explains_itself() -> None:
    poor = [
        code for code, info in CODES.items()
        if not info.title or info.title.endswith(".") or not info.explanation.endswith(".")
    ]
    assert poor == []
