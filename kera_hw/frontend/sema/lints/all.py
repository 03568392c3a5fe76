"""All lints of a program without errors, in the order of the source."""
from __future__ import annotations

from collections.abc import Iterator

from kera_hw.frontend.sema.lints.names import lint_names
from kera_hw.frontend.sema.lints.values import lint_values
from kera_hw.frontend.sema.tree import hir
from kera_hw.support import Diagnostic, Span


def lint(program: hir.CheckedProgram) -> list[Diagnostic]:
    """Warnings about the root file; what it imports is for its own check."""
    found = [
        *lint_names(program.usage, program.root),
        *_lint_arms(program),
        *lint_values(program.functions, program.usage, program.root),
    ]
    return sorted(found, key=lambda item: item.span or Span(0, 0))


def _lint_arms(program: hir.CheckedProgram) -> Iterator[Diagnostic]:
    """Arms that no value reaches in any instance of their function."""
    for verdicts in program.usage.arms.values():
        first = verdicts[0]
        if first is not None and first.file is program.root and None not in verdicts:
            yield first
