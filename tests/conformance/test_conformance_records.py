"""Records of long runs say what they were found on, and a row about code that has changed is seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance import current, identity, report
from tests.conformance.report import RESULTS, Row
from tools import gen_conformance

RECORDS = sorted(RESULTS.glob("*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_every_row_carries_a_hash(path: Path) -> None:
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert rows and all(len(bytes.fromhex(row["graph"])) == 8 for row in rows)


def test_what_has_changed_is_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same record with one digit of one hash changed, and with one hash left out."""
    text = (RESULTS / "rtl_add.json").read_text(encoding="utf-8")
    data = json.loads(text)
    monkeypatch.setattr(current, "RESULTS", tmp_path)
    (tmp_path / "rtl_add.json").write_text(text, encoding="utf-8")
    assert list(current.stale()) == []
    data["rows"][3]["graph"] = f"{int(data['rows'][3]['graph'], 16) ^ 1:016x}"
    del data["rows"][5]["graph"]
    (tmp_path / "rtl_add.json").write_text(json.dumps(data), encoding="utf-8")
    found = list(current.stale())
    assert [item.row for item in found] == [data["rows"][3], data["rows"][5]]
    assert "run python -m tests.conformance.float_units add" in str(found[0])
    assert current.main() == 1


def test_a_stale_row_is_shown_as_stale() -> None:
    row = gen_conformance.Result("floating.add", "f16", "rtl", "MPFR", 10, 0, False, "", "run it", stale=True)
    assert "10 against MPFR **stale**" in gen_conformance.conformance_page([row])


def test_a_row_without_an_identity_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    with pytest.raises(AssertionError, match="does not say what was tried"):
        report.write("none", [Row("floating.add", "f16", "MPFR", 1, 0, executor="rtl")], "")
    report.write("some", [Row("floating.add", "f16", "MPFR", 1, 0)], "")
    (row,) = json.loads((tmp_path / "some.json").read_text(encoding="utf-8"))["rows"]
    assert row["graph"] == identity.reference("floating.add")


def test_comments_and_docstrings_are_no_part_of_code() -> None:
    plain = 'def f(x):\n    return "a # b" + x\n'
    told = '"""Module."""\n\n# why\ndef f(x):  # so\n    """Says\n    more."""\n    return "a # b" + x  \n'
    assert identity.code(told) == identity.code(plain) == plain.rstrip("\n")
    assert identity.code(plain.replace("+", "-")) != identity.code(plain)


def test_an_interval_and_an_operand_make_another_graph() -> None:
    text = "pub fn unit(a: f16, b: f16) -> f16 { a / b }\n"
    other = text.replace("/", "*")
    assert len({identity.lowered(text), identity.lowered(text, 30), identity.lowered(other)}) == 3


def test_elementary_algorithms_concern_functions_and_composites_only() -> None:
    assert identity.reference("floating.exp") == identity.reference("floating.tanh")
    assert identity.reference("floating.exp") != identity.reference("floating.add")
    assert identity.reference("floating.add") == identity.reference("floating.mul")
