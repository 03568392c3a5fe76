"""Mistakes in traced functions: their code, and the piece of Python that the caret stands under."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kera_hw
from kera_hw import fn
from kera_hw.support import KeraError


def _if(x: Any) -> Any:
    if x > 3:
        return x
    return -x


def _leaked(x: Any) -> Any:
    inner: list[Any] = []
    fn.map(x, lambda v: inner.append(v) or v)
    return x + inner[0]


def _state_in_lambda(x: Any) -> Any:
    held = kera_hw.state("i32")

    def body(v: Any) -> Any:
        held.value = v
        return v

    return fn.map(x, body)


ROWS: tuple[tuple[str, str, Callable[..., Any], tuple[str, ...]], ...] = (
    ("K0918", "x > 3", _if, ("i32",)),
    ("K0918", "float(x)", lambda x: float(x), ("f32",)),
    ("K0918", "range(x)", lambda x: range(x), ("u8",)),
    ("K0918", "np.fft.fft(x)", lambda x: np.fft.fft(x), ("[f32; 4]",)),
    ("K0918", "np.cumsum(x)", lambda x: np.cumsum(x), ("[f32; 4]",)),
    ("K0918", "np.add.reduce(x)", lambda x: np.add.reduce(x), ("[f32; 4]",)),
    ("K0918", "fn.sqroot", lambda x: fn.sqroot(x), ("f32",)),
    ("K0918", "x // 3", lambda x: x // 3, ("i32",)),
    ("K0918", "x / 3", lambda x: x / 3, ("u32",)),
    ("K0918", "x ** 2", lambda x: x**2, ("f32",)),
    ("K0918", "x[::2]", lambda x: x[::2], ("[f32; 4]",)),
    ("K0918", "x[0, 0]", lambda x: x[0, 0], ("[f32; 4]",)),
    ("K0918", "x + None", lambda x: x + None, ("f32",)),
    ("K0918", "x * float(\"inf\")", lambda x: x * float("inf"), ("f32",)),
    ("K0918", "x + inner[0]", _leaked, ("[i32; 4]",)),
    ("K0918", "held.value", _state_in_lambda, ("[i32; 4]",)),
    ("K0302", "x + 1.5", lambda x: x + 1.5, ("i32",)),
    ("K0302", "x + y", lambda x, y: x + y, ("i32", "i16")),
    ("K0311", "x + np.ones(3, np.float32)", lambda x: x + np.ones(3, np.float32), ("[f32; 4]",)),
    ("K0311", "x @ x", lambda x: x @ x, ("[f32; 4, 3]",)),
    ("K0301", "x[9]", lambda x: x[9], ("[f32; 4]",)),
    ("K0301", "x[i]", lambda x, i: x[i], ("[f32; 4]", "u8")),
    ("K0301", "x[j]", lambda x: fn.map(x, lambda j: x[j]), ("[u8; 4]",)),
    ("K0919", "kera_hw.state(\"i99\")", lambda x: kera_hw.state("i99"), ("i32",)),
    ("K0302", "kera_hw.state(\"i8\", 0.5)", lambda x: kera_hw.state("i8", 0.5), ("i32",)),
)


def _failure(function: Callable[..., Any], *types: str) -> tuple[str, str]:
    with pytest.raises(KeraError) as caught:
        kera_hw.trace(function, *types)
    (item,) = caught.value.diagnostics
    assert item.file is not None and item.span is not None and item.file.path == __file__
    return item.code, item.file.text(item.span)


@pytest.mark.parametrize("code, text, function, types", ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS])
def test_a_mistake_is_shown_where_it_is(
    code: str, text: str, function: Callable[..., Any], types: tuple[str, ...]
) -> None:
    # CPython spells `x**2` as it stands; blanks are the formatter's.
    found, where = _failure(function, *types)
    assert (found, where.replace(" ", "")) == (code, text.replace(" ", ""))


@pytest.mark.parametrize("types", [(), ("i99",), ("i8) { x } fn g(y: i8",), ("i8", "i8"), (complex,)])
def test_a_parameter_needs_a_type(types: tuple[Any, ...]) -> None:
    assert _failure(lambda x: x, *types)[0] == "K0919"


def test_a_function_has_a_result_and_plain_parameters() -> None:
    assert _failure(lambda x: None, "i8")[0] == "K0918"
    assert _failure(lambda *x: x[0], "i8")[0] == "K0919"


def test_what_is_not_written_in_python_is_not_traced() -> None:
    class Callable_:
        def __call__(self, x: Any) -> Any:
            return x

    for thing in (np.sin, Callable_(), print):
        assert _failure(thing, "f32")[0] == "K0918"


def test_messages_name_values_as_python_does() -> None:
    with pytest.raises(KeraError) as caught:
        kera_hw.trace(lambda x: (x + 1)(2) if callable(x) else fn.dot(x + 1, 2), "[i32; 4]")
    assert not any("v1" in item.message for item in caught.value.diagnostics)


def test_built_ins_are_for_traced_functions() -> None:
    for call in (lambda: fn.exp(1.0), lambda: kera_hw.state("i8"), lambda: kera_hw.constant("i8", 1)):
        with pytest.raises(KeraError, match="K0918"):
            call()


def test_a_value_of_another_trace_is_refused() -> None:
    kept: list[Any] = []
    kera_hw.trace(lambda x: kept.append(x) or x, "i8")
    assert _failure(lambda x: x + kept[0], "i8") == ("K0918", "x + kept[0]")
    with pytest.raises(KeraError, match="K0918"):
        kept[0] + 1


@pytest.mark.parametrize("table", [np.arange(256), list(range(256))], ids=["array", "list"])
def test_a_table_of_python_names_the_constant_that_it_has_to_be(table: Any) -> None:
    with pytest.raises(KeraError) as caught:
        kera_hw.trace("u8")(lambda x: table[x])
    found = caught.value.diagnostics[0]
    assert found.code == "K0918" and "`kera_hw.constant(" in found.notes[0]
    constant = np.arange(256, dtype=np.uint8)
    assert kera_hw.trace("u8")(lambda x: kera_hw.constant("[u8; 256]", constant)[x]).exports
