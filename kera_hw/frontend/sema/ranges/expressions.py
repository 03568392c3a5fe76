"""The symbols of expressions."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.frontend.sema.lowering.core import constant_leaves
from kera_hw.frontend.sema.ranges.check import check_entries, check_gather, evaluate_entries
from kera_hw.frontend.sema.ranges.core import Prover
from kera_hw.frontend.sema.ranges.join import join
from kera_hw.frontend.sema.ranges.linear import integer_value, known
from kera_hw.frontend.sema.ranges.refine import refine
from kera_hw.frontend.sema.ranges.state import State
from kera_hw.frontend.sema.ranges.store import UPDATE
from kera_hw.frontend.sema.ranges.symbol import Symbol, Symbols
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.walk import field_range, place_range, step_into
from kera_hw.types import BOOL, TupleType, Type, leaf_types, shape_of

# Operations that say where a counter turns back, when one operand is constant.
_TURNS = frozenset(("integer.rem", "integer.min", "integer.max", "bits.and"))


def const(prover: Prover, state: State, expr: hir.Const) -> Symbols:
    leaves = constant_leaves(expr.value)
    return tuple(prover.store.constant(kind, value) for kind, value in zip(leaf_types(expr.type), leaves))


def local(prover: Prover, state: State, expr: hir.Local) -> Symbols:
    return state.values[expr.var]


def project(prover: Prover, state: State, expr: hir.Project) -> Symbols:
    low, high = field_range(expr.base.type, expr.index)
    return prover.expr(state, expr.base)[low:high]


# ---------------------------------------------------------------- operations


def op(prover: Prover, state: State, expr: hir.Op) -> Symbols:
    if expr.name == "control.select":
        return _selected(prover, state, expr.args)
    args = [prover.scalar(state, arg) for arg in expr.args]
    if expr.name == "tensor.gather":
        check_gather(prover, state, expr.args[1], args[1], shape_of(expr.args[0].type)[0])
    if expr.name.startswith("effect."):
        return prover.store.of_type(expr.type)  # another value each time
    if isinstance(expr.type, TupleType):
        return tuple(
            prover.make(state, f"{expr.name}.{position}", kind, args, expr.attrs)
            for position, kind in enumerate(leaf_types(expr.type))
        )
    if expr.name.startswith("compare.") or expr.name in _TURNS:
        _compared(prover, state, args)
    kinds = leaf_types(expr.type)
    return tuple(prover.make(state, expr.name, kind, args, expr.attrs) for kind in kinds)


def _compared(prover: Prover, state: State, args: Sequence[Symbol]) -> None:
    first, second = args
    for symbol, other in ((first, second), (second, first)):
        value = integer_value(other)
        if value is not None and not shape_of(symbol.kind):
            prover.compared(state, symbol, value)


def _selected(prover: Prover, state: State, args: Sequence[hir.Expr]) -> Symbols:
    """Of `select`: both sides are evaluated, so their indices are proved without the condition, but the
    value comes from the side that the condition picks."""
    condition = prover.scalar(state, args[0])
    yes, no = (prover.expr(state, side) for side in args[1:])
    if shape_of(condition.kind):
        return tuple(
            prover.make(state, "control.select", a.kind, (condition, a, b)) for a, b in zip(yes, no)
        )
    return choose(prover, state, condition, yes, no)


def choose(prover: Prover, state: State, condition: Symbol, yes: Symbols, no: Symbols) -> Symbols:
    """Values of this point, of which a condition picks one."""
    first, second = state.copy(), state.copy()
    refine(first, condition, True)
    refine(second, condition, False)
    if first.dead and second.dead:
        return yes
    after, values = join(prover.store, condition, first, second, (yes, no))
    state.become(after)
    return values


def structural(prover: Prover, state: State, expr: hir.Structural) -> Symbols:
    name = expr.name.rsplit(".", 1)[-1]
    if name == "select":
        return _selected(prover, state, expr.args)
    operands = [prover.expr(state, arg) for arg in expr.args]
    if name == "gather":
        check_gather(prover, state, expr.args[1], operands[1][0], shape_of(expr.args[0].type)[0])
    if name == "clone":
        return operands[0]
    split = [position for position, per_leaf in enumerate(expr.per_leaf) if per_leaf]
    if not split:
        return prover.store.of_type(expr.type)
    others = tuple(symbol for p, symbols in enumerate(operands) if p not in split for symbol in symbols)
    shown = tuple((key, repr(value)) for key, value in sorted(expr.attrs.items()))
    return tuple(
        prover.make(
            state, "pack", kind, [operands[position][leaf] for position in split], note=(name, shown, others)
        )
        for leaf, kind in enumerate(leaf_types(expr.type))
    )


# ---------------------------------------------------------------- construction


def aggregate(prover: Prover, state: State, expr: hir.Aggregate) -> Symbols:
    return tuple(symbol for item in expr.items for symbol in prover.expr(state, item))


def tensor_lit(prover: Prover, state: State, expr: hir.TensorLit) -> Symbols:
    rows = [prover.expr(state, item) for item in expr.items]
    if not rows:
        return prover.store.of_type(expr.type)
    return tuple(
        prover.make(state, "pack", kind, column, note="literal")
        for kind, column in zip(leaf_types(expr.type), zip(*rows))
    )


def tensor_fill(prover: Prover, state: State, expr: hir.TensorFill) -> Symbols:
    values = prover.expr(state, expr.value)
    kinds = leaf_types(expr.type)
    return tuple(prover.make(state, "pack", kind, [value], note="fill") for kind, value in zip(kinds, values))


def logical(prover: Prover, state: State, expr: hir.Logical) -> Symbols:
    """The right side is proved where the left one decides nothing."""
    left = prover.scalar(state, expr.lhs)
    right = state.copy()
    refine(right, left, expr.op == "and")
    with prover.guarded(expr.lhs, expr.op == "and"):
        second = prover.scalar(right, expr.rhs)
    for var, symbols in state.values.items():
        if right.values[var] is not symbols:  # both sides run: what the right one assigns is assigned
            state.values[var] = prover.store.of_type(var.type)
    return (prover.make(state, f"bits.{expr.op}", BOOL, (left, second)),)


def index(prover: Prover, state: State, expr: hir.Index) -> Symbols:
    bases = prover.expr(state, expr.base)
    if expr.mode == "proved":
        entries = check_entries(prover, state, expr.base.type, expr.entries, expr)
    else:
        entries = evaluate_entries(prover, state, expr.entries)
    shown = _slices(expr.entries)
    kinds = leaf_types(expr.type)
    others = () if expr.otherwise is None else prover.expr(state, expr.otherwise)
    if 0 in shape_of(expr.base.type):
        return prover.store.of_type(expr.type)  # no element: clamped, it is zero
    if expr.otherwise is not None:
        return tuple(
            prover.make(state, "pack", kind, (base, other), note=("at", shown, entries))
            for kind, base, other in zip(kinds, bases, others)
        )
    if expr.mode != "proved":
        return tuple(
            prover.make(state, "pack", kind, (base,), note=(expr.mode, shown, entries))
            for kind, base in zip(kinds, bases)
        )
    return tuple(_element(prover, state, kind, base, entries, shown) for kind, base in zip(kinds, bases))


def _slices(entries: Sequence[hir.Expr | hir.Slice]) -> tuple[int | None, ...]:
    return tuple(entry.length if isinstance(entry, hir.Slice) else None for entry in entries)


def _element(
    prover: Prover, state: State, kind: Type, base: Symbol, entries: Symbols, shown: tuple[int | None, ...]
) -> Symbol:
    """What was written last, if it was written there."""
    if base.name == UPDATE and base.args[1:-1] == entries and all(length is None for length in shown):
        return base.args[-1]
    return prover.make(state, "tensor.index", kind, (base, *entries), note=shown)


# ---------------------------------------------------------------- places


def place_expr(prover: Prover, state: State, expr: hir.PlaceExpr) -> Symbols:
    visit_place(prover, state, expr.place)
    return read_place(prover, state, expr.place)


def read_place(prover: Prover, state: State, place: hir.Place) -> Symbols:
    """What a place holds; of parts of tensors no more than their range."""
    low, high = place_range(place)
    symbols = state.values[place.root][low:high]
    if not any(isinstance(step, hir.IndexStep) for step in place.path):
        return symbols
    out: list[Symbol] = []
    for symbol, kind in zip(symbols, leaf_types(place.type)):
        found = known(state, symbol)
        out.append(prover.store.atom(kind, found.interval, heads=symbol.heads))
    return tuple(out)


def visit_place(prover: Prover, state: State, place: hir.Place) -> tuple[Symbol, ...] | None:
    """Evaluate and prove the indices of a place. They are returned if they pick one element, say of each
    leaf; None if there are none."""
    kind = place.root.type
    found: list[Symbol] = []
    whole = True
    for step in place.path:
        if isinstance(step, hir.IndexStep):
            found.extend(check_entries(prover, state, kind, step.entries, None))
            whole = whole and all(length is None for length in _slices(step.entries))
        kind = step_into(kind, step)
    if not found:
        return None
    return tuple(found) if whole else (*found, prover.store.atom(BOOL, None))


def write_place(
    prover: Prover, state: State, place: hir.Place, entries: Symbols | None, values: Symbols
) -> None:
    """An assignment: of whole leaves it replaces what was known, of parts of tensors it joins."""
    low, high = place_range(place)
    if entries is not None:
        old = state.values[place.root][low:high]
        values = tuple(
            prover.make(state, UPDATE, base.kind, (base, *entries, value)) for base, value in zip(old, values)
        )
    state.set_leaves(place.root, low, values)
