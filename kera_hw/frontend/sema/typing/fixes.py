"""Suggested conversions: none of them loses a value in silence.

A conversion to a type that holds every value is written out; where the value is computed, its operands are
converted and not the result, which may have lost its upper bits already. Any other conversion is only named,
with what it would lose.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kera_hw.frontend.sema.names.scope import Module, Symbol
from kera_hw.frontend.sema.typing.holding import common_type, factor_types, holds, loss
from kera_hw.frontend.sema.typing.unify import ERROR, Unknown, scalar_part, spell
from kera_hw.frontend.syntax import ast
from kera_hw.frontend.syntax.kinds import SyntaxKind
from kera_hw.support import Fix, SourceFile, Span
from kera_hw.types import BoolType, FixType, FloatType, IntType, Type

#: Operators that compute in the type of their operands, so that a wider type must come before them; of
#: shifts the left one has it.
_COMPUTING = ("+", "-", "*", "/", "%", "<<", ">>")
_SHIFTS = ("<<", ">>")
#: Built-ins that compute in the type of their operands: how many of these to convert.
_WIDENS_ARGUMENTS = {"sum": 1, "prod": 1, "mean": 1, "abs": 1, "neg": 1, "dot": 2, "matmul": 2, "conv2d": 2}
#: Built-ins whose lambdas compute; there is no simple place to convert in.
_COMPUTES = ("map", "zip", "reduce", "scan", "fma")
_SIMPLE = (
    ast.PathExpr, ast.Call, ast.MethodCall, ast.Field, ast.Index, ast.ParenExpr, ast.Literal, ast.Cast,
    ast.ArrayLit, ast.ArrayRepeat,
)
_MOST_SHOWN = 40


class Around(Protocol):
    """Where an expression stands."""

    @property
    def file(self) -> SourceFile: ...
    @property
    def module(self) -> Module: ...
    def lookup(self, name: str, reads: bool = True) -> Symbol | None: ...


class Operand(Protocol):
    """An expression of a known type."""

    @property
    def type(self) -> Type: ...
    @property
    def span(self) -> Span: ...


class _Edit(NamedTuple):
    span: Span
    text: str


class _NoPlace(Exception):
    """There is no simple place to convert in."""


class _Target(NamedTuple):
    """A type that holds every value of the one that an expression has."""

    source: Type
    type: Type

    def is_exact_already(self, op: str) -> bool:
        """Whether the operator loses nothing in the source's type."""
        return op == "*" and isinstance(self.source, FixType)

    def need(self, op: str) -> None:
        """Raise _NoPlace where the operator means something else in the type, or may round in it."""
        if type(self.source) is type(self.type) or isinstance(self.source, BoolType):
            return
        if isinstance(self.type, FloatType) or op not in ("+", "-", "<<"):
            raise _NoPlace


def conversion(place: Around, span: Span, source: Type, target: Type) -> Fix | None:
    """Of a whole value to the type that is needed, both known scalars or elements."""
    if isinstance(source, IntType) and isinstance(target, BoolType):
        return compared_with_zero(place, span)
    if not _is_number(target) or not (_is_number(source) or isinstance(source, BoolType)):
        return None
    shown = spell(target)
    if holds(target, source):
        text = _converted(place, span, source, target, nested=False)
        return Fix(f"convert with `as {shown}`", span, text) if text is not None else Fix(
            f"convert the operands with `as {shown}` before they are computed"
        )
    if isinstance(source, BoolType):
        return None
    node = _at(place, span)
    cast = cast_text(node, shown) if isinstance(node, ast.Expr) else f"{place.file.text(span)} as {shown}"
    if "\n" in cast or len(cast) > _MOST_SHOWN:
        cast = f"as {shown}"
    return Fix(f"change one of the types; `{cast}` {loss(target, source)}")


