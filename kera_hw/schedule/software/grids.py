"""Plans for GPUs: which loops become grids of threads, what lies between, and where buffers lie.

The statements of a program are cut into *regions*, one after another. A parallel loop of enough rounds is a
region of its own, with a thread for every item and round; what lies between runs as one thread an item. A
program that keeps a state has its items one after another, so that one block of threads does all of them,
with barriers where regions meet. Scalars that a later region needs are computed there again where that is
cheap, and kept in memory otherwise.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf
from typing import NamedTuple

from kera_hw.loops.contents import defined, indexing, used
from kera_hw.loops.program import (
    Alloc,
    Block,
    For,
    Load,
    LoopProgram,
    Op,
    Statement,
    Store,
    Var,
    statements,
)
from kera_hw.schedule.software.layout import aligned, element_bytes, lay_out_temporaries

LEAST_ROUNDS = 32
"""Of a loop that becomes a grid: as many threads as run in step."""
MOST_ROUNDS = (1 << 31) - 1
"""Of a grid, so that a round's number is a word."""
MOST_THREADS = 256
"""Of a block."""
MOST_SHARED_BYTES = 48 << 10
"""Of a block, on every GPU, without asking for more."""
MOST_LOCAL_BYTES = 16 << 10
"""Of a thread; what is larger lies in memory that is asked for with the batch."""
SLOT_BYTES = 8
"""Of a scalar that one region leaves to another."""
_MOST_REPEATED = 12
"""Operations and loads that are made again rather than kept."""

Space = OneOf["item", "local"]
"""Memory of an item, of a thread."""


class Threads(NamedTuple):
    """What a GPU's threads are. ``in_step``: as many as run in step, of which a block has a multiple.
    ``local``: whether a thread has memory of its own. ``for_items``: of a block without rounds."""

    in_step: int = LEAST_ROUNDS
    local: bool = True
    for_items: int = 128


NVIDIA = Threads()

@dataclass(frozen=True, slots=True)
class GridRegion:
    """What is done for every item and every round of ``loops``, nested in their order; once an item if none.

    ``takes`` and ``gives`` are scalars kept from region to region. ``temporaries``: where in the memory of a
    round those lie that are made inside; ``slot_bytes``: how much it has, at ``slot`` in an
    item's or in a thread's own ``space``.
    """

    loops: tuple[For, ...]
    body: Block
    takes: tuple[Var, ...]
    gives: tuple[Var, ...]
    reason: str
    temporaries: dict[str, int] = field(default_factory=dict[str, int], compare=False)
    slot: int = 0
    slot_bytes: int = 0
    space: Space = "local"

    @property
    def rounds(self) -> int:
        total = 1
        for loop in self.loops:
            total *= loop.count
        return total


@dataclass(frozen=True, slots=True)
class GridPlan:
    """``places``: of the buffers and scalars that regions hand on, by name, within the ``item_bytes`` of an
    item or, where ``shared``, within a block's ``shared_bytes``. ``threads`` of the one block that has all
    items in turn, where there is a state; else 0."""

    regions: tuple[GridRegion, ...]
    places: dict[str, int]
    item_bytes: int
    shared_bytes: int
    threads: int

    @property
    def in_turn(self) -> bool:
        """Whether items come one after another."""
        return self.threads > 0

    @property
    def shared(self) -> bool:
        return self.shared_bytes > 0


