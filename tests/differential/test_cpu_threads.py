"""Functions on several threads give the reference's bits, however many, and keep to their buffers."""
from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from types import FrameType
from typing import Any, cast

import numpy as np
import pytest

import kera_hw
from kera_hw.cpu_gpu import pool as pool_module
from kera_hw.cpu_gpu import threaded
from kera_hw.cpu_gpu.engine import best_level, missing_features
from kera_hw.cpu_gpu.pool import Pool, Task, pool, usable_cpus
from kera_hw.cpu_gpu.threaded import Threaded, ThreadedFunction, compile_threaded
from kera_hw.driver.session import compile_text, load_program
from kera_hw.driver.software import to_compile
from kera_hw.graph import Export, without_probes
from kera_hw.interp.exports import run_leaves
from kera_hw.loops.program import Buffer
from kera_hw.numerics.arrays import Array
from kera_hw.schedule.software.dividing import divide
from kera_hw.schedule.software.layout import Layout, native_dtype
from kera_hw.support import KeraError, SourceFile
from tests.differential.software import PROGRAMS
from tests.differential.test_cpu_guards import guarded
from tests.loop_programs import inputs_of, random_export, same_bits
from tests.tidy.repo import ROOT

pytestmark = pytest.mark.skipif(bool(missing_features()), reason="the processor lacks what the code uses")

POOL_FILE = pool_module.__file__
KERNELS = """
pub fn mapped(x: [f32; 1000], a: f32) -> [f32; 1000] { exp(x * a) + x }
pub fn total(x: [f32; 5000]) -> f32 { sum(x) }
pub fn product(a: [f32; 33, 40], b: [f32; 40, 150]) -> [f32; 33, 150] { matmul(a, b) }
pub fn rows(a: [f32; 9, 70]) -> [f32; 9, 70] { softmax(a, axis: 1) }
pub fn image(x: [f32; 3, 12, 12], w: [f32; 4, 3, 3, 3]) -> [f32; 4, 12, 12] { relu(conv2d(x, w, pad: 1)) }
pub fn table(x: [u8; 3000]) -> [u16; 3000] { map(x, |v| iota::<u16, 256>()[v] * 3) }
pub fn two(x: [i16; 700], y: [i16; 700]) -> ([i32; 700], [i16; 700]) { (mul_wide(x, y), x ^ y) }
"""
"""Loops with vectors and rows, buffers between phases, scalars that phases share, several results."""


def _exports(text: str) -> list[Export]:
    loaded = compile_text(SourceFile.from_text(text), ROOT / "kernels.kera")
    assert loaded.graph is not None, loaded.diagnostics
    return [to_compile(loaded.graph, export) for export in loaded.graph.exports]


def _compiled(export: Export, least_work: int = 0) -> ThreadedFunction | None:
    level = best_level()
    assert level is not None
    try:
        return compile_threaded(without_probes(export), level, least_work)
    except KeraError as error:
        assert {item.code for item in error.diagnostics} == {"K0701"}
        return None


def _differing(export: Export, made: ThreadedFunction, items: int, threads: Sequence[int]) -> list[int]:
    """On how many threads the results are not the reference's."""
    args, _ = inputs_of(export, items, 5)
    given = [arg.view(native_dtype(buffer.element)) for arg, buffer in zip(args, made.whole.params)]
    wanted = run_leaves(export, args, items)
    return [
        count for count in threads
        if not all(map(same_bits, wanted, made.on(count).run(given, items)))
    ]


@pytest.mark.parametrize("export", _exports(KERNELS), ids=lambda export: export.name)
def test_kernels_are_divided_and_have_the_same_bits(export: Export) -> None:
    made = _compiled(export)
    assert made is not None and made.divided_loops > 0
    assert _differing(export, made, 1, (1, 2, 3, 16)) == []
    assert _differing(export, made, 2, (1, 2, 3, 16)) == []
    assert _differing(export, made, 21, (2, 3)) == []


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs(path: object) -> None:
    loaded = load_program(ROOT / str(path))
    assert loaded.graph is not None
    for export in map(without_probes, loaded.graph.exports):
        made = _compiled(export)
        if made is not None:
            assert _differing(export, made, 1, (1, 2, 3)) == [], export.name
            assert _differing(export, made, 21, (2, 3)) == [], export.name


def test_random_graphs() -> None:
    exports = [random_export(seed) for seed in range(0, 305, 7)]
    compiled = [(export, made) for export in exports if (made := _compiled(export)) is not None]
    assert sum(made.divided_loops > 0 for _, made in compiled) > 8
    for export, made in compiled:
        assert _differing(export, made, 1, (2, 3)) == []
        assert _differing(export, made, 7, (3,)) == []


