"""The formatter keeps every token and comment, and formatting twice is formatting once."""
from __future__ import annotations

import random
from pathlib import Path

import pytest

from kera_hw.frontend.parser import format_source, parse
from kera_hw.frontend.syntax import SyntaxKind
from kera_hw.support import SourceFile
from tests.unit.syntax_sentences import Sentences, read_grammar

PROGRAM = Path(__file__).with_name("syntax_program.kera")
GRAMMAR = read_grammar()
SPACES = ["\n", "\n\n\n", " /* c\n x */ ", " // z  \n", "\t", "\n/// doc\n"]


def formatted(text: str) -> str:
    data, diagnostics = format_source(SourceFile.from_text(text))
    assert data is not None, diagnostics
    return data.decode()


def leaves(text: str) -> list[tuple[SyntaxKind, str]]:
    unit, diagnostics = parse(SourceFile.from_text(text))
    assert not diagnostics
    found = [(leaf.kind, leaf.text) for leaf in unit.node.leaves() if leaf.kind is not SyntaxKind.WHITESPACE]
    comments = (SyntaxKind.LINE_COMMENT, SyntaxKind.DOC_COMMENT)
    return [(kind, word.rstrip() if kind in comments else word) for kind, word in found]


def check(text: str) -> None:
    once = formatted(text)
    assert leaves(once) == leaves(text)
    before, after = (parse(SourceFile.from_text(version))[0].node.dump() for version in (text, once))
    assert before == after
    assert formatted(once) == once


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("fn  f( x:u8 )->u8{x+1}", "fn f(x: u8) -> u8 { x + 1 }\n"),
        ("fn f(){\nlet a=-1;\n\n\n\n\tb[ 0 ,1..2 ]=fix::<8,4>( - x ) ;\n}",
         "fn f() {\n    let a = -1;\n\n    b[0, 1..2] = fix::<8, 4>(-x);\n}\n"),
        ("const A:u8=1;const B:u8=2; // b", "const A: u8 = 1;\nconst B: u8 = 2; // b\n"),
        ("fn f() { g(map(x, |a| {\nb\n}),\nc) }",
         "fn f() { g(map(x, |a| {\n    b\n}),\n    c) }\n"),
        ("fn f() -> u8 {\na\n+ b\n}", "fn f() -> u8 {\n    a\n        + b\n}\n"),
        ("fn f() { match x { 1|2=>a, 8.. =>b, ..=7=>c, _=>{} } }",
         "fn f() { match x { 1 | 2 => a, 8.. => b, ..=7 => c, _ => {} } }\n"),
        ("fn f() { & &x; 1. ..2; t.0 .1; 1 .max(2) }", "fn f() { & &x; 1. ..2; t.0.1; 1.max(2) }\n"),
    ],
)
def test_layout(text: str, expected: str) -> None:
    assert formatted(text) == expected
    check(text)


def test_the_sample_program() -> None:
    check(PROGRAM.read_text(encoding="utf-8"))


def test_drawn_programs() -> None:
    sentences = Sentences(GRAMMAR, seed=1)
    rng = random.Random(1)
    for number in range(120):
        text = sentences.draw("source_unit", budget=10 + number % 80)
        check("".join(rng.choice(SPACES) if c == " " and rng.random() < 0.2 else c for c in text))
