"""What a condition teaches: bounds on the expressions in it, and differences between them."""
from __future__ import annotations

from kera_hw.frontend.sema import hir
from kera_hw.frontend.sema.ranges_core import Prover
from kera_hw.frontend.sema.ranges_keys import Key
from kera_hw.frontend.sema.ranges_linear import (
    Linear,
    atom_interval,
    best_interval,
    constant_value,
    is_exact,
    linear,
)
from kera_hw.frontend.sema.ranges_state import State, join
from kera_hw.ops.intervals import Interval, type_interval
from kera_hw.types import BoolType, FixType, IntType

_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def refine(prover: Prover, state: State, cond: hir.Expr, truth: bool) -> None:
    """Narrow the state to where ``cond`` is ``truth``. Facts only ever get sharper.

    Nothing is learnt from conditions met while another one is looked into: that could take a power of
    the depth, for facts about conditions within conditions.
    """
    if prover.in_form or prover.in_refine:
        return
    with prover.refining():
        _refine(prover, state, cond, truth)


def refine_bound(prover: Prover, state: State, expr: hir.Expr, interval: Interval) -> None:
    """Narrow the state to where an integer lies in ``interval``; as ``refine`` in all else."""
    if prover.in_form or prover.in_refine:
        return
    with prover.refining():
        bound(prover, state, expr, interval)


def _refine(prover: Prover, state: State, cond: hir.Expr, truth: bool) -> None:
    if state.dead or not isinstance(cond.type, BoolType):
        return
    value = constant_value(cond)
    if value is not None:
        state.dead = state.dead or bool(value) != truth
        return
    if isinstance(cond, hir.Block) and not cond.stmts and cond.result is not None:
        _refine(prover, state, cond.result, truth)
        return
    if isinstance(cond, hir.Local):
        definition = prover.scope.definitions.value_of(cond.var)
        if definition is not None:
            _refine(prover, state, definition, truth)
    elif isinstance(cond, hir.Logical):
        _refine_pair(prover, state, cond.lhs, cond.rhs, cond.op == "and", truth)
    elif isinstance(cond, hir.Op):
        _refine_op(prover, state, cond, truth)
    key = prover.scope.definitions.key(cond)
    if key is not None:
        state.learn(key, Interval(int(truth), int(truth)))


def _refine_op(prover: Prover, state: State, cond: hir.Op, truth: bool) -> None:
    family, verb = cond.name.split(".", 1)
    if cond.name in ("bits.and", "bits.or"):
        _refine_pair(prover, state, *cond.args, both=verb == "and", truth=truth)
    elif cond.name == "bits.not":
        _refine(prover, state, cond.args[0], not truth)
    elif family == "compare":
        compare = verb if truth else _NEGATED[verb]
        if isinstance(cond.args[0].type, IntType | FixType):
            _refine_compare(prover, state, compare, cond.args[0], cond.args[1])
        elif isinstance(cond.args[0].type, BoolType) and compare in ("eq", "ne"):
            for fixed, other in (cond.args, cond.args[::-1]):
                value = constant_value(fixed)
                if value is not None:
                    _refine(prover, state, other, bool(value) == (compare == "eq"))


def _refine_pair(
    prover: Prover, state: State, lhs: hir.Expr, rhs: hir.Expr, both: bool, truth: bool
) -> None:
    """``both``: a conjunction, else a disjunction."""
    if both == truth:
        _refine(prover, state, lhs, truth)
        _refine(prover, state, rhs, truth)
        return
    first, second = state.copy(), state.copy()
    _refine(prover, first, lhs, truth)
    _refine(prover, second, lhs, not truth)
    _refine(prover, second, rhs, truth)
    both_dead = first.dead and second.dead
    state.become(join(first, second))
    state.dead = both_dead


def _refine_compare(prover: Prover, state: State, verb: str, a: hir.Expr, b: hir.Expr) -> None:
    if verb in ("lt", "le"):
        _at_most(prover, state, a, b, -1 if verb == "lt" else 0)
    elif verb in ("gt", "ge"):
        _at_most(prover, state, b, a, -1 if verb == "gt" else 0)
    elif verb == "eq":
        _at_most(prover, state, a, b, 0)
        _at_most(prover, state, b, a, 0)
    else:
        for value_side, other in ((a, b), (b, a)):
            value = atom_interval(prover, state, value_side)
            if value is not None and value.low == value.high:
                _differs(prover, state, other, value.low)


