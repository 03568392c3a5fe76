"""Arguments of built-ins by position and by name, and the registry of their checks."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from kera_hw.frontend.parser.grammar.foreign_words import scalar_type
from kera_hw.frontend.sema.names.builtins import BUILTINS, MODE_WORDS, Parameters
from kera_hw.frontend.sema.names.scope import ItemSymbol, closest
from kera_hw.frontend.sema.typing.context import Context, Value, broken
from kera_hw.frontend.sema.typing.types import resolve_type, size_argument
from kera_hw.frontend.sema.typing.unify import ERROR
from kera_hw.frontend.syntax import ast
from kera_hw.support import Fix, Span
from kera_hw.types import Type


@dataclass(slots=True)
class Arguments:
    """The arguments of one call, by parameter name; ``rest`` are those of a repeated last parameter."""

    name: str
    span: Span
    name_span: Span
    turbofish: list[ast.GenericArg]
    given: dict[str, ast.Expr | None] = field(default_factory=dict[str, "ast.Expr | None"])
    rest: list[ast.Expr | None] = field(default_factory=list["ast.Expr | None"])

    def has(self, name: str) -> bool:
        return name in self.given

    def value(self, ctx: Context, name: str) -> Value:
        return ctx.expr(self.given.get(name), self.span)

    def mode(self, ctx: Context, name: str, allowed: tuple[str, ...], default: str) -> str | None:
        """A mode word; None (reported) for another."""
        expr = self.given.get(name)
        if name not in self.given:
            return default
        word = expr.name if isinstance(expr, ast.PathExpr) and expr.generics is None else None
        if word in allowed:
            return word
        span = expr.span if expr is not None else self.span
        meant = closest(word or "", list(allowed))
        ctx.report("K0313", f"`{name}` is one of {', '.join(f'`{item}`' for item in allowed)}.", span,
                   fix=Fix(f"use `{meant}`", span, meant) if meant else None)
        return None

    def string(self, ctx: Context, name: str) -> str | None:
        """A string literal; None (reported) for anything else."""
        expr = self.given.get(name)
        if isinstance(expr, ast.Literal) and expr.is_string:
            return expr.string_value
        if expr is not None and not isinstance(expr, ast.Error):
            ctx.report("K0302", f"`{self.name}` takes a string here: `\"name\"`.", expr.span)
        ctx.shared.errors += 1
        return None

    def integer(self, ctx: Context, name: str, default: int | None, least: int) -> int | None:
        """A compile-time integer; None (reported) when it is none or too small."""
        if name not in self.given:
            return default
        return ctx.size(self.given[name], f"`{name}`", least)

    def axis(self, ctx: Context, rank: int, default: int | None = -1) -> int | None:
        """The axis, ``default`` when not given; None (reported) when the tensor has no such axis."""
        if "axis" not in self.given:
            return default
        expr = self.given["axis"]
        found = ctx.integer(expr, "An axis")
        if found is None or 0 <= found < rank:
            return found
        span = expr.span if expr is not None else self.span
        if rank == 0:
            ctx.report("K0309", "A single value has no axes.", span)
        else:
            ctx.report("K0309", f"The axes of this tensor are 0 to {rank - 1}, and this is {found}.", span)
        return None

    def sizes(self, ctx: Context) -> list[int] | None:
        """The turbofish as sizes; None when something was reported."""
        found = [size_argument(ctx, arg) for arg in self.turbofish]
        good = [size for size in found if size is not None]
        return good if len(good) == len(found) else None

    def type(self, ctx: Context, position: int = 0) -> Type:
        """The turbofish's argument at a position as a type; ERROR when something was reported."""
        arg = self.turbofish[position] if position < len(self.turbofish) else None
        if arg is None:
            return ERROR
        if arg.type is None:
            ctx.report("K0314", "A type is needed here, and this is a size.", arg.span)
            return ERROR
        return resolve_type(ctx, arg.type)


Handler = Callable[[Context, Arguments], Value]

HANDLERS: dict[str, Handler] = {}


def builtin(*names: str) -> Callable[[Handler], Handler]:
    """Register the check of one or more built-ins."""

    def register(function: Handler) -> Handler:
        for name in names:
            assert name in BUILTINS and name not in HANDLERS, name
            HANDLERS[name] = function
        return function

    return register


def call_builtin(ctx: Context, call: ast.Call, name: str, name_span: Span) -> Value:
    """Check a call of a built-in."""
    if BUILTINS[name].turbofish and not call.turbofish:
        return _without_turbofish(ctx, call, name, name_span)
    found = bind(ctx, name, BUILTINS[name], call.args, call.span, name_span, call.turbofish)
    if found is None:
        return broken(call.span)
    row = BUILTINS[name]
    if found.turbofish and not row.turbofish:
        first = found.turbofish[0].span
        ctx.report(
            "K0314", f"`{name}` takes no compile-time arguments.", first.join(found.turbofish[-1].span)
        )
        return broken(call.span)
    return HANDLERS[name](ctx, found)


