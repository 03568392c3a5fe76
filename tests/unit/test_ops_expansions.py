"""Operations equal their expansions, bit for bit, on all their types."""
from __future__ import annotations

import random

import numpy as np
import pytest

from kera_hw.graph.expand import Expander
from kera_hw.graph.node import Node
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.numerics.arrays import Array
from kera_hw.ops.choosing import Chooser, Sample
from kera_hw.ops.registry import FAMILIES, OPS
from kera_hw.ops.sampling import sample
from kera_hw.types import TensorType, Type
from tests.loop_programs import same_bits, values_of

EXPANDED = [name for name, spec in OPS.items() if spec.expansion is not None]
TRIALS, LANES = 60, 16


def node_of(store: Store, name: str, drawn: Sample) -> Node:
    params = [store.param(k, kind) for k, kind in enumerate(drawn.types)]
    return store.node(name, params, drawn.attrs)


def compared(name: str, drawn: Sample, args: list[Array], lanes: int) -> bool:
    """Whether the operation has an expansion on these types; raises where it is not the operation."""
    store = Store()
    node = node_of(store, name, drawn)
    parts = Expander().region_of(node)
    if parts is None:
        return False
    assert all(part.opcode != name for part in parts.nodes()) or len(parts.nodes()) > 1, "it is its own"
    whole = store.region(drawn.types, [node.out(k) for k in range(len(node.types))])
    wanted, found = run_region(whole, args, lanes), run_region(parts, args, lanes)
    assert [ref.type for ref in parts.results] == list(node.types)
    for first, second in zip(wanted, found, strict=True):
        assert same_bits(np.asarray(first), np.asarray(second)), (name, drawn)
    return True


@pytest.mark.parametrize("name", EXPANDED)
def test_an_expansion_is_its_operation(name: str) -> None:
    """Random types, attributes and values, of which edges are many."""
    some = False
    for seed in range(TRIALS):
        drawn = sample(name, Chooser(random.Random(seed).randrange, (), True))
        args = [values_of(kind, LANES, random.Random(seed)) for kind in drawn.types]
        some |= compared(name, drawn, args, LANES)
    assert some, "no trial reached the expansion"


def in_space(kind: Type) -> Type:
    return TensorType(kind.element, kind.shape, "device") if isinstance(kind, TensorType) else kind


@pytest.mark.parametrize("name", EXPANDED)
def test_an_expansion_stays_in_the_memory_of_its_operands(name: str) -> None:
    for seed in range(20):
        drawn = sample(name, Chooser(random.Random(seed).randrange, (), True))
        Expander().region_of(node_of(Store(), name, Sample(tuple(map(in_space, drawn.types)), drawn.attrs)))


def test_expansions_end() -> None:
    """Taken apart again and again, every operation comes to others that have no expansion."""
    expander, done = Expander(), set[Node]()

    def settle(node: Node, around: tuple[str, ...]) -> None:
        assert len(around) < 40, around
        region = expander.region_of(node) if node not in done else None
        done.add(node)
        for part in region.nodes() if region is not None else ():
            settle(part, (*around, node.opcode))

    for name in EXPANDED:
        for seed in range(6):
            settle(node_of(Store(), name, sample(name, Chooser(random.Random(seed).randrange, (), True))), ())


def test_every_composite_has_an_expansion_with_a_text() -> None:
    composites = {spec.name for spec in FAMILIES["neural"]} | {"reduce.mean"}
    assert composites <= set(EXPANDED)
    for name in EXPANDED:
        text = OPS[name].expansion.__doc__
        assert text and text.strip().endswith("."), name
