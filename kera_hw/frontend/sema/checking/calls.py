"""Calls: of functions and streams with sizes and borrows, of built-ins, and assertions."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kera_hw.frontend.parser.grammar.foreign_words import scalar_type
from kera_hw.frontend.sema.checking.arguments import BUILTINS, bind, call_builtin, walk_all
from kera_hw.frontend.sema.checking.index import PlaceValue, check_mutable, is_place, place
from kera_hw.frontend.sema.names.scope import Broken, ItemSymbol, Local
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import Context, Instance, Value, broken, is_poison, poison, rule
from kera_hw.frontend.sema.typing.fixes import cast_text
from kera_hw.frontend.sema.typing.infer_sizes import infer_sizes
from kera_hw.frontend.sema.typing.paths import find
from kera_hw.frontend.sema.typing.types import make_tensor, size_argument
from kera_hw.frontend.sema.typing.unify import ERROR, describe, has_error, resolve, shallow
from kera_hw.frontend.syntax import ast
from kera_hw.frontend.syntax.kinds import SyntaxKind
from kera_hw.support import Fix, Span
from kera_hw.types import BOOL, TensorType, Type

_STATEMENTS = ("assert", "assert_eq", "cover")


@rule(ast.Call)
def _call(ctx: Context, call: ast.Call) -> Value:
    path = call.path
    token = path.name_token if path is not None else None
    if path is None or token is None:
        callee = call.callee
        walk_all(ctx, call.args)
        if callee is not None and not isinstance(callee, ast.Error):
            return ctx.fail("K0205", "Only functions, streams and built-ins can be called, by their names.",
                            callee.span, call.span)
        ctx.shared.errors += 1
        return broken(call.span)
    if not path.is_qualified and ctx.lookup(token.text) is None and token.text in BUILTINS:
        if token.text in _STATEMENTS:
            walk_all(ctx, call.args)
            return ctx.fail("K0211", f"`{token.text}` is a statement, not a value.", call.span)
        return call_builtin(ctx, call, token.text, token.span)
    kind = scalar_type(token.text)
    if kind is not None and not path.is_qualified and ctx.lookup(token.text) is None:
        return _call_of_type(ctx, call, token.text, kind, token.span)
    symbol = find(ctx, path)
    if (
        symbol is None
        or isinstance(symbol, Broken)
        or (isinstance(symbol, ItemSymbol) and symbol.failed_import)
    ):
        walk_all(ctx, call.args)
        ctx.shared.errors += 1
        return broken(call.span)
    if isinstance(symbol, ItemSymbol) and isinstance(symbol.node, (ast.FnItem, ast.StreamItem)):
        return _call_item(ctx, call, symbol, token.span)
    walk_all(ctx, call.args)
    if isinstance(symbol, Local) and has_error(symbol.var.type):
        ctx.shared.errors += 1
        return broken(call.span)
    what = symbol.kind_text if isinstance(symbol, ItemSymbol) else "not a function"
    return ctx.fail("K0205", f"`{token.text}` is {what}, so it cannot be called.", token.span, call.span)


def _call_of_type(ctx: Context, call: ast.Call, name: str, kind: str, span: Span) -> Value:
    """`u8(x)`."""
    walk_all(ctx, call.args)
    fix = Fix(f"convert with `as {kind}`")
    value = call.args[0].value if len(call.args) == 1 else None
    if value is not None:
        fix = Fix(f"convert with `as {kind}`", call.span, cast_text(value, kind))
    return ctx.fail("K0205", f"`{name}` is a type, so it cannot be called.", span, call.span, fix=fix)


@dataclass(slots=True)
class Argument:
    """A walked argument: a value, or a place lent by `&` or `&mut`."""

    value: Value
    mark: str = ""
    place: PlaceValue | None = None


def _argument(ctx: Context, arg: ast.Arg) -> Argument:
    expr = arg.value
    while isinstance(expr, ast.ParenExpr):
        expr = expr.inner
    if isinstance(expr, ast.Borrow):
        mark = "&mut" if expr.is_mut else "&"
        if is_place(expr.operand):
            target = place(ctx, expr.operand)
            if target is None:
                return Argument(broken(expr.span), mark)
            ctx.note_read(target.local)
            return Argument(Value(target.type, expr.span, target.read().build), mark, target)
        inner = ctx.expr(expr.operand, expr.span)
        if expr.is_mut:
            inner = ctx.fail(
                "K0317", "`&mut` lends a variable, or a part of one, and this is a value.", expr.span
            )
        return Argument(Value(inner.type, expr.span, inner.build), mark)
    value = ctx.expr(arg.value, arg.span)
    if value.borrow and isinstance(expr, ast.PathExpr):
        target = place(ctx, expr)
        return Argument(value, value.borrow, target)
    return Argument(value)


def _call_item(ctx: Context, call: ast.Call, symbol: ItemSymbol, name_span: Span) -> Value:
    node = symbol.node
    assert isinstance(node, (ast.FnItem, ast.StreamItem))
    named = next((arg for arg in call.args if arg.name is not None), None)
    if named is not None:
        ctx.report("K0306", f"Arguments of `{symbol.name}` are given by position; only built-ins take names.",
                   named.span)
    args = [_argument(ctx, arg) for arg in call.args]
    count = len(node.params)
    if len(args) != count:
        noun = "argument" if count == 1 else "arguments"
        ctx.report(
            "K0306",
            f"`{symbol.name}` takes {count} {noun}, and here {'is' if len(args) == 1 else 'are'} "
            f"{len(args)}.",
            name_span,
            labels=_here(ctx, symbol),
        )
        return broken(call.span)
    if named is not None:
        return broken(call.span)
    is_stream = isinstance(node, ast.StreamItem)
    if is_stream and not _check_items(ctx, symbol, args, name_span):
        return broken(call.span)
    types = [_row(arg.value.type) if is_stream else arg.value.type for arg in args]
    sizes = _sizes(ctx, call, symbol, types, name_span)
    instance = None if sizes is None else ctx.checker.instance(ctx, symbol, sizes, name_span)
    if instance is None or not instance.signed:
        ctx.shared.errors += 1
        return broken(call.span)
    ctx.effects.extend((effect, call.span) for effect in instance.function.effects)
    if is_stream:
        return _apply_stream(ctx, call, instance, args)
    return _call_function(ctx, call, instance, args)


def _here(ctx: Context, symbol: ItemSymbol) -> list[tuple[Span, str]]:
    return [(symbol.name_span, "it is declared here")] if symbol.module.file is ctx.file else []


def _sizes(
    ctx: Context, call: ast.Call, symbol: ItemSymbol, types: list[Type], name_span: Span,
) -> tuple[int, ...] | None:
    """The compile-time sizes of a call, given or inferred; None when something was reported."""
    node = symbol.node
    assert isinstance(node, (ast.FnItem, ast.StreamItem))
    declared = [param.name or "" for param in node.size_params]
    if call.has_turbofish:
        given = call.turbofish
        if len(given) != len(declared):
            ctx.report("K0314", f"`{symbol.name}` takes {len(declared)} compile-time sizes, and here are "
                       f"{len(given)}.", name_span, labels=_here(ctx, symbol))
            return None
        found = [size_argument(ctx, arg) for arg in given]
        good = tuple(size for size in found if size is not None)
        return good if len(good) == len(found) else None
    if not declared:
        return ()
    if any(has_error(kind) for kind in types):
        return None
    known = infer_sizes(node, types, frozenset(declared))
    missing = [name for name in declared if name not in known]
    if any(_is_type(node, name) for name in missing):  # reported where it is declared
        ctx.shared.errors += 1
        return None
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        listed = ", ".join("8" for _ in declared)
        ctx.report("K0315", f"The arguments do not decide {names} of `{symbol.name}`; give it: "
                   f"`{symbol.name}::<{listed}>(..)`.", name_span)
        return None
    return tuple(known[name] for name in declared)


def _is_type(node: ast.FnItem | ast.StreamItem, name: str) -> bool:
    """Whether a signature uses a compile-time size as if it were a type."""
    written = (part for param in node.params if param.type is not None
               for part in param.type.node.descendants() if part.kind is SyntaxKind.NAME_TYPE)
    return any(ast.NameType(part).name == name for part in written)


def _call_function(ctx: Context, call: ast.Call, instance: Instance, args: list[Argument]) -> Value:
    function = instance.function
    builders: list[Callable[[], hir.Expr]] = []
    hoisted: list[Callable[[], hir.Stmt | None]] = []
    good = True
    for arg, param in zip(args, function.params):
        because = [(param.var.span, f"the parameter `{param.var.name}` is declared here")]
        labels = because if function.file is ctx.file else []
        if not _check_borrow(ctx, arg, param, labels) or not ctx.expect(arg.value, param.var.type, labels):
            good = False
            continue
        builders.append(_lend(arg, param, hoisted) if param.borrow else arg.value.build)
    kind = function.result
    if not good:
        return Value(kind, call.span, lambda: poison(call.span))
    borrows = tuple(param.borrow for param in function.params)

    def build() -> hir.Expr:
        made = tuple(builder() for builder in builders)
        before = [step() for step in hoisted]
        if any(is_poison(item) for item in made) or any(step is None for step in before):
            return poison(call.span)
        result = hir.Call(kind, call.span, function, made, borrows)
        if not before:
            return result
        return hir.Block(kind, call.span, tuple(step for step in before if step is not None), result)

    return Value(kind, call.span, build)


def _check_borrow(ctx: Context, arg: Argument, param: hir.Param, labels: list[tuple[Span, str]]) -> bool:
    """Whether the argument is lent as the parameter wants."""
    name, span = param.var.name, arg.value.span
    if arg.value.type is ERROR:
        return False
    if not param.borrow:
        if arg.mark and not arg.value.borrow:
            ctx.report("K0302", f"The parameter `{name}` takes a value, not a borrow.", span, labels=labels,
                       fix=Fix("pass the value", Span(span.start, span.start + len(arg.mark)), ""))
            return False
        return True
    if not arg.mark:
        ctx.report("K0302", f"The parameter `{name}` is a borrow: lend it with `{param.borrow}`.", span,
                   labels=labels,
                   fix=Fix(f"lend it with `{param.borrow}`", Span(span.start, span.start),
                           "&" if param.borrow == "&" else "&mut "))
        return False
    if param.borrow == "&mut":
        if arg.mark == "&" and not arg.value.borrow:
            ctx.report("K0302", f"The parameter `{name}` needs `&mut`, and this is `&`.", span, labels=labels,
                       fix=Fix("lend it with `&mut`", Span(span.start, span.start + 1), "&mut "))
            return False
        return arg.place is not None and check_mutable(ctx, arg.place, "lent by `&mut`")
    return True


def _lend(
    arg: Argument, param: hir.Param, hoisted: list[Callable[[], hir.Stmt | None]],
) -> Callable[[], hir.Expr]:
    """The place lent; a temporary gets a variable of its own first."""
    target, span = arg.place, arg.value.span
    if target is not None:

        def lend() -> hir.Expr:
            where = target.build()
            return poison(span) if where is None else hir.PlaceExpr(where.type, span, where)

        return lend
    var = hir.Var(param.var.name, param.var.type, False, span)

    def keep() -> hir.Stmt | None:
        made = arg.value.build()
        return None if is_poison(made) else hir.Let(span, hir.Binding(span, var), made)

    hoisted.append(keep)
    return lambda: hir.PlaceExpr(var.type, span, hir.Place(var, (), var.type, span))


# ---------------------------------------------------------------- streams


def _row(kind: Type) -> Type:
    kind = shallow(kind)
    if not isinstance(kind, TensorType):
        return ERROR
    rest = kind.shape[1:]
    return TensorType(kind.element, rest, kind.space) if rest else kind.element


def _check_items(ctx: Context, symbol: ItemSymbol, args: list[Argument], name_span: Span) -> bool:
    """Whether all arguments of a stream are tensors of one length."""
    if not args:
        ctx.report("K0326", f"`{symbol.name}` has no inputs, so nothing says how many items it would give.",
                   name_span)
        return False
    length: int | None = None
    for arg in args:
        kind = shallow(arg.value.type)
        if kind is ERROR:
            return False
        if arg.mark or not isinstance(kind, TensorType):
            ctx.report("K0326", f"`{symbol.name}` is a stream: it takes tensors of items, and this is "
                       f"{describe(kind)}.", arg.value.span, labels=_here(ctx, symbol),
                       fix=_as_instance(ctx, symbol, args))
            return False
        if length is not None and kind.shape[0] != length:
            ctx.report(
                "K0311",
                f"The inputs of `{symbol.name}` have {length} and {kind.shape[0]} items; they need as many.",
                arg.value.span,
            )
            return False
        length = kind.shape[0]
    return True


def _as_instance(ctx: Context, symbol: ItemSymbol, args: list[Argument]) -> Fix:
    """How a stream is advanced by one item."""
    inputs = ", ".join(ctx.file.text(arg.value.span) for arg in args)
    owner = ctx.shared.owner
    if owner is not None and isinstance(owner.item, ast.StreamItem):
        return Fix(f"hold it in `state s: {symbol.name};`, and advance it with `s.step({inputs})`")
    return Fix(f"in a stream it is held in `state s: {symbol.name};` and advanced with `s.step({inputs})`")


def _apply_stream(ctx: Context, call: ast.Call, instance: Instance, args: list[Argument]) -> Value:
    function = instance.function
    first = shallow(args[0].value.type)
    assert isinstance(first, TensorType)
    length = first.shape[0]
    good = True
    for arg, param in zip(args, function.params):
        wanted = make_tensor(ctx, param.var.type, (length,), arg.value.span)
        good = ctx.expect(arg.value, wanted) and good
    kind = make_tensor(ctx, function.result, (length,), call.span)

    def build() -> hir.Expr:
        made = tuple(arg.value.build() for arg in args)
        if not good or has_error(kind) or any(is_poison(item) for item in made):
            return poison(call.span)
        return hir.StreamApply(resolve(kind), call.span, function, made, length)

    return Value(kind if good else ERROR, call.span, build)


# ---------------------------------------------------------------- assertions


def assertion(ctx: Context, expr: ast.Expr) -> Callable[[], hir.Stmt | None] | None:
    """The statement of a call in ``_STATEMENTS``; None when the expression is no such call."""
    name = expr.name if isinstance(expr, ast.Call) else None
    if not isinstance(expr, ast.Call) or name not in _STATEMENTS or ctx.lookup(name) is not None:
        return None
    span = expr.span
    if ctx.in_test == (name == "cover") and name != "assert":
        where = "in functions and streams" if ctx.in_test else "in a `test`; elsewhere write `assert(a == b)`"
        ctx.report("K0211", f"`{name}` can only stand {where}.", span)
    found = bind(ctx, name, BUILTINS[name], expr.args, span, span, expr.turbofish)
    if found is None:
        return lambda: None
    if name != "assert_eq":
        condition = found.value(ctx, "c")
        ctx.expect(condition, BOOL)
        label = found.string(ctx, "label") if found.has("label") else ""
        if ctx.in_test:
            return lambda: _asserted(hir.Assert(span, condition.build(), label or ""))
        return lambda: _asserted(hir.Observe(span, name, condition.build(), label or ""))
    left, right = found.value(ctx, "a"), found.value(ctx, "b")
    ctx.expect(right, left.type, [(left.span, f"this is {describe(left.type)}")])
    return lambda: _asserted(hir.AssertEq(span, left.build(), right.build()))


def _asserted(made: hir.Assert | hir.AssertEq | hir.Observe) -> hir.Stmt | None:
    parts = (made.left, made.right) if isinstance(made, hir.AssertEq) else (made.cond,)
    return None if any(is_poison(part) for part in parts) else made
