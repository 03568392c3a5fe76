"""Which initiation intervals a loop allows: what a round needs of earlier ones must be there by then.

Statements of a body are the nodes of a graph. An edge says that its end starts ``latency`` cycles after its
start, of the round ``distance`` rounds earlier. An interval is possible if no circle's latency exceeds its
distance times the interval: Rau, "Iterative modulo scheduling", MICRO 1994, section 2.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kera_hw.loops.access_order import words
from kera_hw.loops.dependences import distances
from kera_hw.loops.program import (
    Alloc,
    Block,
    For,
    If,
    Index,
    Load,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    While,
    blocks_of,
    statements,
)
from kera_hw.loops.spans import spans_within
from kera_hw.ops.intervals import Interval, type_interval


class NoPipeline(Exception):
    """Why a loop cannot start a round every so many cycles, as a whole sentence."""


@dataclass(frozen=True, slots=True)
class Edge:
    """``end`` starts ``latency`` cycles or more after ``start``, of the round ``distance`` rounds earlier."""

    start: int
    end: int
    latency: int
    distance: int
    through: str


def check_interval(loop: For) -> None:
    """Raises NoPipeline, with what is in the way and the least interval, where the loop's is too small."""
    schedule = loop.schedule
    edges = dependence_edges(loop, dict(schedule.latencies))
    circle = _circle(len(loop.body.body), edges, schedule.initiation_interval)
    if circle is not None:
        least = least_interval(len(loop.body.body), edges)
        carried = next(edge for edge in circle if edge.distance)
        raise NoPipeline(
            f"{carried.through} goes round in more than {schedule.initiation_interval} cycles: the loop "
            f"`{loop.var.name}` starts a round every {least} cycles at best."
        )


def least_interval(count: int, edges: Sequence[Edge]) -> int:
    """The least interval that circles of dependences allow; 1 where there are none."""
    low, high = 1, max(1, sum(edge.latency for edge in edges))
    while low < high:
        middle = (low + high) // 2
        if _circle(count, edges, middle) is None:
            high = middle
        else:
            low = middle + 1
    return low


def _circle(count: int, edges: Sequence[Edge], interval: int) -> list[Edge] | None:
    """Edges round a circle that takes longer than ``interval`` allows; None if there is no such circle.

    Longest paths by Bellman and Ford. Edges within a round go forward, so that each pass follows paths up to
    the next round; with more passes than there are ends of other edges, a path has closed a circle.
    """
    start, last = [0] * count, dict[int, Edge]()
    ordered = sorted(edges, key=lambda edge: edge.start)
    passes = len({edge.end for edge in edges if edge.distance}) + 1
    for number in range(passes + count + 1):
        changed = False
        for edge in ordered:
            earliest = start[edge.start] + edge.latency - interval * edge.distance
            if earliest > start[edge.end]:
                start[edge.end], last[edge.end], changed = earliest, edge, True
        if not changed:
            return None
        circle = _closed(last) if number >= passes else None
        if circle is not None:
            return circle
    raise AssertionError("a path longer than the graph closes a circle")


def _closed(last: Mapping[int, Edge]) -> list[Edge] | None:
    """A circle among the edges by which each place was reached last."""
    done = set[int]()
    for place in last:
        path: list[int] = []
        while place in last and place not in done:
            done.add(place)
            path.append(place)
            place = last[place].start
        if place in path:
            return [last[at] for at in path[path.index(place) :]]
    return None


# Dependences of a body


def dependence_edges(loop: For, latencies: Mapping[str, int]) -> list[Edge]:
    """All edges between the statements of a body without loops. Raises NoPipeline for any other."""
    body = loop.body.body
    for statement in body:
        for inner in statements(Block((statement,))):
            if isinstance(inner, (For, While)):
                raise NoPipeline(f"Within `{loop.var.name}` stands {words(inner)}; unroll that first.")
    taken = [_latency(statement, latencies) for statement in body]
    return [*_scalar_edges(loop, taken), *_memory_edges(loop, taken, latencies)]


def _latency(statement: Statement, latencies: Mapping[str, int]) -> int:
    """Cycles from a statement's start to its results; of a branch, through its longer side."""
    match statement:
        case Op(opcode=opcode):
            return _stated(opcode, latencies)
        case Load():
            return _stated("load", latencies)
        case Store():
            return _stated("store", latencies)
        case If(then=then, otherwise=otherwise):
            select = _stated("control.select", latencies)
            return select + max(_depth(then, latencies), _depth(otherwise, latencies))
        case _:
            return 0


def _stated(name: str, latencies: Mapping[str, int]) -> int:
    found = latencies.get(name, latencies.get("other"))
    if found is None:
        raise NoPipeline(f"The latency of `{name}` is not stated, nor one for all `other` operations.")
    return found


