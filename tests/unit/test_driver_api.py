"""The Python interface: values in and out, one item and many, the same on every target."""

from __future__ import annotations

import traceback
from pathlib import Path

import numpy as np
import pytest

import kera_hw

PROGRAM = """
struct Pair { low: u4, high: i20 }
pub fn f(p: Pair, on: bool, q: fix<12, 4>) -> (Pair, fix<12, 4>) {
    (Pair { low: p.low + 1, high: -p.high }, if on { q } else { 0.0 })
}
pub stream total(x: i9) -> i16 { state s: i16 = 0; s += x as i16; s }
pub fn seven() -> u3 { 7 }
struct Nothing {}
pub fn talks(x: u8) -> u8 ! net { send("x", x); x }
pub fn around(n: Nothing, x: u8, none: [u8; 0], u: ()) -> (Nothing, [u8; 0], (), u8) { (n, none, u, x + 1) }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> kera_hw.Program:
    path = tmp_path_factory.mktemp("api") / "p.kera"
    path.write_text(PROGRAM)
    return kera_hw.load(path)


@pytest.mark.parametrize("target", ["interp", "rtl"])
def test_one_item_and_a_batch(program: kera_hw.Program, target: str) -> None:
    f = program.function("f", target=target)
    pair, q = f(p={"low": 15, "high": 5}, on=True, q=-33)
    assert (int(pair["low"]), int(pair["high"]), int(q)) == (0, -5, -33)
    pairs, qs = f.batch(
        p={"low": np.array([1, 2], np.uint8), "high": np.array([-(2**19), 3], np.int32)},
        on=np.array([False, True]), q=np.array([7, 8], np.int16),
    )
    assert pairs["low"].dtype == np.uint8 and pairs["high"].dtype == np.int32 and qs.dtype == np.int16
    assert pairs["high"].tolist() == [-(2**19), -3] and qs.tolist() == [0, 8]


@pytest.mark.parametrize("target", ["interp", "rtl"])
def test_a_stream_starts_at_reset_each_time(program: kera_hw.Program, target: str) -> None:
    total = program.function("total", target=target)
    x = np.array([1, -256, 255, 7], np.int16)
    for _ in range(2):
        assert total.batch(x=x).tolist() == [1, -255, 0, 7]
        assert int(total(x=5)) == 5
    assert total.batch(x=x[:0]).tolist() == []


@pytest.mark.parametrize("target", ["interp", "rtl"])
def test_a_function_without_parameters(program: kera_hw.Program, target: str) -> None:
    assert int(program.function("seven", target=target)()) == 7


@pytest.mark.parametrize("target", ["interp", "rtl"])
def test_values_that_hold_nothing(program: kera_hw.Program, target: str) -> None:
    around = program.function("around", target=target)
    empty = np.zeros((3, 0), np.uint8)
    found = around.batch(n={}, x=np.array([1, 2, 255]), none=empty, u=())
    assert found[0] == {} and found[2] == () and found[3].tolist() == [2, 3, 0]
    assert found[1].shape == (3, 0) and found[1].dtype == np.uint8
    assert around(n={}, x=4, none=[], u=())[3] == 5


def test_plans(program: kera_hw.Program) -> None:
    plan = program.function("f", target="rtl", clock_mhz=100.0).plan
    assert plan["latency_cycles"] >= 1 and plan["initiation_interval"] == 1 and plan["clock_mhz"] == 100
    assert program.function("f").plan["target"] == "interp"


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("K0902", lambda p: p.function("nope")),
        ("K0902", lambda p: p.function("talks")),
        ("K0903", lambda p: p.function("f", target="abacus")),
        ("K0605", lambda p: p.function("f", target="rtl", device="abacus")),
        ("K0914", lambda p: p.function("total")(x=256)),
        ("K0913", lambda p: p.function("total")(x=1.0)),
        ("K0911", lambda p: p.function("total")(y=1)),
        ("K0911", lambda p: p.function("total")()),
        ("K0915", lambda p: p.function("total").batch(x=3)),
        ("K0915", lambda p: p.function("seven").batch()),
        ("K0911", lambda p: p.function("f")(p=3, on=True, q=1)),
        ("K0915", lambda p: p.function("f").batch(
            p={"low": [1], "high": [2, 3]}, on=[True], q=[1, 2],
        )),
    ],
)
def test_mistakes_are_diagnostics(program: kera_hw.Program, code: str, call: object) -> None:
    with pytest.raises(kera_hw.KeraError) as caught:
        call(program)  # type: ignore[operator]
    assert [item.code for item in caught.value.diagnostics] == [code]


def test_a_broken_program_raises_with_all_its_diagnostics(tmp_path: Path) -> None:
    path = tmp_path / "p.kera"
    path.write_text("pub fn f(x: u8) -> u8 { y }\npub fn g(x: u8) -> u16 { x }\n")
    with pytest.raises(kera_hw.KeraError) as caught:
        kera_hw.load(path)
    assert [item.code for item in caught.value.diagnostics] == ["K0201", "K0302"]
    with pytest.raises(kera_hw.KeraError):
        kera_hw.load(tmp_path / "none.kera")


def test_what_nobody_catches_is_shown_with_place_reason_and_fix() -> None:
    """A traceback ends in the message; what stands under it comes as the notes of an exception."""
    with pytest.raises(kera_hw.KeraError) as caught:
        kera_hw.compile("pub fn f(x: u8) -> u16 { x }\n")
    text = "".join(traceback.format_exception_only(caught.value))
    assert "K0302" in text and text.count("K0302") == 1
    assert " --> <text>:1:26\n" in text and "  = help: convert with `as u16`" in text
    with pytest.raises(kera_hw.KeraError) as caught:
        kera_hw.compile("pub fn f(x: u8) -> u8 { y }\npub fn g(x: u8) -> u16 { x }\n")
    caught.value.add_note("more")
    text = "".join(traceback.format_exception_only(caught.value))
    assert "error[K0201]" in text and "error[K0302]" in text and text.endswith("more\n")
    with pytest.raises(AttributeError):
        _ = caught.value.diagnostic  # type: ignore[attr-defined]
