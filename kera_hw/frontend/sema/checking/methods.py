"""Methods: bit slices, total indexing, and the step of a stream instance."""
from __future__ import annotations

from kera_hw.frontend.sema.checking.arguments import walk_all
from kera_hw.frontend.sema.checking.index import acts, index_entries, integer_operand, variable_of
from kera_hw.frontend.sema.names.builtins import BUILTINS, METHODS
from kera_hw.frontend.sema.names.scope import Broken, Held, closest
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import Context, Value, broken, is_poison, poison, rule
from kera_hw.frontend.sema.typing.elementwise import framed, make_op
from kera_hw.frontend.sema.typing.linear import Linear, combine, constant_part, linear_form
from kera_hw.frontend.sema.typing.literals import scalar_constant
from kera_hw.frontend.sema.typing.unify import ERROR, describe, resolve, scalar_part, shallow
from kera_hw.frontend.syntax import ast
from kera_hw.support import Fix, Span
from kera_hw.types import BOOL, IntType, TensorType, Type


@rule(ast.MethodCall)
def _method(ctx: Context, expr: ast.MethodCall) -> Value:
    token = expr.name_token
    if token is None:
        ctx.shared.errors += 1
        walk_all(ctx, expr.args)
        return broken(expr.span)
    if expr.generics is not None:
        return ctx.fail(
            "K0314", f"`{token.text}` takes no compile-time arguments.", expr.generics.span, expr.span
        )
    if token.text == "step":
        return _step(ctx, expr, token.span)
    handler = {"bits": _bits, "bit": _bit, "at": _at, "clamped": _at}.get(token.text)
    if handler is None:
        return _unknown(ctx, expr, token.text, token.span)
    return handler(ctx, expr, token.span)


#: Methods of other languages, and what does the same here.
_FOREIGN = {
    "wrapping_add": "`+` wraps", "wrapping_sub": "`-` wraps", "wrapping_mul": "`*` wraps",
    "count_ones": "write `popcount(x)`", "leading_zeros": "write `clz(x)`",
    "trailing_zeros": "write `ctz(x)`", "rotate_left": "write `rotl(x, n)`",
    "rotate_right": "write `rotr(x, n)`", "swap_bytes": "write `reverse_bytes(x)`",
    "pow": "multiply, or shift 1 for a power of two",
    "iter": "`map`, `zip`, `reduce` and `scan` go over tensors",
    "fold": "write `reduce(a, init, |acc, x| ..)`", "size": "write `len(a)`", "length": "write `len(a)`",
    "unwrap": "every value is there",
}


def _unknown(ctx: Context, expr: ast.MethodCall, name: str, span: Span) -> Value:
    if name in ("rev", "step_by"):
        return ctx.fail("K0209", f"`{name}` belongs to the range of a `for`.", span, expr.span)
    receiver = expr.receiver
    held = receiver.name if isinstance(receiver, ast.PathExpr) else None
    walk_all(ctx, expr.args)
    fix = None
    hint = "."
    if held is not None and isinstance(ctx.lookup(held), Held):
        hint, fix = "; an instance of a stream has `step`.", Fix("use `step`", span, "step")
    elif shallow(ctx.expr(receiver, expr.span).type) is ERROR:
        return broken(expr.span)
    elif name in _FOREIGN:
        hint = f"; {_FOREIGN[name]}."
    elif name in BUILTINS or ctx.lookup(name) is not None:
        hint = f"; write it as a call: `{name}(..)`."
    elif meant := closest(name, list(METHODS)):
        hint, fix = f"; did you mean `{meant}`?", Fix(f"use `{meant}`", span, meant)
    ctx.report("K0209", f"There is no method `{name}`{hint}", span, fix=fix)
    return broken(expr.span)


def _positional(
    ctx: Context, expr: ast.MethodCall, count: int, usage: str, span: Span
) -> list[ast.Expr] | None:
    values = [arg.value for arg in expr.args if arg.name is None and arg.value is not None]
    if len(values) == count and len(expr.args) == count:
        return values
    ctx.report("K0306", f"This is written `{usage}`.", span)
    walk_all(ctx, expr.args)
    return None


# ---------------------------------------------------------------- bits


def _bits(ctx: Context, expr: ast.MethodCall, span: Span) -> Value:
    receiver = ctx.expr(expr.receiver, expr.span)
    args = _positional(ctx, expr, 2, "x.bits(high, low)", span)
    if args is None:
        return broken(expr.span)
    return _extract(ctx, expr, receiver, args[0], args[1], span)


