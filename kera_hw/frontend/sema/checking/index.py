"""Indexing, slices, and places: what an assignment writes and a borrow lends."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import cast

from kera_hw.frontend.sema.checking.atoms import field_index, field_type
from kera_hw.frontend.sema.names.scope import Broken, Constant, Held, ItemSymbol, Linear, Local
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.typing.context import Context, Value, broken, is_poison, poison, rule
from kera_hw.frontend.sema.typing.linear import combine, constant_part, linear_form
from kera_hw.frontend.sema.typing.literals import scalar_constant
from kera_hw.frontend.sema.typing.paths import find
from kera_hw.frontend.sema.typing.unify import ERROR, describe, resolve, shallow
from kera_hw.frontend.syntax import ast
from kera_hw.support import Fix, Span
from kera_hw.types import IntType, TensorType, Type

Entry = hir.Expr | hir.Slice
#: Makes the entries of an index; None when something was reported.
BuildEntries = Callable[[], tuple[Entry, ...] | None]


@dataclass(slots=True)
class Indexed:
    """The result type of an index, and how to make its entries."""

    type: Type
    build: BuildEntries


def index_entries(
    ctx: Context, kind: Type, entries: Sequence[ast.Expr], base: Span, whole: Span, written: bool = False,
) -> Indexed | None:
    """Check the entries of an index into a type; None when something was reported.

    ``written``: it is a place.
    """
    kind = shallow(kind)
    if kind is ERROR or not isinstance(kind, TensorType):
        for entry in entries:
            if not isinstance(entry, ast.Range):
                ctx.expr(entry)
        if kind is ERROR:
            ctx.shared.errors += 1
        else:
            fix = _bits_instead(ctx, entries, base, whole, written) if isinstance(kind, IntType) else None
            ctx.report("K0318", f"{describe(kind)} is not a tensor, so it has no elements.", base, fix=fix)
        return None
    if not entries:
        ctx.report("K0306", "An index is missing between the brackets.", whole)
        return None
    if len(entries) > len(kind.shape):
        extra = entries[len(kind.shape)].span.join(entries[-1].span)
        ctx.report("K0311", f"A tensor with {len(kind.shape)} {_axes(len(kind.shape))} takes at most as many "
                   f"indices, and here are {len(entries)}.", extra)
        return None
    builders: list[Callable[[], Entry | None]] = []
    kept: list[int] = []
    good = True
    for entry, extent in zip(entries, kind.shape):
        if isinstance(entry, ast.Range):
            made = _slice(ctx, entry, extent)
            good = good and made is not None
            if made is not None:
                kept.append(made[0])
                builders.append(made[1])
        else:
            builders.append(_index(ctx, entry))
    if not good:
        return None
    shape = (*kept, *kind.shape[len(entries):])
    result = TensorType(kind.element, shape, kind.space) if shape else kind.element

    def build() -> tuple[Entry, ...] | None:
        made = [builder() for builder in builders]
        done = tuple(item for item in made if item is not None)
        return done if len(done) == len(made) else None

    return Indexed(result, build)


def _axes(count: int) -> str:
    return "axis" if count == 1 else "axes"


def _index(ctx: Context, entry: ast.Expr) -> Callable[[], hir.Expr | None]:
    value = ctx.expr(entry)
    return lambda: integer_operand(ctx, value, "An index")


def integer_operand(ctx: Context, value: Value, what: str) -> hir.Expr | None:
    """The tree of a value that must be a single integer; None (reported) when it is not."""
    made = value.build()
    if is_poison(made):
        return None
    if isinstance(made.type, IntType):
        return made
    ctx.report("K0302", f"{what} is an integer, and this is {describe(made.type)}.", value.span)
    return None


def _slice(ctx: Context, entry: ast.Range, extent: int) -> tuple[int, Callable[[], hir.Slice | None]] | None:
    """Static length of a slice and how to make it."""
    start, end = entry.start, entry.end
    low: Linear = linear_form(ctx, start) if start is not None else {}
    high: Linear = linear_form(ctx, end) if end is not None else {None: extent}
    if entry.inclusive and end is not None:
        high = combine(high, {None: 1}, 1)
    length = constant_part(combine(high, low, -1))
    first = ctx.expr(start) if start is not None else None
    last = ctx.expr(end) if end is not None else None
    if first is not None and last is not None:
        ctx.expect(last, first.type, [(first.span, f"the slice starts with {describe(first.type)}")])
    if length is None:
        ctx.report("K0310", "The size of this slice is not a constant: its bounds do not differ by one.",
                   entry.span)
        return None
    if length < 0:
        ctx.report("K0310", f"This slice ends {-length} before it starts.", entry.span)
        return None

    def build() -> hir.Slice | None:
        made = None if first is None else integer_operand(ctx, first, "A bound of a slice")
        stop = None if last is None else integer_operand(ctx, last, "A bound of a slice")
        if (first is not None and made is None) or (last is not None and stop is None):
            return None
        if stop is not None and entry.inclusive:
            assert isinstance(stop.type, IntType)
            one = hir.Const(stop.type, stop.span, scalar_constant(1, stop.type))
            stop = hir.Op(stop.type, stop.span, "integer.add", (stop, one))
        return hir.Slice(made, stop, length, entry.span)

    return length, build


def _bits_instead(
    ctx: Context, entries: Sequence[ast.Expr], base: Span, whole: Span, written: bool
) -> Fix | None:
    """What to write for an integer that is indexed as hardware languages do."""
    if written:
        return Fix("an integer is assigned whole: join its bits with `cat`, or change them by `|` and `&`")
    if len(entries) != 1 or not ctx.file.text(whole).endswith("]"):
        return None
    if isinstance(entries[0], ast.Range):
        return Fix("take bits with `bits`, the highest first: `x.bits(7, 4)`")
    text = f"{ctx.file.text(base)}.bit({entries[0].text})"
    return Fix(f"take a bit with `{text}`", whole, text)


@rule(ast.Index)
def _index_expr(ctx: Context, expr: ast.Index) -> Value:
    span = expr.span
    base = ctx.expr(expr.base, span)
    found = index_entries(ctx, base.type, expr.entries, base.span, span)
    if found is None:
        return broken(span)

    def build() -> hir.Expr:
        made, entries = base.build(), found.build()
        if is_poison(made) or entries is None:
            return poison(span)
        return hir.Index(resolve(found.type), span, made, entries)

    return Value(found.type, span, build)


# ---------------------------------------------------------------- places


class PlaceValue:
    """A place that was walked: its variable, its type, and how to make it (once)."""

    def __init__(
        self,
        local: Local,
        kind: Type,
        span: Span,
        steps: Sequence[Callable[[], hir.FieldStep | hir.IndexStep | None]],
    ) -> None:
        self.local = local
        self.type = kind
        self.span = span
        self.steps = tuple(steps)
        self._made: hir.Place | None = None
        self._is_made = False

    def build(self) -> hir.Place | None:
        """The place; None when something was reported. Made once: an index in it is evaluated once."""
        if not self._is_made:
            self._is_made = True
            made = [step() for step in self.steps]
            path = tuple(step for step in made if step is not None)
            if len(path) == len(made):
                self._made = hir.Place(self.local.var, path, resolve(self.type), self.span)
        return self._made

    def build_twice(self) -> tuple[hir.Stmt, ...] | None:
        """Prepare the place for being read and written: what its indices do must happen once, so those that
        do something move to variables, whose statements are given. None when something was reported."""
        place = self.build()
        if place is None:
            return None
        before: list[hir.Stmt] = []
        path = tuple(
            hir.IndexStep(tuple(_keep(entry, before) for entry in step.entries), step.span)
            if isinstance(step, hir.IndexStep) else step
            for step in place.path
        )
        self._made = hir.Place(place.root, path, place.type, place.span)
        return tuple(before)

    def read(self) -> Value:
        """The place's present value."""
        return Value(self.type, self.span, self._read)

    def _read(self) -> hir.Expr:
        place = self.build()
        if place is None:
            return poison(self.span)
        made: hir.Expr = hir.Local(resolve(self.local.var.type), self.span, self.local.var)
        for step in place.path:
            if isinstance(step, hir.FieldStep):
                made = hir.Project(resolve(field_type(made.type, step.index)), self.span, made, step.index)
            else:
                made = hir.Index(_after(made.type, step), self.span, made, step.entries)
        return made


