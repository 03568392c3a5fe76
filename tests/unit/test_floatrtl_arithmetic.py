"""Adders and multipliers against SoftFloat (MPFR for bf16), run by the interpreter."""
from __future__ import annotations

import pytest

from kera_hw.rtl.lower.floats.add import lower_add, lower_sub
from kera_hw.rtl.lower.floats.mul import lower_mul
from kera_hw.types import FloatType

from .floatrtl_support import FORMATS, check

COUNT = 6000


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_add(kind: FloatType) -> None:
    check(lower_add, "add", kind, COUNT)


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_sub(kind: FloatType) -> None:
    check(lower_sub, "sub", kind, COUNT)


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_mul(kind: FloatType) -> None:
    check(lower_mul, "mul", kind, COUNT)