def _differs(prover: Prover, state: State, expr: hir.Expr, value: int) -> None:
    """``expr != value``: an end of its range that equals the value goes."""
    interval = atom_interval(prover, state, expr)
    if interval is None:
        return
    if interval.low == interval.high == value:
        state.dead = True
    elif interval.low == value:
        bound(prover, state, expr, Interval(value + 1, interval.high))
    elif interval.high == value:
        bound(prover, state, expr, Interval(interval.low, value - 1))


def _at_most(prover: Prover, state: State, a: hir.Expr, b: hir.Expr, most: int) -> None:
    """``a - b <= most``, as integers."""
    first, second = best_interval(prover, state, a), best_interval(prover, state, b)
    if first is None or second is None:
        return
    bound(prover, state, a, Interval(first.low, second.high + most))
    bound(prover, state, b, Interval(first.low - most, second.high))
    left, right = _exact(prover, state, a), _exact(prover, state, b)
    form = left.add(right, -1)
    if form.named:
        _learn_form(prover, state, form, most)


def _exact(prover: Prover, state: State, expr: hir.Expr) -> Linear:
    """A form equal to the expression as an integer; where its linear form may wrap, one atom."""
    form = linear(prover, state, expr)
    if isinstance(expr.type, IntType) and is_exact(prover, state, form, expr.type):
        return form
    return linear(prover, state, expr, 0)


def _learn_form(prover: Prover, state: State, form: Linear, most: int) -> None:
    """``form <= most``: a bound on each atom, given the least of the others; and differences."""
    intervals: dict[Key, Interval] = {}
    for key in form.terms:
        interval = atom_interval(prover, state, form.atoms[key])
        if interval is None:
            return
        intervals[key] = interval
    least = {key: c * (intervals[key].low if c > 0 else intervals[key].high) for key, c in form.terms.items()}
    total = sum(least.values())
    for key, coefficient in form.terms.items():
        room = most - form.constant - (total - least[key])  # coefficient * atom <= room
        interval = intervals[key]
        if coefficient > 0:
            narrowed = Interval(interval.low, min(interval.high, room // coefficient))
        else:
            narrowed = Interval(max(interval.low, -(room // -coefficient)), interval.high)
        bound(prover, state, form.atoms[key], narrowed)
    if sorted(form.terms.values()) == [-1, 1]:
        plus = next(key for key, c in form.terms.items() if c == 1)
        minus = next(key for key, c in form.terms.items() if c == -1)
        state.learn_difference(plus, minus, most - form.constant)


def bound(prover: Prover, state: State, expr: hir.Expr, interval: Interval) -> None:
    """The value lies in ``interval``: learn it for the expression, and for what it is made of."""
    value = constant_value(expr)
    if value is not None:
        state.dead = state.dead or not Interval(value, value).within(interval)
        return
    key = prover.scope.definitions.key(expr)
    if key is None and not isinstance(expr, hir.Op):
        return
    current = atom_interval(prover, state, expr)
    if current is not None and current.within(interval):
        return
    if key is not None:
        state.learn(key, interval)
    if isinstance(expr, hir.Local):
        definition = prover.scope.definitions.value_of(expr.var)
        if definition is not None:
            bound(prover, state, definition, interval)
    elif isinstance(expr, hir.Op):
        _bound_parts(prover, state, expr, interval)


def _bound_parts(prover: Prover, state: State, expr: hir.Op, interval: Interval) -> None:
    if expr.name == "convert.cast":
        inner = atom_interval(prover, state, expr.args[0])
        whole = isinstance(expr.type, IntType) and isinstance(expr.args[0].type, IntType)
        full = type_interval(expr.type)
        if whole and inner is not None and full is not None and inner.within(full):
            bound(prover, state, expr.args[0], interval)
    elif expr.name == "bits.shr":
        amount = constant_value(expr.args[1])
        if amount is not None and amount < 64 and isinstance(expr.type, IntType):
            low, high = interval.low << amount, (interval.high << amount) + (1 << amount) - 1
            bound(prover, state, expr.args[0], Interval(low, high))
    elif expr.name == "integer.max":
        for arg in expr.args:
            bound(prover, state, arg, Interval(-(1 << 64), interval.high))
    elif expr.name == "integer.min":
        for arg in expr.args:
            bound(prover, state, arg, Interval(interval.low, 1 << 64))
