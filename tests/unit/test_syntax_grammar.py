"""The grammar in docs/language.md and the parser hold each other: drawn sentences parse cleanly."""
from __future__ import annotations

import pytest

from kera_hw.frontend.parser import parse
from kera_hw.frontend.syntax import SyntaxKind
from kera_hw.support import SourceFile, render_diagnostics
from tests.unit.syntax_sentences import LANGUAGE_PAGE, Sentences, read_grammar

GRAMMAR = read_grammar()
NEVER_DRAWN = {SyntaxKind.ERROR, SyntaxKind.SOURCE_UNIT}


#: Rules to begin with and the file around them: inner ones too, or items' heads would use up the budget.
STARTS = {
    "source_unit": "{}", "item": "{}", "body": "fn f ( ) {}", "expression": "const A : T = {} ;",
    "statement": 'test "t" {{ {} }}', "match": "fn f ( ) {{ {} }}",
}


def file_with(sentences: Sentences, number: int) -> str:
    """A file around a sentence, the starting rules in turn."""
    start, frame = list(STARTS.items())[number % len(STARTS)]
    return frame.format(sentences.draw(start, budget=20 + number % 150))


def check(text: str) -> set[SyntaxKind]:
    unit, diagnostics = parse(SourceFile.from_text(text))
    assert not diagnostics, text + "\n" + render_diagnostics(diagnostics)
    assert unit.node.text == text
    return {node.kind for node in unit.node.descendants()}


def test_sentences_parse_and_reach_every_node() -> None:
    nodes: set[SyntaxKind] = set()
    sentences = Sentences(GRAMMAR, seed=1)
    for number in range(500):
        nodes |= check(file_with(sentences, number))
    assert {kind for kind in SyntaxKind if kind.is_node} - NEVER_DRAWN <= nodes
    assert set(GRAMMAR) <= sentences.used


@pytest.mark.long
def test_many_sentences() -> None:
    sentences = Sentences(GRAMMAR, seed=2)
    for number in range(30_000):
        check(file_with(sentences, number))


def test_every_rule_is_defined_and_used() -> None:
    text = LANGUAGE_PAGE.read_text(encoding="utf-8").split("```ebnf\n")[1].split("```")[0]
    for name in GRAMMAR:
        assert name == "source_unit" or text.count(name) > 1, name


def test_a_dropped_token_is_noticed() -> None:
    """The check above can fail: sentences with a token taken out mostly do not parse."""
    refused = 0
    sentences = Sentences(GRAMMAR, seed=3)
    for _ in range(100):
        words = sentences.draw("item", budget=60).split(" ")
        del words[len(words) // 2]
        refused += bool(parse(SourceFile.from_text(" ".join(words)))[1])
    assert refused > 60


def test_the_page_example_parses() -> None:
    for block in LANGUAGE_PAGE.read_text(encoding="utf-8").split("```kera\n")[1:]:
        check(block.split("```")[0])
