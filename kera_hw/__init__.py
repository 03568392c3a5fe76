"""Kera HW: programs that are graphs, with the same bits on every target.

    program = kera_hw.load("fir.kera")
    fir = program.function("fir", target="interp")
    fir(x=7)                      # one item
    fir.batch(x=samples)          # leading axis = items; for a stream, the sequence from reset
    with program.stream("fir", target="rtl") as live:
        live.step(x=7)            # item by item, the state kept until live.reset()

`compile` takes a program as text, `trace` one that is written in Python.
"""
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kera_hw.driver.api import Function, Program, Stream, compile, load
    from kera_hw.driver.tracing.decorator import TracedProgram, trace
    from kera_hw.driver.tracing.functions import constant, fn, kera, state
    from kera_hw.support import KeraError

__all__ = [
    "Function", "KeraError", "Program", "Stream", "TracedProgram", "compile", "constant", "fn", "kera",
    "load", "state", "trace",
]
__version__ = "0.1.0"

# The interface stands on every layer; loading it on first use keeps each layer importable by itself.
_HOMES = {
    "Function": "kera_hw.driver.api", "Program": "kera_hw.driver.api", "load": "kera_hw.driver.api",
    "Stream": "kera_hw.driver.api", "compile": "kera_hw.driver.api", "KeraError": "kera_hw.support",
    **dict.fromkeys(("TracedProgram", "trace"), "kera_hw.driver.tracing.decorator"),
    **dict.fromkeys(("constant", "fn", "kera", "state"), "kera_hw.driver.tracing.functions"),
}


def __dir__() -> list[str]:
    """The interface; packages below this one are the compiler's own."""
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