def _without_turbofish(ctx: Context, call: ast.Call, name: str, name_span: Span) -> Value:
    """A type or extents given among the arguments, or not at all."""
    row = BUILTINS[name]
    extents = name in ("reshape", "broadcast")
    moved = [
        arg for place, arg in enumerate(call.args)
        if arg.name is None and ((extents and place > 0) or _is_type(ctx, arg.value))
    ]
    if name == "iota":
        moved = [arg for arg in call.args if arg.name is None]
    kept = [arg for arg in call.args if arg not in moved]
    fix = None
    if moved:
        made = f"{name}::<{', '.join(_spelled(arg) for arg in moved)}>({', '.join(arg.text for arg in kept)})"
        fix = Fix(f"write `{made}`", call.span, made)
    ctx.report("K0314", f"`{name}` needs {row.turbofish}.", name_span, fix=fix)
    walk_all(ctx, kept)
    return broken(call.span)


def _spelled(arg: ast.Arg) -> str:
    name = arg.value.name if isinstance(arg.value, ast.PathExpr) else None
    return scalar_type(name or "") or arg.text


def _is_type(ctx: Context, expr: ast.Expr | None) -> bool:
    name = expr.name if isinstance(expr, ast.PathExpr) else None
    if name is None or name in MODE_WORDS:
        return False
    symbol = ctx.lookup(name)
    if isinstance(symbol, ItemSymbol):
        return isinstance(symbol.node, (ast.StructItem, ast.TypeAliasItem))
    return symbol is None and scalar_type(name) is not None


def walk_all(ctx: Context, args: list[ast.Arg]) -> None:
    """Walk arguments for the names in them, where the call itself is at fault."""
    for arg in args:
        if arg.value is not None and not isinstance(arg.value, (ast.Lambda, ast.Borrow)):
            word = arg.value.name if isinstance(arg.value, ast.PathExpr) else None
            is_mode = word is not None and (arg.name is not None or word in MODE_WORDS)
            is_text = isinstance(arg.value, ast.Literal) and arg.value.is_string
            if not is_mode and not is_text:
                ctx.expr(arg.value)


def bind(
    ctx: Context, name: str, row: Parameters, args: list[ast.Arg], span: Span, name_span: Span,
    turbofish: list[ast.GenericArg],
) -> Arguments | None:
    """Give each argument its parameter; None (reported) when they do not fit."""
    found = Arguments(name, span, name_span, turbofish)
    positional = row.names[:-1] if row.repeated else row.names
    position = 0
    for arg in args:
        if arg.name is None and isinstance(arg.value, ast.Lambda) and "f" in row.names and not found.has("f"):
            found.given["f"] = arg.value  # a lambda can be no other argument
            continue
        if arg.name is not None:
            if not _named(ctx, found, row, arg):
                walk_all(ctx, args)
                return None
            continue
        if position < len(positional):
            if positional[position] in found.given:
                ctx.report("K0306", f"`{positional[position]}` of `{name}` is given twice.", arg.span)
                return None
            found.given[positional[position]] = arg.value
            position += 1
        elif row.repeated:
            found.rest.append(arg.value)
        else:
            ctx.report("K0306", f"`{name}` takes {_counted(row)}, and here are {len(args)}.", arg.span)
            walk_all(ctx, args)
            return None
    missing = [item for item in positional[: row.required] if item not in found.given]
    if missing:
        names = ", ".join(f"`{item}`" for item in missing)
        advice = Fix(f"write `{usage(name, row)}`")
        ctx.report("K0306", f"`{name}` also needs {names}.", name_span, fix=advice)
        walk_all(ctx, args)
        return None
    return found


def usage(name: str, row: Parameters) -> str:
    """A call of a built-in with its required parameters."""
    listed = [_LAMBDAS.get(name, item) if item == "f" else item for item in row.names[: row.required]]
    listed += [".."] if row.repeated else []
    generics = re.search(r"::<[^(]*>", row.turbofish)
    return f"{name}{generics[0] if generics else ''}({', '.join(listed)})"


_LAMBDAS = {"map": "|x| ..", "zip": "|x, y| ..", "reduce": "|acc, x| ..", "scan": "|acc, x| .."}


def _counted(row: Parameters) -> str:
    most = len(row.names)
    noun = "argument" if most == 1 else "arguments"
    return (
        f"{most} {noun}"
        if row.required == most
        else f"{row.required} to {most} {noun}"
        if most
        else "no arguments"
    )


def _named(ctx: Context, found: Arguments, row: Parameters, arg: ast.Arg) -> bool:
    token = arg.name_token
    assert token is not None
    name = token.text
    if name not in row.names and name in ("a", "x") and row.names and row.names[0] in ("a", "x"):
        name = row.names[0]
    if name not in row.names:
        meant = closest(name, list(row.names))
        tail = f"; did you mean `{meant}`?" if meant else "."
        ctx.report("K0306", f"`{found.name}` has no parameter `{name}`{tail}", token.span,
                   fix=Fix(f"use `{meant}`", token.span, meant) if meant else None)
        return False
    if name in found.given:
        ctx.report("K0306", f"`{name}` of `{found.name}` is given twice.", arg.span)
        return False
    found.given[name] = arg.value
    return True
