"""Settings for every test."""
from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import gmpy2
import pytest

from kera_hw.driver.remembered import SWITCH

os.environ[SWITCH] = "off"  # tests are of the search, also where an earlier run has found the same


@pytest.fixture(scope="session")
def decisions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What searches have found in this process: empty at first, and gone at the end."""
    return tmp_path_factory.mktemp("decisions")


@pytest.fixture(scope="module")
def searched_once(decisions: Path) -> Iterator[None]:
    """For tests of what comes after the search: what was searched for before is made as found then."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, str(decisions))
        yield


@pytest.fixture(autouse=True)
def default_precision() -> None:
    """MPFR's context is the thread's: what one oracle sets must not judge another's results."""
    gmpy2.set_context(gmpy2.context())
