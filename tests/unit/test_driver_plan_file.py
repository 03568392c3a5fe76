"""A saved plan of a circuit gives that circuit again, in every command, and refuses to be for another one."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kera_hw
from kera_hw.driver import hardware
from tests.unit.cli_support import Kera

PROGRAM = """
pub fn mac(a: [i12; 3], b: [i12; 3]) -> i26 { dot(a as i26, b as i26) }
pub stream slow(x: u16) -> u16 {
    state s: u16 = 1;
    s = (s / ((x % 7) + 1)) ^ x;
    s
}
test "first" { assert_eq(mac([1, 2, 3], [4, 5, 6]), 32i26); }
"""
ASKED = {
    "mac": ["--target", "fpga:ecp5-25k", "--clock", "200MHz", "--dsp", "2"],
    "slow": ["--target", "fpga:ice40-hx8k", "--interface", "none"],
}


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "p.kera"
    path.write_text(PROGRAM)
    return path


def saved(kera: Kera, path: Path, function: str = "mac") -> Path:
    plan = path.with_name(f"{function}.toml")
    done = kera("plan", path, "--fn", function, *ASKED[function], "--save", plan)
    assert done.status == 0 and f"wrote {plan}" in done.out
    return plan


def no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a plan was given, and another one looked for")

    monkeypatch.setattr(hardware, "_choose", refuse)


@pytest.mark.parametrize("function", ASKED)
def test_what_is_built_comes_out_of_the_plan_again(
    kera: Kera, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    call = ["build", path, "--fn", function, "--emit", "verilog", "-o"]
    assert kera(*call, tmp_path / "asked", *ASKED[function]).status == 0
    plan = saved(kera, path, function)
    no_search(monkeypatch)
    for given in (plan, tmp_path / "asked" / "plan.json"):
        assert kera(*call, tmp_path / "again", "--plan", given).status == 0
        for file in (f"{function}.v", "plan.json", f"{function}.keg"):
            assert (tmp_path / "again" / file).read_bytes() == (tmp_path / "asked" / file).read_bytes()
    request = json.loads((tmp_path / "again" / "receipt.json").read_text())["request"]
    assert request["plan"]["decision"]["plan"] and "plan" not in json.loads(
        (tmp_path / "asked" / "receipt.json").read_text()
    )["request"]
    assert kera("verify", "--receipt", tmp_path / "again").status == 0


def test_every_command_takes_the_plan(
    kera: Kera, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = saved(kera, path)
    no_search(monkeypatch)
    headline = kera("plan", path, "--fn", "mac", "--plan", plan, "--json").json
    assert (headline["target"], headline["clock_mhz"]) == ("fpga:ecp5-25k", 200)
    data = kera("verify", path, "--fn", "mac", "--plan", plan, "--vectors", "9", "--json").json
    assert data["equal"] and data["plans"]["rtl"]["decided"] == headline["decided"]
    call = ["run", path, "--fn", "mac", "--plan", plan, "-i", "a=[1,2,3]", "-i", "b=[4,5,6]"]
    ran = kera(*call, "--json").json
    assert (ran["target"], ran["device"], ran["result"]) == ("rtl", "ecp5-25k", 32)
    tested = kera("test", path, "--plan", plan, "--json").json
    assert tested["target"] == "rtl" and tested["tests"][0]["simulated"] == [{"function": "mac", "line": 8}]
    mac = kera_hw.load(path).function("mac", plan=plan)
    assert json.loads(json.dumps(mac.plan)) == data["plans"]["rtl"]
    assert mac(a=[1, 2, 3], b=[4, 5, 6]) == 32


def test_a_decision_may_be_changed_by_hand(kera: Kera, path: Path) -> None:
    plan = saved(kera, path)
    text = plan.read_text()
    assert "\nblocks = 2\n" in text
    plan.write_text(text.replace("\nblocks = 2\n", "\nblocks = 0\n"))
    done = kera("plan", path, "--fn", "mac", "--plan", plan)
    assert done.status == 1 and "error[K0822]" in done.err and "another circuit" in done.err
    lines = [line for line in plan.read_text().splitlines() if not line.startswith("plan = ")]
    plan.write_text("\n".join(lines))
    data = kera("verify", path, "--fn", "mac", "--plan", plan, "--vectors", "50", "--json").json
    assert data["equal"] and data["plans"]["rtl"]["estimate"]["dsp"] == 0


WRONG: dict[str, tuple[Callable[[str], str], str]] = {
    "another graph": (lambda text: text.replace("sha3-256:", "sha3-256:0"), "`mac` has changed"),
    "another function": (lambda text: text.replace('"mac"', '"slow"'), "for `slow`, not for `mac`"),
    "another device": (lambda text: text.replace('"ecp5-25k"', '"ecp5-99k"'), "no device `ecp5-99k`"),
    "no format": (lambda text: text.replace("circuit-plan-1", "circuit-plan-9"), "`format` is not"),
    "no scale": (lambda text: text.replace("scale = 1.0", "scale = true"), "`scale` is not"),
    "an unknown option": (lambda text: text.replace("[options]", "[options]\nx = 1"), "`x` is not"),
    "an unknown decision": (lambda text: text.replace("[decision]", "[decision]\nx = 1"), "`x` is not"),
    "other controls": (lambda text: text.replace('"shared"', '"odd"'), "`controls` is not"),
    "no circuit": (lambda text: text.replace("clock_ps", 'finer = "x"\nclock_ps'), "leads to no circuit"),
    "no clock": (lambda text: text.replace("clock_ps = ", "clock_ps = -"), "K0908"),
    "no graph": (lambda text: "\n".join(text.splitlines()[3:]), "is missing"),
    "no TOML": (lambda text: text + "]", "neither TOML nor JSON"),
    "JSON of something else": (lambda _: '{"decided": 3}', "JSON without `decided`"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_plan_that_does_not_fit_is_refused(kera: Kera, path: Path, fault: str) -> None:
    plan = saved(kera, path)
    change, said = WRONG[fault]
    text = plan.read_text()
    assert change(text) != text
    plan.write_text(change(text))
    done = kera("verify", path, "--fn", "mac", "--plan", plan)
    assert done.status in (1, 2) and said in done.err, done.err
    assert said == "K0908" or "device" in fault or "error[K0822]" in done.err


def test_a_plan_of_loops_and_other_options_are_refused(kera: Kera, path: Path, tmp_path: Path) -> None:
    plan = saved(kera, path)
    others = (["--clock", "100MHz"], ["--target", "fpga:ecp5-85k"], ["--interface", "none"], ["--ii", "2"])
    for more in others:
        done = kera("verify", path, "--fn", "mac", "--plan", plan, *more)
        assert done.status == 1 and "error[K0822]" in done.err and "is asked for" in done.err
    same: list[Any] = ["--clock", "0.2GHz", "--device", "ecp5-25k"]
    assert kera("verify", path, "--fn", "mac", "--plan", plan, *same, "--vectors", "5").status == 0
    loops = tmp_path / "loops.toml"
    assert kera("plan", path, "--fn", "mac", "--save", loops).status == 0
    done = kera("build", path, "--fn", "mac", "--plan", loops, "-o", tmp_path / "o")
    assert "error[K0822]" in done.err and "plan of loops" in done.err
    done = kera("run", path, "--fn", "mac", "--plan", tmp_path / "none.toml", "-i", "a=[1,2,3]")
    assert done.status == 2 and "error[K0901]" in done.err
