"""Machine code touches nothing but its buffers: pages without access lie before and behind each of them.

In a process of its own, which such a touch would end.
"""
from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import signal
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

from kera_hw.cpu_gpu.engine import CpuFunction, Instance, compile_export
from kera_hw.cpu_gpu.machine.level import Level
from kera_hw.driver.session import load_program
from kera_hw.graph import Export, without_probes
from kera_hw.interp.exports import run_leaves
from kera_hw.numerics.arrays import Array
from kera_hw.schedule.software.layout import native_dtype
from kera_hw.support import KeraError
from tests.differential.software import PROGRAMS, fir
from tests.emulated import PROCESSORS, Emulated, Ended, Processor
from tests.loop_programs import inputs_of, random_export, same_bits

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_KEPT: list[Any] = []


def guarded(size_bytes: int, at_end: bool) -> int:
    """The address of so many bytes right behind a page without access, or right before one."""
    page = mmap.PAGESIZE
    middle = max(-(-size_bytes // page), 1) * page
    pages = mmap.mmap(-1, middle + 2 * page)
    view = (ctypes.c_char * (middle + 2 * page)).from_buffer(pages)
    start = ctypes.addressof(view)
    for guard in (start, start + page + middle):
        assert _LIBC.mprotect(guard, page, 0) == 0
    _KEPT.append((pages, view))
    return start + page + (middle - size_bytes if at_end else 0)


def _bytes_at(address: int, size_bytes: int) -> Array:
    return np.frombuffer(cast("Any", (ctypes.c_uint8 * size_bytes).from_address(address)), np.uint8)


def differing(export: Export, made: CpuFunction, items: int, at_end: bool, claimed: int) -> int:
    """How many result leaves are wrong, all memory between guards; ``claimed``: items told to the code."""
    args, _ = inputs_of(export, items, 3)
    given = [arg.view(native_dtype(buffer.element)) for arg, buffer in zip(args, made.params)]
    shapes = [(items, *one.shape) for one in made.results]
    types = [native_dtype(one.element) for one in made.results]
    places: list[int] = []
    for contents in given:
        places.append(guarded(contents.nbytes, at_end))
        _bytes_at(places[-1], contents.nbytes)[:] = np.ascontiguousarray(contents).reshape(-1).view(np.uint8)
    sizes = [int(np.prod(shape)) * kind.itemsize for shape, kind in zip(shapes, types)]
    outs = [guarded(size, at_end) for size in sizes]
    image = made.layout.image()
    memory = guarded(max(made.layout.end, len(image)), at_end)
    _bytes_at(memory, len(image))[:] = np.frombuffer(image, np.uint8)
    instance = Instance(made)
    call, _ = instance.entry
    call(claimed, (ctypes.c_void_p * (len(places) + len(outs)))(*places, *outs), memory)
    found = [
        _bytes_at(out, size).view(kind).reshape(shape)
        for out, size, kind, shape in zip(outs, sizes, types, shapes)
    ]
    return sum(not same_bits(*pair) for pair in zip(run_leaves(export, args, items), found, strict=True))


def ending(exports: Sequence[Export], level: Level, more: int = 0) -> int:
    """How a process ends that runs them: 0 for well, 1 for wrong results, minus the number of a signal."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        wrong = 1
        try:
            wrong = 0
            for export in exports:
                try:
                    made = compile_export(export, level=level)
                except KeraError:
                    continue
                for items, at_end in ((1, True), (21, True), (21, False), (70, True)):
                    wrong |= bool(differing(export, made, items, at_end, items + more))
                _KEPT.clear()
        finally:
            os._exit(wrong)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def ending_emulated(exports: Sequence[Export], processor: Processor, more: int = 0) -> int:
    """The same in an emulator, which has guards around everything that it runs."""
    assert processor.emulator is not None
    wrong = 0
    for export in exports:
        try:
            made = processor.compiled(export)
        except KeraError:
            continue
        for items, at_end in ((1, True), (21, False)):
            args, _ = inputs_of(export, items, 3)
            given = [arg.view(native_dtype(buffer.element)) for arg, buffer in zip(args, made.params)]
            instance = Emulated(made, processor.emulator, at_end)
            try:
                found = instance.run(given, items, items + more)
            except Ended as ended:
                return ended.status
            wrong |= not all(map(same_bits, run_leaves(export, args, items), found))
    return wrong


def endings(exports: Sequence[Export], processor: Processor, more: int = 0) -> int:
    if processor.emulator is not None:
        return ending_emulated(exports, processor, more)
    return ending(exports, processor.level, more)


@pytest.fixture(params=PROCESSORS, ids=lambda processor: processor.name)
def processor(request: pytest.FixtureRequest) -> Processor:
    request.param.check()
    return request.param


def test_an_item_too_many_is_seen(processor: Processor) -> None:
    assert endings([fir()], processor, more=4096) == -signal.SIGSEGV


def test_programs_stay_within_their_buffers(processor: Processor) -> None:
    exports: list[Export] = []
    for path in PROGRAMS:
        loaded = load_program(path)
        assert loaded.graph is not None
        exports += [without_probes(export) for export in loaded.graph.exports]
    assert endings(exports, processor) == 0


def test_random_graphs_stay_within_their_buffers(processor: Processor) -> None:
    """Of those that an emulator runs a part."""
    seeds = range(7, 400, 5 if processor.emulator is None else 20)
    assert endings([without_probes(random_export(seed)) for seed in seeds], processor) == 0
