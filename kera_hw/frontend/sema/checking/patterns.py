"""Patterns: irrefutable ones that bind, and those of `match`."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import prod

from kera_hw.frontend.sema.checking.atoms import number
from kera_hw.frontend.sema.names.scope import Broken, Constant, ItemSymbol, Linear, Local, Symbol, closest
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import Context
from kera_hw.frontend.sema.typing.paths import constant_of, find
from kera_hw.frontend.sema.typing.unify import ERROR, Unknown, describe, resolve, shallow, unify
from kera_hw.frontend.syntax import ast
from kera_hw.support import Fix, Span
from kera_hw.types import BOOL, BoolType, IntType, TupleType, Type

#: The most alternatives that one arm may stand for.
MAX_ALTERNATIVES = 256
#: How constants are written: `IDLE`, `N`, `MAX_4`.
_UPPER = re.compile(r"[A-Z][A-Z0-9_]*")
#: Makes the pattern once types are known; None when something was reported.
BuildPattern = Callable[[], hir.Pattern | None]


def bind_pattern(
    ctx: Context, node: ast.Pattern | None, kind: Type, span: Span, linear: Linear | None = None,
) -> hir.Pattern | None:
    """Declare the names of an irrefutable pattern; None (reported) when it is not one."""
    if isinstance(node, ast.ParenPattern):
        return bind_pattern(ctx, node.inner, kind, span, linear)
    if isinstance(node, ast.WildcardPattern):
        return hir.Wildcard(node.span)
    if isinstance(node, ast.NamePattern):
        token = node.name_token
        if token is None or (node.path is not None and node.path.is_qualified):
            ctx.report("K0323", "Only a plain name can be bound here.", node.span)
            return None
        var = ctx.new_var(token.text, kind, token.span, node.is_mut)
        ctx.declare(Local(var, "variable", linear=None if node.is_mut else linear))
        return hir.Binding(node.span, var)
    if isinstance(node, ast.TuplePattern):
        return _bind_tuple(ctx, node, kind)
    if node is not None and not isinstance(node, ast.Error):
        ctx.report(
            "K0323",
            "This pattern might not match; only names, `_` and tuples of them can stand here.",
            node.span,
        )
    ctx.shared.errors += 1
    return None


def _bind_tuple(ctx: Context, node: ast.TuplePattern, kind: Type) -> hir.Pattern | None:
    parts = tuple_parts(ctx, node, kind)
    seen: set[str] = set()
    for item in node.elements:
        token = item.name_token if isinstance(item, ast.NamePattern) else None
        if token is not None and token.text in seen:
            ctx.report("K0202", f"`{token.text}` is bound twice in this pattern.", token.span)
        if token is not None:
            seen.add(token.text)
    items = [bind_pattern(ctx, item, part, node.span) for item, part in zip(node.elements, parts)]
    good = tuple(item for item in items if item is not None)
    return hir.TuplePattern(node.span, good) if len(good) == len(items) else None


def tuple_parts(ctx: Context, node: ast.TuplePattern, kind: Type) -> list[Type]:
    """The types of a tuple pattern's elements; all unknown (reported) when it does not fit."""
    found = shallow(kind)
    count = len(node.elements)
    if isinstance(found, TupleType) and len(found.items) == count:
        return list(found.items)
    if found is not ERROR:
        ctx.report("K0323", f"A pattern of {count} elements cannot match {describe(found)}.", node.span)
    ctx.shared.errors += 1
    return [ERROR] * count


# ---------------------------------------------------------------- match


@dataclass(slots=True)
class ArmNames:
    """Variables an arm's alternatives bind, shared by name, with where each was bound how often."""

    found: dict[str, tuple[hir.Var, int]] = field(default_factory=dict[str, "tuple[hir.Var, int]"])


def arm_patterns(ctx: Context, node: ast.Pattern | None, kind: Type) -> list[BuildPattern]:
    """The alternatives of an arm against the scrutinee's type; declares what they bind."""
    alternatives = _alternatives(node)
    names = ArmNames()
    made = [built for item in alternatives for built in _refutable(ctx, item, kind, names)]
    for name, (var, count) in names.found.items():
        if count != len(alternatives):
            ctx.report("K0323", f"`{name}` must be bound in every alternative of the arm.", var.span)
            made.append(_nothing)
        ctx.declare(Local(var, "variable"), elsewhere=count > 1)
    return made


def _alternatives(node: ast.Pattern | None) -> list[ast.Pattern]:
    if isinstance(node, ast.ParenPattern):
        return _alternatives(node.inner)
    if isinstance(node, ast.OrPattern):
        return [item for alternative in node.alternatives for item in _alternatives(alternative)]
    return [] if node is None else [node]


def _nothing() -> None:
    return None


