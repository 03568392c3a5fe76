"""Assertions and cover points decided for all inputs: proved, refuted with items that the interpreter
confirms, bounded where induction does not reach."""
from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("bitwuzla")

from kera_hw.driver.assertions import Checks, prove_checks
from kera_hw.driver.session import compile_text
from kera_hw.rtl.formal import assertions
from kera_hw.rtl.formal.terms import Term, Terms
from kera_hw.support import SourceFile
from tests.unit.cli_support import Kera


def _checks(text: str, limit_s: float = 10) -> Checks:
    graph = compile_text(SourceFile("case.kera", text.encode()), Path("case.kera")).graph
    assert graph is not None
    return prove_checks(graph, graph.exports[0], limit_s)


def _outcomes(text: str) -> list[tuple[str, str, int]]:
    return [(item.label, item.decided.outcome, item.decided.items) for item in _checks(text).checks]


def test_functions() -> None:
    text = """
    fn half(x: u8) -> u8 { let y = x >> 1; assert(y <= x, "half"); y }
    pub fn f(x: u8, a: [f32; 2]) -> u8 ! io {
        print("x", x);
        let mut s = 0u8;
        for i in 0..2 { s = half(s + x); }
        assert(x != 77, "not 77");
        cover(x < 5 && x > 10, "never");
        cover(a[0] + a[1] == 3.0, "three");
        s
    }
    """
    assert _outcomes(text) == [
        ("half", "proved", 1), ("not 77", "refuted", 1), ("never", "unreachable", 1), ("three", "reached", 1),
    ]
    found = {item.label: item for item in _checks(text).checks}
    assert found["not 77"].values()[0]["x"].tolist() == [77]
    assert sum(found["three"].values()[0]["a"][0].tolist()) == 3


STREAM = """
pub stream s(x: u8) -> u8 {
    state t: u8 = 0;
    t = if t >= 9 { 0 } else { t + 1 };
    assert(t < 10, "decade");
    state n: u16 = 0;
    n += (x & 1) as u16;
    assert(n < 3, "few");
    assert(n < 1000, "many");
    cover(t == 9, "top");
    cover(t == 11, "beyond");
    t
}
"""


def test_streams() -> None:
    outcomes = {label: (outcome, items) for label, outcome, items in _outcomes(STREAM)}
    assert outcomes["decade"] == ("proved", assertions.MOST_ITEMS)
    assert outcomes["few"] == ("refuted", 3) and outcomes["top"] == ("reached", 9)
    assert outcomes["many"] == ("bounded", assertions.MOST_ITEMS)
    assert outcomes["beyond"] == ("unreachable", assertions.MOST_ITEMS)
    few = next(item for item in _checks(STREAM).checks if item.label == "few")
    assert [item["x"][0] & 1 for item in few.values()] == [1, 1, 1]


def test_what_is_proved_helps_what_comes_after() -> None:
    body = "t = if t == 9 {{ 0 }} else {{ t + 1 }}; {} assert(t as u16 * 2 < 20, \"twice\"); t"
    stream = "pub stream s(x: bool) -> u8 {{ state t: u8 = 0; {} }}"
    alone = _checks(stream.format(body.format("")).replace("{{", "{").replace("}}", "}"))
    helped = _checks(
        stream.format(body.format("assert(t < 10, \"t\");")).replace("{{", "{").replace("}}", "}")
    )
    assert [item.decided.outcome for item in alone.checks] == ["proved"]
    assert [item.decided.outcome for item in helped.checks] == ["proved", "proved"]


def test_a_proof_of_contradictory_terms_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were every claim true, the solver would find no item that meets the condition either."""
    real = assertions.Claim

    def everything(terms: Terms, claim: Term, facts: list[Term] | tuple[Term, ...] = ()) -> object:
        return real(terms, claim, (*facts, terms.const(0, 1)))

    monkeypatch.setattr(assertions, "Claim", everything)
    assert _outcomes("pub fn f(x: u8) -> u8 { assert(x != 77); x }") == [("", "unconfirmed", 1)]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kera, path = Kera(capsys), tmp_path / "case.kera"
    path.write_text(STREAM)
    done = kera("verify", path, "--formal", "--time-limit", 20)
    assert done.status == 1
    assert "assert `few` (line 8): REFUTED by item 2 from reset" in done.out
    assert "K0921" in done.err and "item 2: x = " in done.err and "K0922" in done.err and "K0960" in done.err
    path.write_text('pub fn f(x: u8) -> u8 { assert((x >> 1) <= x, "half"); cover(x == 3); x }')
    done = kera("verify", path, "--formal", "--json")
    assert done.status == 0
    rows = done.json["assertions"][0]["checks"]
    assert [(row["kind"], row["result"]) for row in rows] == [("assert", "proved"), ("cover", "reached")]
