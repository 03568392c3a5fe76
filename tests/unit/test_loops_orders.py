"""Access order, recurrences and banks as the analyses say them, held against counting them out."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from kera_hw.loops.access_order import OutOfOrder, lookback, window_of
from kera_hw.loops.banks import lane_conflict
from kera_hw.loops.program import (
    COUNTER,
    Affine,
    Alloc,
    Bank,
    Block,
    Buffer,
    For,
    Literal,
    Load,
    LoopProgram,
    Schedule,
    Statement,
    Storage,
    Store,
    Var,
    affine,
    of_var,
    statements,
)
from kera_hw.loops.recurrences import Edge, least_interval
from kera_hw.types import IntType

U8 = IntType(8, False)
EXTENTS = st.integers(1, 4)
FACTORS = st.integers(-3, 3)
SIZE = 1 << 20


def _walk(block: Block, name: str, at: dict[Var, int]) -> Iterator[int]:
    """Places that a block touches in a buffer of rank 1, in order."""
    for statement in block.body:
        match statement:
            case Load(buffer=buffer, index=(part,)) | Store(buffer=buffer, index=(part,)):
                if buffer == name:
                    yield part.constant + sum(factor * at[var] for var, factor in part.terms)
            case For(var=var, count=count, body=body):
                for round_ in range(count):
                    yield from _walk(body, name, {**at, var: round_})
            case _:
                pass


@st.composite
def nests(draw: st.DrawFn) -> Block:
    """Loops, some within others, and loads of the buffer ``t`` between them."""
    names = iter(range(100))

    def block(around: tuple[Var, ...], depth: int) -> Block:
        body: list[Statement] = []
        for _ in range(draw(st.integers(1, 2))):
            if depth < 3 and draw(st.booleans()):
                var = Var(f"i{next(names)}", COUNTER)
                body.append(For(var, draw(EXTENTS), (), block((*around, var), depth + 1)))
                continue
            part = affine(draw(st.integers(0, 6)), [(var, draw(FACTORS)) for var in around])
            body.append(Load(Var(f"v{next(names)}", U8), "t", (part,)))
        return Block(tuple(body))

    return block((), 0)


@settings(deadline=None)
@given(nests())
def test_how_far_back_a_reader_looks(block: Block) -> None:
    furthest, back = -SIZE, 0
    for place in _walk(block, "t", {}):
        furthest = max(furthest, place)
        back = max(back, furthest - place)
    assert lookback(block, Buffer("t", U8, (SIZE,))) == back


@st.composite
def in_order(draw: st.DrawFn) -> Block:
    """Loops, pieces and single stores that write one element after another."""
    names = iter(range(1000))

    def run(base: Affine, length: int) -> list[Statement]:
        if length == 1:
            return [Store("t", (base,), Literal(U8, 0))]
        divisors = [count for count in range(1, length + 1) if length % count == 0]
        if draw(st.booleans()) and len(divisors) > 1:
            count, var = draw(st.sampled_from(divisors)), Var(f"i{next(names)}", COUNTER)
            if count > 1:
                inner = run(base + of_var(var) * (length // count), length // count)
                return [For(var, count, (), Block(tuple(inner)))]
        cut = draw(st.integers(1, length - 1))
        return [*run(base, cut), *run(base + cut, length - cut)]

    return Block(tuple(run(Affine(), draw(st.integers(1, 12)))))


@settings(deadline=None)
@given(in_order(), st.integers(0, 30), FACTORS)
def test_who_writes_in_order(block: Block, place: int, change: int) -> None:
    """Every order that is one is seen; with one store moved, it is taken for one exactly if it still is."""
    size = len(list(_walk(block, "t", {})))

    def accepted(block: Block) -> bool:
        read = Load(Var("v", U8), "t", (Affine(),))
        inside = (Alloc(Buffer("t", U8, (size,))), *block.body, read)
        try:
            window_of(LoopProgram("f", (), Block(inside)), "t")
        except OutOfOrder:
            return False
        return True

    assert accepted(block)
    stores = [item for item in statements(block) if isinstance(item, Store)]
    moved = stores[place % len(stores)]
    index = (moved.index[0] + change,)
    other = _with(block, moved, replace(moved, index=index))
    assert accepted(other) == (list(_walk(other, "t", {})) == list(range(size)))


def _with(block: Block, old: Store, new: Store) -> Block:
    body: list[Statement] = []
    for item in block.body:
        if isinstance(item, For):
            body.append(replace(item, body=_with(item.body, old, new)))
        else:
            body.append(new if item is old else item)
    return Block(tuple(body))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[Edge]]:
    count = draw(st.integers(1, 4))
    edges: list[Edge] = []
    for start, end in product(range(count), repeat=2):
        if draw(st.booleans()):
            distance = draw(st.integers(0, 2)) if start < end else draw(st.integers(1, 3))
            edges.append(Edge(start, end, draw(st.integers(0, 9)), distance, ""))
    return count, edges


@settings(deadline=None)
@given(graphs())
def test_the_least_interval(graph: tuple[int, list[Edge]]) -> None:
    """That of the slowest circle, all circles counted out."""
    count, edges = graph
    by_ends = {(edge.start, edge.end): edge for edge in edges}
    least = 1
    for length in range(1, count + 1):
        for circle in permutations(range(count), length):
            steps = [by_ends.get((a, b)) for a, b in zip(circle, (*circle[1:], circle[0]))]
            if all(steps):
                latency = sum(step.latency for step in steps if step)
                distance = sum(step.distance for step in steps if step)
                least = max(least, -(-latency // distance))
    assert least_interval(count, edges) == least


WAYS = st.tuples(EXTENTS, st.booleans(), FACTORS)


@settings(deadline=None)
@given(WAYS, WAYS, st.integers(1, 6))
def test_lanes_and_banks(one: tuple[int, bool, int], two: tuple[int, bool, int], lanes: int) -> None:
    """Where no conflict is told, lanes never reach different elements of one bank, wherever they begin."""
    shape = (24, 20)
    banks = tuple(
        Bank(axis, count, "cyclic" if way else "block")
        for axis, (count, way, _) in enumerate((one, two))
    )
    a, b = one[2], two[2]
    buffer = Buffer("t", U8, shape, "param", b"", Storage(banks=banks))
    lane = Var("i", COUNTER)
    index = (affine(3, [(lane, a)]), affine(3, [(lane, b)]))
    loop = For(lane, lanes, (), Block((Load(Var("v", U8), "t", index),)), True, None, Schedule("vector"))
    if list(lane_conflict(loop, {"t": buffer})):
        return
    for row, column in product(range(0, 24, 5), range(0, 20, 3)):
        places = [(row + a * k, column + b * k) for k in range(lanes)]
        found = [tuple(_number(at, bank, extent) for at, bank, extent in zip(place, banks, shape))
                 for place in dict.fromkeys(places)]
        assert len(set(found)) == len(found)


def _number(at: int, bank: Bank, extent: int) -> int:
    return at % bank.count if bank.spread == "cyclic" else at // -(-extent // bank.count)
