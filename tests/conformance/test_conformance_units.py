"""Float units, graph and simulated Verilog, on a million vectors and more: part of ``make check-long``."""
from __future__ import annotations

import pytest

from kera_hw.types import FloatType
from tests.conformance import float_units, odd_formats, rtl_elementwise
from tests.conformance.arithmetic import FORMATS, LONG
from tests.conformance.report import Row

ELEMENTWISE = (rtl_elementwise.compared, rtl_elementwise.converted, rtl_elementwise.functions)


def _none_differ(rows: list[Row]) -> bool:
    return all(row.vectors and not row.differences for row in rows)


@pytest.mark.long
@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("op", float_units.SOURCES)
def test_rounded_units(op: str, kind: FloatType) -> None:
    rows = list(float_units.checks(op, kind, 2 * LONG if op == "fma" else LONG))
    assert len(rows) == 2 and _none_differ(rows)


@pytest.mark.long
@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("op", float_units.FOLDED)
def test_folded_units(op: str, kind: FloatType) -> None:
    rows = list(float_units.checks(op, kind, LONG, folded=True))
    assert len(rows) == 2 and _none_differ(rows)


@pytest.mark.long
@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("what", ELEMENTWISE, ids=lambda what: what.__name__)
def test_elementwise(what: rtl_elementwise.Check, kind: FloatType) -> None:
    assert _none_differ(list(what(kind, LONG)))


@pytest.mark.long
def test_integers() -> None:
    assert _none_differ(list(rtl_elementwise.integers(LONG)))


@pytest.mark.long
def test_odd_formats() -> None:
    assert _none_differ(list(odd_formats.checks()))
