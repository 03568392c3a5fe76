"""Random streams never leave the ranges that the index proof claims of them, at any item.

They hold what real ones do: counters that wrap, directions, machines, arrays, named conditions that outlive
the values they speak of, functions that are given values or lent them, loops.
"""
from __future__ import annotations

import random

import numpy as np
import pytest

from kera_hw.frontend import compile_source
from kera_hw.frontend.sema.ranges.proof import analysed
from kera_hw.frontend.sema.ranges.symbol import Known
from kera_hw.interp import run_export
from kera_hw.support import SourceFile

ITEMS = 120
TYPES = ["u3", "u4", "u8", "u8", "i8"]


class Streams:
    """A random stream that gives all of its states and some of its locals, all turned into i16."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.states = {f"s{k}": self.random.choice(TYPES) for k in range(self.random.randrange(2, 5))}
        self.flags = {f"b{k}": "bool" for k in range(self.random.randrange(1, 3))}
        self.named: list[str] = []  # conditions
        self.locals: list[str] = []  # i16
        self.count = 0
        self.depth = 0

    def number(self) -> int:
        return self.random.choice([0, 1, 2, 3, 5, 6, 7, 7, 9, 10, 12])

    def value(self, depth: int = 1) -> str:
        """An i16."""
        pick = self.random.choice
        atom = pick([f"({pick(list(self.states))} as i16)", str(self.number()), "(x as i16)", *self.locals])
        if depth == 0 or self.random.random() < 0.3:
            return atom
        other = self.value(depth - 1)
        return pick([
            f"({atom} + {other})", f"({atom} - {other})", f"({atom} * {other})",
            f"({atom} & {self.number()})", f"({atom} % {self.random.randrange(1, 12)})",
            f"min({atom}, {other})", f"max({atom}, {other})", f"clamp({atom}, -3, 9)",
            f"(({atom} + {other}) >> 1u8)", f"({atom} / {self.random.randrange(1, 5)})",
            f"if {self.cond()} {{ {atom} }} else {{ {other} }}", f"pick({self.cond()}, {atom}, {other})",
            "(n[(x & 3) as u2] as i16)", f"next({atom}, {self.number()})", "p.a", "p.b",
        ])

    def cond(self, depth: int = 1) -> str:
        pick = self.random.choice
        verb = pick(["==", "==", "!=", "<", "<=", ">", ">="])
        atoms = [f"{pick(list(self.states))} {verb} {self.random.randrange(8)}",
                 f"{self.value(0)} {verb} {self.value(0)}", *self.flags, *self.named, *self.named,
                 "go", "x > 9"]
        atom = pick(atoms)
        if depth == 0 or self.random.random() < 0.5:
            return f"({atom})"
        other = self.cond(depth - 1)
        return pick([
            f"(({atom}) && {other})", f"(({atom}) || {other})", f"!(({atom}) || {other})",
            f"either(({atom}), {other}, {self.value(0)})", f"(if {other} {{ {atom} }} else {{ go }})",
        ])

    def stmt(self, depth: int) -> str:
        pick = self.random.choice
        name = pick(list(self.states))
        kind, top = self.states[name], pick([3, 5, 6, 7])
        shape = self.random.randrange(13)
        if shape == 0 and self.depth == 0:
            self.count += 1
            text = f"let c{self.count} = {self.cond()};"
            self.named.append(f"c{self.count}")
            return text
        if shape == 1 and self.depth == 0:
            self.count += 1
            text = f"let v{self.count} = {self.value(2)};"
            self.locals.append(f"v{self.count}")
            return text
        if shape == 2:
            return f"{name} = ({self.value()} + 0i16) as {kind};"
        if shape == 3:
            step = pick([1, 1, 2, 3])
            return f"if {name} == {top} {{ {name} = 0; {self.body(depth - 1)} }} else {{ {name} += {step}; }}"
        if shape == 4:
            flag = pick(list(self.flags))
            return (f"if {flag} {{ {name} += 1; if {name} == {top} {{ {flag} = false; }} }} "
                    f"else {{ {name} -= 1; if {name} == 0 {{ {flag} = true; }} }}")
        if shape == 5:
            return f"{pick(list(self.flags))} = {self.cond()};"
        if shape == 6 and depth > 0:
            keys = sorted(self.random.sample(range(8), 3))
            arms = " ".join(f"{key} => {{ {self.body(depth - 1)} }}" for key in keys)
            return f"match {name} {{ {arms} _ => {{ {self.body(depth - 1)} }} }}"
        if shape == 7:
            value = self.value()
            return f"n[(x & 3) as u2] = {pick([f'({value} + 0i16) as u8', f'min({value}, 9i16) as u8'])};"
        if shape == 8:
            return f"p.{pick('ab')} = {self.value()};"
        if shape == 9:
            return f"lend(&mut p, {self.cond()}, {self.number()});"
        if shape == 10 and depth > 0:
            self.depth += 1
            text = f"while {self.cond()}, max 3 {{ {self.body(depth - 1)} }}"
            self.depth -= 1
            return text
        if shape == 11 and depth > 0:
            self.depth += 1
            text = f"for i in 0..3 {{ {self.body(depth - 1)} }}"
            self.depth -= 1
            return text
        if depth > 0:
            self.depth += 1
            text = f"if {self.cond()} {{ {self.body(depth - 1)} }} else {{ {self.body(depth - 1)} }}"
            self.depth -= 1
            return text
        return f"{name} = next({name} as i16, {top}) as {kind};"

    def body(self, depth: int) -> str:
        self.depth += 1
        text = " ".join(self.stmt(depth) for _ in range(self.random.randrange(1, 3)))
        self.depth -= 1
        return text

    def program(self) -> str:
        held = {**{name: (kind, self.random.randrange(3)) for name, kind in self.states.items()},
                **{name: ("bool", self.random.choice(["true", "false"])) for name in self.flags}}
        states = " ".join(f"state {name}: {kind} = {value};" for name, (kind, value) in held.items())
        body = " ".join(self.stmt(2) for _ in range(self.random.randrange(3, 8)))
        looks = " ".join(f"let _{name} = t[min({name} as i16 & 127, 9)];" for name in self.states)
        given = [*(f"{name} as i16" for name in (*held, *self.named)), *self.locals, "p.a", "p.b",
                 "n[0] as i16", "n[3] as i16"]
        kinds = ", ".join(["i16"] * len(given))
        return f"""struct P {{ a: i16, b: i16 }}
            fn next(x: i16, top: i16) -> i16 {{ if x >= top {{ 0 }} else {{ x + 1 }} }}
            fn pick(c: bool, a: i16, b: i16) -> i16 {{ let d = !c; if d {{ b }} else {{ a }} }}
            fn either(a: bool, b: bool, x: i16) -> bool {{ if a {{ b }} else {{ x == 3 }} }}
            fn lend(p: &mut P, c: bool, top: i16) {{
                if p.a == top {{ p.a = 0; if c {{ p.b = top; }} }} else {{ p.a += 1; }} }}
            pub stream f(x: u8, go: bool) -> ({kinds}) {{
                {states}
                state n: [u8; 4] = [0; 4]; state p: P = P {{ a: 0, b: 3 }}; let t = [0u8; 10];
                {looks}
                {body}
                ({", ".join(given)}) }}"""


def holds(known: Known, values: np.ndarray) -> bool:
    """Whether all values have what is claimed."""
    assert known.interval is not None
    modulus, rest = known.residue
    right = values == rest if modulus == 0 else (values - rest) % modulus == 0
    low, high = known.interval
    return bool(right.all()) and low <= int(values.min()) and int(values.max()) <= high


@pytest.mark.parametrize("part", range(6))
def test_streams_stay_in_their_ranges(part: int) -> None:
    narrowed = total = 0
    for seed in range(12 * part, 12 * part + 12):
        text = Streams(seed).program()
        front = compile_source(SourceFile.from_text(text), lambda name: None)
        assert front.graph is not None and front.program is not None, (text, front.diagnostics)
        claims = analysed(front.program).summaries[front.program.functions[-1]].result
        source = np.random.default_rng(seed)
        inputs = {"x": source.integers(0, 256, ITEMS).astype(np.uint8), "go": source.random(ITEMS) < 0.5}
        inputs["x"][: ITEMS // 2] &= 15
        results = run_export(front.graph.exports[0], inputs, batch=True)
        for position, (claim, values) in enumerate(zip(claims, results)):
            assert holds(claim, values.astype(np.int64)), (seed, position, claim, values.max(), text)
            assert claim.interval is not None
            narrowed += claim.interval.high - claim.interval.low < 256
            total += 1
    assert narrowed > total // 2, (narrowed, total)
