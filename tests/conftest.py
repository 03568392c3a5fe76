"""Settings for every test."""
from __future__ import annotations

import gmpy2
import pytest


@pytest.fixture(autouse=True)
def default_precision() -> None:
    """MPFR's context is the thread's: what one oracle sets must not judge another's results."""
    gmpy2.set_context(gmpy2.context())