def _keep(entry: Entry, before: list[hir.Stmt]) -> Entry:
    if isinstance(entry, hir.Slice):
        if entry.start is None or not acts(entry.start):
            return entry
        return hir.Slice(variable_of(entry.start, before), entry.stop, entry.length, entry.span)
    return variable_of(entry, before) if acts(entry) else entry


def variable_of(expr: hir.Expr, before: list[hir.Stmt]) -> hir.Expr:
    var = hir.Var("_", expr.type, False, expr.span)
    before.append(hir.Let(expr.span, hir.Binding(expr.span, var), expr))
    return hir.Local(expr.type, expr.span, var)


def acts(part: object) -> bool:
    """Whether evaluating a piece of the tree does more than give a value: effects, states, `&mut`."""
    if isinstance(part, hir.StreamStep) or (isinstance(part, hir.Op) and part.name.startswith("effect.")):
        return True
    if isinstance(part, hir.Call) and (part.function.effects or "&mut" in part.borrows):
        return True
    if isinstance(part, tuple):
        return any(acts(item) for item in cast("tuple[object, ...]", part))
    if not isinstance(part, _PARTS):
        return False
    return any(acts(getattr(part, item.name)) for item in fields(part))


_PARTS = (hir.Expr, hir.Stmt, hir.Arm, hir.Slice, hir.Place, hir.IndexStep, hir.Lambda)


