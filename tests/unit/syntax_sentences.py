"""Random sentences of the grammar in docs/language.md, which is read and not restated here."""
from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from kera_hw.frontend.parser import deep_recursion

LANGUAGE_PAGE = Path(__file__).parents[2] / "docs" / "language.md"

_EBNF_TOKEN = re.compile(r'"[^"]*"|[A-Za-z_]+|[=,|;(){}\[\]]')

#: Words of every class of token; the fix and space words stay out where they would change the reading.
WORDS = {
    "identifier": ["a", "b1", "N", "x_y", "state", "test", "max", "print", "u32", "step_by"],
    "integer": ["0", "7", "1_000", "0xff", "0b10_1", "5i8", "0xffu32", "12_u64"],
    "float": ["1.5", "2.", "1e-3", "0x1.8p3", "1.5f16", "1f32", "0.5bf16"],
    "string": ['""', '"a_b"', r'"\n\u{e9}\x41\""'],
    "index": ["0", "1", "12"],
}


@dataclass(frozen=True)
class Rule:
    """One EBNF expression: ``kind`` is seq, alt, opt, rep, word (a terminal) or name."""

    kind: str
    parts: tuple[Rule, ...] = ()
    text: str = ""


def read_grammar(page: Path = LANGUAGE_PAGE) -> dict[str, Rule]:
    """The rules of the ```ebnf block of a Markdown page."""
    text = page.read_text(encoding="utf-8").split("```ebnf\n")[1].split("```")[0]
    tokens = _EBNF_TOKEN.findall(text)
    rules: dict[str, Rule] = {}
    position = 0
    while position < len(tokens):
        name = tokens[position]
        assert tokens[position + 1] == "=", f"no `=` after {name}"
        rule, position = _alternatives(tokens, position + 2)
        assert tokens[position] == ";" and name not in rules, f"rule {name}"
        rules[name] = rule
        position += 1
    return rules


def _alternatives(tokens: list[str], position: int) -> tuple[Rule, int]:
    parts: list[Rule] = []
    while True:
        part, position = _sequence(tokens, position)
        parts.append(part)
        if tokens[position] != "|":
            return (parts[0] if len(parts) == 1 else Rule("alt", tuple(parts))), position
        position += 1


def _sequence(tokens: list[str], position: int) -> tuple[Rule, int]:
    parts: list[Rule] = []
    while True:
        token = tokens[position]
        if token in "([{":
            inner, position = _alternatives(tokens, position + 1)
            assert tokens[position] == {"(": ")", "[": "]", "{": "}"}[token]
            parts.append(inner if token == "(" else Rule("opt" if token == "[" else "rep", (inner,)))
        elif token.startswith('"'):
            parts.append(Rule("word", text=token[1:-1]))
        else:
            parts.append(Rule("name", text=token))
        position += 1
        if tokens[position] != ",":
            return (parts[0] if len(parts) == 1 else Rule("seq", tuple(parts))), position
        position += 1


class Sentences:
    """Draws sentences; the rules outside the notation are the methods named ``_rule_*``."""

    def __init__(self, grammar: dict[str, Rule], seed: int) -> None:
        self.grammar = grammar
        self.random = random.Random(seed)
        self.budget = 0
        self.taken: Counter[int] = Counter()  # how often each alternative was, by identity
        self.cost = _costs(grammar)
        self.words: list[str] = []
        self.brackets = 0
        self.heads: list[int] = []
        self.used: set[str] = set()

    def draw(self, start: str, budget: int) -> str:
        """One sentence of a rule, tokens apart by a space; ``budget`` is about the number of tokens."""
        self.words = []
        self.budget = budget
        with deep_recursion():
            self._name(start)
        return " ".join(self.words)

    def _emit(self, word: str) -> None:
        self.words.append(word)
        self.brackets += (word in "([{") - (word in ")]}")

    def _expand(self, rule: Rule) -> None:
        if rule.kind == "word":
            self._emit(rule.text)
        elif rule.kind == "name":
            self._name(rule.text)
        elif rule.kind == "seq":
            for part in rule.parts:
                self._expand(part)
        elif rule.kind == "alt":
            self._expand(self._choose(list(rule.parts)))
        else:
            again = 1 if rule.kind == "opt" else 3
            while again and self._affordable(rule.parts[0]) and self.random.random() < 0.5:
                self._expand(rule.parts[0])
                again -= 1

    def _affordable(self, rule: Rule) -> bool:
        return len(self.words) + _cost(rule, self.cost) < self.budget

    def _choose(self, parts: list[Rule]) -> Rule:
        parts = [part for part in parts if not self._rule_head(part)]
        open_to_us = [part for part in parts if self._affordable(part)]
        if not open_to_us:
            return min(parts, key=lambda part: _cost(part, self.cost))
        # Half of the time what was taken least, so that the rare corners come up too.
        self.random.shuffle(open_to_us)
        rarest = self.random.random() < 0.5
        chosen = min(open_to_us, key=lambda part: self.taken[id(part)]) if rarest else open_to_us[0]
        self.taken[id(chosen)] += 1
        return chosen

    def _rule_head(self, part: Rule) -> bool:
        """Rule 2: whether a head forbids the alternative."""
        in_head = bool(self.heads) and self.heads[-1] == self.brackets
        return in_head and part.kind == "name" and part.text in ("struct_literal", "block")

    def _name(self, name: str) -> None:
        self.used.add(name)
        if name in WORDS:
            self._emit(self.random.choice(WORDS[name]))
        elif name == "head":
            self.heads.append(self.brackets)
            self._expand(self.grammar[name])
            self.heads.pop()
        elif name in ("plain", "place"):
            self._rule_plain(self.grammar[name])
        else:
            self._expand(self.grammar[name])

    def _rule_plain(self, rule: Rule) -> None:
        """Rule 3: draw again until no block, `if` or `match` comes first."""
        start = len(self.words)
        while True:
            self._expand(rule)
            if self.words[start] not in ("{", "if", "match"):
                return
            del self.words[start:]


def _costs(grammar: dict[str, Rule]) -> dict[str, int]:
    """The fewest tokens each rule can come to."""
    costs = dict.fromkeys(grammar, 10**6) | dict.fromkeys(WORDS, 1)
    changed = True
    while changed:
        changed = False
        for name, rule in grammar.items():
            cost = _cost(rule, costs)
            if cost < costs[name]:
                costs[name], changed = cost, True
    return costs


def _cost(rule: Rule, costs: dict[str, int]) -> int:
    if rule.kind == "word":
        return 1
    if rule.kind == "name":
        return costs[rule.text]
    if rule.kind == "seq":
        return sum(_cost(part, costs) for part in rule.parts)
    if rule.kind == "alt":
        return min(_cost(part, costs) for part in rule.parts)
    return 0