def _refutable(ctx: Context, node: ast.Pattern, kind: Type, names: ArmNames) -> list[BuildPattern]:
    """The alternatives that a pattern stands for: one, unless it holds others inside a tuple."""
    if isinstance(node, ast.ParenPattern) and node.inner is not None:
        return _refutable(ctx, node.inner, kind, names)
    if isinstance(node, ast.WildcardPattern):
        wildcard = hir.Wildcard(node.span)
        return [lambda: wildcard]
    if isinstance(node, ast.NamePattern):
        return [_name(ctx, node, kind, names)]
    if isinstance(node, ast.LiteralPattern) and node.literal is not None:
        value = _end(ctx, node.literal, kind)
        return [lambda: _range(node.span, value, value)]
    if isinstance(node, ast.RangePattern):
        return [_range_pattern(ctx, node, kind)]
    if isinstance(node, ast.TuplePattern):
        return _tuples(ctx, node, kind, names)
    if isinstance(node, ast.OrPattern):
        return _inner_alternatives(ctx, node, kind, names)
    ctx.shared.errors += 1
    return [_nothing]


def _inner_alternatives(
    ctx: Context, node: ast.OrPattern, kind: Type, names: ArmNames,
) -> list[BuildPattern]:
    bound = len(names.found)
    made = [
        built for alternative in node.alternatives for built in _refutable(ctx, alternative, kind, names)
    ]
    if len(names.found) > bound:
        ctx.report("K0323", "Alternatives inside a tuple cannot bind names.", node.span)
        return [_nothing]
    return made


def _tuples(ctx: Context, node: ast.TuplePattern, kind: Type, names: ArmNames) -> list[BuildPattern]:
    parts = tuple_parts(ctx, node, kind)
    columns = [_refutable(ctx, item, part, names) for item, part in zip(node.elements, parts)]
    if not isinstance(shallow(kind), TupleType):
        return [_nothing]
    if prod(map(len, columns)) > MAX_ALTERNATIVES:
        ctx.report("K0323", f"This pattern stands for more than {MAX_ALTERNATIVES} alternatives.", node.span)
        return [_nothing]
    # Each choice of one alternative per element; what an element builds is built once.
    shared = [[_once(item) for item in column] for column in columns]
    return [partial(_tuple, node.span, list(items)) for items in product(*shared)]


def _once(build: BuildPattern) -> BuildPattern:
    made: list[hir.Pattern | None] = []

    def again() -> hir.Pattern | None:
        if not made:
            made.append(build())
        return made[0]

    return again


def _tuple(span: Span, items: list[BuildPattern]) -> hir.Pattern | None:
    made = [item() for item in items]
    good = tuple(item for item in made if item is not None)
    return hir.TuplePattern(span, good) if len(good) == len(made) else None


def _name(ctx: Context, node: ast.NamePattern, kind: Type, names: ArmNames) -> BuildPattern:
    path, token = node.path, node.name_token
    if path is None or token is None:
        ctx.shared.errors += 1
        return _nothing
    symbol: Symbol | None = find(ctx, path) if path.is_qualified else ctx.lookup(token.text, reads=False)
    if symbol is not None and _is_constant(symbol):
        if not path.is_qualified:
            ctx.lookup(token.text)
        found = constant_of(ctx, symbol, token.text, node.span)
        value = _constant_end(ctx, found, kind, node.span)
        return lambda: _range(node.span, value, value)
    if path.is_qualified:
        if symbol is not None:
            ctx.report("K0323", "A path in a pattern names a constant.", node.span)
        ctx.shared.errors += 1
        return _nothing
    if like_constant(token.text):
        meant = near_constant(ctx, token.text)
        _report_like_constant(ctx, token.text, meant, token.span)
        ctx.scopes.declare(token.text, Broken(token.span))
        return _nothing
    known = names.found.get(token.text)
    if known is None:
        var, count = ctx.new_var(token.text, kind, token.span, node.is_mut), 0
    else:
        var, count = known
        if not unify(var.type, kind):
            ctx.report("K0302", f"`{token.text}` is {describe(var.type)} in one alternative and "
                       f"{describe(kind)} in another.", token.span)
    names.found[token.text] = (var, count + 1)
    binding = hir.Binding(node.span, var)
    return lambda: binding


def _is_constant(symbol: Symbol) -> bool:
    return isinstance(symbol, Constant) or (
        isinstance(symbol, ItemSymbol) and isinstance(symbol.node, ast.ConstItem)
    )


def like_constant(name: str) -> bool:
    """Whether a name is written as constants are, or is a constant of Python."""
    return _UPPER.fullmatch(name) is not None or name in ("True", "False")


