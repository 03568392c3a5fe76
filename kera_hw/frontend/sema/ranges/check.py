"""One index against one axis: by its range, else by evaluation in every iteration, else K0301."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from kera_hw.frontend.sema.ranges.core import Prover
from kera_hw.frontend.sema.ranges.linear import known
from kera_hw.frontend.sema.ranges.points import Points, evaluate_points
from kera_hw.frontend.sema.ranges.state import State
from kera_hw.frontend.sema.ranges.symbol import Symbol, Symbols
from kera_hw.frontend.sema.tree import hir
from kera_hw.ops.intervals import Interval
from kera_hw.support import Diagnostic, Fix, Span
from kera_hw.types import IntType, Type, shape_of

_ORIGIN = IntType(1, False)  # of the 0 that a slice without a lower bound starts at
_CLAMP = (
    "use `.at({index}, else: ..)` for another value outside, or `.clamped({index})` for the nearest element"
)


def check_entries(
    prover: Prover, state: State, base: Type, entries: Sequence[hir.Expr | hir.Slice], whole: hir.Index | None
) -> Symbols:
    """Evaluate the entries of an index and prove each in range. ``whole`` is the index expression, if the
    entries are not those of a place."""
    symbols = evaluate_entries(prover, state, entries)
    for axis, (entry, symbol) in enumerate(zip(entries, symbols)):
        extent = shape_of(base)[axis]
        if isinstance(entry, hir.Slice):
            _check_slice(prover, state, entry, symbol, extent)
        else:
            clamped = partial(_fix, prover, whole)
            _check(prover, state, entry, symbol, extent - 1, _index_words(extent), clamped)
    return symbols


def evaluate_entries(prover: Prover, state: State, entries: Sequence[hir.Expr | hir.Slice]) -> Symbols:
    """The entries' values, of slices where they start."""
    out: list[Symbol] = []
    for entry in entries:
        start = entry.start if isinstance(entry, hir.Slice) else entry
        out.append(prover.store.number(_ORIGIN, 0) if start is None else prover.scalar(state, start))
    return tuple(out)


def check_gather(prover: Prover, state: State, indices: hir.Expr, symbol: Symbol, extent: int) -> None:
    if 0 in shape_of(indices.type):
        return
    _check(prover, state, indices, symbol, extent - 1, _index_words(extent), _no_fix)


def _check_slice(prover: Prover, state: State, entry: hir.Slice, symbol: Symbol, extent: int) -> None:
    size = "1 element" if entry.length == 1 else f"{entry.length} elements"
    words = (
        "The slice may start at {range}, but", "The slice starts at {range}, so",
        f"its {size} must lie within the axis of {extent}.", f"its {size} leave the axis of {extent}.",
    )
    if entry.start is None:
        if entry.length > extent:
            text = f"The slice starts at 0, so its {size} leave the axis of {extent}."
            _report(prover, entry.span, text, None)
        return
    _check(prover, state, entry.start, symbol, extent - entry.length, words, _no_fix, entry.span)


Words = tuple[str, str, str, str]  # may be, is (with {range}); the axis, after "may" and after "is"


def _index_words(extent: int) -> Words:
    has = "the axis has 1 element." if extent == 1 else f"the axis has {extent} elements."
    has = "the axis has no elements." if extent == 0 else has
    return "The index may be {range}, but", "The index is {range}, but", has, has


def _check(
    prover: Prover, state: State, expr: hir.Expr, symbol: Symbol, last: int, words: Words,
    fix: Callable[[], Fix | None], span: Span | None = None,
) -> None:
    """``expr`` must lie in 0..last wherever this point is reached; else ``fix`` says what to write."""
    prover.compared(state, symbol, last, limit=True)
    if prover.quiet or state.dead:
        return
    allowed, interval = Interval(0, last), known(state, symbol).interval
    if interval is None or interval.within(allowed):
        return  # or not an integer: the type checker has said so
    points = evaluate_points(prover.scope, expr, allowed)
    if points is not None and points.bad is None:
        return
    place = span or expr.span
    # An index known here is not meant to be clamped: another one is meant.
    within = Fix(f"the largest that fits is {last}") if last >= 0 else None
    if points is not None:
        _report(prover, place, _points_message(points, words), within)
        return
    certain = interval.meet(allowed).empty
    head, tail = (words[1], words[3]) if certain else (words[0], words[2])
    _report(prover, place, f"{head.format(range=interval)} {tail}", within if certain else fix())


def _points_message(points: Points, words: Words) -> str:
    assert points.bad is not None
    value, where = points.bad
    head, comma, tail = words[1].format(range=value).rpartition(",")
    names = [f"{name} = {number}" for name, number in where]
    if names:
        listed = names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
        head = f"{head} when {listed}"
    return f"{head}{comma}{tail} {words[3]}"


def _no_fix() -> None:
    return None


def _fix(prover: Prover, whole: hir.Index | None) -> Fix | None:
    """The same index, clamped."""
    function = prover.scope.function
    if whole is None or function is None:
        return Fix("test the index with `if` first, or mask or clamp it")
    if any(isinstance(entry, hir.Slice) for entry in whole.entries):
        return None
    base = function.file.text(whole.base.span)
    index = ", ".join(function.file.text(entry.span) for entry in whole.entries)
    return Fix(_CLAMP.format(index=index), whole.span, f"{base}.clamped({index})")


def _report(prover: Prover, span: Span, message: str, fix: Fix | None) -> None:
    """Say it once a place: instances of a generic function share theirs."""
    function = prover.scope.function
    if prover.quiet or function is None or (function.file.path, span) in prover.reported:
        return
    prover.reported.add((function.file.path, span))
    prover.diagnostics.append(Diagnostic("K0301", message, function.file, span, fix=fix))
