"""Random stencils in step, round by round on their flat design: the bits must be what the graph computes."""
from __future__ import annotations

import numpy as np
import pytest

from kera_hw.driver.session import optimise, single_export_graph
from kera_hw.graph import Store, without_probes
from kera_hw.loops.transforms.planner import planned
from kera_hw.lower.export import lower_export
from kera_hw.rtl.lower import ports
from kera_hw.rtl.lower.design import LoweringError
from kera_hw.rtl.machine.raster import NoRaster
from kera_hw.rtl.machine.raster_round import raster_of, raster_round
from tests.fuzz.test_process_fuzz import compiled
from tests.loop_programs import Reference
from tests.process_rounds import words_of
from tests.raster_rounds import run_rounds
from tests.stencil_programs import Generator

LANES = 3


def check(seed: int, patch: pytest.MonkeyPatch) -> int:
    """In how many forms the program is one of stencils: with loops inlined, and as it was lowered."""
    text = Generator(seed).program()
    graph, export = compiled(text)
    patch.setattr(ports, "WIDEST_VALUE_BITS", 1)
    optimised = optimise(single_export_graph(graph, without_probes(export)))
    own, found = optimised.exports[0], 0
    program = lower_export(own, optimised.origins, scopes=optimised.scopes)
    reference = Reference(export, LANES, seed)
    for form in (planned(program, lambda _: True).after, program):
        try:
            raster = raster_of(form, own, True)
            design = raster_round(own, raster, Store(), 1, True)
        except (NoRaster, LoweringError):
            continue
        results = run_rounds(design, reference.args, LANES, seed)
        for buffer, wanted, got in zip(form.of_kind("result"), reference.wanted, results, strict=True):
            assert np.array_equal(words_of(np.asarray(wanted), buffer.element), got), text
        found += 1
    return found


@pytest.mark.parametrize("first", [0, 50])
def test_stencils_give_the_graphs_bits(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(check(seed, monkeypatch) for seed in (*range(first, first + 8), 55)) >= 12


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_whole_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(check(seed, monkeypatch) for seed in range(1000, 1500)) > 850