def _bit(ctx: Context, expr: ast.MethodCall, span: Span) -> Value:
    receiver = ctx.expr(expr.receiver, expr.span)
    args = _positional(ctx, expr, 1, "x.bit(index)", span)
    if args is None:
        return broken(expr.span)
    return _extract(ctx, expr, receiver, args[0], None, span)


def _extract(
    ctx: Context, expr: ast.MethodCall, receiver: Value, high: ast.Expr, low: ast.Expr | None, span: Span,
) -> Value:
    """`bits` (with both positions) or `bit`: positions are constants, or the width at least is one."""
    forms = [linear_form(ctx, item) for item in (high, low) if item is not None]
    width = constant_part(combine(forms[0], forms[-1], -1))
    walked = [ctx.expr(item) for item in (high, low) if item is not None]
    if shallow(receiver.type) is ERROR:
        return broken(expr.span)
    if width is None:
        return ctx.fail(
            "K0324",
            "The width of this bit slice is not a constant: its positions do not differ by one.",
            high.span.join(low.span if low is not None else high.span),
            expr.span,
        )
    if width < 0:
        return ctx.fail("K0324", "The first position is the higher one: `x.bits(7, 0)`.", span, expr.span)
    if width > 63:
        return ctx.fail("K0324", "A bit slice has at most 64 bits.", span, expr.span)
    element: Type = BOOL if low is None else IntType(width + 1, False)
    source = shallow(receiver.type)
    kind = framed(source if isinstance(source, TensorType) else None, element)

    def build() -> hir.Expr:
        made = receiver.build()
        positions = [integer_operand(ctx, value, "A position") for value in walked]
        found = resolve(scalar_part(receiver.type))
        if found is ERROR or is_poison(made) or any(item is None for item in positions):
            return poison(expr.span)
        if not isinstance(found, IntType):
            ctx.report(
                "K0304",
                f"Bits are taken from integers, and this is {describe(found)}; `bitcast` gives an "
                "integer of its bits.",
                receiver.span,
            )
            return poison(expr.span)
        last = positions[-1]
        assert last is not None
        return _taken(ctx, expr, made, found, forms, last, kind, width, low is None)

    return Value(kind, expr.span, build)


def _taken(
    ctx: Context, expr: ast.MethodCall, made: hir.Expr, found: IntType, forms: list[Linear], last: hir.Expr,
    kind: Type, width: int, single: bool,
) -> hir.Expr:
    position = constant_part(forms[-1])
    if position is not None:
        if position < 0 or position + width >= found.width_bits:
            ctx.report("K0324", f"`{found}` has the bits 0 to {found.width_bits - 1}.", expr.span)
            return poison(expr.span)
        if single:
            return make_op("bits.test", kind, expr.span, [made], {"index": position})
        return make_op("bits.extract", kind, expr.span, [made], {"high": position + width, "low": position})
    return _proved(expr, made, found, last, kind, width, single)


def _proved(
    expr: ast.MethodCall,
    made: hir.Expr,
    found: IntType,
    last: hir.Expr,
    kind: Type,
    width: int,
    single: bool,
) -> hir.Expr:
    """A moving slice behind a proof that it lies within the value: a slice of as many bits, thrown away."""
    before: list[hir.Stmt] = []
    if acts(last):
        last = variable_of(last, before)
    bits = TensorType(BOOL, (found.width_bits,))
    span = last.span
    no = hir.Const(BOOL, span, scalar_constant(0, BOOL))
    entry = hir.Slice(last, None, width + 1, span)
    part = TensorType(BOOL, (width + 1,))
    proof = hir.Index(part, span, hir.TensorFill(bits, span, no), (entry,))
    taken = _moving(expr, made, found, last, kind, single)
    return hir.Block(kind, expr.span, (*before, hir.ExprStmt(span, proof)), taken)


def _moving(
    expr: ast.MethodCall, made: hir.Expr, found: IntType, last: hir.Expr, kind: Type, single: bool,
) -> hir.Expr:
    """A slice at a position that is known at run time only: shift it down, then cut it to its width."""
    assert isinstance(last.type, IntType)
    if last.type.signed:
        amount = IntType(last.type.width_bits, False)
        last = make_op("convert.cast", amount, last.span, [last], {"type": amount})
    unsigned = IntType(found.width_bits, False)
    frame = made.type if isinstance(made.type, TensorType) else None
    raw = made if not found.signed else make_op(
        "convert.cast", framed(frame, unsigned), expr.span, [made], {"type": unsigned})
    moved = make_op("bits.shr", raw.type, expr.span, [raw, last])
    cut: Type = IntType(1, False) if single else scalar_part(kind)
    taken = make_op("convert.cast", framed(frame, cut), expr.span, [moved], {"type": cut})
    if not single:
        return taken
    zero = hir.Const(cut, expr.span, scalar_constant(0, cut))
    return make_op("compare.ne", kind, expr.span, [taken, zero])


