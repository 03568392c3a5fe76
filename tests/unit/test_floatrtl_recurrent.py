"""Units for fused multiply-add, division and roots against SoftFloat and MPFR, run by the interpreter."""
from __future__ import annotations

import pytest

from kera_hw.rtl.lower.floats.divide import lower_div, lower_recip
from kera_hw.rtl.lower.floats.fma import lower_fma
from kera_hw.rtl.lower.floats.sqrt import lower_rsqrt, lower_sqrt
from kera_hw.types import FloatType

from .floatrtl_support import FORMATS, check

COUNT = 4000


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_fma(kind: FloatType) -> None:
    check(lower_fma, "fma", kind, COUNT)


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_div(kind: FloatType) -> None:
    check(lower_div, "div", kind, COUNT)


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_recip(kind: FloatType) -> None:
    check(lower_recip, "recip", kind, COUNT)


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_sqrt(kind: FloatType) -> None:
    check(lower_sqrt, "sqrt", kind, COUNT)


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_rsqrt(kind: FloatType) -> None:
    check(lower_rsqrt, "rsqrt", kind, COUNT)
