"""The lexer's decisions: where tokens end, what their kinds are, what literals are worth."""
from __future__ import annotations

from fractions import Fraction

import pytest

from kera_hw.frontend.parser import parse, tokenize
from kera_hw.frontend.syntax import SyntaxKind, ast
from kera_hw.support import SourceFile


def kinds(text: str) -> str:
    """Significant tokens as `KIND:text`, diagnostics refused."""
    file = SourceFile.from_text(text)
    tokens, diagnostics = tokenize(file)
    assert not diagnostics
    assert b"".join(file.data[t.start:t.end] for t in tokens) == file.data
    return " ".join(
        f"{t.kind.name}:{file.data[t.start:t.end].decode()}" for t in tokens if not t.kind.is_trivia
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1..2", "INT:1 DOT_DOT:.. INT:2"),
        ("0..=N", "INT:0 DOT_DOT_EQ:..= IDENT:N"),
        ("t.0.1", "IDENT:t DOT:. INT:0 DOT:. INT:1"),
        ("t.0 .1e5", "IDENT:t DOT:. INT:0 DOT:. INT:1 IDENT:e5"),
        ("1.max(2.)", "INT:1 DOT:. IDENT:max L_PAREN:( FLOAT:2. R_PAREN:)"),
        ("1.5f16 1f32 1e-3", "FLOAT:1.5f16 FLOAT:1f32 FLOAT:1e-3"),
        ("0x1.8p3 0x1p-2f32", "FLOAT:0x1.8p3 FLOAT:0x1p-2f32"),
        ("0xff.bits(1)", "INT:0xff DOT:. IDENT:bits L_PAREN:( INT:1 R_PAREN:)"),
        ("5i8 0xffu32 1_u8 0x1f32", "INT:5i8 INT:0xffu32 INT:1_u8 INT:0x1f32"),
        ("a>>=b", "IDENT:a GT:> GT:> EQ:= IDENT:b"),
        ("a<<=b", "IDENT:a SHL_EQ:<<= IDENT:b"),
        ("fix<8,4>>", "IDENT:fix LT:< INT:8 COMMA:, INT:4 GT:> GT:>"),
        ("_ _a state test", "UNDERSCORE:_ IDENT:_a IDENT:state IDENT:test"),
        ("a/*/* x */*/b//c\nd", "IDENT:a IDENT:b IDENT:d"),
        ('"a\\"b" c', 'STRING:"a\\"b" IDENT:c'),
        ("\ufefffn", "FN_KW:fn"),
    ],
)
def test_tokens(text: str, expected: str) -> None:
    assert kinds(text) == expected


def test_comments_by_kind() -> None:
    tokens, _ = tokenize(SourceFile.from_text("/// a\n//// b\n// c\n/** d */"))
    comments = [t.kind for t in tokens if t.kind is not SyntaxKind.WHITESPACE]
    assert comments == [
        SyntaxKind.DOC_COMMENT, SyntaxKind.LINE_COMMENT, SyntaxKind.LINE_COMMENT, SyntaxKind.BLOCK_COMMENT,
    ]


def literal(text: str) -> ast.Literal:
    unit, _ = parse(SourceFile.from_text(f"const A: T = {text};"))
    item = unit.items[0]
    assert isinstance(item, ast.ConstItem)
    value = item.value
    assert isinstance(value, ast.Literal)
    return value


@pytest.mark.parametrize(
    ("text", "value", "suffix"),
    [
        ("1_000", 1000, None), ("-0x80i8", -128, "i8"), ("0b1010u4", 10, "u4"), ("- 5", -5, None),
        ("1.5", Fraction(3, 2), None), ("0x1.8p3f32", 12, "f32"), ("1e-3", Fraction(1, 1000), None),
        ("2.", 2, None), ("1e99999", None, None), ("0.1bf16", Fraction(1, 10), "bf16"),
        ("9" * 1001, None, None),
    ],
)
def test_numbers(text: str, value: object, suffix: str | None) -> None:
    number = literal(text)
    assert number.exact_value == value
    assert number.suffix == suffix
    assert number.int_value == (value if number.is_int else None)


def test_strings_and_bools() -> None:
    assert literal(r'"a\n\x41\u{e9}\\\""').string_value == 'a\nA\u00e9\\"'
    assert literal("true").bool_value
    assert not literal("false").bool_value
    assert literal("false").is_bool
