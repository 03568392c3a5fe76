"""Making symbols: equal ones once, with what holds of them by what holds of their operands."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kera_hw.frontend.sema.ranges.floats import converted
from kera_hw.frontend.sema.ranges.residue import ANY, Residue, hull_residue, within_residue
from kera_hw.frontend.sema.ranges.residue_rules import residue_of
from kera_hw.frontend.sema.ranges.symbol import Head, Known, Symbol, Symbols
from kera_hw.ops.intervals import Interval, MaybeInterval, OpShape, apply_rule, type_interval
from kera_hw.types import BOOL, FloatType, Type, is_scalar, leaf_types

# Expressions are followed this deep; what is deeper is an unknown of the range it has where it is computed.
MAX_DEPTH = 24

_BITS = 509

PHI = "phi"  # args: condition, value where it holds, value where it does not
UPDATE = "update"  # args: tensor, indices, new element
_HULLS = frozenset((UPDATE, "pack"))  # of the range that all of the operands with such a range have


class SymbolStore:
    """Makes symbols, equal ones once."""

    def __init__(self) -> None:
        self._made: dict[tuple[Any, ...], Symbol] = {}
        self._count = 0

    def _bit(self) -> int:
        """A symbol's own bit, which few others share."""
        self._count += 1
        return 1 << (self._count % _BITS)

    def atom(
        self, kind: Type, interval: MaybeInterval, residue: Residue = ANY,
        heads: frozenset[Head] = frozenset(),
    ) -> Symbol:
        """An unknown of its own."""
        interval = None if interval is None else within_residue(interval, residue)
        bit = self._bit()
        return Symbol("atom", kind, (), {}, Known(interval, residue), 0, heads, bit, bit)

    def of_type(self, kind: Type) -> Symbols:
        """Unknowns for the leaves of a value of which only the type is known."""
        return tuple(self.atom(leaf, type_interval(leaf)) for leaf in leaf_types(kind))

    def constant(self, kind: Type, value: Any) -> Symbol:
        """By its value as in ``hir.Const``, of one leaf."""
        array = np.asarray(value)
        if array.ndim == 0 and array.dtype.kind in "iub":
            return self.number(kind, int(array))
        key = ("const", kind, array.dtype.str, array.tobytes())
        found = self._made.get(key)
        if found is None:
            interval: MaybeInterval = None
            residue: Residue = ANY
            if array.dtype.kind in "iub":
                interval = Interval(int(array.min()), int(array.max())) if array.size else Interval(0, 0)
                if interval.low == interval.high:
                    residue = (0, interval.low)
            scalar = float(array) if array.ndim == 0 and isinstance(kind, FloatType) else None
            bit = self._bit()
            found = Symbol("const", kind, (), {}, Known(interval, residue), 0, frozenset(), bit, bit, scalar)
            self._made[key] = found
        return found

    def number(self, kind: Type, value: int) -> Symbol:
        """A scalar constant by its raw integer."""
        key = ("number", kind, value)
        found = self._made.get(key)
        if found is None:
            known = Known(Interval(value, value), (0, value))
            found = self._made[key] = Symbol("const", kind, (), {}, known, 0, frozenset(), 0, 0, value)
        return found

    def truth(self, value: bool) -> Symbol:
        return self.number(BOOL, int(value))

    def make(
        self, name: str, kind: Type, args: Sequence[Symbol], attrs: Mapping[str, Any] | None = None,
        note: Any = None, base: Known | None = None,
    ) -> Symbol:
        """An operation on symbols. ``note`` is whatever else it depends on; ``base`` what is known of it,
        if not by its operands."""
        attrs = attrs or {}
        if name == "convert.cast" and args[0].kind == kind:
            return args[0]
        shown = () if not attrs or name == "convert.cast" else tuple(
            (key, repr(value)) for key, value in sorted(attrs.items())
        )
        key = (name, kind, shown, note, *args)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._new(name, kind, tuple(args), attrs, base)
        return found

    def phi(self, condition: Symbol, yes: Symbol, no: Symbol) -> Symbol:
        if yes is no:
            return yes
        return self.make(PHI, yes.kind, (condition, yes, no))

    def both(self, first: Symbol, second: Symbol) -> Symbol:
        return self.make("bits.and", BOOL, (first, second))

    def either(self, first: Symbol, second: Symbol) -> Symbol:
        return self.make("bits.or", BOOL, (first, second))

    def _new(
        self, name: str, kind: Type, args: Symbols, attrs: Mapping[str, Any], base: Known | None
    ) -> Symbol:
        base = base or evaluate(name, kind, args, attrs, [arg.base for arg in args])
        interval = base.interval
        folded = interval is not None and interval.low == interval.high and is_scalar(kind)
        if folded and interval is not None and not isinstance(kind, FloatType):
            return self.number(kind, interval.low)
        heads, own = frozenset[Head](), self._bit()
        parts = own
        for arg in args:
            parts |= arg.parts
            if not arg.heads <= heads:
                heads = heads | arg.heads
        depth = 1 + max((arg.depth for arg in args), default=0)
        return Symbol(name, kind, args, attrs, base, depth, heads, own, parts)


def evaluate(
    name: str, kind: Type, args: Symbols, attrs: Mapping[str, Any], known: Sequence[Known]
) -> Known:
    """What holds of an operation's result, by what holds of its operands."""
    if name == PHI:
        return _chosen(known)
    if name.startswith("compare."):
        return Known(_compared(name, args, known))
    if name in _HULLS:
        members = (known[0], known[-1]) if name == UPDATE else known
        return hull(members)
    if name == "convert.cast" and isinstance(args[0].kind, FloatType):
        return Known(converted(args[0], kind) or type_interval(kind))
    shape = OpShape(tuple(arg.kind for arg in args), kind, attrs)
    interval = apply_rule(name, [item.interval for item in known], shape)
    if interval is None:
        return Known(None)
    residue = residue_of(name, kind, args, known, interval)
    return Known(within_residue(interval, residue), residue)


def hull(members: Sequence[Known]) -> Known:
    """What holds of any one of them."""
    first = members[0]
    interval, residue = first.interval, first.residue
    for other in members[1:]:
        if interval is None or other.interval is None:
            return Known(None)
        interval = interval.hull(other.interval)
        residue = hull_residue(residue, other.residue)
    return Known(interval, residue)


def _chosen(known: Sequence[Known]) -> Known:
    condition, yes, no = known
    if condition.interval is not None and condition.interval.low == condition.interval.high:
        return yes if condition.interval.low else no
    return hull((yes, no))


def _compared(name: str, args: Symbols, known: Sequence[Known]) -> Interval:
    """The truth of a comparison, as far as ranges decide it."""
    a, b = known[0].interval, known[1].interval
    if a is None or b is None or a.empty or b.empty or args[0].kind != args[1].kind:
        return Interval(0, 1)
    if 0 in getattr(args[0].kind, "shape", ()) or 0 in getattr(args[1].kind, "shape", ()):
        return Interval(0, 1)
    never_less, never_more = a.low >= b.high, a.high <= b.low
    apart = a.high < b.low or a.low > b.high
    equal = a.low == a.high == b.low == b.high
    always, never = {
        "lt": (a.high < b.low, never_less), "gt": (a.low > b.high, never_more),
        "le": (never_more, a.low > b.high), "ge": (never_less, a.high < b.low),
        "eq": (equal, apart), "ne": (apart, equal),
    }[name.split(".", 1)[1]]
    return Interval(1, 1) if always else Interval(0, 0) if never else Interval(0, 1)
