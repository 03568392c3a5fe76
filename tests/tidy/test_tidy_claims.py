"""The pages that define the language are held sentence by sentence (see ``tests/tidy/claims``)."""
from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from kera_hw.driver.session import compile_text, load_program
from kera_hw.frontend.sema.testing import run_tests
from kera_hw.support import SourceFile
from tests.tidy.claims import HERE, claims_of
from tests.tidy.repo import ROOT
from tests.tidy.sentences import sentences, sentences_of

PAGES = {page: claims_of(page) for page in ("language", "semantics")}


@cache
def _labels(page: str) -> dict[str, bool]:
    """The tests of a page's program, and whether each passes."""
    loaded = load_program(HERE / f"{page}.kera")
    assert loaded.frontend is not None and loaded.frontend.program is not None, loaded.diagnostics
    return {result.name: result.passed for result in run_tests(loaded.frontend.program)}


def _refused() -> list[tuple[str, str]]:
    return [item for claims in PAGES.values() for programs in claims.refused.values() for item in programs]


@pytest.mark.parametrize("page", PAGES)
def test_every_sentence_is_held(page: str) -> None:
    claims = PAGES[page]
    held = {*_labels(page), *claims.refused, *claims.elsewhere, *claims.introductions}
    said = sentences_of(ROOT / "docs" / f"{page}.md")
    assert [sentence for sentence in said if sentence not in held] == [], "no test holds these"
    assert held - set(said) == set(), "the page no longer says these"


@pytest.mark.parametrize("page", PAGES)
def test_programs_do_what_the_sentence_says(page: str) -> None:
    assert [name for name, passed in _labels(page).items() if not passed] == []


@pytest.mark.parametrize(("text", "code"), _refused())
def test_programs_are_refused(text: str, code: str) -> None:
    loaded = compile_text(SourceFile("claim.kera", text.encode()), Path("."))
    assert [item.code for item in loaded.diagnostics if item.is_error] == [code]


@pytest.mark.parametrize("page", PAGES)
def test_tests_elsewhere_are_there(page: str) -> None:
    for sentence, place in PAGES[page].elsewhere.items():
        name, _, test = place.partition("::")
        assert (ROOT / name).is_file(), sentence
        tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
        tests = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert test in tests if test else any(one.startswith("test_") for one in tests), sentence


def test_a_page_is_cut_into_sentences() -> None:
    text = "# Head\nOne `a. b` is. Two [is](x.md) **bold**.\n- Three\n  goes on. `Four` too.\n\n| a. | b. |\n"
    assert sentences(text + "```\nno. No.\n```\n") == [
        "One `a. b` is.", "Two is bold.", "Three goes on.", "`Four` too.",
    ]
