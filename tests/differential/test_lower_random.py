"""Random programs: the lowered graph against a tree-walking evaluator."""
from __future__ import annotations

import random

import numpy as np

from kera_hw.frontend import compile_source
from kera_hw.graph import verify_graph
from kera_hw.interp import run_export
from kera_hw.support import SourceFile
from tests.differential.treewalk import Walker

HELPERS = """
fn mix(a: u8, b: u8) -> u8 { let mut t = a ^ b; if t > 100 { t -= a; } t * 3 }
fn push(v: &mut [u8; 4], x: u8) -> u8 { let old = v[0]; v[0] = v[1] + x; v[3] = old; old }
"""


class Programs:
    """Bodies over p, q: u8, t: (u8, bool), v: [u8; 4], with every kind of control."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops = 0
        self.locals = 0

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def number(self, depth: int) -> str:
        if depth == 0:
            return self.pick("p", "q", "x", "y", "t.0", str(self.random.randrange(256)), self.element(),
                             *(f"i{k}" for k in range(self.loops)))
        a, b = self.number(depth - 1), self.number(depth - 1)
        return self.pick(
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} ^ {b})", f"({a} & {b})", f"({a} % {b})",
            f"min({a}, {b})", f"max({a}, {b})", f"mix({a}, {b})", f"push(&mut v, {a})",
            f"(if {self.truth(depth - 1)} {{ {self.body(0)} {a} }} else {{ {b} }})",
            f"(match ({a}) {{ 0 => {b}, 1..=90 | 200 => {{ {self.body(0)} p }}, n => n + 1 }})",
            f"(match ({a}, t.1) {{ (0..=127, true) => {b}, (_, false) => 3, _ => q }})",
            f"{{ {self.body(0)} {a} }}",
        )

    def element(self) -> str:
        return f"v.clamped({self.pick('p', 'q', 'x', '2u8')})"

    def truth(self, depth: int) -> str:
        a, b = self.number(0), self.number(0)
        simple = self.pick(f"{a} < {b}", f"{a} >= {b}", f"{a} == {b}", "t.1")
        if depth <= 0:
            return simple
        return self.pick(simple, f"({simple} && {self.truth(0)})", f"!({simple} || {self.truth(0)})")

    def body(self, depth: int) -> str:
        return " ".join(self.stmt(depth) for _ in range(self.random.randrange(1, 4)))

    def stmt(self, depth: int) -> str:
        value = self.number(depth)
        simple = self.pick(
            f"p = {value};", f"q = {value};", f"t = ({value}, {self.truth(1)});", f"t.0 = {value};",
            f"t.1 = {self.truth(1)};", f"v[{self.random.randrange(4)}] = {value};",
            f"v[(q & 3)] = {value};", f"v = shift_in(v, {value});", f"p += {value};",
        )
        if depth == 0 or self.random.random() < 0.4:
            return simple
        shape = self.random.randrange(5)
        if shape == 0:
            return f"if {self.truth(1)} {{ {self.body(depth - 1)} }} else {{ {self.body(depth - 1)} }}"
        if shape == 1:
            return f"if {self.truth(1)} {{ {self.body(depth - 1)} }}"
        if shape == 2:
            return f"while {self.truth(1)}, max 3 {{ {self.body(depth - 1)} }}"
        if shape == 3:
            name = f"w{self.locals}"
            self.locals += 1
            return f"let mut {name} = {value}; {name} += 1; q = {name};"
        head = self.pick("0..3", "(1..4).rev()", "(0..6).step_by(4)")
        name = f"i{self.loops}"
        self.loops += 1
        inner = self.body(depth - 1)
        self.loops -= 1
        return f"for {name}: u8 in {head} {{ {inner} }}"

    def program(self) -> str:
        return f"""{HELPERS}
        pub fn f(x: u8, y: u8) -> (u8, u8, (u8, bool), [u8; 4]) {{
            let mut p = x; let mut q = y; let mut t = (x, y > 9); let mut v = [x, y, 3, 4];
            {self.body(3)}
            (p, q, t, v) }}"""


def test_the_graph_agrees_with_the_tree() -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.integers(0, 256, 6).astype(np.uint8) for _ in range(2))
    for seed in range(40):
        text = Programs(seed).program()
        front = compile_source(SourceFile.from_text(text), lambda name: None)
        assert [d.message for d in front.diagnostics if d.is_error] == [], text
        assert front.graph is not None and front.program is not None
        assert verify_graph(front.graph) == []
        got = run_export(front.graph.exports[0], {"x": x, "y": y}, batch=True)
        function = next(item for item in front.program.functions if item.public_name == "f")
        for lane in range(len(x)):
            (p, q, t, v), _ = Walker().call(function, [int(x[lane]), int(y[lane])])
            found = (int(got[0][lane]), int(got[1][lane]), int(got[2][0][lane]), bool(got[2][1][lane]))
            assert (*found, got[3][lane].tolist()) == (p, q, t[0], bool(t[1]), v), text
