"""Reductions written element by element equal the evaluation on arrays, in every order."""
from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from kera_hw.graph.node import Ref
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.numerics.orders import BLOCK
from kera_hw.ops.choosing import Chooser, Sample
from kera_hw.ops.registry import FAMILIES
from kera_hw.ops.sampling import sample
from kera_hw.ops.unrolled import UNROLLED, unrolled
from kera_hw.types import F16, F32, FloatType, IntType, TensorType, Type, element_type, shape_of
from tests.loop_programs import same_bits, values_of


class Scalars:
    """Scalar operations as nodes."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def apply(self, opcode: str, kinds: tuple[Type, ...], result: Type, *args: Ref) -> Ref:
        assert tuple(arg.type for arg in args) == kinds, "an operation's operands have the types it says"
        attrs = {"type": result} if opcode == "convert.cast" else {}
        found = self.store.op(opcode, *args, **attrs)
        assert found.type == result
        return found

    def constant(self, kind: Type, value: int) -> Ref:
        return self.store.constant(kind, value)

    def known(self, item: Ref) -> int | None:
        return None


@dataclass
class Elements:
    shape: tuple[int, ...]
    items: tuple[Ref, ...]


def elements(store: Store, k: int, kind: Type) -> Elements:
    """A parameter's elements, one by one."""
    whole, shape = store.param(k, kind), shape_of(kind)
    index = IntType(16, False)
    places = product(*map(range, shape))
    return Elements(shape, tuple(
        store.op("tensor.index", whole, *(store.constant(index, at) for at in place)) for place in places
    ))


def compare(name: str, drawn: Sample, seed: int, lanes: int = 4) -> None:
    store = Store()
    whole = store.op(name, *(store.param(k, kind) for k, kind in enumerate(drawn.types)), **drawn.attrs)
    tensors = [elements(store, k, kind) for k, kind in enumerate(drawn.types)]
    items = unrolled(Scalars(store), name, drawn.types, whole.type, drawn.attrs, tensors)
    assert len(items) == int(np.prod(shape_of(whole.type), dtype=np.int64))
    region = store.region(drawn.types, [whole, *items])
    args = [values_of(kind, lanes, random.Random(seed)) for kind in drawn.types]
    wanted, *found = run_region(region, args, lanes)
    for k, item in enumerate(found):
        assert same_bits(wanted.reshape(lanes, -1)[:, k].copy(), item), (drawn, k)


def is_exact(drawn: Sample) -> bool:
    return drawn.attrs.get("order") == "exact" and isinstance(element_type(drawn.types[0]), FloatType)


@pytest.mark.parametrize("name", UNROLLED)
def test_elements_give_what_arrays_give(name: str) -> None:
    compared = 0
    for seed in range(80):
        drawn = sample(name, Chooser(random.Random(seed).randrange, (), True))
        if not is_exact(drawn):
            compare(name, drawn, seed)
            compared += 1
    assert compared > 20


@pytest.mark.parametrize("order", ["lanes", "tree", "sequential"])
@pytest.mark.parametrize("count", [0, 1, 31, 33, 64, 65, 96, 130, 255])
def test_orders_beyond_one_row_of_lanes(order: str, count: int) -> None:
    one = TensorType(F16, (count,))
    compare("reduce.sum", Sample((one,), {"axis": 0, "order": order}), count)
    for mul in ("fused", "unfused", "wide"):
        vector = TensorType(F32, (count,))
        compare("reduce.dot", Sample((vector, vector), {"mul": mul, "order": order}), count)


def test_blocks_of_lanes_are_joined_as_a_tree() -> None:
    many = TensorType(F32, (2 * BLOCK + 70,))
    compare("reduce.sum", Sample((many,), {"axis": 0, "order": "lanes"}), 1, lanes=2)


def test_every_reduction_is_unrolled_or_made_of_others() -> None:
    rows = FAMILIES["reduce"]
    made = {row.name for row in rows if row.expansion is not None}
    assert made | set(UNROLLED) == {row.name for row in rows}
