"""Running the tests that a program holds."""

from __future__ import annotations

from dataclasses import dataclass

from kera_hw.driver.circuit_calls import Call, CircuitCalls
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import Loaded
from kera_hw.frontend.sema.testing import TestResult, run_tests


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
