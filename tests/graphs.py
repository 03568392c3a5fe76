"""Hand-made graphs that several tests share."""
from __future__ import annotations

from kera_hw.graph import Export, Graph, StateVar, Store
from kera_hw.types import BOOL, F32, I32, U32, IntType, StructType, TensorType, TupleType

VECTOR = TensorType(I32, (4,))
PAIR = StructType("m::Pair", (("low", IntType(13, True)), ("flag", BOOL)))


def loop_graph(factor: int = 8) -> Graph:
    """A function with a loop region, a constant multiplication and an index."""
    store = Store()
    a, b = store.param(0, I32), store.param(1, VECTOR)
    scaled = store.op("integer.mul", a, store.constant(I32, factor))
    element = store.op("tensor.index", b, store.constant(U32, 2))
    body = store.region(
        (U32, I32, I32), (store.op("integer.add", store.param(1, I32), store.param(2, I32)),)
    )
    loop = store.node(
        "control.loop", (scaled, element),
        {"carried": 1, "count": 5, "index_type": U32, "region": body, "start": 0, "step": 1},
    )
    region = store.region((I32, VECTOR), (loop.out(),))
    return Graph([Export("f", "fn", (("a", I32), ("b", VECTOR)), I32, region)])


def stream_graph() -> Graph:
    """A stream with state, a struct parameter and a tuple result, and a float constant."""
    store = Store()
    low, flag, state = store.param(0, PAIR.fields[0][1]), store.param(1, BOOL), store.param(2, I32)
    grown = store.op("integer.add", state, store.op("convert.cast", low, type=I32))
    nextly = store.op("control.select", flag, grown, state)
    region = store.region(
        (PAIR.fields[0][1], BOOL, I32), (nextly, store.constant(F32, -0.0), nextly)
    )
    return Graph([
        Export("s", "stream", (("p", PAIR),), TupleType((I32, F32)), region,
               (StateVar("total", store.constant(I32, -3)),)),
    ])


def observing_graph() -> Graph:
    """A function with an assertion, a cover point and a record of what it prints."""
    store = Store()
    x = store.param(0, U32)
    sites, words = TensorType(IntType(16, False), (1,)), TensorType(IntType(32, False), (1, 1))
    row = store.op("tensor.reshape", store.op("tensor.stack", x), shape=(1, 1))
    big = store.op("compare.gt", x, store.constant(U32, 9))
    printed = store.node(
        "effect.print", (store.constant(U32, 1), store.constant(sites, 0), row),
        {"labels": ("x",), "types": ((U32,),)},
    )
    assert row.type == words
    results = (
        x, store.op("effect.assert", big, label="small", site=0),
        store.op("effect.cover", big, label="", site=1), *(printed.out(k) for k in range(3)),
    )
    region = store.region((U32,), results)
    return Graph([Export("f", "fn", (("x", U32),), U32, region, effects=("io",))])
