"""Shapes of trees, and the typed views' accessors, on whole and on broken input."""
from __future__ import annotations

import inspect
from pathlib import Path
from typing import cast

import pytest

from kera_hw.frontend.parser import parse
from kera_hw.frontend.syntax import SyntaxKind, ast
from kera_hw.support import SourceFile, Span

PROGRAM = Path(__file__).with_name("syntax_program.kera")


def expr(text: str) -> ast.Expr:
    unit, diagnostics = parse(SourceFile.from_text(f"const A: T = {text};"))
    assert not diagnostics
    value = cast(ast.ConstItem, unit.items[0]).value
    assert value is not None
    return value


def shape(view: ast.Expr | None) -> str:
    """An expression with all its groups bracketed."""
    if isinstance(view, ast.Binary):
        return f"({shape(view.lhs)} {view.op} {shape(view.rhs)})"
    if isinstance(view, ast.Unary):
        return f"({view.op} {shape(view.operand)})"
    if isinstance(view, ast.Borrow):
        return f"(& {shape(view.operand)})"
    if isinstance(view, ast.Cast):
        return f"({shape(view.operand)} as {view.type.text if view.type else None})"
    if isinstance(view, ast.Range):
        return f"({shape(view.start)} {'..=' if view.inclusive else '..'} {shape(view.end)})"
    if isinstance(view, ast.Field):
        return f"{shape(view.base)}.{view.name}"
    if isinstance(view, ast.MethodCall):
        return f"{shape(view.receiver)}.{view.name}!"
    return view.text if view else "-"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * c", "(a + (b * c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a | b ^ c & d << e + f", "(a | (b ^ (c & (d << (e + f)))))"),
        ("a || b && c == d | e", "(a || (b && (c == (d | e))))"),
        ("a >> b >= c", "((a >> b) >= c)"),
        ("-x as u8 * y", "(((- x) as u8) * y)"),
        ("!a.b", "(! a.b)"),
        ("&v.0.1", "(& v.0.1)"),
        ("x as u32 < y", "((x as u32) < y)"),
        ("x as fix<8, 4> < y", "((x as fix<8, 4>) < y)"),
        ("x as u8 << 2", "((x as u8) << 2)"),
        ("a + 1 .. b * 2", "((a + 1) .. (b * 2))"),
        ("..=b", "(- ..= b)"),
        ("a..", "(a .. -)"),
        ("a - -1", "(a - -1)"),
        ("- -x", "(- (- x))"),
        ("-1.abs()", "-1.abs!"),
        ("1.max(a)", "1.max!"),
    ],
)
def test_precedence(text: str, expected: str) -> None:
    assert shape(expr(text)) == expected


def test_calls() -> None:
    call = expr("f::<8, u8, N, N + 1>(a, axis: 1)")
    assert isinstance(call, ast.Call)
    assert call.name == "f"
    assert [arg.name for arg in call.args] == [None, "axis"]
    size, typed, bare, computed = call.turbofish
    assert isinstance(size.expr, ast.Literal)
    assert isinstance(typed.type, ast.NameType)
    assert bare.bare_path is not None
    assert bare.bare_path.name == "N"
    assert isinstance(computed.expr, ast.Binary)
    method = expr("a.at(i, else: v)")
    assert isinstance(method, ast.MethodCall)
    assert [arg.name for arg in method.args] == [None, "else"]


def test_brackets() -> None:
    index = expr("a[i, 0..2]")
    assert isinstance(index, ast.Index)
    assert [type(entry) for entry in index.entries] == [ast.PathExpr, ast.Range]
    repeat = expr("[0u8; M, N]")
    assert isinstance(repeat, ast.ArrayRepeat)
    assert len(repeat.dims) == 2
    assert isinstance(expr("(a)"), ast.ParenExpr)
    assert isinstance(expr("(a,)"), ast.TupleExpr)
    assert isinstance(expr("()"), ast.TupleExpr)
    literal = expr("S { a: 1, b }")
    assert isinstance(literal, ast.StructLit)
    assert [(f.name, f.is_shorthand) for f in literal.fields] == [("a", False), ("b", True)]


def body(text: str) -> ast.Block:
    unit, diagnostics = parse(SourceFile.from_text(f"stream s() {{ {text} }}"))
    assert not diagnostics
    block = cast(ast.StreamItem, unit.items[0]).body
    assert block is not None
    return block


