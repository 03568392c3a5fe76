"""All lints of a program without errors, in the order of the source."""
from __future__ import annotations

from kera_hw.frontend.sema import hir
from kera_hw.frontend.sema.lint_names import lint_names
from kera_hw.frontend.sema.lint_values import lint_values
from kera_hw.support import Diagnostic, Span


def lint(program: hir.Program) -> list[Diagnostic]:
    """Warnings about the root file; what it imports is for its own check."""
    found = [
        *lint_names(program.usage, program.root),
        *lint_values(program.functions, program.usage, program.root),
    ]
    return sorted(found, key=lambda item: item.span or Span(0, 0))
