"""The reference of built-ins: every name has a row, every example is run, every operation is met."""
from __future__ import annotations

from pathlib import Path

import pytest

from kera_hw.driver.session import compile_text
from kera_hw.frontend.parser import deep_recursion
from kera_hw.frontend.sema.names.builtin_docs import DESCRIBED, signature, to_text
from kera_hw.frontend.sema.names.builtins import BUILTINS, METHODS
from kera_hw.frontend.sema.testing import lower_test, new_testing, run_tests
from kera_hw.graph.node import Region
from kera_hw.ops.registry import OPS
from kera_hw.support import SourceFile

VALUED = [name for name, row in DESCRIBED.items() if row.value]
IN_TESTS_ONLY = {"assert", "assert_eq"}


def _opcodes(region: Region) -> set[str]:
    return {node.opcode for node in region.nodes()}


def test_every_name_has_a_row_and_every_row_a_name() -> None:
    assert set(DESCRIBED) == {*BUILTINS, *METHODS}
    assert all(operation in OPS for row in DESCRIBED.values() for operation in row.operations)


@pytest.mark.parametrize("name", VALUED)
def test_an_example_has_its_value_and_its_operation(name: str) -> None:
    row = DESCRIBED[name]
    text = f'test "example" {{ assert_eq({row.example}, {row.value}); }}'
    loaded = compile_text(SourceFile("example.kera", text.encode()), Path("."))
    assert loaded.frontend is not None and loaded.frontend.program is not None, loaded.diagnostics
    (result,) = run_tests(loaded.frontend.program)
    assert result.passed, result.diagnostic
    with deep_recursion():
        lowered = lower_test(new_testing(), loaded.frontend.program.tests[0])
    assert not row.operations or _opcodes(lowered.region) & set(row.operations)
    assert name in row.example


@pytest.mark.parametrize("name", sorted(set(DESCRIBED) - set(VALUED)))
def test_an_example_without_a_value_type_checks(name: str) -> None:
    example = DESCRIBED[name].example
    loaded = compile_text(SourceFile("example.kera", example.encode()), Path("."))
    assert not loaded.has_errors, loaded.diagnostics
    assert f"{name}(" in example or f"{name}::<" in example


def test_signatures_are_those_of_the_checker() -> None:
    assert signature("sum") == "sum(x, axis?, order?)"
    assert signature("reshape") == "reshape::<..>(a)"
    assert signature("cat") == "cat(a, b...)"
    assert signature("bits") == "x.bits(hi, lo)"
    assert to_text("popcount").splitlines()[0] == "popcount(x)"
