"""Running the tests that a program holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kera_hw.driver.circuit_calls import Call, CircuitCalls
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import Loaded
from kera_hw.frontend.sema.testing import TestResult, run_tests
from kera_hw.frontend.sema.tree.observing import Site
from kera_hw.support import Diagnostic, Severity, Span


@dataclass(frozen=True, slots=True)
class TargetTest:
    """A test whose calls of exports were run on a target, as far as they could be."""

    result: TestResult
    calls: tuple[Call, ...]

    @property
    def simulated(self) -> tuple[Call, ...]:
        return tuple(call for call in self.calls if call.reason is None)

    @property
    def interpreted(self) -> tuple[Call, ...]:
        """Calls that stayed with the interpreter, each with its reason."""
        return tuple(call for call in self.calls if call.reason is not None)


@dataclass(frozen=True, slots=True)
class CoverCount:
    """A cover point that tests may reach, and how many did."""

    site: Site
    tests: int

    @property
    def _name(self) -> str:
        line = self.site.file.line_column(self.site.span.start)[0]
        return f"`{self.site.label}` (line {line})" if self.site.label else f"line {line}"

    def text(self) -> str:
        times = "never" if not self.tests else f"{self.tests} test{'s' if self.tests > 1 else ''}"
        return f"cover {self._name}: {times}"

    def warning(self) -> Diagnostic:
        message = f"No test reached the point at {self._name}."
        return Diagnostic("K0922", message, self.site.file, self.site.span, severity=Severity.WARNING)

    def to_json(self) -> dict[str, Any]:
        line = self.site.file.line_column(self.site.span.start)[0]
        return {"label": self.site.label, "path": self.site.file.path, "line": line, "tests": self.tests}


def cover_counts(results: Sequence[TestResult]) -> list[CoverCount]:
    """The cover points of everything that the tests call, each place once, in order of first appearance."""
    found: dict[tuple[str, Span], tuple[Site, int]] = {}
    for covered in (item for result in results for item in result.covered):
        key = (covered.site.file.path, covered.site.span)
        _, hits = found.get(key, (covered.site, 0))
        found[key] = (covered.site, hits + covered.hit)
    return [CoverCount(site, hits) for site, hits in found.values()]


def run_program_tests(loaded: Loaded, name: str | None = None) -> list[TestResult]:
    """The results of the program's tests whose name holds ``name``; a `.keg` holds none."""
    program = loaded.frontend.program if loaded.frontend is not None else None
    return [] if program is None else run_tests(program, lambda title: name is None or name in title)


def run_tests_on(
    loaded: Loaded, target: str, options: TargetOptions, name: str | None = None
) -> list[TargetTest]:
    """The same with calls of exports run on ``target``. Raises KeraError where a tool is missing or fails."""
    program = loaded.frontend.program if loaded.frontend is not None else None
    if program is None or loaded.graph is None:
        return []
    circuit = CircuitCalls(loaded.graph, target, options)
    results = run_tests(program, lambda title: name is None or name in title, circuit.evaluate)
    return [TargetTest(result, tuple(circuit.calls.get(result.name, ()))) for result in results]
