"""Settings for every test."""
from __future__ import annotations

import os

import gmpy2
import pytest

from kera_hw.driver.remembered import SWITCH

os.environ[SWITCH] = "off"  # tests are of the search, also where an earlier run has found the same


@pytest.fixture(autouse=True)
def default_precision() -> None:
    """MPFR's context is the thread's: what one oracle sets must not judge another's results."""
    gmpy2.set_context(gmpy2.context())
