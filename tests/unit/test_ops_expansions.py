"""Composite operations equal their expansions, bit for bit."""
from __future__ import annotations

import random

import numpy as np
import pytest

from kera_hw.graph.node import Ref
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.ops.choosing import Chooser
from kera_hw.ops.expansions import EXPANSIONS
from kera_hw.ops.registry import OPS
from kera_hw.ops.sampling import sample
from tests.loop_programs import same_bits, values_of


@pytest.mark.parametrize("name", EXPANSIONS)
def test_an_expansion_is_its_operation(name: str) -> None:
    for seed in range(60):
        drawn = sample(name, Chooser(random.Random(seed).randrange, (), True))
        store = Store()
        params = [store.param(k, kind) for k, kind in enumerate(drawn.types)]
        made = EXPANSIONS[name](store, params, drawn.attrs)  # type: ignore[arg-type]
        assert isinstance(made, Ref)
        whole = store.region(drawn.types, [store.op(name, *params, **drawn.attrs)])
        parts = store.region(drawn.types, [made])
        assert made.type == whole.results[0].type and made.node.opcode != name
        args = [values_of(kind, 3, random.Random(seed)) for kind in drawn.types]
        (wanted,), (found,) = run_region(whole, args, 3), run_region(parts, args, 3)
        assert same_bits(np.asarray(wanted), np.asarray(found)), (seed, drawn)


def test_every_operation_with_a_documented_expansion_has_one() -> None:
    assert {name for name, spec in OPS.items() if spec.expansion} <= set(EXPANSIONS)
