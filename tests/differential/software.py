"""What the tests of software targets share: random graphs and programs held against the reference."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kera_hw.cpu_gpu.amdgcn.compile import compile_export as compile_for_amd
from kera_hw.cpu_gpu.amdgcn.interpreter.machine import Machine as AmdMachine
from kera_hw.cpu_gpu.gpu.device import Instance
from kera_hw.cpu_gpu.gpu.kernels import GpuModule
from kera_hw.cpu_gpu.ptx.compile import compile_export
from kera_hw.cpu_gpu.ptx.cuda import Driver, Gpu
from kera_hw.cpu_gpu.ptx.interpreter.machine import Machine
from kera_hw.driver.session import load_program
from kera_hw.graph import Export, without_probes
from kera_hw.interp.exports import run_leaves
from kera_hw.loops.program import Buffer
from kera_hw.numerics.arrays import Array
from kera_hw.schedule.software.grids import MOST_ROUNDS
from kera_hw.schedule.software.layout import native_dtype
from kera_hw.support import KeraError
from tests.loop_programs import inputs_of, same_bits
from tests.tidy.repo import ROOT

PROGRAMS = sorted((ROOT / "tests" / "programs").rglob("*.kera"))
SHARED = ROOT.parent / "shared" / "programs"
"""Further programs, where that folder stands beside the checkout; every one is skipped elsewhere."""
ITEMS = 21
"""More than the lanes of most vectors but no multiple of them, so that rounds are left over."""


class Compiled(Protocol):
    """What a target makes of an export."""

    @property
    def params(self) -> tuple[Buffer, ...]: ...
    @property
    def vector_loops(self) -> int: ...


Compile = Callable[[Export, bool], Any]
Make = Callable[[Any], Any]


def compile_ptx(export: Export, grids: bool) -> GpuModule:
    """As kernels: with grids of loops of two rounds and more, or with one thread an item."""
    return compile_export(export, 2 if grids else MOST_ROUNDS)


def ptx_instance(module: GpuModule) -> Instance:
    """In the interpreter."""
    return Instance(module, Machine(module.text))


def on_gpu(driver: Driver, module: GpuModule) -> Instance:
    """On a GPU of NVIDIA's."""
    return Instance(module, Gpu(driver, module.text))


def compile_amdgcn(export: Export, grids: bool, processor: str = "gfx90a") -> GpuModule:
    """The same for AMD's."""
    return compile_for_amd(export, processor, 2 if grids else MOST_ROUNDS)


def amdgcn_instance(module: GpuModule) -> Instance:
    """In the interpreter."""
    return Instance(module, AmdMachine(module.text))


def results(made: Compiled, make: Make, args: Sequence[Array], items: int) -> list[Array]:
    given = [arg.view(native_dtype(buffer.element)) for arg, buffer in zip(args, made.params)]
    return make(made).run(given, items)


def differing(export: Export, made: Compiled, make: Make, items: int, seed: int) -> list[int]:
    """Which result leaves are not the reference's, bit for bit."""
    args, _ = inputs_of(export, items, seed)
    return _differing(run_leaves(export, args, items), results(made, make, args, items))


def _differing(wanted: Sequence[Array], found: Sequence[Array]) -> list[int]:
    return [k for k, pair in enumerate(zip(wanted, found, strict=True)) if not same_bits(*pair)]


def checked(compile_: Compile, make: Make, export: Export, items: int, seed: int) -> Any:
    """What is compiled, held against the reference with vectors and without; None for what is refused."""
    export = without_probes(export)
    try:
        made = compile_(export, True)
    except KeraError as error:
        assert {item.code for item in error.diagnostics} == {"K0701"}
        return None
    args, _ = inputs_of(export, items, seed)
    wanted = run_leaves(export, args, items)
    assert _differing(wanted, results(made, make, args, items)) == []
    if made.vector_loops:
        assert _differing(wanted, results(compile_(export, False), make, args, items)) == []
    return made


def fir() -> Export:
    loaded = load_program(ROOT / "examples" / "fir.kera")
    assert loaded.graph is not None
    return without_probes(loaded.graph.exports[0])
