"""Loops split, turned round, and written out."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kera_hw.loops.contents import used
from kera_hw.loops.dependences import conflicts, distances
from kera_hw.loops.program import (
    COUNTER,
    IN_ORDER,
    Affine,
    Block,
    Carried,
    For,
    Literal,
    LoopProgram,
    Operand,
    Statement,
    Var,
    of_var,
)
from kera_hw.loops.rewrite import Copier, Names, counter_value
from kera_hw.loops.spans import spans_within
from kera_hw.loops.transforms.reason import Refused, with_loop
from kera_hw.ops.intervals import Interval

MOST_COPIES = 4096
"""Rounds that `unroll` writes out at most."""


def interchange(program: LoopProgram, loop: str) -> LoopProgram:
    """A loop and the one that is its whole body, the other way round.

    No two rounds that meet may change their order: if one is later in the outer loop, it is not earlier in
    the inner one.
    """

    def change(outer: For) -> list[Statement]:
        if len(outer.body.body) != 1 or not isinstance(outer.body.body[0], For):
            raise Refused(f"The body of `{loop}` is more than one loop.")
        inner = outer.body.body[0]
        if inner.schedule != IN_ORDER:
            raise Refused(f"It is said already how rounds of `{inner.var.name}` run.")
        if outer.carried or inner.carried:
            raise Refused(f"`{loop}` or `{inner.var.name}` carries values from round to round.")
        turned = Block((replace(outer, body=inner.body),))
        if not outer.parallel:
            _check_order(outer, inner)
        # Rounds of the inner loop that never meet within one round of the outer may do so across them, or
        # it may be beyond the analysis that they do not.
        meets = conflicts(turned, turned, inner.var, inner.var, inner.count)
        parallel = all((span.low, span.high) == (0, 0) for _, _, span in meets)
        return [replace(inner, parallel=parallel, body=turned)]

    return with_loop(program, loop, change)


def _check_order(outer: For, inner: For) -> None:
    """Raises Refused where rounds that meet would change their order."""
    moving = {**spans_within(inner.body), outer.var: Interval(0, max(outer.count - 1, 0))}
    for a, b, across in conflicts(outer.body, outer.body, outer.var, outer.var, outer.count):
        along = distances(a.index, b.index, inner.var, inner.var, inner.count, moving)
        if (across.high > 0 and along.low < 0) or (across.low < 0 and along.high > 0):
            raise Refused(f"Rounds of `{outer.var.name}` that meet in `{a.buffer}` would change their order.")


def tile(program: LoopProgram, loop: str, size: int) -> LoopProgram:
    """A loop as one over pieces of ``size`` rounds and one within a piece, with a loop for the rest after."""
    names = Names(program)
    return with_loop(program, loop, lambda whole: list(tiled(whole, names, size)))


def tiled(whole: For, names: Names, size: int) -> list[For]:
    """The loop over pieces, if there are any, and the loop for the rest, if there is one."""
    if size < 1:
        raise Refused(f"A piece has at least one round, not {size}.")
    pieces, rest = divmod(whole.count, size)
    made: list[For] = []
    values = [item.initial for item in whole.carried]
    if pieces:
        made.append(_pieces(whole, names, pieces, size, last=not rest))
        values = [item.outer for item in made[0].carried]
    if rest or not pieces:
        made.append(_part(whole, names, rest, Affine(pieces * size), values, keep=not pieces, last=True))
    return made


def _pieces(whole: For, names: Names, pieces: int, size: int, last: bool) -> For:
    counter = Var(names.fresh(whole.var.name), COUNTER)
    carried = tuple(
        Carried(
            Var(names.fresh(item.inner.name), item.inner.type), item.initial,
            item.outer if last else Var(names.fresh(item.outer.name), item.outer.type),
        ) for item in whole.carried
    )
    start = of_var(counter) * size
    inner = _part(whole, names, size, start, [item.inner for item in carried], keep=True, last=False)
    body = Block((inner,), tuple(item.outer for item in inner.carried))
    return For(counter, pieces, carried, body, whole.parallel, whole.place)


def split(program: LoopProgram, loop: str, round_: int) -> LoopProgram:
    """A loop as two, one after the other: the rounds before that one, and those from it on."""
    names = Names(program)

    def change(whole: For) -> list[Statement]:
        if not 0 < round_ < whole.count:
            raise Refused(f"`{loop}` has {whole.count} rounds, none on one side of round {round_}.")
        initial = [item.initial for item in whole.carried]
        first = _part(whole, names, round_, Affine(), initial, keep=True, last=False)
        between = [item.outer for item in first.carried]
        rest = whole.count - round_
        return [first, _part(whole, names, rest, Affine(round_), between, keep=False, last=True)]

    return with_loop(program, loop, change)


def rest_of(whole: For, names: Names, count: int, start: int) -> For:
    """The last ``count`` rounds of a loop that carries nothing, under other names."""
    return _part(whole, names, count, Affine(start), (), keep=False, last=True)


def _part(
    whole: For, names: Names, count: int, start: Affine, initial: Sequence[Operand], keep: bool, last: bool
) -> For:
    """Rounds ``start`` to ``start + count`` of a loop; with ``keep`` under the names it had.

    After the last part the carried values have the names that what follows uses.
    """
    counter = whole.var if keep and start == Affine() else Var(names.fresh(whole.var.name), COUNTER)
    body, values, places = whole.body, dict[Var, Operand](), dict[Var, Affine]()
    prefix: list[Statement] = []
    if counter != whole.var:
        places[whole.var] = of_var(counter) + start
        if whole.var in used(body):
            prefix, values[whole.var] = counter_value(names, whole.var.name, places[whole.var])
    inners = [
        item.inner if keep else Var(names.fresh(item.inner.name), item.inner.type) for item in whole.carried
    ]
    values |= {item.inner: inner for item, inner in zip(whole.carried, inners) if inner != item.inner}
    copied = Copier(values, None if keep else names, places).block(body)
    carried = tuple(
        Carried(inner, first, item.outer if last else Var(names.fresh(item.outer.name), item.outer.type))
        for inner, first, item in zip(inners, initial, whole.carried)
    )
    inside = Block((*prefix, *copied.body), copied.yields)
    return For(counter, count, carried, inside, whole.parallel, whole.place)


def unroll(program: LoopProgram, loop: str) -> LoopProgram:
    """Every round of a loop written out."""
    names = Names(program)
    outer: dict[Var, Operand] = {}

    def change(whole: For) -> list[Statement]:
        if whole.count > MOST_COPIES:
            raise Refused(f"`{loop}` has {whole.count} rounds; at most {MOST_COPIES} are written out.")
        made: list[Statement] = []
        values = [item.initial for item in whole.carried]
        for round_ in range(whole.count):
            known: dict[Var, Operand] = {whole.var: Literal(COUNTER, round_)}
            known |= {item.inner: value for item, value in zip(whole.carried, values)}
            copied = Copier(known, names).block(whole.body)
            made += copied.body
            values = list(copied.yields)
        outer.update({item.outer: value for item, value in zip(whole.carried, values)})
        return made

    return with_loop(program, loop, change, outer)
