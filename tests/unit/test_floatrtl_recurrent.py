"""Units for fused multiply-add, division and roots against SoftFloat and MPFR, run by the interpreter."""
from __future__ import annotations

import pytest

from kera_hw.rtl.lower.floats.fma import lower_fma
from kera_hw.types import FloatType

from .floatrtl_support import FORMATS, check

COUNT = 4000


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_fma(kind: FloatType) -> None:
    check(lower_fma, "fma", kind, COUNT)
