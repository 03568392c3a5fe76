"""The index proof sees what a program computes and not how it is put: other words for it, or unrelated code
beside it, never change the verdict."""
from __future__ import annotations

import itertools
import re

import pytest

from tests.unit.test_ranges_idioms import PROVED, REFUSED, refusals

TEXTS = {**PROVED, **{name: text for name, (text, _) in REFUSED.items()}}

# Counters, sums, constants, loops and a machine of its own, in the way of the widening of anything else.
UNRELATED = """
    let zu = (zz_a + 10) ^ (zz_a * 20) ^ 77; zz_a = zu + 3; zz_e += (zu as u32) * 19595;
    if zz_b == 200 { zz_b = 0; if zz_c == 31 { zz_c = 0; } else { zz_c += 1; } } else { zz_b += 1; }
    if zz_up { zz_d += 2; if zz_d >= 40 { zz_up = false; } }
    else { zz_d -= 1; if zz_d == 0 { zz_up = true; } }
    for zi in 0..3 { zz_e ^= (zi as u32) + 1000; }
"""
HELD = [("zz_a", "u8", "5"), ("zz_b", "u8", "0"), ("zz_c", "u8", "1"), ("zz_d", "u8", "0"),
        ("zz_e", "u32", "9"), ("zz_up", "bool", "true")]


def beside_unrelated(text: str, at_end: bool) -> str:
    """Unrelated code before the body of ``f``, or after its statements."""
    start = re.search(r"(stream|fn) f\([^{]*\{", text)
    assert start is not None
    kind = "state" if start.group(1) == "stream" else "let mut"
    head = " ".join(f"{kind} {name}: {type_} = {value};" for name, type_, value in HELD)
    body = text[start.end():]
    if not at_end:
        states = list(re.finditer(r"state \w+: [^;]*(?:\[[^\]]*\][^;]*)?=[^;]*(?:;[^;\]]*\][^;]*)?;", body))
        cut = states[-1].end() if states else 0
        return text[:start.end()] + head + body[:cut] + UNRELATED + body[cut:]
    close = body.rindex("}")
    depth, cut = 0, close
    for position in range(close - 1, -1, -1):  # the last statement's end: the body's value stands after it
        depth += {"}": 1, ")": 1, "]": 1, "{": -1, "(": -1, "[": -1}.get(body[position], 0)
        if depth == 0 and body[position] == ";":
            cut = position + 1
            break
    else:
        cut = 0
    return text[:start.end()] + head + body[:cut] + UNRELATED + body[cut:]


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("name", TEXTS)
def test_unrelated_code_changes_nothing(name: str, at_end: bool) -> None:
    assert refusals(beside_unrelated(TEXTS[name], at_end)) == refusals(TEXTS[name])


@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if "struct" not in text])
def test_names_change_nothing(name: str) -> None:
    text = TEXTS[name]
    declared = set(re.findall(r"(?:state|let mut|let|for|const) (\w+)", text)) - {"mut"}
    pattern = re.compile(r"\b(" + "|".join(sorted(declared)) + r")\b(?!\()")
    assert refusals(pattern.sub(lambda m: f"{m.group(1)}_{m.group(1)}_9", text)) == refusals(text)


CONDITIONS = {
    "inline": ("", "x == L"), "turned": ("", "L == x"), "at least": ("", "x >= L"),
    "negated": ("", "!(x != L)"),
    "named": ("let c = x == L;", "c"),
    "named twice": ("let a = x == L; let c = a;", "c"),
    "named negation": ("let more = x < L; let c = !more;", "c"),
    "in a tuple": ("let (c, _d) = (x == L, v);", "c"),
    "of a copy": ("let y = x; let c = y == L;", "c"),
    "of the next": ("let n = x + 1; let c = n == L + 1;", "c"),
    "in a function": ("", "last(x)"),
    "in a function that branches": ("", "chosen(x, v > 3)"),
    "compared with true": ("let c = (x == L) == true;", "c"),
    "mutable": ("let mut c = false; c = x == L;", "c"),
}
STEPS = {
    "statement": "if C { x = 0; } else { x += 1; }",
    "expression": "x = if C { 0 } else { x + 1 };",
    "default first": "let mut n = x + 1; if C { n = 0; } x = n;",
    "function of the condition": "x = stepped(C, x);",
    "through a borrow": "step(&mut x, C);",
    "match": "x = match C { true => 0, false => x + 1 };",
    "select": "x = select(C, 0, x + 1);",
    "named value": "let n = x + 1; let m = if C { 0 } else { n }; x = m;",
    "under an enable": "if v > 3 { if C { x = 0; } else { x += 1; } }",
    "in a block": "x = { let n = if C { 0 } else { x + 1 }; n };",
}
REMAINDERS = ["x = (x + 1) % M;", "x = wrapped(x);", "let n = x + 1; x = n % M;", "x += 1; x %= M;",
              "x = if x + 1 < M { x + 1 } else { 0 };", "x = next(x);", "x = next(next(x));"]


def counter(before: str, step: str, limit: int) -> str:
    return f"""const L: u8 = {limit}; const M: u8 = {limit + 1};
        fn last(x: u8) -> bool {{ x == L }}
        fn chosen(x: u8, wide: bool) -> bool {{ if wide {{ x >= L }} else {{ x == L }} }}
        fn stepped(c: bool, x: u8) -> u8 {{ if c {{ 0 }} else {{ x + 1 }} }}
        fn step(x: &mut u8, c: bool) {{ if c {{ x = 0; }} else {{ x += 1; }} }}
        fn wrapped(x: u8) -> u8 {{ (x + 1) % M }}
        fn next(x: u8) -> u8 {{ let top = last(x); stepped(top, x) }}
        stream f(v: u8) -> u8 {{
            state x: u8 = 0; state l: [u8; 10] = [0; 10];
            let out = l[x]; l[x] = v; {before} {step} out }}"""


@pytest.mark.parametrize("how", CONDITIONS)
def test_every_way_to_write_a_counter_is_one(how: str) -> None:
    before, condition = CONDITIONS[how]
    for step in STEPS.values():
        text = step.replace("C", condition)
        assert refusals(counter(before, text, 9)) == [], text
        found = refusals(counter(before, text, 10))
        assert found and all("may be 0 to 10" in message for message in found), text


def test_every_way_to_write_a_remainder_is_one() -> None:
    for step, limit in itertools.product(REMAINDERS, (9, 10)):
        assert bool(refusals(counter("", step, limit))) == (limit == 10), step