def for_operands(place: Around, values: Sequence[Operand], op: str = "", kept: bool = False) -> Fix | None:
    """Of the operands of an operation to a type that holds them all. ``op``: an operator, "" for a built-in;
    ``kept``: the first is the target of an assignment, which keeps its type."""
    kinds = [scalar_part(value.type) for value in values]
    known = [kind for kind in kinds if not isinstance(kind, Unknown) and kind is not ERROR]
    if not all(_is_number(kind) or isinstance(kind, BoolType) for kind in known):
        return None
    if op == "*" and any(isinstance(kind, FixType) for kind in known):
        return None if kept else _for_factors(place, values, kinds)
    if len(known) < len(kinds):
        return None  # a literal is at fault
    target = common_type(kinds)
    if target is None:
        listed = " and ".join(dict.fromkeys(f"`{spell(kind)}`" for kind in kinds))
        return Fix(f"no type holds all values of {listed}: convert one where its values are known to fit")
    if not _defined(op, target) or (isinstance(target, IntType) and all(map(_is_bool, known))):
        return None
    if kept and target != kinds[0]:
        shown = spell(target)
        return Fix(f"declare `{place.file.text(values[0].span)}` as `{shown}`; `as {spell(kinds[0])}` "
                   f"{loss(kinds[0], kinds[-1])}")
    return _joined(place, values, [target] * len(kinds), whole=bool(op), nested=bool(op) and not kept)


def _for_factors(place: Around, values: Sequence[Operand], kinds: Sequence[Type]) -> Fix | None:
    """A product of fixed point is exact, and has the formats of both."""
    target = next((kind for kind in kinds if isinstance(kind, FloatType)), None)
    if target is not None:
        fits = all(holds(target, kind) for kind in kinds)
        return _joined(place, values, [target] * len(kinds), True, True) if fits else None
    found = factor_types(kinds[0], kinds[1])
    if found is None:
        return None
    return _joined(place, values, found, True, True)


def _joined(
    place: Around, values: Sequence[Operand], targets: Sequence[Type], whole: bool, nested: bool,
) -> Fix | None:
    """The operands in their types; ``whole``: of an operator, which is shown with both of them."""
    wrong = [(value, target) for value, target in zip(values, targets) if scalar_part(value.type) != target]
    edits: list[_Edit] = []
    for value, target in wrong:
        text = _converted(place, value.span, scalar_part(value.type), target, nested)
        if text is None:
            return Fix(f"convert the operands with `as {spell(target)}` before they are computed")
        edits.append(_Edit(value.span, text))
    if not edits:
        return None
    edits.sort()
    span = edits[0].span.join(edits[-1].span)
    if whole:
        span = _with_brackets(place, values[0].span).join(_with_brackets(place, values[-1].span))
    names = " and ".join(dict.fromkeys(f"`as {spell(target)}`" for _, target in wrong))
    return Fix(f"convert with {names}", span, _applied(place, span, edits))


def _applied(place: Around, whole: Span, edits: Sequence[_Edit]) -> str:
    made, start = "", whole.start
    for edit in sorted(edits):
        made += place.file.text(Span(start, edit.span.start)) + edit.text
        start = edit.span.end
    return made + place.file.text(Span(start, whole.end))


def _converted(place: Around, span: Span, source: Type, target: Type, nested: bool) -> str | None:
    """The text of an expression in another type; ``nested``: as an operand, which wants parentheses."""
    node = _at(place, span)
    if isinstance(node, ast.StructLitField):
        return f"{node.name}: {node.name} as {spell(target)}"
    if not isinstance(node, ast.Expr):
        return None
    edits: list[_Edit] = []
    try:
        _convert(place, node, _Target(source, target), nested, edits)
    except _NoPlace:
        return None
    return _applied(place, span, edits)


def _with_brackets(place: Around, span: Span) -> Span:
    """The place of an expression with the parentheses around it."""
    view = _at(place, span)
    node = view.node if view is not None else None
    while node is not None and node.parent is not None and node.parent.kind is SyntaxKind.PAREN_EXPR:
        node = node.parent
    return node.span if node is not None else span


