"""Software targets give the reference's bits: on random graphs for every operation, and on programs."""
from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from kera_hw.cpu_gpu.engine import CpuFunction
from kera_hw.cpu_gpu.ptx.cuda import find_gpu
from kera_hw.driver.session import load_program
from kera_hw.graph import without_probes
from kera_hw.graph.generate import generatable_ops
from kera_hw.interp.exports import run_leaves
from kera_hw.ops.registry import FAMILIES
from kera_hw.target.coverage import BOUND
from kera_hw.target.minimal import TYPES, minimal_programs
from tests.alike import Alike
from tests.differential.software import (
    ITEMS,
    PROGRAMS,
    SHARED,
    Compile,
    Make,
    amdgcn_instance,
    checked,
    compile_amdgcn,
    compile_ptx,
    differing,
    fir,
    on_gpu,
    ptx_instance,
    results,
)
from tests.emulated import BY_LEVEL, Processor
from tests.loop_programs import inputs_of, random_export, same_bits
from tests.wasm_engines import Modules, everywhere

_CHUNKS = 8
LARGE = ("vector", "sobel")
"""Shared programs of many operations an item."""
WHOLE = sorted((SHARED / "real").glob("*.kera"))
HOURS = ("matmul256", "sobel640")
"""Of them, those with many millions."""


class Target(NamedTuple):
    """How an export is compiled, and what is compiled is run; ``graphs``: how many are tried an operation."""

    compile: Compile
    make: Make
    graphs: int = 3
    interpreted: bool = False


@pytest.fixture(
    params=["wasm", "ptx", "gpu", "amdgcn", *BY_LEVEL],
    ids=lambda item: item if isinstance(item, str) else item[0].level.name,
)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    if request.param == "wasm":
        modules = Modules()
        yield Target(modules.compile, everywhere)
        modules.check()
    elif request.param == "ptx":
        yield Target(compile_ptx, ptx_instance, interpreted=True)
    elif request.param == "gpu":
        driver = find_gpu()
        if driver is None:
            pytest.skip("there is no GPU that takes our PTX")
        yield Target(compile_ptx, partial(on_gpu, driver), 20)
    elif request.param == "amdgcn":
        yield Target(partial(compile_amdgcn, processor="gfx942"), amdgcn_instance, 1, True)
    else:
        processors: tuple[Processor, ...] = request.param
        first = processors[0]
        for one in processors:
            one.check()

        def instances(made: CpuFunction) -> Alike:
            return Alike([one.instance(made) for one in processors])

        yield Target(first.compiled, instances, first.graphs)


@pytest.mark.parametrize("chunk", range(_CHUNKS))
def test_random_graphs(target: Target, chunk: int) -> None:
    """Graphs for every operation; most have loops that run as vectors."""
    seeds = range(chunk, target.graphs * len(generatable_ops()), _CHUNKS)
    made = [checked(target.compile, target.make, random_export(seed), ITEMS, seed) for seed in seeds]
    vectors = [one for one in made if one is not None and one.vector_loops]
    assert len(vectors) >= (0.4 if target.graphs > 1 else 0.25) * len(made)
    assert sum(one is not None for one in made) >= 0.9 * len(made)


@pytest.mark.long
def test_many_random_graphs(target: Target) -> None:
    made = [checked(target.compile, target.make, random_export(seed), 37, seed) for seed in range(20_000)]
    assert sum(one is not None for one in made) > 0.95 * len(made)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_operation_on_every_type(target: Target, family: str) -> None:
    """Least programs, of each form the first and the last, on items of all kinds."""
    for row in FAMILIES[family]:
        for kind in () if row.name in BOUND else TYPES:
            forms = list(minimal_programs(row.name, kind))
            for program in dict.fromkeys((*forms[:1], *forms[-1:])):
                export = without_probes(program.export)
                made = target.compile(export, True)
                assert differing(export, made, target.make, 5, 1) == [], (row.name, program.node.attrs)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs(target: Target, path: Path) -> None:
    loaded = load_program(path)
    assert loaded.graph is not None
    for export in loaded.graph.exports:
        assert checked(target.compile, target.make, export, 7, 1) is not None, export.name


@pytest.mark.parametrize("path", sorted(SHARED.glob("*.kera")) or [None], ids=lambda path: path and path.stem)
def test_shared_programs(target: Target, path: Path | None) -> None:
    if path is None:
        pytest.skip(f"{SHARED} is not beside this checkout")
    if target.interpreted and path.stem in LARGE:
        pytest.skip("instruction by instruction this takes a minute: test_large_shared_programs has it")
    test_programs(target, path)


@pytest.mark.long
@pytest.mark.parametrize("name", LARGE)
def test_large_shared_programs(target: Target, name: str) -> None:
    path = SHARED / f"{name}.kera"
    if not path.exists():
        pytest.skip(f"{SHARED} is not beside this checkout")
    test_programs(target, path)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("path", WHOLE or [None], ids=lambda path: path and path.stem)
def test_whole_programs(target: Target, path: Path | None) -> None:
    """Ciphers, filters, a network, transforms and sorters. What takes minutes is the reference, where a
    program goes over a picture by loops."""
    if path is None:
        pytest.skip(f"{SHARED} is not beside this checkout")
    if target.interpreted and path.stem in HOURS:
        pytest.skip("instruction by instruction this takes an hour")
    loaded = load_program(path)
    assert loaded.graph is not None
    for export in loaded.graph.exports:
        assert checked(target.compile, target.make, export, 1, 1) is not None, export.name


def test_state_lives_from_call_to_call_until_reset(target: Target) -> None:
    export = fir()
    (samples,), _ = inputs_of(export, 40, 3)
    (wanted,) = run_leaves(export, [samples], 40)
    instance = target.make(target.compile(export, True))
    for _ in range(2):
        parts = [instance.run([samples[:17]], 17)[0], instance.run([samples[17:]], 23)[0]]
        assert same_bits(wanted, np.concatenate(parts))
        instance.reset()


def test_a_batch_of_none(target: Target) -> None:
    export = fir()
    (samples,), _ = inputs_of(export, 1, 4)
    assert results(target.compile(export, True), target.make, [samples[:0]], 0)[0].shape == (0,)