def near_constant(ctx: Context, name: str) -> str | None:
    """The constant in scope that a name was probably meant to be, None when none is near."""
    names = dict.fromkeys([*ctx.scopes.names(), *ctx.module.items])
    known = [
        item for item in names
        if (symbol := ctx.lookup(item, reads=False)) is not None and _is_constant(symbol)
    ]
    by_spelling = {item.lower(): item for item in known}
    if name in ("True", "False", "TRUE", "FALSE"):
        return name.lower()
    found = closest(name, known) or by_spelling.get(closest(name.lower(), list(by_spelling)) or "")
    return found


def _report_like_constant(ctx: Context, name: str, meant: str | None, span: Span) -> None:
    tail = f"; did you mean `{meant}`?" if meant else "."
    fix = Fix(f"use `{meant}`", span, meant) if meant else Fix(
        f"declare the constant, or, for a variable, write `{name.lower()}`"
    )
    ctx.report("K0215", f"There is no constant `{name}`, so this would bind every value{tail}", span, fix=fix)


def check_misspelt(ctx: Context, node: ast.Pattern | None) -> None:
    """K0215 for a name that an arm binds and never reads, where a constant's name is close to it."""
    for item in node.node.descendants() if node is not None else ():
        view = ast.cast(item)
        token = view.name_token if isinstance(view, ast.NamePattern) else None
        symbol = ctx.scopes.levels[-1].get(token.text) if token is not None else None
        if token is None or not isinstance(symbol, Local) or token.text.startswith("_"):
            continue
        if (ctx.file.path, symbol.var.span) in ctx.checker.usage.read:
            continue
        meant = near_constant(ctx, token.text)
        if meant is not None:
            _report_like_constant(ctx, token.text, meant, token.span)


#: An end of a range: makes the integer once types are known, None when reported.
End = Callable[[], int | None]


def _range(span: Span, low: End, high: End) -> hir.Pattern | None:
    first = low()
    last = first if low is high else high()
    return None if first is None or last is None else hir.IntRange(span, first, last)


def _constant_end(ctx: Context, found: Constant | None, kind: Type, span: Span) -> End:
    if found is None:
        return _nothing
    if not isinstance(found.type, (IntType, BoolType)):
        ctx.report(
            "K0323", f"A pattern matches integers and bools, and this is {describe(found.type)}.", span
        )
        return _nothing
    if not unify(kind, found.type):
        _mismatch(ctx, span, kind, found.type)
        return _nothing
    value = int(found.value)
    return lambda: value


def _mismatch(ctx: Context, span: Span, kind: Type, found: Type) -> None:
    ctx.report(
        "K0323", f"This pattern is {describe(found)}, and the value matched is {describe(kind)}.", span
    )


def _end(ctx: Context, node: ast.Expr, kind: Type) -> End:
    """One value in a pattern: a literal or a path to a constant."""
    if isinstance(node, ast.PathExpr) and node.path is not None:
        symbol = find(ctx, node.path)
        if symbol is None:
            return _nothing
        return _constant_end(ctx, constant_of(ctx, symbol, node.path.name or "", node.span), kind, node.span)
    if not isinstance(node, ast.Literal):
        ctx.shared.errors += 1
        return _nothing
    if node.is_bool:
        if not unify(kind, BOOL):
            _mismatch(ctx, node.span, kind, BOOL)
            return _nothing
        return lambda: int(node.bool_value)
    if node.is_string or node.is_float:
        ctx.report("K0323", "Patterns are integers, bools and tuples of them.", node.span)
        return _nothing
    target = shallow(kind)
    if not isinstance(target, (IntType, Unknown)) and target is not ERROR:
        _mismatch(ctx, node.span, kind, ctx.unknown(1))
        return _nothing
    value = number(ctx, node, None, node.span)
    if not unify(value.type, kind):
        _mismatch(ctx, node.span, kind, value.type)
        return _nothing

    def build() -> int | None:
        made = value.build()
        if isinstance(made, hir.Const) and isinstance(made.type, IntType):
            return int(made.value)
        return None

    return build


def _range_pattern(ctx: Context, node: ast.RangePattern, kind: Type) -> BuildPattern:
    low = _end(ctx, node.start, kind) if node.start is not None else None
    high = _end(ctx, node.end, kind) if node.end is not None else None

    def build() -> hir.Pattern | None:
        found = resolve(kind)
        if not isinstance(found, IntType):
            if found is not ERROR:
                ctx.report("K0323", f"A range matches integers, and the value matched is {describe(found)}.",
                           node.span)
            return None
        first = found.min if low is None else low()
        last = found.max if high is None else high()
        if first is None or last is None:
            return None
        last -= high is not None and not node.inclusive
        if first > last:
            ctx.report("K0323", "This range is empty, so it matches nothing.", node.span)
            return None
        return hir.IntRange(node.span, first, last)

    return build
