"""Linear forms of index bounds, to find the static size of a slice from its two bounds."""
from __future__ import annotations

from kera_hw.frontend.sema.names.scope import Constant, Held, ItemSymbol, Linear, Local
from kera_hw.frontend.sema.typing.context import Context
from kera_hw.frontend.syntax import ast
from kera_hw.frontend.syntax.kinds import SyntaxKind
from kera_hw.types import IntType

_LINEAR = (ast.ParenExpr, ast.Literal, ast.PathExpr, ast.Binary, ast.Cast)
_LINEAR_OPERATORS = ("+", "-", "*")


def linear_form(ctx: Context, expr: ast.Expr | None, evaluate: bool = True) -> Linear:
    """Coefficients of the expression's atoms; whatever is not linear is an atom by its spelling.

    Parts that are constant without being linear are evaluated, unless ``evaluate`` is off. Two forms may be
    compared only where both were taken at one place, or hold stable atoms alone.
    """
    if isinstance(expr, ast.ParenExpr):
        return linear_form(ctx, expr.inner, evaluate)
    if isinstance(expr, ast.Literal) and expr.int_value is not None:
        return {None: expr.int_value}
    if isinstance(expr, ast.PathExpr):
        return _name(ctx, expr)
    if isinstance(expr, ast.Binary) and expr.op in _LINEAR_OPERATORS:
        found = _binary(ctx, expr, evaluate)
        if found is not None:
            return found
    if isinstance(expr, ast.Cast):
        inner = linear_form(ctx, expr.operand, evaluate)
        if set(inner) <= {None}:
            return inner
        kind = expr.type.text if expr.type else ""
        return {("as", kind, frozenset(inner.items())): 1}
    if evaluate and expr is not None and (is_constant(ctx, expr) or _is_length(ctx, expr)):
        found = ctx.evaluate(expr)
        if found is not None and isinstance(found.type, IntType):
            return {None: int(found.value)}
    return {("text", _squeezed(expr.text) if expr is not None else ""): 1}


def is_constant(ctx: Context, expr: ast.Expr) -> bool:
    """Whether an expression holds no run-time name (as far as its form tells)."""
    for node in expr.node.descendants():
        if node.kind is SyntaxKind.PATH_EXPR:
            path = ast.PathExpr(node).path
            names = path.names if path is not None else []
            symbol = ctx.lookup(names[0]) if len(names) == 1 else None
            if isinstance(symbol, (Local, Held)):
                return False
    return True


def _is_length(ctx: Context, expr: ast.Expr) -> bool:
    """Whether this is `len(..)`, known from the type of whatever tensor."""
    callee = expr.callee if isinstance(expr, ast.Call) else None
    path = callee.path if isinstance(callee, ast.PathExpr) else None
    return path is not None and path.names == ["len"] and ctx.lookup("len") is None


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _name(ctx: Context, expr: ast.PathExpr) -> Linear:
    path = expr.path
    name = path.name if path is not None and not path.is_qualified else None
    symbol = ctx.lookup(name) if name else None
    if isinstance(symbol, Local):
        return dict(symbol.linear) if symbol.linear is not None else {symbol: 1}
    if isinstance(symbol, ItemSymbol) and isinstance(symbol.node, ast.ConstItem):
        symbol = ctx.checker.constant(symbol)
    if isinstance(symbol, Constant) and isinstance(symbol.type, IntType):
        return {None: int(symbol.value)}
    return {("text", _squeezed(expr.text)): 1}


def _binary(ctx: Context, expr: ast.Binary, evaluate: bool) -> Linear | None:
    a, b = linear_form(ctx, expr.lhs, evaluate), linear_form(ctx, expr.rhs, evaluate)
    if expr.op == "*":
        if set(a) <= {None}:
            a, b = b, a
        if not set(b) <= {None}:
            return None
        factor = b.get(None, 0)
        return _clean({atom: count * factor for atom, count in a.items()})
    return combine(a, b, 1 if expr.op == "+" else -1)


def combine(a: Linear, b: Linear, sign: int) -> Linear:
    """a + sign * b."""
    out = dict(a)
    for atom, count in b.items():
        out[atom] = out.get(atom, 0) + sign * count
    return _clean(out)


def _clean(form: Linear) -> Linear:
    return {atom: count for atom, count in form.items() if count}


def constant_part(form: Linear) -> int | None:
    """The value of a form without atoms."""
    return form.get(None, 0) if set(form) <= {None} else None


def stable_form(ctx: Context, expr: ast.Expr | None) -> Linear | None:
    """The form where every atom is an immutable local, so that it holds wherever the name is in scope."""
    if not isinstance(expr, _LINEAR) or (isinstance(expr, ast.Binary) and expr.op not in _LINEAR_OPERATORS):
        return None  # an atom by its spelling
    form = linear_form(ctx, expr, evaluate=False)
    stable = all(
        atom is None or (isinstance(atom, Local) and not atom.var.mutable) for atom in form
    )
    return form if stable else None
