"""Plans of loops on the command line: made, explained, saved, edited, replayed, and refused with the step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli_support import Kera

SMOOTH = """
pub fn smooth(x: [u8; 34]) -> [u16; 34] {
    let w = x as u16;
    (w * w) + (w + 1)
}
"""


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


@pytest.fixture
def smooth(tmp_path: Path) -> Path:
    path = tmp_path / "smooth.kera"
    path.write_text(SMOOTH)
    return path


def test_a_plan_is_explained(kera: Kera, smooth: Path) -> None:
    done = kera("plan", smooth, "--explain")
    assert done.status == 0 and done.err == ""
    head, _, rest = done.out.partition("\n")
    assert head.startswith("smooth: ") and "loops 7 -> 1, buffers 6 -> 0" in head
    assert "bytes held 408 -> 0" in head
    assert "rounds less; `t1` is used as it is made" in rest and "68 bytes not held" in rest
    assert "parallel" in rest and "temp" not in rest


def test_a_plan_is_saved_edited_and_replayed(kera: Kera, smooth: Path, tmp_path: Path) -> None:
    saved = tmp_path / "p.toml"
    made = kera("plan", smooth, "--save", saved, "--json").json
    again = kera("plan", smooth, "--plan", saved, "--json").json
    assert made["plan"] == again["plan"] and made["planned_program"] == again["planned_program"]
    assert [step["reason"] for step in made["steps"]] == [step["reason"] for step in again["steps"]]
    loop = made["loops"].split("parallel ")[1].split()[0]
    with saved.open("a") as file:
        file.write(f'[[step]]\ntransform = "vectorise"\narguments = ["{loop}", 8]\n')
    edited = kera("plan", smooth, "--plan", saved, "--explain")
    assert edited.status == 0 and "vector " in edited.out
    assert f"vectorise {loop} 8: as the plan says" in edited.out
    assert kera("plan", smooth, "--plan", saved, "--json").json["plan"] != made["plan"]


def test_a_step_that_does_not_apply_is_shown(kera: Kera, smooth: Path, tmp_path: Path) -> None:
    saved = tmp_path / "p.toml"
    kera("plan", smooth, "--save", saved)
    text = saved.read_text()
    saved.write_text(text + '[[step]]\ntransform = "unroll"\narguments = ["i99"]\n')
    done = kera("plan", smooth, "--plan", saved)
    assert done.status == 1 and "error[K0821]" in done.err
    line = text.count("\n") + 1
    assert f"{saved}:{line}:1" in done.err
    assert "`unroll i99`, does not apply: There is no loop `i99`." in done.err
    assert "another one than the plan was made for" not in done.err
    smooth.write_text(smooth.read_text().replace("+ (w + 1)", ""))
    done = kera("plan", smooth, "--plan", saved)
    assert "error[K0821]" in done.err and "another one than the plan was made for" in done.err
    other = smooth.with_name("other.kera")
    other.write_text(smooth.read_text().replace("smooth", "other"))
    done = kera("plan", other, "--plan", saved)
    assert "it is one for `smooth`, not for `other`" in done.err


def test_what_cannot_be_asked(kera: Kera, smooth: Path, tmp_path: Path) -> None:
    done = kera("plan", smooth, "--plan", tmp_path / "none.toml")
    assert done.status == 2 and "error[K0901]" in done.err and "none.toml does not exist" in done.err
    for extra in (["--svg", tmp_path / "x.svg"], ["--clock", "100MHz"]):
        done = kera("plan", smooth, "--loops", *extra)
        assert done.status == 2 and "no target in particular" in " ".join(done.err.replace("│", " ").split())


def test_loops_are_shown_as_processors_take_them(kera: Kera, smooth: Path) -> None:
    plain, native = (kera("inspect", smooth, "--loops", *more).out for more in ((), ("--native",)))
    assert "convert.cast" in plain and native.count("load") == plain.count("load")
    path = smooth.with_name("half.kera")
    path.write_text("pub fn half(x: f16, y: f16) -> f16 { x * y }\n")
    assert "in.x: param u16" in kera("inspect", path, "--loops", "--native").out
    shown = kera("inspect", path, "--loops", "--capability", "f16-arithmetic").out
    assert "floating.mul v" in shown and ": f16 = floating.mul" in shown
    wrong = kera("inspect", path, "--loops", "--native", "--capability", "f17")
    assert wrong.status != 0 and "K0905" in wrong.err and "f16-arithmetic" in wrong.err


@pytest.mark.parametrize("level, product", [("x86-64-avx2", "vpmull"), ("aarch64", "mul")])
def test_machine_code_stands_under_the_lines_that_it_is_for(
    kera: Kera, smooth: Path, level: str, product: str
) -> None:
    """No processor of the level is needed."""
    done = kera("inspect", smooth, "--fn", "smooth", "--asm", level)
    assert done.status == 0, done.err
    stretches = [part.partition("\n") for part in done.out.split("\n; ")[1:]]
    assert any(
        head.endswith(":4: (w * w) + (w + 1)") and product in code for head, _, code in stretches
    ), done.out
    refused = kera("inspect", smooth, "--fn", "smooth", "--asm", "z80")
    assert refused.status != 0 and "K0903" in refused.err and "x86-64-avx512" in refused.err
