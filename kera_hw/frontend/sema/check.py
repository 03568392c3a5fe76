"""The entry: a parsed file to a checked program."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from kera_hw.frontend.sema.builtins import convert as builtins_convert
from kera_hw.frontend.sema.builtins import effects as builtins_effects
from kera_hw.frontend.sema.builtins import scalar as builtins_scalar
from kera_hw.frontend.sema.builtins import tensor as builtins_tensor
from kera_hw.frontend.sema.checking import branches as check_branches
from kera_hw.frontend.sema.checking import lambdas as check_lambdas
from kera_hw.frontend.sema.checking import methods as check_methods
from kera_hw.frontend.sema.checking.arguments import HANDLERS
from kera_hw.frontend.sema.checking.functions import check_body, check_test, sign
from kera_hw.frontend.sema.checking.program import Checker, Evaluate, Load
from kera_hw.frontend.sema.names.builtins import BUILTINS
from kera_hw.frontend.sema.names.modules import declare
from kera_hw.frontend.sema.names.scope import Constant, ItemSymbol, Module
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.usage import DeclaredItem
from kera_hw.frontend.sema.typing.context import Instance
from kera_hw.frontend.syntax import ast
from kera_hw.support import CycleError, Diagnostic, SourceFile, Span, deep_recursion, toposort
from kera_hw.types import Type

#: Modules that register rules and built-ins when imported.
_REGISTERED = (
    builtins_convert,
    builtins_effects,
    builtins_scalar,
    builtins_tensor,
    check_branches,
    check_lambdas,
    check_methods,
)
assert set(BUILTINS) - set(HANDLERS) == {"assert", "assert_eq", "cover"}


def check(
    unit: ast.SourceUnit, file: SourceFile, load: Load, evaluate: Evaluate,
    syntax: Sequence[Diagnostic] = (), given: Mapping[str, tuple[Type, Any]] = MappingProxyType({}),
) -> tuple[hir.CheckedProgram | None, list[Diagnostic]]:
    """Check a parsed file with the modules it imports.

    ``load`` gives the file of a module by name (None: there is none). ``evaluate`` gives the value of a
    constant expression in interpreter form (``hir.Const``), by the reference semantics; it may raise
    KeraError with diagnostics. ``syntax`` is what the parser has reported: of the items concerned nothing
    more is said. ``given`` are types and values of constants of the file, whatever stands there for them. The
    program is None when some diagnostic is an error, or when a syntax error left
    something without a meaning.
    """
    with deep_recursion():
        return _check(unit, file, load, evaluate, syntax, given)


def _check(
    unit: ast.SourceUnit, file: SourceFile, load: Load, evaluate: Evaluate, syntax: Sequence[Diagnostic],
    given: Mapping[str, tuple[Type, Any]],
) -> tuple[hir.CheckedProgram | None, list[Diagnostic]]:
    root = Module("", file, unit)
    checker = Checker(root, load, evaluate, check_body, sign)
    checker.note_syntax(file, unit, syntax)
    declare(root, checker.report)
    for name, (kind, value) in given.items():
        symbol = root.items[name]
        symbol.resolved = Constant(name, kind, value, symbol.name_span)
    for item in syntax:
        if item.code == "K0013" and item.span is not None:  # a directive may have meant to declare its words
            root.lost_names.update(re.findall(r"\w+", file.text(item.span)))
    checker.usage.items.extend(_declared(symbol) for symbol in root.items.values())
    good = _check_items(checker, root)
    checker.drain()
    calls: list[tuple[Instance, Span]] = []
    tests: list[hir.Test] = []
    for node in unit.items:
        if isinstance(node, ast.TestItem):
            made = check_test(checker, node, calls)
            good = good and made is not None
            if made is not None:
                tests.append(made)
    checker.drain()
    order = _order(checker)
    good = good and order is not None and all(instance.ok for instance in order)
    constants = tuple(checker.evaluated)  # without those of samples below
    _check_unused(checker, root)
    diagnostics = sorted(checker.diagnostics, key=lambda item: _place(item, file))
    if not good or order is None or any(item.is_error for item in diagnostics):
        return None, diagnostics
    functions = tuple(instance.function for instance in order)
    return hir.CheckedProgram(functions, tuple(tests), file, constants, checker.usage), diagnostics


_KINDS: dict[type[ast.Item], str] = {
    ast.FnItem: "function", ast.StreamItem: "stream", ast.ConstItem: "constant", ast.UseItem: "import",
    ast.StructItem: "struct",
}


def _declared(symbol: ItemSymbol) -> DeclaredItem:
    node = symbol.node
    importable = not node.is_pub and _cannot_be_public(node)
    kind = _KINDS.get(type(node), "type")
    return DeclaredItem(symbol.name, symbol.name_span, node.span, kind, node.is_pub, importable)


def _cannot_be_public(node: ast.Item) -> bool:
    """Whether an item is for other files by import alone: it has sizes, or borrows among its parameters."""
    return isinstance(node, (ast.FnItem, ast.StreamItem)) and (
        bool(node.size_params) or any(isinstance(param.type, ast.RefType) for param in node.params)
    )


def _place(item: Diagnostic, root: SourceFile) -> tuple[bool, str, int, int]:
    """Sorting key: the root file first, then by position."""
    path = item.file.path if item.file is not None else ""
    start, end = (item.span.start, item.span.end) if item.span is not None else (0, 0)
    return item.file is not root, path, start, end


def _check_items(checker: Checker, root: Module) -> bool:
    """Resolve every item of the root; False when one is broken even without a diagnostic of ours."""
    good = True
    for symbol in root.items.values():
        node = symbol.node
        if isinstance(node, ast.UseItem):
            found = checker.item(root, symbol.name)
            good = good and found is not None and not found.failed_import
        elif isinstance(node, ast.ConstItem):
            good = (checker.constant(symbol) is not None) and good
        elif isinstance(node, (ast.StructItem, ast.TypeAliasItem)):
            checker.named_type(symbol)
        elif isinstance(node, (ast.FnItem, ast.StreamItem)) and not node.size_params:
            checker.instance(None, symbol, (), symbol.name_span)
        elif isinstance(node, (ast.FnItem, ast.StreamItem)) and node.is_pub:
            _instantiate_any(checker, symbol)
    return good


def _instantiate_any(checker: Checker, symbol: ItemSymbol) -> None:
    """Sign an instance for its reports alone."""
    node = symbol.node
    assert isinstance(node, (ast.FnItem, ast.StreamItem))
    checker.report(
        symbol.module.file, "K0212", f"`{symbol.name}` is `pub`, so it cannot have compile-time sizes.",
        node.size_params[0].span,
    )


def _order(checker: Checker) -> list[Instance] | None:
    """All instances, callees first; None (reported) when calls form a cycle."""
    try:
        return toposort(checker.instances.values(), lambda item: (called for called, _ in item.calls))
    except CycleError as error:
        cycle = [item for item in error.cycle if isinstance(item, Instance)]
        first, second = cycle[0], cycle[1 % len(cycle)]
        names = " → ".join(f"`{item.symbol.name}`" for item in [*cycle, first])
        span = next((span for called, span in first.calls if called is second), first.symbol.name_span)
        checker.report(first.symbol.module.file, "K0206", f"Recursion is not possible: {names}.", span)
        return None


#: A size for functions that nothing calls, to look up the names in their bodies.
_SAMPLE_SIZE = 8


def _check_unused(checker: Checker, root: Module) -> None:
    """Report unknown names in generic functions that nothing instantiates."""
    used = {symbol for symbol, _ in checker.instances}
    checker.names_only = True
    for symbol in root.items.values():
        node = symbol.node
        if isinstance(node, (ast.FnItem, ast.StreamItem)) and node.size_params and symbol not in used:
            checker.instance(None, symbol, (_SAMPLE_SIZE,) * len(node.size_params), symbol.name_span)
            checker.drain()
    checker.names_only = False