# ---------------------------------------------------------------- indexing that cannot fail


def _at(ctx: Context, expr: ast.MethodCall, span: Span) -> Value:
    """`a.at(i, else: v)` and `a.clamped(i)`."""
    mode = expr.name or ""
    receiver = ctx.expr(expr.receiver, expr.span)
    usage = "a.at(i, else: v)" if mode == "at" else "a.clamped(i)"
    entries: list[ast.Expr] = []
    otherwise: Value | None = None
    for arg in expr.args:
        if arg.name == "else" and mode == "at" and otherwise is None:
            otherwise = ctx.expr(arg.value, arg.span)
        elif arg.name is not None:
            ctx.report("K0306", f"This is written `{usage}`.", arg.span)
            return broken(expr.span)
        elif arg.value is not None:
            entries.append(arg.value)
    if mode == "at" and otherwise is None:
        ctx.report("K0306", "`at` needs the value to give outside of the tensor: `a.at(i, else: v)`.", span)
        walk_all(ctx, expr.args)
        return broken(expr.span)
    ranges = [entry for entry in entries if isinstance(entry, ast.Range)]
    if ranges and mode == "at":
        return ctx.fail("K0310", "`at` takes indices, not ranges.", ranges[0].span, expr.span)
    found = index_entries(ctx, receiver.type, entries, receiver.span, expr.span)
    if found is None:
        return broken(expr.span)
    if otherwise is not None and not ctx.expect(otherwise, found.type):
        return broken(expr.span)

    def build() -> hir.Expr:
        made, indices = receiver.build(), found.build()
        fallback = otherwise.build() if otherwise is not None else None
        if is_poison(made) or indices is None or (fallback is not None and is_poison(fallback)):
            return poison(expr.span)
        return hir.Index(resolve(found.type), expr.span, made, indices, mode, fallback)

    return Value(found.type, expr.span, build)


# ---------------------------------------------------------------- streams


def _step(ctx: Context, expr: ast.MethodCall, span: Span) -> Value:
    receiver = expr.receiver
    name = receiver.name if isinstance(receiver, ast.PathExpr) else None
    symbol = ctx.lookup(name) if name is not None else None
    if isinstance(symbol, Broken):
        walk_all(ctx, expr.args)
        ctx.shared.errors += 1
        return broken(expr.span)
    if not isinstance(symbol, Held):
        if name is None or symbol is None:
            value = ctx.expr(receiver, expr.span)
            walk_all(ctx, expr.args)
            if shallow(value.type) is ERROR:
                return broken(expr.span)
        else:
            walk_all(ctx, expr.args)
        return ctx.fail(
            "K0326",
            "`step` advances an instance of a stream: `state f: name;`, then `f.step(x)`.",
            span,
            expr.span,
        )
    args = [ctx.expr(arg.value, arg.span) for arg in expr.args]
    if ctx.lambda_level or ctx.constant:
        return ctx.fail(
            "K0326", "A stream can be advanced neither in a lambda nor in a constant.", span, expr.span
        )
    instance = symbol.stream
    function: hir.Function = instance.function
    if not instance.signed:
        ctx.shared.errors += 1
        return broken(expr.span)
    named = any(arg.name is not None for arg in expr.args)
    if named or len(args) != len(function.params):
        count = len(function.params)
        return ctx.fail(
            "K0306",
            f"`{name}` takes {count} {'input' if count == 1 else 'inputs'} by position, and here "
            f"{'is' if len(args) == 1 else 'are'} {len(args)}.",
            span,
            expr.span,
        )
    ctx.effects.extend((effect, expr.span) for effect in function.effects)
    good = True
    for value, param in zip(args, function.params):
        good = ctx.expect(value, param.var.type) and good
    kind = function.result

    def build() -> hir.Expr:
        made = tuple(value.build() for value in args)
        if not good or any(is_poison(item) for item in made):
            return poison(expr.span)
        return hir.StreamStep(kind, expr.span, symbol.var, function, made)

    return Value(kind, expr.span, build)