def _depth(block: Block, latencies: Mapping[str, int]) -> int:
    """Cycles through a block, one statement after another where one uses what another gives."""
    ready: dict[str, int] = {}
    for statement in block.body:
        names = _uses(statement)
        begin = max((ready.get(name, 0) for name in names), default=0)
        for name in _gives(statement):
            ready[name] = max(ready.get(name, 0), begin + _latency(statement, latencies))
    return max(ready.values(), default=0)


def _uses(statement: Statement) -> set[str]:
    """Scalars and buffers that a statement depends on."""
    found: set[str] = set()

    def take(operands: Iterable[Operand]) -> None:
        found.update(item.name for item in operands if isinstance(item, Var))

    for item in statements(Block((statement,))):
        match item:
            case Op(operands=operands):
                take(operands)
            case Load(buffer=name, index=index):
                found.add(name)
                take(var for part in index for var, _ in part.terms)
            case Store(buffer=name, index=index, value=value):
                found.add(name)
                take((value, *(var for part in index for var, _ in part.terms)))
            case If(condition=condition):
                take((condition,))
            case _:
                pass
        for block in blocks_of(item):
            take(block.yields)
    return found


def _gives(statement: Statement) -> Iterator[str]:
    match statement:
        case Op(results=results) | If(results=results):
            yield from (var.name for var in results)
        case Load(result=result):
            yield result.name
        case _:
            pass
    for item in statements(Block((statement,))):
        if isinstance(item, Store):
            yield item.buffer


def _scalar_edges(loop: For, taken: Sequence[int]) -> Iterator[Edge]:
    made: dict[str, int] = {}
    for place, statement in enumerate(loop.body.body):
        match statement:
            case Op(results=results) | If(results=results):
                made |= {var.name: place for var in results}
            case Load(result=result):
                made[result.name] = place
            case _:
                pass
    scalars = {name: (place, 0, "") for name, place in made.items()}
    behind = {item.inner.name: value for item, value in zip(loop.carried, loop.body.yields)}
    for name in behind:  # a value that goes round unchanged for some rounds is as many rounds old
        source, rounds, seen = behind[name], 1, {name}
        while isinstance(source, Var) and source.name in behind and source.name not in seen:
            seen.add(source.name)
            source, rounds = behind[source.name], rounds + 1
        if isinstance(source, Var) and source.name in made:
            scalars[name] = made[source.name], rounds, f"What is carried as `{name}`"
    for place, statement in enumerate(loop.body.body):
        for name in _uses(statement):
            if name in scalars:
                start, distance, through = scalars[name]
                yield Edge(start, place, taken[start], distance, through)


@dataclass(frozen=True, slots=True)
class _Access:
    place: int
    buffer: str
    index: Index
    writes: bool
    within: bool  # of a branch, at some cycle of it


def _memory_edges(loop: For, taken: Sequence[int], latencies: Mapping[str, int]) -> Iterator[Edge]:
    inner = spans_within(loop.body)
    for item in loop.carried:
        span = type_interval(item.inner.type)
        if span is not None:
            inner[item.inner] = span
    own = {item.buffer.name for item in loop.body.body if isinstance(item, Alloc)}
    found: dict[str, list[_Access]] = {}
    for place, statement in enumerate(loop.body.body):
        for item in statements(Block((statement,))):
            if isinstance(item, (Load, Store)):
                writes, within = isinstance(item, Store), item is not statement
                found.setdefault(item.buffer, []).append(
                    _Access(place, item.buffer, item.index, writes, within)
                )
    store = latencies.get("store", latencies.get("other", 0))
    for name, group in found.items():
        if not any(item.writes for item in group):
            continue
        for k, one in enumerate(group):
            for two in group[k:]:
                if one.writes or two.writes:
                    span = distances(one.index, two.index, loop.var, loop.var, loop.count, inner)
                    yield from _between(one, two, span, taken, store, name in own)


def _between(
    one: _Access, two: _Access, span: Interval, taken: Sequence[int], store: int, own: bool
) -> Iterator[Edge]:
    """Edges of two accesses, the first of them earlier in the text, that meet at distances in ``span``."""
    if span.low <= 0 <= span.high and one.place < two.place:
        yield Edge(one.place, two.place, _wait(one, two, taken, store), 0, "")
    if own or span.empty:
        return  # each round has its own
    through = f"What is stored in `{one.buffer}`"
    if span.high > 0:
        yield Edge(one.place, two.place, _wait(one, two, taken, store), max(1, span.low), through)
    if span.low < 0 and one is not two:
        yield Edge(two.place, one.place, _wait(two, one, taken, store), max(1, -span.high), through)


def _wait(first: _Access, then: _Access, taken: Sequence[int], store: int) -> int:
    """Cycles from the start of one access to that of another that comes after it.

    What is stored can be loaded once the store is done; a load reads in its first cycle; of two stores the
    later is done later.
    """
    if first.within:
        return taken[first.place] + (1 if first.writes and then.writes else 0)
    if first.writes:
        return 1 if then.writes else store
    return 0
