"""Calls that go straight to machine code: same results, same refusals; `out=`; arrays by DLPack."""
from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import kera_hw
from kera_hw.cpu_gpu.doorway import Doorway
from kera_hw.cpu_gpu.engine import best_level
from kera_hw.driver import perf_map as perf
from kera_hw.driver.api import Function, Program

SOURCE = """
pub fn scaled(x: [f32; 3, 4], a: f32) -> [f32; 3, 4] { x * a }
pub fn added(x: i16, y: u64, z: f64) -> f64 { z + (x as f64) + (y as f64) }
pub fn turned(x: [i32; 8]) -> [i32; 8] { reverse(x, 0) }
pub fn flipped(x: [f32; 6]) -> [f32; 6] { reverse(x, 0) }
pub fn seen(x: [f32; 6]) -> [u32; 6] { bitcast::<u32>(x) }
pub fn both(x: [i32; 8]) -> ([i32; 8], i32) { (x + 1, sum(x)) }
pub fn odd(x: [i13; 4]) -> [i13; 4] { x + 1 }
pub fn kept(out: [i32; 4]) -> [i32; 4] { out * 2 }
"""
some_level = pytest.mark.skipif(best_level() is None, reason="the processor lacks what the code uses")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    path = tmp_path_factory.mktemp("direct") / "f.kera"
    path.write_text(SOURCE, encoding="utf-8")
    return kera_hw.load(path)


def _straight(function: Function, monkeypatch: pytest.MonkeyPatch) -> Function:
    """The function, whose other way breaks."""
    monkeypatch.setattr(function._executor, "run", lambda *_: pytest.fail("it does not go straight"))  # type: ignore[attr-defined]
    return function


def _same(a: Any, b: Any) -> bool:
    return np.asarray(a).dtype == np.asarray(b).dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes()


def _parts(value: Any) -> list[Any]:
    return list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else [value]


X = np.arange(12, dtype=np.float32).reshape(3, 4)


@some_level
def test_arrays_and_scalars_go_straight(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    scaled = _straight(program.function("scaled", "cpu"), monkeypatch)
    for x in (X, X.copy(), -X):
        assert _same(scaled(x=x, a=np.float32(0.1)), x * np.float32(0.1))
    read_only = X.copy()
    read_only.flags.writeable = False
    assert _same(scaled(x=read_only, a=np.float32(3)), X * np.float32(3))
    added = _straight(program.function("added", "cpu"), monkeypatch)
    assert _same(added(x=-7, y=1 << 63, z=np.float64(0.5)), np.float64(-7 + 0.5) + np.float64(1 << 63))
    assert _same(added(x=np.int16(3), y=np.uint64(4), z=np.float64(1)), np.float64(8))


OTHERS: list[tuple[str, Callable[[], dict[str, Any]]]] = [
    ("scaled", lambda: {"x": X.tolist(), "a": 2}),
    ("scaled", lambda: {"x": np.asfortranarray(X), "a": np.float32(2)}),
    ("scaled", lambda: {"x": np.full((3, 4), 0x7FC1_2345, np.uint32).view(np.float32), "a": 2.0}),
    ("scaled", lambda: {"x": np.full((3, 4), np.inf, np.float32), "a": np.float32("nan")}),
    ("scaled", lambda: {"x": X[::1], "a": 0.1}),
    ("flipped", lambda: {"x": np.full(6, 0xFF81_2345, np.uint32).view(np.float32)}),
    ("seen", lambda: {"x": np.full(6, 0x7FC1_2345, np.uint32).view(np.float32)}),
    ("added", lambda: {"x": np.int64(3), "y": 4, "z": 5}),
    ("turned", lambda: {"x": np.arange(16, dtype=np.int32)[::2]}),
    ("turned", lambda: {"x": np.arange(8)}),
    ("both", lambda: {"x": np.arange(8, dtype=np.int32)}),
    ("odd", lambda: {"x": np.array([1, -2, 4095, -4096], np.int16)}),
]


@some_level
@pytest.mark.parametrize("case", range(len(OTHERS)))
def test_others_are_converted_as_before(program: Program, case: int) -> None:
    name, values = OTHERS[case]
    wanted, found = (_parts(program.function(name, target)(**values())) for target in ("interp", "cpu"))
    assert all(_same(a, b) for a, b in zip(wanted, found, strict=True))


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("scaled", {"x": X}, "K0911"), ("scaled", {"x": X, "a": 1, "b": 2}, "K0911"),
    ("scaled", {"x": X[:2], "a": np.float32(1)}, "K0912"),
    ("scaled", {"x": X.astype(float), "a": 1}, "K0913"),
    ("added", {"x": 1 << 15, "y": 0, "z": 0}, "K0914"), ("added", {"x": 0, "y": -1, "z": 0}, "K0914"),
    ("added", {"x": True, "y": 1, "z": 0}, "K0913"), ("odd", {"x": np.full(4, 4096, np.int16)}, "K0914"),
]