def plan_grids(
    program: LoopProgram, least_rounds: int = LEAST_ROUNDS, each: Threads = NVIDIA
) -> GridPlan:
    """The regions of a program in native operations; loops of fewer rounds are none of their own."""
    cuts = _Cutting(program, least_rounds)
    regions = cuts.run()
    in_turn = bool(program.of_kind("state"))
    widest = max((region.rounds for region in regions), default=1)
    threads = min(MOST_THREADS, -(-widest // each.in_step) * each.in_step) if widest > 1 else 1
    places: dict[str, int] = {}
    top = 0
    for buffer in cuts.outside:
        places[buffer.name] = top
        top += aligned(buffer.size * element_bytes(buffer.element))
    for var in dict.fromkeys(var for region in regions for var in region.gives):
        places[var.name] = top
        top += SLOT_BYTES
    handed = aligned(top)
    is_shared = in_turn and 0 < handed <= MOST_SHARED_BYTES
    item_bytes = 0 if is_shared else handed
    placed: list[GridRegion] = []
    for region in regions:
        space: Space = "local" if region.slot_bytes <= MOST_LOCAL_BYTES * each.local else "item"
        placed.append(replace(region, slot=item_bytes, space=space))
        if space == "item":
            item_bytes += region.rounds * region.slot_bytes
    return GridPlan(
        tuple(placed), places, item_bytes, handed if is_shared else 0, threads if in_turn else 0
    )


class _Cutting:
    def __init__(self, program: LoopProgram, least_rounds: int) -> None:
        self._least = least_rounds
        self._pure = {buffer.name for buffer in program.buffers if buffer.kind in ("param", "const")}
        self._body = program.body.body
        self.outside = [item.buffer for item in self._body if isinstance(item, Alloc)]
        self._made: dict[Var, Statement] = {
            result: item for item in self._body for result in self._cheap_results(item)
        }

    def _cheap_results(self, statement: Statement) -> tuple[Var, ...]:
        match statement:
            case Op(results=results):
                return results
            case Load(result=result, buffer=buffer) if buffer in self._pure:
                return (result,)
            case _:
                return ()

    def run(self) -> list[GridRegion]:
        """Regions from the last to the first, since a region gives what later ones take."""
        wanted: set[Var] = set()
        found: list[GridRegion] = []
        for loops, body, reason in reversed(self._stretches()):
            kept = body if loops else _kept(body, wanted)
            if not kept:
                continue
            free = _free(kept, loops)
            again = self._again(free)
            kept = (*again, *kept)
            takes = _by_name(_free(kept, loops))
            names: set[str] = set() if loops else set(defined(Block(kept)))
            gives = _by_name(var for var in wanted if var.name in names)
            wanted = (wanted - set(gives)) | set(takes)
            places, size = lay_out_temporaries(Block(kept))
            found.append(GridRegion(loops, Block(kept), takes, gives, reason, places, 0, size))
        return found[::-1]

    def _stretches(self) -> list[tuple[tuple[For, ...], tuple[Statement, ...], str]]:
        """Loops that become grids, and the statements between them."""
        found: list[tuple[tuple[For, ...], tuple[Statement, ...], str]] = []
        between: list[Statement] = []

        def close() -> None:
            if between:
                found.append(((), tuple(between), _reason(between, self._least)))
                between.clear()

        for statement in self._body:
            nest = _nest(statement) if isinstance(statement, For) else ()
            if nest and _rounds(nest) >= self._least:
                close()
                names = ", ".join(loop.var.name for loop in nest)
                reason = f"no round of {names} touches what another writes"
                found.append((nest, nest[-1].body.body, reason))
            elif not isinstance(statement, Alloc):
                between.append(statement)
        close()
        return found

    def _again(self, free: Iterable[Var]) -> tuple[Statement, ...]:
        """What computes scalars again, in the order of the program; of those that take too much, nothing."""
        chosen: set[int] = set()
        for var in _by_name(free):
            chain = self._chain(var)
            if chain is not None and len(chosen | chain) <= _MOST_REPEATED:
                chosen |= chain
        return tuple(item for item in self._body if id(item) in chosen)

    def _chain(self, var: Var) -> set[int] | None:
        """All that a scalar is computed from, if that is little and nothing but operations and loads."""
        found: set[int] = set()
        waiting = [var]
        while waiting:
            made = self._made.get(waiting.pop())
            if made is None or len(found) > _MOST_REPEATED:
                return None
            if id(made) not in found:
                found.add(id(made))
                waiting += _free((made,), ())
        return found


def _by_name(found: Iterable[Var]) -> tuple[Var, ...]:
    return tuple(sorted(found, key=lambda var: var.name))


def _nest(loop: For) -> tuple[For, ...]:
    """Parallel loops that are each the whole body of the one around, from the outside in."""
    found: list[For] = []
    inner: Statement = loop
    while isinstance(inner, For) and inner.parallel and not inner.carried and inner.count:
        if _rounds((*found, inner)) > MOST_ROUNDS:
            break
        found.append(inner)
        if len(inner.body.body) != 1:
            break
        inner = inner.body.body[0]
    return tuple(found)


def _rounds(loops: Sequence[For]) -> int:
    total = 1
    for loop in loops:
        total *= loop.count
    return total


def _reason(between: Sequence[Statement], least: int) -> str:
    """Why these are no grid."""
    for statement in statements(Block(tuple(between))):
        if isinstance(statement, For) and statement.parallel and statement.count >= least:
            return f"{statement.var.name} is parallel, but within what goes in order"
    loops = [item for item in between if isinstance(item, For)]
    if any(not loop.parallel for loop in loops):
        return "rounds depend on those before"
    return f"fewer than {least} rounds" if loops else "no loop"


def _kept(body: Sequence[Statement], wanted: set[Var]) -> tuple[Statement, ...]:
    """Those statements that store something or compute what is wanted."""
    needed = {var.name for var in wanted}
    kept: list[Statement] = []
    for statement in reversed(body):
        block = Block((statement,))
        stores = any(isinstance(item, Store) for item in statements(block))
        if stores or not needed.isdisjoint(defined(block)):
            kept.append(statement)
            needed |= {var.name for var in (*used(block), *indexing(block))}
    return tuple(reversed(kept))


def _free(body: tuple[Statement, ...], loops: tuple[For, ...]) -> set[Var]:
    """Scalars that come from outside."""
    block = Block(body)
    inside = {*defined(block), *(loop.var.name for loop in loops)}
    return {var for var in used(block) | indexing(block) if var.name not in inside}
