"""Streams and ports: state over a sequence of items, and where leaves sit on the buses."""
from __future__ import annotations

import numpy as np

from kera_hw.graph.node import Export, StateVar
from kera_hw.graph.store import Store
from kera_hw.interp import run_export
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.rtl.techmap import map_design
from kera_hw.types import BOOL, IntType, StructType, TensorType, TupleType
from tests.netlist_reference import evaluate

I16, U8 = IntType(16, True), IntType(8, False)


def _moving_sum(store: Store) -> Export:
    """A window of four and a running count that wraps."""
    line = TensorType(I16, (4,))
    x, window, count = store.param(0, I16), store.param(1, line), store.param(2, U8)
    moved = store.op("tensor.shift_in", window, x)
    total = store.op("reduce.sum", moved, axis=-1, order="")
    following = store.op("integer.add", count, store.constant(U8, 100))
    region = store.region([I16, line, U8], [total, count, moved, following])
    state = (StateVar("line", store.constant(line, [1, -2, 3, -4])), StateVar("count", store.constant(U8, 7)))
    return Export("f", "stream", (("x", I16),), TupleType((I16, U8)), region, state)


def test_state_advances_per_item() -> None:
    store = Store()
    export = _moving_sum(store)
    flat = flatten_export(export, store)
    assert isinstance(flat, FlatDesign)
    assert [state.initial for state in flat.states] == [1, 65534, 3, 65532, 7]
    netlist = map_design(flat, "ecp5-85k", 4000)
    items = np.array([5, -32768, 32767, 100, 0, -1, 3000], dtype=np.int16)
    total, count = run_export(export, {"x": items}, batch=True)
    got = evaluate(netlist, [{"in_x": int(x) & 0xFFFF} for x in items])
    assert [item["out_0"] for item in got] == [int(v) & 0xFFFF for v in total]
    assert [item["out_1"] for item in got] == [int(v) for v in count]


def test_structs_in_arrays_are_packed_as_structs() -> None:
    store = Store()
    pair = StructType("Pair", (("flag", BOOL), ("value", U8)))
    flags, values = store.param(0, TensorType(BOOL, (2,))), store.param(1, TensorType(U8, (2,)))
    region = store.region([TensorType(BOOL, (2,)), TensorType(U8, (2,))], [flags, values])
    kind = TensorType.tensor(pair, (2,))
    flat = flatten_export(Export("f", "fn", (("p", kind),), kind, region), store)
    assert isinstance(flat, FlatDesign)
    assert [(leaf.low, leaf.width_bits) for leaf in flat.inputs] == [(0, 1), (9, 1), (1, 8), (10, 8)]
    netlist = map_design(flat, "ecp5-85k", 4000)
    assert evaluate(netlist, [{"in_p": 0x2A5F1}])[0] == {"out_data": 0x2A5F1}
