"""Signatures and bodies of functions and streams, and tests."""
from __future__ import annotations

import numpy as np

from kera_hw.frontend.sema.checking.blocks import block, body_block
from kera_hw.frontend.sema.names.builtins import EFFECTS
from kera_hw.frontend.sema.names.scope import Constant, ItemSymbol, Local, closest
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.usage import Declared
from kera_hw.frontend.sema.typing.context import Context, Instance, Shared, WholeProgram, is_poison
from kera_hw.frontend.sema.typing.types import parameter_type, resolve_type
from kera_hw.frontend.sema.typing.unify import ERROR, has_error
from kera_hw.frontend.syntax import ast
from kera_hw.support import Fix, Span
from kera_hw.types import U32, UNIT


def sign(checker: WholeProgram, symbol: ItemSymbol, sizes: tuple[int, ...]) -> hir.Function:
    """The signature of one instance, its body still to come."""
    node = symbol.node
    assert isinstance(node, (ast.FnItem, ast.StreamItem))
    ctx = checker.context(symbol)
    _declare_sizes(ctx, node, sizes)
    params = _parameters(ctx, node)
    result = ERROR if node.lacks_return_type else UNIT
    if node.return_type is not None:
        result = resolve_type(ctx, node.return_type)
    is_stream = isinstance(node, ast.StreamItem)
    name = symbol.qualified + (f"<{', '.join(map(str, sizes))}>" if sizes else "")
    if node.is_pub:
        _check_public(ctx, symbol, node, params)
    return hir.Function(
        name=name, kind="stream" if is_stream else "fn", params=params, result=result,
        effects=_effects(ctx, node), file=symbol.module.file, span=symbol.name_span,
        public_name=symbol.name if node.is_pub and symbol.module is checker.root else None,
    )


def _declare_sizes(ctx: Context, node: ast.FnItem | ast.StreamItem, sizes: tuple[int, ...]) -> None:
    seen: set[str] = set()
    for param, size in zip(node.size_params, sizes):
        token = param.name_token
        if token is None:
            continue
        if token.text in seen:
            ctx.report("K0202", f"The size `{token.text}` is declared twice.", token.span)
        seen.add(token.text)
        ctx.scopes.declare(token.text, Constant(token.text, U32, np.uint32(size), token.span))
        ctx.shared.declared.append(Declared(token.text, ctx.file, token.span, "size"))


def _parameters(ctx: Context, node: ast.FnItem | ast.StreamItem) -> tuple[hir.Param, ...]:
    params: list[hir.Param] = []
    seen: dict[str, Span] = {}
    for param in node.params:
        kind, borrow = parameter_type(ctx, param.type)
        token = param.name_token
        name, span = (token.text, token.span) if token else ("_", param.span)
        if token is not None and name in seen:
            ctx.report("K0202", f"The parameter `{name}` is declared twice.", span,
                       labels=[(seen[name], "it is declared here first")])
        seen.setdefault(name, span)
        if borrow and isinstance(node, ast.StreamItem):
            ctx.report("K0317", "A stream takes its items by value.", param.span)
            kind = ERROR
        params.append(hir.Param(hir.Var(name, kind, param.is_mut, span), borrow))
    return tuple(params)


def _effects(ctx: Context, node: ast.FnItem | ast.StreamItem) -> tuple[str, ...]:
    listed = node.effects.effects if node.effects is not None else []
    found: list[str] = []
    for effect in listed:
        if effect.name in EFFECTS:
            found.append(effect.name)
        elif effect.name:
            meant = closest(effect.name, list(EFFECTS))
            tail = f"; did you mean `{meant}`?" if meant else "."
            ctx.report("K0504", f"There is no effect `{effect.name}`{tail}", effect.span,
                       fix=Fix(f"use `{meant}`", effect.span, meant) if meant else None)
    return tuple(sorted(set(found)))


def _check_public(
    ctx: Context, symbol: ItemSymbol, node: ast.FnItem | ast.StreamItem, params: tuple[hir.Param, ...],
) -> None:
    if node.size_params:
        ctx.report("K0212", f"`{symbol.name}` is `pub`, so it cannot have compile-time sizes.",
                   node.size_params[0].span)
    for param, written in zip(params, node.params):
        if param.borrow and isinstance(node, ast.FnItem):
            where = written.type.span if written.type is not None else written.span
            ctx.report("K0212", f"`{symbol.name}` is `pub`, so its parameters cannot be borrows.", where)


def check_body(instance: Instance) -> None:
    """Check the body of an instance and set its tree."""
    symbol, function, node = instance.symbol, instance.function, instance.item
    checker = instance.checker
    ctx = Context(Shared(checker, symbol.module, calls=instance.calls, owner=instance, item=symbol))
    _declare_sizes(ctx, node, instance.sizes)
    ctx.scopes.push()
    for param in function.params:
        ctx.declare(Local(param.var, "parameter", param.borrow), elsewhere=function.public_name is not None)
    is_stream = isinstance(node, ast.StreamItem)
    if node.body is None:
        instance.ok = False
        return
    value = block(ctx, node.body, "stream" if is_stream else "fn")
    because = [(node.return_type.span, "the result is declared here")] if node.return_type is not None else []
    if value.type is not ERROR:
        ctx.expect(value, function.result, because)
    ctx.solve()
    tree = value.build()
    _check_effects(ctx, instance)
    if ctx.shared.errors or is_poison(tree) or has_error(function.result):
        instance.ok = False
        return
    _note_declared(ctx)
    function.states = tuple(hir.State(var, initial) for var, initial in ctx.states)
    function.instances = tuple(ctx.instances)
    function.body = body_block(tree)


def _note_declared(ctx: Context) -> None:
    """What a body declares counts once it is known to be right."""
    known = ctx.checker.usage.declared
    for item in ctx.shared.declared:
        known.setdefault((item.file.path, item.span), item)


def _check_effects(ctx: Context, instance: Instance) -> None:
    declared = instance.function.effects
    reported: set[str] = set()
    for effect, span in ctx.effects:
        if effect in declared or effect in reported:
            continue
        reported.add(effect)
        name = instance.symbol.name
        written = instance.item.effects
        fix = None
        body = instance.item.body
        if written is not None:
            fix = Fix(f"declare `{effect}`", Span(written.span.end, written.span.end), f", {effect}")
        elif body is not None:
            lead = "" if instance.item.return_type is not None else "-> () "
            fix = Fix(f"declare `{effect}`", Span(body.span.start, body.span.start), f"{lead}! {effect} ")
        ctx.report("K0501", f"`{name}` has the effect `{effect}` here, which its signature does not declare.",
                   span, labels=[(instance.symbol.name_span, f"`{name}` is declared here")], fix=fix)


def check_test(
    checker: WholeProgram, node: ast.TestItem, calls: list[tuple[Instance, Span]],
) -> hir.Test | None:
    """Check one test; None when something was reported."""
    if node.body is None:
        return None
    ctx = Context(Shared(checker, checker.root, calls=calls))
    ctx.in_test = True
    value = block(ctx, node.body, "test")
    if value.type is not ERROR:
        ctx.expect(value, UNIT)
    ctx.solve()
    tree = value.build()
    if ctx.shared.errors or is_poison(tree):
        return None
    _note_declared(ctx)
    return hir.Test(node.label or "", checker.root.file, node.span, body_block(tree))
