"""Random programs through processes: what their regions do round by round must be what the graph computes."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from random import Random

import numpy as np
import pytest

from kera_hw.driver.lowering import Lowering
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.process import regions_of
from kera_hw.driver.session import compile_text, optimise, single_export_graph
from kera_hw.graph import Export, Graph, Store, without_probes
from kera_hw.interp import run_region
from kera_hw.interp.streams import initial_state
from kera_hw.loops.program import LoopProgram
from kera_hw.lower.export import lower_export
from kera_hw.rtl.lower import ports
from kera_hw.rtl.machine import nests
from kera_hw.rtl.machine.nest_round import RegionDesign
from kera_hw.rtl.machine.nests import NoProcess, Regions
from kera_hw.rtl.machine.parts import Parts, loops_over, parts_of
from kera_hw.rtl.machine.rounds import region_of
from kera_hw.rtl.machine.spread import Axis, axes_of, spread
from kera_hw.support import Diagnostic, KeraError, SourceFile
from kera_hw.types import leaf_types
from tests.loop_programs import Reference, inputs_of
from tests.process_programs import Generator
from tests.process_rounds import Rounds, Run, words_of

LIMITS = (64, 8), (1024, 8), (1, 1), (64, 0), (16, 20)
"""Bits of a tensor in registers, operations of a loop that is unrolled: few, so that little is much."""
LANES, ITEMS = 4, 5


def compiled(text: str) -> tuple[Graph, Export]:
    graph = compile_text(SourceFile("p.kera", text.encode()), Path("p.kera")).graph
    assert graph is not None, text
    export = graph.export("f")
    assert export is not None
    return graph, export


def check_regions(seed: int, patch: pytest.MonkeyPatch) -> bool:
    """Whether the program is a process; its bits are asserted."""
    text = Generator(seed).program()
    graph, export = compiled(text)
    small, unrolled = LIMITS[seed % len(LIMITS)]
    patch.setattr(ports, "WIDEST_VALUE_BITS", small)
    patch.setattr(nests, "MOST_UNROLLED", unrolled)
    lowering = Lowering(graph, export, TargetOptions(), {})
    try:
        regions = regions_of(lowering)
        designs = lowering.region_designs(regions, 1)
    except KeraError as fault:
        assert {item.code for item in fault.diagnostics} <= {"K0604", "K0610"}, text
        return False
    if not designs:
        return False  # nothing that stays a loop, and no memory
    reference = Reference(export, LANES, seed)

    def check(regions: Regions, designs: Sequence[RegionDesign], what: str = "") -> None:
        found = Run(export, regions, designs, reference.args, LANES, seed).results
        for buffer, wanted, got in zip(regions.program.of_kind("result"), reference.wanted, found):
            assert np.array_equal(words_of(np.asarray(wanted), buffer.element), got), text + what

    check(regions, designs)
    for factors in several(axes_of(regions), seed):
        try:
            spread_out = spread(regions, factors)
            designs = lowering.region_designs(spread_out.regions, 1)
        except NoProcess:
            continue
        except KeraError as fault:
            assert {item.code for item in fault.diagnostics} <= {"K0604", "K0610"}, text
            continue
        SPREAD.append(seed)
        check(spread_out.regions, designs, "\n".join(map(str, spread_out.steps)))
    return True


SPREAD: list[int] = []
"""Seeds of programs of which rounds went side by side."""


def several(axes: Sequence[Axis], seed: int) -> list[dict[Axis, int]]:
    """Some numbers of rounds side by side, up to all of a loop."""
    rng, found = Random(seed), list[dict[Axis, int]]()
    for _ in range(2):
        factors = {axis: rng.choice(axis.factors) if rng.random() < 0.7 else 1 for axis in axes}
        if any(factor > 1 for factor in factors.values()) and prod(factors.values()) <= 64:
            found.append(factors)
    return found


def loop_of(program: LoopProgram) -> Parts | None:
    """The program around one loop, of the limits that leave one the least."""
    for limit in (3, 8, 20, 64):
        found = parts_of(program, loops_over(limit))
        if len(found.before) == 1 and found.is_innermost:
            return found
    return None


def check_rounds(seed: int) -> bool:
    """Whether one loop stays one; the bits of items in turn are asserted."""
    text = Generator(seed).single()
    graph, export = compiled(text)
    optimised = optimise(single_export_graph(graph, without_probes(export)))
    own = optimised.exports[0]
    parts = loop_of(lower_export(own, optimised.origins, scopes=optimised.scopes))
    if parts is None:
        return False
    region = region_of(own, parts, Store(), 1, True)
    assert not isinstance(region, Diagnostic), text
    args, _ = inputs_of(export, ITEMS, seed)
    states, kinds, rounds = initial_state(export), leaf_types(export.result), Rounds(own, region)
    for item in range(ITEMS):
        given = [array[item : item + 1] for array in args]
        wanted = run_region(export.region, [*given, *states], 1)
        states = list(wanted[len(kinds) : len(kinds) + len(states)])
        found = rounds.item(given, (seed + item) % 5)
        for buffer, one, two in zip(region.program.of_kind("result"), wanted, found):
            assert np.array_equal(words_of(np.asarray(one), buffer.element), two), text
    return True


@pytest.mark.parametrize("first", [0, 100])
def test_regions_of_a_process_give_the_graphs_bits(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(check_regions(seed, monkeypatch) for seed in range(first, first + 12)) >= 5


def test_rounds_of_a_loop_give_the_graphs_bits() -> None:
    assert sum(map(check_rounds, [74, 172, *range(12)])) >= 8


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_whole_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(check_regions(seed, monkeypatch) for seed in range(1000, 1600)) > 200
    assert sum(map(check_rounds, range(1000, 1600))) > 300
