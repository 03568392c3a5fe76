"""What the checker's tests share: checking a text, and a small evaluator for its integer constants."""
from __future__ import annotations

from typing import Any

import numpy as np

from kera_hw.frontend.parser import parse
from kera_hw.frontend.sema import check
from kera_hw.frontend.sema.tree import hir
from kera_hw.support import Diagnostic, SourceFile, render_diagnostics
from kera_hw.types import BoolType, IntType, numpy_dtype

_COMPARE = {"eq": "__eq__", "ne": "__ne__", "lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__"}


def evaluate(expr: hir.Expr, file: SourceFile) -> Any:
    """Integer operators, casts and comparisons on constants: independent of the graph and of interp."""
    value = _integer(expr)
    if isinstance(expr.type, BoolType):
        return np.bool_(value)
    assert isinstance(expr.type, IntType), f"the stand-in evaluates integers, not {expr.type}"
    return numpy_dtype(expr.type).type(expr.type.wrap(value))


def _integer(expr: hir.Expr) -> int:
    if isinstance(expr, hir.Const):
        return int(expr.value)
    if isinstance(expr, hir.Block) and expr.result is not None and not expr.stmts:
        return _integer(expr.result)
    if isinstance(expr, hir.Call) and expr.function.body is not None and not expr.args:
        return _integer(expr.function.body)
    assert isinstance(expr, hir.Op), f"the stand-in knows no {type(expr).__name__}"
    args = [_integer(arg) for arg in expr.args]
    family, name = expr.name.split(".")
    if family == "compare":
        return int(getattr(args[0], _COMPARE[name])(args[1]))
    if name == "cast":
        return args[0]
    a, b = args
    known = {"add": a + b, "sub": a - b, "mul": a * b, "shl": a << b if 0 <= b < 64 else 0,
             "div": int(a / b) if b else -1, "rem": a % b if b else a, "min": min(a, b), "max": max(a, b)}
    assert isinstance(expr.type, IntType)
    return expr.type.wrap(known[name])


def check_text(
    text: str, modules: dict[str, str] | None = None,
) -> tuple[hir.CheckedProgram | None, list[Diagnostic], SourceFile]:
    """Parse (without syntax errors) and check a text; ``modules`` are the files it may import."""
    file = SourceFile.from_text(text, "main.kera")
    unit, syntax = parse(file)
    assert not syntax, render_diagnostics(syntax)

    def load(name: str) -> SourceFile | None:
        found = (modules or {}).get(name)
        return None if found is None else SourceFile.from_text(found, f"{name}.kera")

    program, diagnostics = check(unit, file, load, evaluate)
    assert (program is None) == any(item.is_error for item in diagnostics)
    return program, diagnostics, file


def accept(text: str, modules: dict[str, str] | None = None) -> hir.CheckedProgram:
    """The program of a text that must check without any diagnostic."""
    program, diagnostics, _ = check_text(text, modules)
    assert program is not None and not diagnostics, render_diagnostics(diagnostics)
    return program


def function(program: hir.CheckedProgram, name: str) -> hir.Function:
    return next(item for item in program.functions if item.name == name)


def result_of(text: str, name: str = "f") -> hir.Expr:
    """The value of a function's body in an accepted text."""
    body = function(accept(text), name).body
    assert body is not None and body.result is not None
    return body.result


def reject(text: str, modules: dict[str, str] | None = None) -> list[tuple[str, str]]:
    """Codes and the text under the carets of a program that must be refused."""
    program, diagnostics, file = check_text(text, modules)
    assert program is None
    return [(item.code, (item.file or file).text(item.span) if item.span else "") for item in diagnostics]
