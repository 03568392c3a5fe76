"""What README says that hardware does not do yet is refused, with the codes it names; what it does is not."""
from __future__ import annotations

from pathlib import Path

import pytest

from kera_hw.driver.session import compile_text, optimise
from kera_hw.graph import Store
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.support import SourceFile
from tests.tidy.repo import ROOT

REFUSED = {
    "K0610": ["pub fn f(a: [i8; 64, 64], b: [i8; 64, 64]) -> [i8; 64, 64] { matmul(a, b) }"],
    "K0611": ["pub stream f(x: u8) -> u8 { state m: [u8; 65536] = [0; 65536]; m = shift_in(m, x); m[0] }"],
}
FUNCTIONS = ("exp", "log", "tanh", "sqrt", "recip", "sigmoid")
MADE = [
    *(f"pub fn f(x: f32) -> f32 {{ {name}(x) }}" for name in (*FUNCTIONS, "sin", "gelu")),
    "pub fn f(x: f64) -> f64 { exp(x) }", "pub fn f(x: [f32; 4]) -> f32 { sum(x, order: exact) }",
]


def lowered(text: str) -> object:
    loaded = compile_text(SourceFile("readme.kera", text.encode()), Path("."))
    assert loaded.graph is not None, loaded.diagnostics
    return flatten_export(optimise(loaded.graph).exports[0], Store())


@pytest.mark.parametrize(
    ("code", "text"), [(code, text) for code, texts in REFUSED.items() for text in texts]
)
def test_what_is_not_done_yet_is_refused(code: str, text: str) -> None:
    assert code in (ROOT / "README.md").read_text(encoding="utf-8")
    assert getattr(lowered(text), "code", None) == code


@pytest.mark.parametrize("text", MADE)
def test_floats_have_circuits(text: str) -> None:
    assert isinstance(lowered(text), FlatDesign)
