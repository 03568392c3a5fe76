"""Running the tests that a program holds."""

from __future__ import annotations

from kera_hw.driver.session import Loaded
from kera_hw.frontend.sema.testing import TestResult, run_tests


def run_program_tests(loaded: Loaded, name: str | None = None) -> list[TestResult]:
    """The results of the program's tests whose name holds ``name``; a `.keg` holds none."""
    program = loaded.frontend.program if loaded.frontend is not None else None
    if program is None:
        return []
    return run_tests(program, None if name is None else lambda title: name in title)