@some_level
@pytest.mark.parametrize("case", range(len(WRONG)))
def test_what_does_not_fit_is_refused_as_by_the_interpreter(program: Program, case: int) -> None:
    name, values, code = WRONG[case]
    said: list[str] = []
    for target in ("interp", "cpu"):
        with pytest.raises(kera_hw.KeraError) as caught:
            program.function(name, target)(**values)
        (fault,) = caught.value.diagnostics
        said.append(f"{fault.code} {fault.message}")
    assert said[0] == said[1] and said[0].startswith(code)


@pytest.mark.parametrize("target", ["interp", pytest.param("cpu", marks=some_level), "wasm"])
def test_results_are_written_where_told(program: Program, target: str) -> None:
    """Also over an argument that is read elsewhere than it is written."""
    turned = program.function("turned", target)
    x = np.arange(8, dtype=np.int32)
    out = np.empty(8, np.int32)
    assert turned(x=x, out=out) is out and out.tolist() == x[::-1].tolist()
    assert turned(x=x, out=x) is x and x.tolist() == list(range(7, -1, -1))
    batch = np.arange(24, dtype=np.int32).reshape(3, 8)
    whole = np.empty((3, 8), np.int32)
    assert turned.batch(x=batch, out=whole) is whole and (whole == batch[:, ::-1]).all()
    assert program.function("kept", target)(out=np.arange(4, dtype=np.int32)).tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("target", ["interp", pytest.param("cpu", marks=some_level)])
def test_an_array_that_takes_no_results(program: Program, target: str) -> None:
    turned, x = program.function("turned", target), np.arange(8, dtype=np.int32)
    read_only = np.empty(8, np.int32)
    read_only.flags.writeable = False
    wrong = [np.empty(8), np.empty(7, np.int32), np.empty(16, np.int32)[::2], read_only, [0] * 8, 0]
    calls = [lambda out=out: turned(x=x, out=out) for out in wrong]
    calls += [
        lambda: turned.batch(x=x[np.newaxis], out=np.empty(8, np.int32)),
        lambda: program.function("both", target)(x=x, out=np.empty(8, np.int32)),
        lambda: program.function("added", target)(x=1, y=2, z=3, out=np.empty(())),
    ]
    for call in calls:
        with pytest.raises(kera_hw.KeraError, match="K0917"):
            call()


