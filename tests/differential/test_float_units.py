"""Units of hardware in short: lowered graphs and simulated Verilog against SoftFloat and MPFR."""
from __future__ import annotations

import pytest

from kera_hw.types import BF16, F16, F32, F64, FloatType
from tests.conformance import float_units


@pytest.mark.parametrize("op,kind,folded", [
    ("fma", F32, False), ("div", F32, False), ("rsqrt", BF16, False), ("div", F32, True), ("sqrt", F64, True),
    ("recip", F16, True),
], ids=str)
def test_units(op: str, kind: FloatType, folded: bool) -> None:
    rows = list(float_units.checks(op, kind, 3000, folded))
    assert {row.executor for row in rows} == {"model", "rtl"}
    assert [row for row in rows if row.differences or row.vectors < 3000] == []