def _after(kind: Type, step: hir.IndexStep) -> Type:
    assert isinstance(kind, TensorType)
    kept = tuple(entry.length for entry in step.entries if isinstance(entry, hir.Slice))
    shape = (*kept, *kind.shape[len(step.entries):])
    return TensorType(kind.element, shape, kind.space) if shape else kind.element


def place(ctx: Context, expr: ast.Expr | None) -> PlaceValue | None:
    """The place an expression denotes; None (reported) when it denotes none."""
    if isinstance(expr, ast.ParenExpr):
        return place(ctx, expr.inner)
    if isinstance(expr, ast.PathExpr):
        return _variable(ctx, expr)
    if isinstance(expr, ast.Field):
        base = place(ctx, expr.base)
        index = field_index(ctx, base.type, expr) if base is not None else None
        if base is None or index is None:
            return None
        step = hir.FieldStep(index)
        return PlaceValue(base.local, field_type(base.type, index), expr.span, (*base.steps, lambda: step))
    if isinstance(expr, ast.Index):
        base = place(ctx, expr.base)
        if base is None:
            return None
        found = index_entries(ctx, base.type, expr.entries, base.span, expr.span, written=True)
        if found is None:
            return None

        def build() -> hir.IndexStep | None:
            entries = found.build()
            return None if entries is None else hir.IndexStep(entries, expr.span)

        return PlaceValue(base.local, found.type, expr.span, (*base.steps, build))
    if expr is not None:
        ctx.expr(expr)
        ctx.report("K0305", "This is a value, not a variable or a part of one.", expr.span)
    else:
        ctx.shared.errors += 1
    return None


def is_place(expr: ast.Expr | None) -> bool:
    """Whether an expression has the form of a place."""
    while isinstance(expr, (ast.ParenExpr, ast.Field, ast.Index)):
        expr = expr.inner if isinstance(expr, ast.ParenExpr) else expr.base
    return isinstance(expr, ast.PathExpr)


def _variable(ctx: Context, expr: ast.PathExpr) -> PlaceValue | None:
    path = expr.path
    symbol = find(ctx, path, reads=False) if path is not None else None
    if path is None or symbol is None or isinstance(symbol, Broken):
        ctx.shared.errors += 1
        return None
    if isinstance(symbol, Local) and (not ctx.constant or symbol in ctx.own):
        return PlaceValue(symbol, symbol.var.type, expr.span, ())
    if isinstance(symbol, Constant):
        what = "a constant"
    elif isinstance(symbol, ItemSymbol):
        what = symbol.kind_text
    else:
        what = "an instance of a stream" if isinstance(symbol, Held) else "known only at run time"
    ctx.report("K0305", f"`{path.name}` is {what}, not a variable.", expr.span)
    return None


def check_mutable(ctx: Context, target: PlaceValue, verb: str = "assigned") -> bool:
    """Whether the place may be written; K0305 or K0321 when not."""
    local = target.local
    name, declared = local.var.name, local.var.span
    ctx.note_written(local)
    if local.lambda_level < ctx.lambda_level:
        ctx.report(
            "K0321",
            f"A lambda captures `{name}` by copy, so it cannot be {verb} inside.",
            target.span,
            labels=[(declared, f"`{name}` is declared here")],
        )
        return False
    if local.var.mutable or local.borrow == "&mut":
        return True
    if local.borrow == "&":
        ctx.report("K0305", f"`{name}` is a shared borrow, so it cannot be {verb}; declare it `&mut`.",
                   target.span, labels=[(declared, "it is declared here")])
        return False
    fix = None
    if local.role in ("variable", "parameter"):
        fix = Fix(f"declare `{name}` as `mut`", Span(declared.start, declared.start), "mut ", safe=True)
    hint = "; declare it with `mut`" if fix else ""
    ctx.report("K0305", f"The {local.role} `{name}` is immutable, so it cannot be {verb}{hint}.", target.span,
               labels=[(declared, f"`{name}` is declared here")], fix=fix)
    return False