class _Foreign:
    """An array of a library that has DLPack and nothing else."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __dlpack__(self, **options: Any) -> Any:
        if isinstance(self._values, Exception):
            raise self._values
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("target", ["interp", pytest.param("cpu", marks=some_level)])
def test_arrays_of_other_libraries(program: Program, target: str) -> None:
    turned, x = program.function("turned", target), np.arange(8, dtype=np.int32)
    assert turned(x=_Foreign(x)).tolist() == x[::-1].tolist()
    with pytest.raises(kera_hw.KeraError, match=r"K0912.*lies on a GPU"):
        turned(x=_Foreign(BufferError("lies on a GPU")))
    with pytest.raises(kera_hw.KeraError, match="K0913"):
        turned(x=_Foreign(x.astype(np.float32)))


@pytest.fixture
def doorway(program: Program) -> Callable[..., Any]:
    """What Python calls of `scaled`: x, a, an array for the result, what refuses."""
    executor: Any = program.function("scaled", "cpu")._executor  # pyright: ignore[reportPrivateUsage]
    door = cast("Doorway | None", executor._straight._doorway)
    if door is None:
        pytest.skip("other objects, or another processor, than the way is for")
    return door.call


@some_level
def test_code_looks_at_arrays_itself(doorway: Callable[..., Any]) -> None:
    out, no = np.empty((3, 4), np.float32), object()
    a = np.float32(0.1)
    before = sys.getrefcount(out), sys.getrefcount(no), sys.getrefcount(X), sys.getrefcount(a)
    assert doorway(X, a, out, no) is out
    assert _same(out, X * a)
    read_only = out.copy()
    read_only.flags.writeable = False
    over = np.empty(13, np.float32)
    x = over[:12].reshape(3, 4)
    refused: list[tuple[Any, Any, Any]] = [
        (X.astype(np.float64), a, out), (X.astype(np.int32), a, out), (X[:2], a, out), (X[None], a, out),
        (np.asfortranarray(X), a, out), (X.tolist(), a, out), (X, 1, out), (X, np.float64(1), out),
        (X, np.array(1, np.float32), out), (X, a, read_only), (X, a, None), (X, a, np.empty(12, np.float32)),
        (X.astype(">f4"), a, out), (x, a, x), (x, a, over[1:].reshape(3, 4)),
        (X.view(np.recarray), a, out),
    ]
    while refused:
        assert doorway(*refused.pop(), no) is no
    assert before == (sys.getrefcount(out), sys.getrefcount(no), sys.getrefcount(X), sys.getrefcount(a))
    side = np.empty(24, np.float32)
    one, two = side[:12].reshape(3, 4), side[12:].reshape(3, 4)
    one[:] = X
    assert doorway(one, a, two, no) is two and _same(two, X * a)


def _identities(call: tuple[Any, ...]) -> tuple[list[int], list[tuple[str, int]]]:
    """Of the arguments of a call."""
    args, named = call
    return [id(one) for one in args], [(name, id(one)) for name, one in named.items()]


@some_level
def test_code_is_called_by_names(program: Program) -> None:
    """With other arguments, or in another's turn, what was told is called with them as they are."""
    executor: Any = program.function("scaled", "cpu")._executor  # pyright: ignore[reportPrivateUsage]
    others: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def otherwise(*args: Any, **named: Any) -> str:
        others.append((args, named))
        return "otherwise"

    call = executor.quick(otherwise)
    if call is None:
        pytest.skip("other objects, or another processor, than the way is for")
    a, out = np.float32(0.1), np.empty((3, 4), np.float32)
    before = [sys.getrefcount(one) for one in (X, a, out)]
    for _ in range(3):
        assert call(x=X, a=a, out=out) is out
    assert _same(out, X * a) and not others
    refused: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {}), ((X, a, out), {}), ((X,), {"a": a, "out": out}), ((), {"a": a, "x": X, "out": out}),
        ((), {"x": X, "a": a}), ((), {"x": X, "b": a, "out": out}),
        ((), {"x": X, "a": a, "out": out, "more": 1}),
        ((), {"x": X, "a": 1, "out": out}), ((), {"x": X[:2], "a": a, "out": out}),
        ((), {"x": X, "a": a, "out": None}), ((), {"x": out, "a": a, "out": out}),
    ]
    assert {call(*one[0], **one[1]) for one in refused} == {"otherwise"}
    with executor._turn:
        assert call(x=X, a=a, out=out) == "otherwise"
    wanted = [*refused, ((), {"x": X, "a": a, "out": out})]
    assert list(map(_identities, others)) == list(map(_identities, wanted))
    assert call(x=X, a=a, out=out) is out
    del others[:], refused[:], wanted[:]
    assert before == [sys.getrefcount(one) for one in (X, a, out)]


@some_level
def test_calls_with_much_data_let_other_threads_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code finds where arrays lie, and is then called as by a library."""
    program = kera_hw.compile("pub fn f(x: [f32; 300000], a: f32) -> [f32; 300000] { x * a }")
    function = _straight(program.function("f", "cpu", threads=1), monkeypatch)
    executor: Any = function._executor  # pyright: ignore[reportPrivateUsage]
    straight: Any = executor._straight
    items: list[int] = []
    run = cast("Callable[[int, Any, int], None]", straight._run)

    def counted(count: int, places: Any, memory: int) -> None:
        items.append(count)
        run(count, places, memory)

    straight._run = counted
    x, a, out = np.arange(300000, dtype=np.float32), np.float32(0.1), np.empty(300000, np.float32)
    assert function(x=x, a=a, out=out) is out and _same(out, x * a)
    assert _same(function(a=a, x=x), x * a) and items == [1, 1]
    straight._run = run
    monkeypatch.undo()
    wanted = x * a
    assert function(x=x, a=a, out=x) is x and _same(x, wanted)
    with pytest.raises(kera_hw.KeraError, match="K0917"):
        function(x=x, a=a, out=out[:-1])


@some_level
def test_a_function_goes_with_its_last_reference(program: Program) -> None:
    """What it calls refers to nothing that refers back."""
    scaled = program.function("scaled", "cpu")
    executor = weakref.ref(scaled._executor)  # pyright: ignore[reportPrivateUsage]
    assert scaled(x=X, a=np.float32(2), out=np.empty((3, 4), np.float32))[0, 1] == 2
    del scaled
    assert executor() is None


@some_level
def test_profilers_are_told_where_code_lies(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(perf.ASKED, "1")
    perf.map_file().unlink(missing_ok=True)
    try:
        executor: Any = program.function("turned", "cpu")._executor  # pyright: ignore[reportPrivateUsage]
        (line,) = perf.map_file().read_text().splitlines()
    finally:
        perf.map_file().unlink(missing_ok=True)
    address, size_bytes, name = line.split()
    assert int(address, 16) == executor._instance.code_address and name == "kera::turned"
    assert int(size_bytes, 16) > 16