def test_a_thread_that_does_too_little_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    (export,) = (one for one in _exports(KERNELS) if one.name == "mapped")
    made = _compiled(export)
    assert made is not None
    def without_the_last(self: Pool, tasks: Sequence[Task]) -> None:
        for task in tasks[:-1]:
            task()

    monkeypatch.setattr(Pool, "run", without_the_last)
    assert _differing(export, made, 1, (2, 3)) == [2, 3]


def _guarded_array(size: int, kind: np.dtype[Any], at_end: bool) -> Array:
    size_bytes = size * kind.itemsize
    raw = (ctypes.c_uint8 * size_bytes).from_address(guarded(size_bytes, at_end))
    return np.frombuffer(cast("Any", raw), kind)


def _in_guards(exports: Sequence[Export], monkeypatch: pytest.MonkeyPatch, more: int = 0) -> int:
    """How a process ends in which all memory of functions on three threads lies between guards."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        status = 1
        try:
            for at_end in (True, False):
                monkeypatch.setattr(threaded, "new_arena", partial(_guarded_arena, at_end))
                monkeypatch.setattr(threaded, "_shared", partial(_guarded_shared, at_end))
                for export in exports:
                    _run_guarded(export, at_end, more)
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _guarded_arena(at_end: bool, layout: Layout) -> Array:
    image = np.frombuffer(layout.image(), np.uint8)
    arena = _guarded_array(max(layout.end, len(image)), np.dtype(np.uint8), at_end)
    arena[: len(image)] = image
    return arena


def _guarded_shared(at_end: bool, buffer: Buffer) -> Array:
    shared = _guarded_array(buffer.size, native_dtype(buffer.element), at_end)
    if buffer.kind == "const":
        shared[:] = np.frombuffer(buffer.data, shared.dtype)
    return shared


def _run_guarded(export: Export, at_end: bool, more: int) -> None:
    made = _compiled(export)
    if made is None or made.division is None:
        return
    args, _ = inputs_of(export, 1, 3)
    places: list[int] = []
    for arg, buffer in zip(args, made.whole.params):
        here = _guarded_array(buffer.size, native_dtype(buffer.element), at_end)
        here[:] = arg.reshape(-1).view(here.dtype)
        places.append(here.ctypes.data)
    sizes = [one.size * native_dtype(one.element).itemsize for one in made.whole.results]
    places += [guarded(size, at_end) for size in sizes]
    call, _ = made.on(3).entry
    call(1 + more, places, 0)


def test_threads_stay_within_their_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    exports = [*_exports(KERNELS), *(random_export(seed) for seed in range(1, 300, 23))]
    assert _in_guards(exports, monkeypatch) == 0


def test_an_item_too_many_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _in_guards(_exports(KERNELS)[:1], monkeypatch, more=4096) < 0


def test_streams_keep_their_order() -> None:
    (export,) = _exports("pub stream total(x: i32) -> i32 { state s: i32 = 0; s = s * 3 + x; s }")
    made = _compiled(export)
    assert made is not None and made.division is None
    assert _differing(export, made, 1000, (1, 2, 3)) == []


def test_what_is_small_is_not_divided() -> None:
    (export,) = (one for one in _exports(KERNELS) if one.name == "mapped")
    made = _compiled(export, 1 << 40)
    assert made is not None and made.division is None
    instance = made.on(4)
    assert instance.doorway is not None and instance.entry[1] != 0
    assert _differing(export, made, 500, (4,)) == []
    level = best_level()
    assert level is not None
    program = threaded.program_of(export, True, level)
    assert divide(program, 0) is not None and divide(program, 1 << 40) is None


# ---------------------------------------------------------------- the pool


def test_a_fault_of_a_task_is_raised_once_all_have_ended() -> None:
    ended: list[int] = []

    def task(number: int) -> None:
        if number == 1:
            raise ValueError("one")
        ended.append(number)

    with pytest.raises(ValueError, match="one"):
        pool().run([partial(task, k) for k in range(4)])
    assert sorted(ended) == [0, 2, 3]
    pool().run([partial(task, k) for k in (5, 6)])
    assert sorted(ended) == [0, 2, 3, 5, 6]


def test_tasks_run_beside_each_other_and_those_of_a_second_caller_too() -> None:
    meeting = threading.Barrier(3, timeout=20)
    pool().run([meeting.wait] * 3)  # type: ignore[list-item]
    seen: list[str] = []

    def outer() -> None:
        pool().run([lambda: seen.append("inner")] * 4)

    pool().run([outer] * 5)
    assert seen == ["inner"] * 20


def test_a_caller_does_what_there_is_no_thread_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the system gives no more, or the interpreter ends."""
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    alone, seen = Pool(), list[int]()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        alone.run([partial(seen.append, k) for k in range(4)])
    assert sorted(seen) == [0, 1, 2, 3]
    alone.stop()
    alone.run([partial(seen.append, k) for k in range(4, 6)])
    assert sorted(seen) == [0, 1, 2, 3, 4, 5]


