"""The front end as one function: parse, check, prove the indices, lower, lint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from kera_hw.frontend.parser import parse
from kera_hw.frontend.sema import check
from kera_hw.frontend.sema.constants.run import evaluate_constant
from kera_hw.frontend.sema.lints.all import lint
from kera_hw.frontend.sema.lowering.whole import lower_program
from kera_hw.frontend.sema.ranges.proof import prove_indices
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.syntax import ast
from kera_hw.graph.node import Graph
from kera_hw.support import Diagnostic, SourceFile, deep_recursion
from kera_hw.types import Type

Given = Mapping[str, tuple[Type, Any]]
"""Types and values of constants of a file, in the form of ``hir.Const``, whatever stands there for them."""


@dataclass(frozen=True, slots=True)
class Frontend:
    """What became of a source file.

    ``unit`` always exists; ``program`` is None when the file or an import has mistakes, ``graph`` also when
    an index was not proved or something has no lowering.
    """

    unit: ast.SourceUnit
    program: hir.CheckedProgram | None
    graph: Graph | None
    diagnostics: tuple[Diagnostic, ...]


def compile_source(
    file: SourceFile, load: Callable[[str], SourceFile | None], given: Given = MappingProxyType({})
) -> Frontend:
    """Compile a file; ``load`` gives a module's file by name, or None. Never raises for input."""
    unit, diagnostics = parse(file)
    program, found = check(unit, file, load, evaluate_constant, diagnostics, given)
    diagnostics += found
    if program is None or _broken(diagnostics):
        return Frontend(unit, None, None, tuple(diagnostics))
    with deep_recursion():
        diagnostics += prove_indices(program)
        if _broken(diagnostics):
            return Frontend(unit, program, None, tuple(diagnostics))
        graph, found = lower_program(program)
    diagnostics += found
    if not _broken(diagnostics):
        with deep_recursion():
            diagnostics += lint(program)
    return Frontend(unit, program, None if _broken(diagnostics) else graph, tuple(diagnostics))


def _broken(diagnostics: list[Diagnostic]) -> bool:
    return any(item.is_error for item in diagnostics)
