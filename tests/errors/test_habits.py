"""Habits of other languages: one diagnostic each, which shows what to write in Kera."""
from __future__ import annotations

import re

import pytest

from kera_hw.driver.files import module_loader
from kera_hw.frontend.compile import Frontend, compile_source
from kera_hw.frontend.parser import parse
from kera_hw.support import SourceFile
from tests.errors.habit_rows import ROWS
from tests.errors.test_lints import applied
from tests.errors.test_sema_errors import marked
from tests.tidy.repo import ROOT

#: Words of other languages that are names here as good as any.
NAMES = (
    "begin", "end", "case", "do", "not", "lambda", "process", "assign", "always", "initial", "reg", "wire",
    "logic", "signal", "switch", "print", "enum", "def", "func", "module", "class", "import", "static",
    "var", "auto", "int", "uint8_t", "float", "null", "range", "self", "pass", "and", "or", "xor", "mod",
    "is", "then", "elif",
)


def _compiled(text: str) -> Frontend:
    return compile_source(SourceFile.from_text(text, "main.kera"), lambda _: None)


@pytest.mark.parametrize(("code", "text", "advice", "fixed"), ROWS, ids=[row[1][:70] for row in ROWS])
def test_one_answer(code: str, text: str, advice: str, fixed: str | None) -> None:
    source, spans = marked(text)
    found = _compiled(source)
    assert [item.code for item in found.diagnostics] == [code], [item.message for item in found.diagnostics]
    item = found.diagnostics[0]
    assert [item.span] == spans and found.graph is None
    assert (item.fix.message if item.fix is not None else "") == advice
    assert applied(source, item) == fixed
    if fixed is not None:  # a second mistake may show, but this one is gone
        left = [(other.code, other.message, other.span) for other in _compiled(fixed).diagnostics]
        assert (item.code, item.message, item.span) not in left


@pytest.mark.parametrize("name", NAMES)
def test_words_of_other_languages_are_names(name: str) -> None:
    as_variable = (
        f"pub fn f({name}: u8) -> u8 {{\n    let mut y = {name};\n    y += {name};\n"
        f"    let {name} = y + {name};\n    {name}\n}}\n"
    )
    as_function = (
        f"fn {name}(x: u8) -> u8 {{ x }}\n"
        f"pub fn f(x: u8) -> u8 {{\n    let y = {name}(x);\n    {name}(y)\n}}\n"
    )
    for text in (as_variable, as_function):
        found = _compiled(text)
        shown = [item.message for item in found.diagnostics]
        assert found.graph is not None and found.diagnostics == (), shown


@pytest.mark.parametrize("text", [
    "{ f::<8, 9>(a) }", "{ S { a: 1, b: 2 } }", "{ (a, b) }", "{ [a, b] }", "{ g(a, b) }",
    "{ map(a, |x, y| x) }", "{ x as fix<16, 8> }", "{ if a { b } else { c } }", "{ a - -b }",
    "{ match a { 0 => b, _ => c } }",
    "{ a * -b }", "{ !a }", "{ a --b }", "{ x[i..j, 0] }", "{ a < b }",
])
def test_what_only_looks_like_a_habit(text: str) -> None:
    for source in (f"fn f() {text}", f"fn f() {{ let x = {text}; }}", f"fn f() {{ {text}; {text} }}"):
        assert parse(SourceFile.from_text(source))[1] == []


#: A pattern in a right program, and what another language writes there.
_REWRITTEN = (
    (r"\belse if\b", "elif"), (r"&&", "and"), (r"\|\|", "or"), (r"!(?=[a-z(])", "~"), (r"!(?=[a-z])", "not "),
    (r"\b(\w+)\.bits\((\d+), (\d+)\)", r"\1[\2:\3]"), (r"\+= 1\b", "++"),
    (r"\blet mut\b", "var"), (r"\bfn\b", "def"), (r"==", "==="), (r" as (u\d+)\b", r" as uint\1"),
    (r": u8\b", ": uint8_t"), (r"\bfor (\w+) in 0\.\.(\w+)", r"for \1 in range(\2)"), (r"//", "#"),
    (r"if (.*?) \{ (.*?) \} else \{ (.*?) \}", r"\1 ? \2 : \3"), (r"\bconst\b", "static"),
    (r"if (.*?) \{ (.*?) \} else \{ (.*?) \}", r"\2 if \1 else \3"), (r"-> (\w+) \{", r": \1 {"),
    (r"if (.*?) \{ (.*?) \} else \{ (.*?) \}", r"if \1 then \2 else \3"), (r"\bstruct\b", "class"),
    (r"\b(\w+) as (u\d+)\b", r"(\2) \1"), (r"(?<![.\w])(\w+) as (u\d+)\b", r"\2(\1)"),
)


@pytest.mark.parametrize("name", ["filters", "language/circuits", "language/machines"])
def test_a_habit_in_a_program_costs_one_report(name: str) -> None:
    path = ROOT / "tests" / "programs" / f"{name}.kera"
    text = path.read_text("utf-8")
    tried = 0
    for pattern, replacement in _REWRITTEN:
        places = list(re.finditer(pattern, text))
        for match in places[:: max(1, len(places) // 2)][:2]:
            made = text[: match.start()] + match.expand(replacement) + text[match.end():]
            found = compile_source(SourceFile.from_text(made, path.name), module_loader(path))
            errors = [(item.code, item.message) for item in found.diagnostics if item.is_error]
            assert len(errors) == 1, (match.expand(replacement), errors)
            tried += 1
    assert tried > 10
