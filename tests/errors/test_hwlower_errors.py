"""What hardware lowering refuses: each limit with its code, and a near miss that is accepted."""
from __future__ import annotations

import pytest

from kera_hw.graph.node import Export, Ref, StateVar
from kera_hw.graph.store import Store
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.support import Diagnostic
from kera_hw.types import F32, IntType, TensorType, Type

U8, U32 = IntType(8, False), IntType(32, False)


def _refused(store: Store, params: list[tuple[str, Type]], result: Ref, code: str) -> Diagnostic:
    region = store.region([kind for _, kind in params], [result])
    found = flatten_export(Export("f", "fn", tuple(params), result.type, region), store)
    assert isinstance(found, Diagnostic)
    assert found.code == code
    return found


def test_moving_floats_is_not_refused() -> None:
    store = Store()
    kind = TensorType(F32, (2, 3))
    region = store.region([kind], [store.op("tensor.permute", store.param(0, kind), axes=(1, 0))])
    export = Export("f", "fn", (("x", kind),), region.result_types[0], region)
    assert isinstance(flatten_export(export, store), FlatDesign)


@pytest.mark.parametrize("count,accepted", [(100, True), (60_000, False)])
def test_unrolling_has_a_budget(count: int, accepted: bool) -> None:
    store = Store()
    body = store.region([U32, U8], [store.op("integer.add", store.param(1, U8), store.param(1, U8))])
    attrs = {"carried": 1, "count": count, "index_type": U32, "region": body, "start": 0, "step": 1}
    result = store.op("control.loop", store.param(0, U8), **attrs)
    export = Export("f", "fn", (("x", U8),), U8, store.region([U8], [result]))
    found = flatten_export(export, store)
    if accepted:
        assert isinstance(found, FlatDesign)
    else:
        assert isinstance(found, Diagnostic) and found.code == "K0610"
        assert "more operations than the 50,000" in found.message


@pytest.mark.parametrize("size,accepted", [(16, True), (256, False)])
def test_large_state_that_moves_as_a_whole_is_no_memory(size: int, accepted: bool) -> None:
    store = Store()
    kind = TensorType(U32, (size,))
    item, memory = store.param(0, U32), store.param(1, kind)
    first = store.op("tensor.index", memory, store.constant(U8, 0))
    region = store.region([U32, kind], [first, store.op("tensor.shift_in", memory, item)])
    state = (StateVar("line", store.constant(kind, 0)),)
    found = flatten_export(Export("f", "stream", (("i", U32),), U32, region, state), store)
    if accepted:
        assert isinstance(found, FlatDesign)
    else:
        assert isinstance(found, Diagnostic) and found.code == "K0611"
        assert "8,192" in found.message and "constants alone say which" in found.message


@pytest.mark.parametrize("name,accepted", [("valid", False), ("ready", False), ("valid_", True)])
def test_handshake_names_are_taken(name: str, accepted: bool) -> None:
    store = Store()
    x = store.param(0, U8)
    found = flatten_export(Export("f", "fn", ((name, U8),), U8, store.region([U8], [x])), store)
    if accepted:
        assert isinstance(found, FlatDesign)
    else:
        assert isinstance(found, Diagnostic) and found.code == "K0612"


@pytest.mark.parametrize("size,accepted", [(4, True), (400, False)])
def test_float_units_count_by_their_size(size: int, accepted: bool) -> None:
    store = Store()
    kind = TensorType(F32, (size,))
    result = store.op("floating.add", store.param(0, kind), store.param(1, kind))
    region = store.region([kind, kind], [result])
    found = flatten_export(Export("f", "fn", (("x", kind), ("y", kind)), kind, region), store)
    if accepted:
        assert isinstance(found, FlatDesign)
    else:
        assert isinstance(found, Diagnostic) and found.code == "K0610"
