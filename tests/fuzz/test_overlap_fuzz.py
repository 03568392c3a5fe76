"""Random processes whose stages overlap, as Verilog: bits, cycles, stalls and resets in mid-flight."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from kera_hw.driver.lowering import Lowering
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.process import plan_process
from kera_hw.driver.rtl_target import departure, pack_inputs, unpack_outputs
from kera_hw.driver.sampling import random_value
from kera_hw.interp import flatten_value, run_region
from kera_hw.numerics.arrays import Array
from kera_hw.rtl.sim.bench import Traffic, simulate
from kera_hw.support import KeraError
from kera_hw.types import element_type, leaf_types
from tests.fuzz.test_process_fuzz import compiled
from tests.process_programs import Generator
from tests.process_rounds import words_of

ITEMS = 5
MOST_CYCLES = 5_000
"""Cycles of an item that are simulated."""


def check(seed: int) -> bool:
    """Whether the program is a process whose stages overlap; its bits and cycles are asserted."""
    text = Generator(seed, small=False).program()
    graph, export = compiled(text)
    asked = TargetOptions()
    lowering = Lowering(graph, export, asked, {})
    try:
        found = plan_process(graph, export, asked, lowering, 1.0, (), lambda _: None)
    except KeraError:
        return False
    design = replace(found, overlaps=True)
    if design.process.overlap is None or design.pace.initiation_interval > MOST_CYCLES:
        return False
    rng, given = np.random.default_rng(seed), dict[str, Any]()
    leaves: list[Array] = []
    for name, kind in export.params:
        given[name] = random_value(kind, ITEMS, rng)
        leaves += flatten_value(kind, given[name], ITEMS, name)
    wanted = run_region(export.region, leaves, ITEMS)
    words, middle = pack_inputs(design, given, ITEMS), design.pace.initiation_interval
    for traffic in (
        Traffic(), Traffic(60, 60, seed=seed), Traffic(70, 50, seed=seed, in_turn=True),
        Traffic(90, 90, seed=seed, reset_at_cycle=2 * middle + middle // 3),
    ):
        run = simulate(design.emitted, words, traffic, count=ITEMS)
        assert departure(design, run, traffic) is None, (traffic, text)
        outputs = {port.name: run.outputs[k] for k, port in enumerate(design.emitted.data_outputs)}
        value = unpack_outputs(design, outputs, ITEMS)
        parts = cast("tuple[Any, ...]", value if isinstance(value, tuple) else (value,))
        for kind, one, two in zip(leaf_types(export.result), wanted, parts, strict=False):
            element = element_type(kind)
            assert np.array_equal(words_of(np.asarray(one), element), words_of(np.asarray(two), element)), (
                traffic, text,
            )
    return True


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_stages_that_overlap_give_the_graphs_bits() -> None:
    assert sum(map(check, range(2000, 2060))) > 15