def test_statements() -> None:
    block = body(
        "state z: u8 = 0; state f: fir; let mut a: u8 = 1; a >>= 2; z = a; if a { } for i: u4 in 0..4 { } "
        "while a < 3, max 8 { } const K: u8 = 1; match a { _ => 1 }; a"
    )
    assert [type(s).__name__ for s in block.statements] == [
        "StateStmt", "StateStmt", "LetStmt", "AssignStmt", "AssignStmt", "ExprStmt", "ForStmt", "WhileStmt",
        "ConstItem", "ExprStmt",
    ]
    assert isinstance(block.tail, ast.PathExpr)
    shift = block.statements[3]
    assert isinstance(shift, ast.AssignStmt)
    assert (shift.op, shift.binary_op) == (">>=", ">>")
    loop = block.statements[7]
    assert isinstance(loop, ast.WhileStmt)
    assert loop.condition is not None
    assert loop.condition.text == "a < 3"
    assert loop.bound is not None
    assert loop.bound.text == "8"


@pytest.mark.parametrize("text", ["if a { 1 } else { 2 }", "match a { _ => 1 }", "{ 1 }", "f(x)"])
def test_the_last_expression_is_the_value(text: str) -> None:
    assert body("a; " + text).tail is not None
    assert body(text + ";").tail is None


def test_if_parts() -> None:
    choice = expr("if a { 1 } else if b { 2 } else { 3 }")
    assert isinstance(choice, ast.If)
    assert choice.condition is not None
    assert choice.condition.text == "a"
    assert choice.then_block is not None
    assert isinstance(choice.else_branch, ast.If)
    assert isinstance(choice.else_branch.else_branch, ast.Block)


def test_match_patterns() -> None:
    choice = expr("match x { 0 | -1 => a, 3..=7 => b, (A, true) => c, 8.. => d, _ => e }")
    assert isinstance(choice, ast.Match)
    kinds = [type(arm.pattern).__name__ for arm in choice.arms]
    assert kinds == ["OrPattern", "RangePattern", "TuplePattern", "RangePattern", "WildcardPattern"]
    assert [arm.body.text if arm.body else "" for arm in choice.arms] == list("abcde")


def test_docs_belong_to_what_follows() -> None:
    text = "// head\n\n/// one\n/// two\nfn f() { }\n\n/// three\n\nfn g() { }\n"
    unit, _ = parse(SourceFile.from_text(text))
    first, second = unit.items
    assert first.docs == "one\ntwo"
    assert second.docs == ""
    assert second.span == Span(text.index("fn g"), len(text) - 1)


def test_nodes_hold_no_trivia_at_their_edges() -> None:
    unit, _ = parse(SourceFile("p", PROGRAM.read_bytes()))
    for node in unit.node.descendants():
        if node.kind is not SyntaxKind.SOURCE_UNIT and node.elements:
            assert node.elements[-1].kind is not SyntaxKind.WHITESPACE
            assert node.elements[0].kind is not SyntaxKind.WHITESPACE


def test_tokens_are_found_by_offset() -> None:
    unit, _ = parse(SourceFile.from_text("fn f() { abc }"))
    token = unit.node.token_at(10)
    assert token is not None
    assert token.text == "abc"
    assert unit.node.token_at(99) is None


def test_views_are_equal_by_node() -> None:
    unit, _ = parse(SourceFile.from_text("fn f() { }"))
    assert unit.items[0] == unit.items[0]
    assert len({unit.items[0], unit.items[0]}) == 1


def touch(unit: ast.SourceUnit) -> None:
    """Call every accessor of every view."""
    for node in unit.node.descendants():
        view = ast.cast(node)
        for name, _ in inspect.getmembers(type(view), lambda member: isinstance(member, property)):
            getattr(view, name)


def test_accessors_bear_missing_parts() -> None:
    data = PROGRAM.read_bytes()
    for cut in range(0, len(data), 41):
        touch(parse(SourceFile("p", data[:cut]))[0])
        touch(parse(SourceFile("p", data[:cut] + data[cut + 5:]))[0])


def test_the_projects_programs_parse() -> None:
    root = Path(__file__).parents[2]
    paths = [path for folder in ("examples", "docs", "bench") for path in (root / folder).rglob("*.kera")]
    for path in [PROGRAM, *paths]:
        unit, diagnostics = parse(SourceFile(path.name, path.read_bytes()))
        assert not diagnostics, path
        assert unit.node.data == path.read_bytes()