def _at(place: Around, span: Span) -> ast.Ast | None:
    """The outermost expression, or field of a struct literal, that covers a span exactly."""
    node = place.module.unit.node
    while True:
        if node.span == span:
            view = ast.cast(node)
            if isinstance(view, (ast.Expr, ast.StructLitField)):
                return view
        inside = [
            child for child in node.children if child.span.start <= span.start and span.end <= child.span.end
        ]
        if not inside:
            return None
        node = inside[0]


def _convert(place: Around, expr: ast.Expr | None, to: _Target, nested: bool, edits: list[_Edit]) -> None:
    """Collect what turns an expression into one of the target type."""
    if expr is None:
        raise _NoPlace
    if isinstance(expr, ast.ParenExpr):
        _convert(place, expr.inner, to, False, edits)
    elif isinstance(expr, ast.Literal) and expr.suffix is None:
        return
    elif isinstance(expr, ast.Binary) and expr.op in _COMPUTING and not to.is_exact_already(expr.op):
        to.need(expr.op)
        _convert(place, expr.lhs, to, True, edits)
        if expr.op not in _SHIFTS:
            _convert(place, expr.rhs, to, True, edits)
    elif isinstance(expr, ast.Unary) and expr.op == "-":
        to.need("-")
        _convert(place, expr.operand, to, True, edits)
    elif isinstance(expr, ast.If):
        _convert(place, expr.then_block, to, False, edits)
        _convert(place, expr.else_branch, to, False, edits)
    elif isinstance(expr, ast.Match):
        for arm in expr.arms:
            _convert(place, arm.body, to, False, edits)
    elif isinstance(expr, ast.Block):
        _convert(place, expr.tail, to, False, edits)
    elif isinstance(expr, ast.Call) and (name := _builtin_name(place, expr)) is not None:
        _convert_call(place, expr, name, to, nested, edits)
    else:
        edits.append(_cast(expr, to.type, nested))


def _builtin_name(place: Around, call: ast.Call) -> str | None:
    """What the call names, if nobody declared it."""
    declared = call.name is None or place.lookup(call.name, reads=False) is not None
    return None if declared else call.name


def _convert_call(
    place: Around, call: ast.Call, name: str, to: _Target, nested: bool, edits: list[_Edit],
) -> None:
    count = _WIDENS_ARGUMENTS.get(name)
    if name in _COMPUTES:
        raise _NoPlace
    if count is None:
        edits.append(_cast(call, to.type, nested))
        return
    to.need("*")
    for arg in call.args[:count]:
        _convert(place, arg.value, to, False, edits)


def cast_text(expr: ast.Expr, kind: str) -> str:
    """`expr as kind`."""
    text = expr.text if isinstance(expr, _SIMPLE) else f"({expr.text})"
    return f"{text} as {kind}"


def _cast(expr: ast.Expr, target: Type, nested: bool) -> _Edit:
    made = cast_text(expr, spell(target))
    return _Edit(expr.span, f"({made})" if nested else made)


def compared_with_zero(place: Around, span: Span, whole: Span | None = None) -> Fix | None:
    """Of an integer where a bool is needed; ``whole`` is what the comparison replaces, where that is more."""
    node, around = _at(place, span), _at(place, whole or span)
    if not isinstance(node, (*_SIMPLE, ast.Binary, ast.Unary)) or around is None:
        return None
    parent = around.node.parent
    operand = parent is not None and isinstance(ast.cast(parent), (ast.Binary, ast.Unary, ast.Cast))
    text = f"{node.text} != 0"
    if isinstance(node, ast.Unary) and node.op == "!" and node.operand is not None:
        text = f"{node.operand.text} == 0"
    return Fix("compare with zero", whole or span, f"({text})" if operand else text)


def _is_number(kind: Type) -> bool:
    return isinstance(kind, (IntType, FixType, FloatType))


def _is_bool(kind: Type) -> bool:
    return isinstance(kind, BoolType)


def _defined(op: str, kind: Type) -> bool:
    """Whether an operator is defined for the type."""
    if op in ("&", "|", "^", "%"):
        return isinstance(kind, IntType)
    return not (op == "/" and isinstance(kind, FixType))