def test_no_task_runs_on_when_a_call_is_interrupted() -> None:
    """At each place where Python looks for signals: as functions begin and as those of C return."""
    own = Pool()
    own.run([lambda: None] * 3)
    begun: list[int] = []
    ended: list[int] = []

    def task(number: int) -> None:
        begun.append(number)
        time.sleep(0.001)
        ended.append(number)

    interrupted = 0
    for place in range(1000):
        left = place

        def profile(frame: FrameType, event: str, _: object) -> None:
            nonlocal left
            left -= frame.f_code.co_filename == POOL_FILE and event in ("call", "c_return")
            if left < 0:
                raise KeyboardInterrupt

        begun.clear()
        ended.clear()
        sys.setprofile(profile)
        try:
            own.run([partial(task, k) for k in range(3)])
            break
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.setprofile(None)
        assert sorted(begun) == sorted(ended), place
        time.sleep(0.002)
        assert sorted(begun) == sorted(ended), place
        ended.clear()
        own.run([partial(task, k) for k in range(3)])
        assert sorted(ended) == [0, 1, 2], place
    own.stop()
    assert interrupted > 20


AT_EXIT = """
import atexit, threading, time
held = []
atexit.register(lambda: print(held[0](x=held[1])[0]))
import numpy as np, kera_hw
program = kera_hw.compile("pub fn f(x: [f32; 65536]) -> [f32; 65536] { exp(x) }")
held += [program.function("f", target="cpu"), np.zeros(65536, np.float32)]
def forever():
    function = program.function("f", target="cpu", threads=3)
    batch = np.zeros((200, 65536), np.float32)
    while True:
        function.batch(x=batch)
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.3)
"""


def test_code_stays_until_the_process_has_ended() -> None:
    """Functions run as the interpreter ends, and threads that it leaves behind run on."""
    found = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout, found.stderr) == (0, "1.0\n", "")


def test_a_child_after_a_fork_has_threads_of_its_own() -> None:
    pool().run([lambda: None] * 3)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            meeting = threading.Barrier(2, timeout=20)
            pool().run([meeting.wait] * 2)  # type: ignore[list-item]
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_child_can_call_what_another_thread_calls_as_it_forks() -> None:
    program = kera_hw.compile("pub fn f(x: [f32; 4096]) -> [f32; 4096] { exp(sin(exp(x))) }")
    function = program.function("f", target="cpu", threads=2)
    batch = np.zeros((2000, 4096), np.float32)
    begun = threading.Thread(target=lambda: function.batch(x=batch))
    begun.start()
    time.sleep(0.02)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends it where it waits
        function(x=batch[0])
        os._exit(0)
    begun.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_instance_has_what_a_target_asks_of_it() -> None:
    (export,) = (one for one in _exports(KERNELS) if one.name == "total")
    made = _compiled(export)
    assert made is not None
    instance: Threaded = made.on(2)
    instance.reset()
    assert instance.code_address and instance.doorway([]) is None


def test_threads_are_an_option() -> None:
    program = kera_hw.compile(KERNELS)
    x = np.linspace(-1, 1, 1000, dtype=np.float32)
    wanted = program.function("mapped")(x=x, a=np.float32(2))
    for threads in (None, 1, 3):
        function = program.function("mapped", target="cpu", threads=threads)
        assert function(x=x, a=np.float32(2)).tobytes() == wanted.tobytes()
        assert function.plan["threads"] == (threads or min(usable_cpus(), 8))
        assert function.plan["divided_loops"] == 0  # too little to do
    large = kera_hw.compile("pub fn f(x: [f32; 1000000]) -> [f32; 1000000] { x * 2 }")
    function = large.function("f", target="cpu", threads=2)
    assert function.plan["divided_loops"] == 1
    given = np.arange(1_000_000, dtype=np.float32)
    assert np.array_equal(function(x=given), given * 2)
    out = np.empty_like(given)
    assert function(x=given, out=out) is out and np.array_equal(out, given * 2)
    with pytest.raises(KeraError, match="K0908"):
        program.function("mapped", target="cpu", threads=0)
