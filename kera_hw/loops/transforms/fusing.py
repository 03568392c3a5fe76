"""Loops joined and parted."""
from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from kera_hw.loops.contents import defined, indexing, used
from kera_hw.loops.dependences import conflicts
from kera_hw.loops.program import (
    Alloc,
    Block,
    For,
    Load,
    LoopProgram,
    Statement,
    Store,
    Var,
    statements,
)
from kera_hw.loops.rewrite import Copier, Names, changed, replaced
from kera_hw.loops.transforms.reason import Refused, plain_loop
from kera_hw.loops.verifier import verify_loops


def fuse(program: LoopProgram, first: str, second: str) -> LoopProgram:
    """Two loops of as many rounds as one. Nothing but declarations stands between them.

    The second's round j may use what the first's rounds up to j have made, and no more.
    """
    one, two = plain_loop(program, first), plain_loop(program, second)
    whole, looks_back = joined(one, two)

    def change(block: Block) -> Block | None:
        places = [place for place, item in enumerate(block.body) if item is one or item is two]
        if len(places) != 2 or block.body[places[0]] is not one:
            return None
        start, end = places
        between = block.body[start + 1 : end]
        if not all(isinstance(item, Alloc) for item in between):
            raise Refused(f"Something stands between `{first}` and `{second}`.")
        return replace(block, body=(*block.body[:start], *between, whole, *block.body[end + 1 :]))

    found = changed(program.body, change)
    if found is None:
        raise Refused(f"`{first}` does not stand before `{second}` in one block.")
    made = replace(program, body=found)
    faults = verify_loops(made) if looks_back else []
    if faults:
        raise Refused(f"A round of `{second}` looks back to earlier ones of `{first}`: {faults[0]}")
    return made


class Joined(NamedTuple):
    """Two loops as one. ``looks_back``: a round may use what an earlier one stored; of such, the verifier
    does not always see that all that is read has been written.
    """

    loop: For
    looks_back: bool


def joined(one: For, two: For) -> Joined:
    """The loop that does what two do one after the other. Raises Refused where there is none."""
    first, second = one.var.name, two.var.name
    if one.count != two.count:
        raise Refused(f"`{first}` has {one.count} rounds and `{second}` {two.count}.")
    carried_out = {item.outer for item in one.carried}
    if carried_out and carried_out & (used(Block((two,))) | indexing(two.body)):
        raise Refused(f"`{second}` uses what `{first}` gives after its last round.")
    meets = list(conflicts(one.body, two.body, one.var, two.var, one.count))
    for access, _, span in meets:
        if span.low < 0:
            raise Refused(
                f"A round of `{second}` touches `{access.buffer}` before a later round of `{first}` does."
            )
    parallel = one.parallel and two.parallel and all((span.low, span.high) == (0, 0) for _, _, span in meets)
    moved = Copier({two.var: one.var}).block(two.body)
    body = Block((*one.body.body, *moved.body), (*one.body.yields, *moved.yields))
    looks_back = any(made.writes and not taken.writes and span.high > 0 for made, taken, span in meets)
    whole = replace(one, carried=(*one.carried, *two.carried), body=body, parallel=parallel)
    return Joined(whole, looks_back)


def fission(program: LoopProgram, loop: str, at: int) -> LoopProgram:
    """A loop as two: its first ``at`` statements, and the rest."""
    whole, names = plain_loop(program, loop), Names(program)
    if whole.carried:
        raise Refused(f"`{loop}` carries values from round to round.")
    if not 0 < at < len(whole.body.body):
        raise Refused(f"`{loop}` has {len(whole.body.body)} statements; there is no cut after {at}.")
    first, second = Block(whole.body.body[:at]), Block(whole.body.body[at:])
    shared = set(defined(first)) & (_names_used(second))
    if shared:
        raise Refused(f"Both parts of `{loop}` use `{min(shared)}`.")
    # The second part's round i must not come before a later round of the first that it was to precede.
    for access, _, span in conflicts(second, first, whole.var, whole.var, whole.count):
        if span.high > 0:
            raise Refused(f"A later round of the first part touches `{access.buffer}` of the second.")
    counter = Var(names.fresh(whole.var.name), whole.var.type)
    moved = Copier({whole.var: counter}).block(second)
    parts = [replace(whole, body=first), replace(whole, var=counter, body=moved)]

    def change(block: Block, place: int) -> list[Statement] | None:
        return list(parts) if block.body[place] is whole else None

    body = replaced(program.body, change)
    assert body is not None
    return replace(program, body=body)


def _names_used(block: Block) -> set[str]:
    names = {var.name for var in used(block) | indexing(block)}
    return names | {item.buffer for item in statements(block) if isinstance(item, (Load, Store))}
