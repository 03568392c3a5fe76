"""Linear forms: sums of multiples of atoms, equal to an integer expression modulo its type's 2^W.

Where the form's own range fits the type, no wrapping can show, so the expression *is* the form; that sees
through ``(i - 1) + 1`` and cancels ``8 * i + j - 8 * i``.
"""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kera_hw.frontend.sema import hir
from kera_hw.frontend.sema.ranges_core import Prover
from kera_hw.frontend.sema.ranges_keys import Key
from kera_hw.frontend.sema.ranges_state import State
from kera_hw.ops.intervals import Interval, type_interval
from kera_hw.types import IntType

_MAX_TERMS = 8
_MAX_DEPTH = 12
_MAX_STEPS = 64


@dataclass(slots=True)
class Linear:
    """``constant`` plus, for each key, its coefficient times the atom's value."""

    constant: int = 0
    terms: dict[Key, int] = field(default_factory=dict[Key, int])
    atoms: dict[Key, hir.Expr] = field(default_factory=dict[Key, hir.Expr])

    @property
    def named(self) -> bool:
        """Whether all atoms have keys: others are too large to look at again and again."""
        return all(key[0] != "id" for key in self.terms)

    def add(self, other: Linear, factor: int = 1) -> Linear:
        terms = dict(self.terms)
        for key, coefficient in other.terms.items():
            terms[key] = terms.get(key, 0) + factor * coefficient
        kept = {key: coefficient for key, coefficient in terms.items() if coefficient}
        return Linear(self.constant + factor * other.constant, kept, {**self.atoms, **other.atoms})


def constant_value(expr: hir.Expr) -> int | None:
    """The integer of a scalar constant."""
    if not isinstance(expr, hir.Const) or isinstance(expr.value, tuple):
        return None
    array = np.asarray(expr.value)
    return int(array.item()) if array.ndim == 0 and array.dtype.kind in "iub" else None


def linear(prover: Prover, state: State, expr: hir.Expr, depth: int = _MAX_DEPTH) -> Linear:
    """The expression's form modulo 2^W; at worst the expression as one atom."""
    return _Expansion(prover, state).form(expr, depth)


class _Expansion:
    """Works a form out within a bounded number of steps: locals may stand for ever larger expressions."""

    def __init__(self, prover: Prover, state: State) -> None:
        self.prover = prover
        self.state = state
        self.steps = _MAX_STEPS

    def form(self, expr: hir.Expr, depth: int) -> Linear:
        value = constant_value(expr)
        if value is not None:
            return Linear(value)
        self.steps -= 1
        if depth > 0 and self.steps > 0:
            if isinstance(expr, hir.Local):
                definition = self.prover.scope.definitions.value_of(expr.var)
                if definition is not None and definition.type == expr.type:
                    return self.form(definition, depth - 1)
            elif isinstance(expr, hir.Op) and isinstance(expr.type, IntType):
                found = self._of_op(expr, depth - 1)
                if found is not None and len(found.terms) <= _MAX_TERMS:
                    return found
        key = self.prover.scope.definitions.key(expr) or ("id", id(expr))
        return Linear(0, {key: 1}, {key: expr})

    def _of_op(self, expr: hir.Op, depth: int) -> Linear | None:
        args = expr.args
        if expr.name in ("integer.add", "integer.sub"):
            left, right = (self.form(arg, depth) for arg in args)
            return left.add(right, 1 if expr.name == "integer.add" else -1)
        if expr.name == "integer.neg":
            return Linear().add(self.form(args[0], depth), -1)
        if expr.name == "integer.mul":
            for factor, other in ((args[0], args[1]), (args[1], args[0])):
                value = constant_value(factor)
                if value is not None:
                    return Linear().add(self.form(other, depth), value)
        if expr.name == "bits.shl":
            amount = constant_value(args[1])
            if amount is not None and amount < 64:
                return Linear().add(self.form(args[0], depth), 1 << amount)
        if expr.name == "convert.cast":
            return self._of_cast(expr, depth)
        return None

    def _of_cast(self, expr: hir.Op, depth: int) -> Linear | None:
        inner, target = expr.args[0], expr.type
        source = inner.type
        if not isinstance(source, IntType) or not isinstance(target, IntType):
            return None
        form = self.form(inner, depth)
        if target.width_bits <= source.width_bits:
            return form  # truncation keeps equality modulo the smaller power
        return form if is_exact(self.prover, self.state, form, source) else None


def is_exact(prover: Prover, state: State, form: Linear, kind: IntType) -> bool:
    """Whether the expression of this type equals its form as an integer, not only modulo 2^W."""
    interval, full = form_interval(prover, state, form), type_interval(kind)
    return interval is not None and full is not None and interval.within(full)


def atom_interval(prover: Prover, state: State, expr: hir.Expr) -> Interval | None:
    """The range of an expression by its parts alone, without forms and conditions: in linear time."""
    with prover.forming():
        found = prover.peek(state, expr)
    return found[0] if found else None


def best_interval(prover: Prover, state: State, expr: hir.Expr) -> Interval | None:
    """The range of an expression by its parts, and by its linear form where that is exact."""
    interval, full = atom_interval(prover, state, expr), type_interval(expr.type)
    if interval is None or full is None or not isinstance(expr.type, IntType):
        return interval
    whole = form_interval(prover, state, linear(prover, state, expr))
    return interval.meet(whole) if whole is not None and whole.within(full) else interval


def form_interval(prover: Prover, state: State, form: Linear) -> Interval | None:
    """The range of a form as an unbounded integer, using known differences between atoms.

    None where an atom has no range, or no name.
    """
    if not form.named:
        return None
    known: dict[Key, Interval] = {}
    for key in form.terms:
        interval = atom_interval(prover, state, form.atoms[key])
        if interval is None:
            return None
        known[key] = interval
    high = _upper(state, form.terms, known)
    low = -_upper(state, {key: -c for key, c in form.terms.items()}, known)
    return Interval(form.constant + low, form.constant + high)


def _upper(state: State, terms: dict[Key, int], known: dict[Key, Interval]) -> int:
    """The most that the sum of the terms can be."""
    left = dict(terms)
    total = 0
    for (a, b), most in state.differences.items():
        shared = min(left.get(a, 0), -left.get(b, 0))
        if shared > 0:
            total += shared * min(most, known[a].high - known[b].low)
            left[a] -= shared
            left[b] += shared
    for key, coefficient in left.items():
        total += coefficient * (known[key].high if coefficient > 0 else known[key].low)
    return total
