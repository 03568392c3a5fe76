"""What a path in the source refers to."""
from __future__ import annotations

from kera_hw.frontend.sema.names.builtins import BUILTINS, METHODS
from kera_hw.frontend.sema.names.scope import Broken, Constant, Held, Local, Symbol, closest
from kera_hw.frontend.sema.typing.context import Context
from kera_hw.frontend.syntax import ast
from kera_hw.support import Fix, Span

#: Names of other languages: advice, and what to write in their place, if it is as simple as that.
_FOREIGN: dict[str, tuple[str, str | None]] = {
    **dict.fromkeys(
        ("null", "nil", "None", "NULL", "nullptr", "undefined"),
        ("there is no null: a `bool` beside the value can say whether it is there", None),
    ),
    "True": ("write `true`", "true"), "False": ("write `false`", "false"),
    "TRUE": ("write `true`", "true"), "FALSE": ("write `false`", "false"),
    **dict.fromkeys(
        ("printf", "println", "puts", "display", "echo", "cout"),
        ("`print(\"label\", x)` prints, with `! io` in the signature", None),
    ),
    **dict.fromkeys(
        ("self", "this"), ("functions do not belong to types: take the struct as a parameter", None),
    ),
    "range": ("write `a..b`", None), "not": ("write `!x`", None), "pass": ("an empty block is `{ }`", None),
    "lambda": ("write `|x| ..`", None),
    **dict.fromkeys(("sizeof", "size", "length"), ("`len(a)` is the extent of a tensor", None)),
    "pow": ("multiply in a loop, or shift 1 for a power of two", None),
    "concatenate": ("`cat(a, b)` joins bits, `concat(a, b)` tensors", None),
    "mux": ("write `if c { a } else { b }`, or `select(c, a, b)`", None),
    **{
        name: (f"write `{own}`", own) for name, own in {
            "rotate_left": "rotl", "rotate_right": "rotr", "rol": "rotl", "ror": "rotr",
            "count_ones": "popcount", "countones": "popcount", "leading_zeros": "clz",
            "trailing_zeros": "ctz", "swap_bytes": "reverse_bytes", "fold": "reduce",
            "carryless_mul": "clmul", "pclmulqdq": "clmul",
        }.items()
    },
    **dict.fromkeys(
        ("parity", "xor_reduce"), ("`popcount(x).bit(0)` is the parity of the bits", None),
    ),
    "or_reduce": ("write `x != 0`", None), "and_reduce": ("write `!x == 0`", None),
    "signed": ("convert with `as`", None), "unsigned": ("convert with `as`", None),
}


def find(ctx: Context, path: ast.Path, reads: bool = True) -> Symbol | None:
    """The symbol of a path; None (with a report) where there is none. Built-ins are not symbols."""
    segments = path.segments
    if not segments:
        return None
    if len(segments) > 1:
        return _qualified(ctx, path)
    name = segments[0].text
    found = ctx.lookup(name, reads)
    if found is None:
        unknown_name(ctx, name, segments[0].span)
    return found


def _qualified(ctx: Context, path: ast.Path) -> Symbol | None:
    segments = path.segments
    if len(segments) > 2:
        ctx.report(
            "K0203", "Modules do not nest: a path is `name`, or `module::name`.", path.span,
        )
        return None
    if segments[0].text in ctx.module.lost_names:
        ctx.shared.errors += 1
        return None
    if ctx.module is ctx.checker.root:
        ctx.checker.usage.imports.add(segments[0].text)
    module = ctx.checker.module(ctx.file, segments[0].text, segments[0].span, ctx.shared)
    if module is None:
        return None
    return ctx.checker.member(ctx.file, module, segments[1].text, segments[1].span, ctx.shared)


def unknown_name(ctx: Context, name: str, span: Span) -> None:
    """K0201, with the name that was probably meant; silent for what a syntax error may have swallowed."""
    if name in ctx.module.lost_names or name in ctx.shared.unknown_names:
        ctx.shared.errors += 1
        return
    ctx.shared.unknown_names.add(name)
    if name in BUILTINS:
        ctx.report("K0205", f"`{name}` is a built-in operation; call it: `{name}(..)`.", span)
        return
    meant = closest(name, [*ctx.scopes.names(), *ctx.module.items, *BUILTINS])
    if name in _FOREIGN:
        advice, replacement = _FOREIGN[name]
        fix = Fix(advice, span if replacement else None, replacement)
        ctx.report("K0201", f"Nothing named `{name}` is in scope.", span, fix=fix)
    elif meant is not None:
        fix = Fix(f"use `{meant}`", span, meant)
        ctx.report("K0201", f"Nothing named `{name}` is in scope; did you mean `{meant}`?", span, fix=fix)
    elif name in METHODS:
        ctx.report("K0201", f"Nothing named `{name}` is in scope; it is a method: `x.{name}(..)`.", span)
    else:
        ctx.report("K0201", f"Nothing named `{name}` is in scope.", span)


def constant_of(ctx: Context, symbol: Symbol, name: str, span: Span) -> Constant | None:
    """The compile-time value a symbol stands for; reports what is none."""
    if isinstance(symbol, Constant):
        return symbol
    if isinstance(symbol, (Local, Held)):
        ctx.report(
            "K0210", f"`{name}` is known only at run time, and a compile-time value is needed here.", span,
            labels=[(symbol.var.span, f"`{name}` is declared here")], fix=ctx.shared.advice,
        )
        return None
    if isinstance(symbol, Broken):
        ctx.shared.errors += 1
        return None
    if symbol.failed_import:
        ctx.shared.errors += 1
        return None
    if isinstance(symbol.node, ast.ConstItem):
        found = ctx.checker.constant(symbol)
        if found is None:
            ctx.shared.errors += 1
        return found
    ctx.report("K0205", f"`{name}` is {symbol.kind_text}, and a value is needed here.", span)
    return None
