"""Lints: each said once, at its place; nothing said of what is right; what suggestions make of programs."""
from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from kera_hw.driver.session import load_program
from kera_hw.frontend.compile import Frontend, compile_source
from kera_hw.interp import run_export
from kera_hw.support import LINTS, Diagnostic, Severity, SourceFile
from tests.errors.lint_rows import ROWS, SILENT
from tests.errors.test_sema_errors import MODULES, marked
from tests.tidy.repo import ROOT
from tests.unit.cli_support import Kera

#: Programs of ours in which the lint is right and the test wants it so.
_MEANT = {
    "tests/programs/language/control.kera": ["K0350"],
    "tests/programs/language/scalars.kera": ["K0351", "K0351"],
}


def compiled(text: str) -> Frontend:
    def load(name: str) -> SourceFile | None:
        return SourceFile.from_text(MODULES[name], f"{name}.kera") if name in MODULES else None

    return compile_source(SourceFile.from_text(text, "main.kera"), load)


def applied(text: str, item: Diagnostic) -> str | None:
    """The text with the suggestion carried out; None where there is only advice."""
    fix = item.fix
    if fix is None or fix.span is None or fix.replacement is None:
        return None
    data = text.encode()
    return (data[: fix.span.start] + fix.replacement.encode() + data[fix.span.end:]).decode()


@pytest.mark.parametrize(("code", "text", "fixed"), ROWS, ids=[f"{row[0]}-{row[1][:60]}" for row in ROWS])
def test_one_lint(code: str, text: str, fixed: str | None) -> None:
    source, spans = marked(text)
    found = compiled(source)
    shown = [(item.code, item.message) for item in found.diagnostics]
    assert found.graph is not None, shown
    assert [item.code for item in found.diagnostics] == [code], shown
    item = found.diagnostics[0]
    assert [item.span] == spans and item.severity is Severity.WARNING and item.code in LINTS
    made = applied(source, item)
    if fixed is not None:
        assert made == fixed
        assert compiled(fixed).diagnostics == ()
    elif made is not None:
        assert compiled(made).diagnostics == ()


@pytest.mark.parametrize("text", SILENT, ids=[text[:70] for text in SILENT])
def test_nothing_to_say(text: str) -> None:
    found = compiled(text)
    assert found.graph is not None and found.diagnostics == (), found.diagnostics


def test_every_lint_has_a_row() -> None:
    assert {code for code, _, _ in ROWS} == LINTS


def test_a_program_with_mistakes_has_no_lints() -> None:
    found = compiled("pub fn f(x: u8, y: u8) -> u16 { let z = 1; x }")
    assert [item.code for item in found.diagnostics] == ["K0302"]


def test_functions_that_reach_each_other_only_are_all_unused() -> None:
    found = compiled("fn g() -> u8 { h() } fn h() -> u8 { N } const N: u8 = 1; pub fn f(x: u8) -> u8 { x }")
    assert [item.code for item in found.diagnostics] == ["K0253", "K0253", "K0254"]


def test_modules_are_not_linted_through_their_importers() -> None:
    found = compile_source(
        SourceFile.from_text("use m::g; pub fn f(x: u8) -> u8 { g(x) }", "main.kera"),
        lambda name: SourceFile.from_text("fn g(x: u8) -> u8 { let y = x << 8; x }", f"{name}.kera"),
    )
    assert found.graph is not None and found.diagnostics == ()


@pytest.mark.parametrize("folder", ["examples", "tests/programs", "bench/kernels"])
def test_our_programs_have_none(folder: str) -> None:
    for path in sorted((ROOT / folder).rglob("*.kera")):
        codes = [item.code for item in load_program(path).diagnostics if item.code in LINTS]
        assert codes == _MEANT.get(path.relative_to(ROOT).as_posix(), []), path


# ---------------------------------------------------------------- what lints claim, tried on all inputs

def _value(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["x", "y", "low", str(rng.randrange(16))])
    operator = rng.choice(["&", "|", "^", "%", "/", ">>", "<<", "+", "-", "*"])
    return f"({_value(rng, depth - 1)} {operator} {_value(rng, depth - 1)})"


def test_what_is_said_of_a_value_holds_for_all_inputs() -> None:
    rng, told = random.Random(5), 0
    x, y = (side.ravel().astype(np.uint8) for side in np.meshgrid(np.arange(16), np.arange(16)))
    for _ in range(300):
        operator = rng.choice(["==", "!=", "<", "<=", ">", ">="])
        body = f"{_value(rng, 2)} {operator} {_value(rng, 1)}"
        found = compiled(f"pub fn f(x: u4, y: u4) -> bool {{ let low: u4 = (x ^ y) & 3; {body} }}")
        said = [item.message for item in found.diagnostics if item.code == "K0353"]
        if found.graph is None or not said:
            continue
        values = run_export(found.graph.exports[0], {"x": x, "y": y}, True)
        assert set(np.asarray(values).tolist()) == {"always true" in said[0]}, (body, said)
        told += 1
    assert told > 10


# ---------------------------------------------------------------- the command line


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "p.kera"
    path.write_text('pub fn f(x: u8) -> u8 { let y = x; x }\ntest "t" { assert_eq(f(1), 1); }\n')
    return path


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


def test_warnings_leave_the_status_alone_unless_denied(kera: Kera, program: Path) -> None:
    fine = kera("check", program)
    assert fine.status == 0 and "1 warning" in fine.out and fine.err.count("warning[K0250]") == 1
    denied = kera("check", "--deny-warnings", program)
    assert denied.status == 1 and denied.err.count("warning[K0250]") == 1


@pytest.mark.parametrize("command", ["check", "plan"])
def test_json_has_each_warning_once(kera: Kera, program: Path, command: str) -> None:
    found = kera(command, "--json", program)
    assert found.status == 0 and found.json["ok"]
    assert [(item["code"], item["severity"]) for item in found.json["diagnostics"]] == [("K0250", "warning")]


def test_denied_warnings_in_json(kera: Kera, program: Path) -> None:
    found = kera("check", "--json", "--deny-warnings", program)
    assert found.status == 1 and not found.json["ok"]


@pytest.mark.parametrize(("command", "times"), [("plan", 1), ("test", 0), ("inspect", 0)])
def test_lints_show_where_a_program_is_checked_or_built(
    kera: Kera, program: Path, command: str, times: int,
) -> None:
    found = kera(command, program)
    assert found.status == 0 and found.err.count("K0250") == times
