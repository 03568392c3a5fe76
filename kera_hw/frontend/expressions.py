"""The type that the checker gives one expression over names of known types."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kera_hw.frontend.parser import parse
from kera_hw.frontend.sema import check
from kera_hw.frontend.sema.constants.run import evaluate_constant
from kera_hw.frontend.sema.tree import hir
from kera_hw.support import Diagnostic, SourceFile
from kera_hw.types import Type


@dataclass(frozen=True, slots=True)
class TypedExpression:
    """An expression's type; of `map`, `zip`, `reduce` and `scan` also those of the lambda's parameters."""

    type: Type
    lambda_params: tuple[Type, ...] = ()


def typed_expression(text: str, names: Mapping[str, str]) -> TypedExpression | list[Diagnostic]:
    """What the checker makes of an expression, or what it says against it; names with their types as written.

    Indices are not proved: what leads to them is not part of one expression.
    """
    params = ", ".join(f"{name}: {kind}" for name, kind in names.items())
    file = SourceFile.from_text(f"fn typed({params}) {{ let _value = {text}; }}", "<expression>")
    unit, diagnostics = parse(file)
    program, found = check(unit, file, lambda _: None, evaluate_constant, diagnostics)
    wrong = [item for item in (*diagnostics, *found) if item.is_error]
    if wrong:
        return wrong
    # Text that closes the body, or a parameter, would make other items of it.
    whole = program is not None and len(unit.items) == 1 and len(program.functions) == 1
    function = program.functions[0] if whole and program is not None else None
    body = function.body if function is not None and len(function.params) == len(names) else None
    if body is None or len(body.stmts) != 1:
        return [Diagnostic("K0101", f"`{text}` is not one expression.", file)]
    statement = body.stmts[0]
    assert isinstance(statement, hir.Let)
    value = statement.value
    inner = value.body.params if isinstance(value, hir.HigherOrder) else ()
    return TypedExpression(value.type, tuple(param.type for param in inner))
