"""An interval that is called legal is: rounds that overlap touch memory in the order that the text says.

Every statement starts as early as the edges allow, rounds an interval apart; then all accesses of all rounds
are set side by side. One that needs what another stores must come after that store is done, and so on.
"""
from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kera_hw.loops.program import (
    COUNTER,
    Affine,
    Block,
    Carried,
    For,
    Literal,
    Load,
    Op,
    Operand,
    Schedule,
    Statement,
    Store,
    Var,
    affine,
)
from kera_hw.loops.recurrences import NoPipeline, check_interval, dependence_edges, least_interval
from kera_hw.types import IntType

U8 = IntType(8, False)
I = Var("i", COUNTER)
NAMES = ("a", "b")


@st.composite
def bodies(draw: st.DrawFn) -> tuple[For, dict[str, int]]:
    """A few loads, additions and stores on two buffers; one value goes round."""
    inner = Var("c", U8)
    made: list[Var] = [inner]
    body: list[Statement] = []
    for k in range(draw(st.integers(2, 6))):
        index = (affine(draw(st.integers(0, 4)) + 8, [(I, draw(st.integers(-2, 2)))]),)
        kind, var = draw(st.sampled_from(["load", "store", "add"])), Var(f"v{k}", U8)
        one: Operand = draw(st.sampled_from(made))
        match kind:
            case "load":
                body.append(Load(var, draw(st.sampled_from(NAMES)), index))
                made.append(var)
            case "store":
                body.append(Store(draw(st.sampled_from(NAMES)), index, one))
            case _:
                body.append(Op((var,), "integer.add", (one, draw(st.sampled_from(made)))))
                made.append(var)
    carried = (Carried(inner, Literal(U8, 0), Var("after", U8)),)
    latencies = {name: draw(st.integers(0, 4)) for name in ("load", "store", "integer.add")}
    loop = For(I, draw(st.integers(1, 6)), carried, Block(tuple(body), (draw(st.sampled_from(made)),)))
    return loop, latencies


def _starts(loop: For, latencies: dict[str, int], interval: int) -> list[int]:
    """The earliest cycle of each statement within a round, by going over all edges until nothing moves."""
    starts = [0] * len(loop.body.body)
    edges = dependence_edges(loop, latencies)
    for _ in range(len(starts) * 8 + 8):
        for edge in edges:
            earliest = starts[edge.start] + edge.latency - interval * edge.distance
            starts[edge.end] = max(starts[edge.end], earliest)
    return starts


@settings(deadline=None)
@given(bodies())
def test_memory_is_touched_in_order(case: tuple[For, dict[str, int]]) -> None:
    loop, latencies = case
    interval = least_interval(len(loop.body.body), dependence_edges(loop, latencies))
    starts = _starts(loop, latencies, interval)
    events = [
        (round_, place, starts[place] + interval * round_, item)
        for round_ in range(loop.count) for place, item in enumerate(loop.body.body)
        if isinstance(item, (Load, Store))
    ]
    for k, (one_round, _, one_cycle, one) in enumerate(events):
        for two_round, _, two_cycle, two in events[k + 1 :]:
            if one.buffer != two.buffer or _at(one.index[0], one_round) != _at(two.index[0], two_round):
                continue
            if isinstance(one, Store) and isinstance(two, Load):
                assert two_cycle >= one_cycle + latencies["store"]
            elif isinstance(one, Load) and isinstance(two, Store):
                assert two_cycle >= one_cycle
            elif isinstance(one, Store):
                assert two_cycle > one_cycle


@settings(deadline=None)
@given(bodies())
def test_values_are_there_when_they_are_used(case: tuple[For, dict[str, int]]) -> None:
    loop, latencies = case
    interval = least_interval(len(loop.body.body), dependence_edges(loop, latencies))
    starts = _starts(loop, latencies, interval)
    ready = {"c": -100}
    for place, item in enumerate(loop.body.body):
        if isinstance(item, Op):
            ready[item.results[0].name] = starts[place] + latencies["integer.add"]
        elif isinstance(item, Load):
            ready[item.result.name] = starts[place] + latencies["load"]
    (given_on,) = loop.body.yields
    if isinstance(given_on, Var) and given_on.name != "c":
        ready["c"] = ready[given_on.name] - interval  # of the round before
    for place, item in enumerate(loop.body.body):
        used = item.operands if isinstance(item, Op) else (item.value,) if isinstance(item, Store) else ()
        for operand in used:
            assert isinstance(operand, Var) and ready[operand.name] <= starts[place]


@settings(deadline=None)
@given(bodies())
def test_the_interval_below_is_refused(case: tuple[For, dict[str, int]]) -> None:
    loop, latencies = case
    least = least_interval(len(loop.body.body), dependence_edges(loop, latencies))
    table = tuple(latencies.items())
    check_interval(replace(loop, schedule=Schedule(None, least, table)))
    if least > 1:
        with pytest.raises(NoPipeline, match=f"every {least} cycles at best"):
            check_interval(replace(loop, schedule=Schedule(None, least - 1, table)))


def _at(index: Affine, round_: int) -> int:
    return index.constant + sum(factor * round_ for _, factor in index.terms)
