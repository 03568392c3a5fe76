"""Random programs whose loops stay loops: nests, loops in turn, updates in place, conditions, early ends."""
from __future__ import annotations

from dataclasses import dataclass
from random import Random

INTEGERS = ("u1", "i2", "u3", "u8", "i8", "i16", "u16", "i31", "u32", "i33", "i63", "u64", "i64")
OTHERS = ("bool", "f32", "fix<12, 5>", "f16")
_DEPTH = 3


@dataclass(frozen=True, slots=True)
class _Tensor:
    name: str
    element: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Counter:
    name: str
    low: int
    high: int


class Generator:
    """``small``: extents of few elements, for limits that are as small."""

    def __init__(self, seed: int, small: bool = True) -> None:
        self._rng = Random(seed)
        self._small = small
        self._lines: list[str] = []
        self._tensors: list[_Tensor] = []  # that may be read
        self._targets: list[_Tensor] = []
        self._scalars: list[tuple[str, str]] = []
        self._frozen: list[tuple[str, str]] = []  # scalars that nothing assigns
        self._counters: list[_Counter] = []
        self._fresh = 0
        self._budget = 14

    def program(self) -> str:
        """A module with one export, ``f``."""
        rng = self._rng
        kinds = [self._kind() for _ in range(rng.randint(1, 3))]
        shapes = [self._shape() for _ in range(2)]
        params: list[str] = []
        for k in range(rng.randint(1, 3)):
            kind, shape = rng.choice(kinds), rng.choice(shapes)
            self._tensors.append(_Tensor(f"p{k}", kind, shape))
            params.append(f"p{k}: [{kind}; {', '.join(map(str, shape))}]")
        if rng.random() < 0.5:
            kind = rng.choice(kinds)
            self._frozen.append(("q", kind))
            params.append(f"q: {kind}")
        for k in range(rng.randint(1, 3)):
            self._declare(f"t{k}", kinds, shapes)
        for k in range(rng.randint(0, 3)):
            kind = rng.choice(kinds)
            self._line(1, f"let mut s{k}: {kind} = {self._expression(kind, 1)};")
            self._scalars.append((f"s{k}", kind))
        for _ in range(rng.randint(1, 4)):
            self._loop(1)
            if rng.random() < 0.4:
                self._statement(1)
        return self._whole("fn", params)

    def single(self) -> str:
        """A module with one export, ``f``: small values around one loop, which may end by a condition."""
        rng = self._rng
        kinds, shapes = [self._kind() for _ in range(rng.randint(1, 3))], [self._shape() for _ in range(2)]
        stream, params = rng.random() < 0.3, list[str]()
        for k in range(rng.randint(1, 3)):
            kind = rng.choice(kinds)
            if rng.random() < 0.6:
                self._frozen.append((f"q{k}", kind))
                params.append(f"q{k}: {kind}")
                continue
            shape = rng.choice(shapes)
            self._tensors.append(_Tensor(f"q{k}", kind, shape))
            params.append(f"q{k}: [{kind}; {', '.join(map(str, shape))}]")
        if not self._tensors:
            self._tensors.append(_Tensor("z", kinds[0], (2,)))
            self._line(1, f"let z = [{self._leaf_of_scalars(kinds[0])}, {literal(kinds[0], 1)}];")
        for k in range(rng.randint(1, 2) if stream else 0):
            kind = rng.choice(kinds)
            self._line(1, f"state m{k}: {kind} = {literal(kind, rng.randint(0, 1))};")
            self._scalars.append((f"m{k}", kind))
        for k in range(rng.randint(0, 2)):
            self._declare(f"t{k}", kinds, shapes)
        for k in range(rng.randint(1, 3)):
            kind = rng.choice(kinds)
            self._line(1, f"let mut s{k}: {kind} = {self._expression(kind, 1)};")
            self._scalars.append((f"s{k}", kind))
        if not self._targets:
            self._declare("t9", kinds, shapes)
        for _ in range(rng.randint(0, 3)):
            self._statement(1)
        self._kept_loop()
        for _ in range(rng.randint(0, 3)):
            self._statement(1)
        return self._whole("stream" if stream else "fn", params)

    def _leaf_of_scalars(self, kind: str) -> str:
        return next((cast(kind, own, name) for name, own in self._frozen), literal(kind, 1))

    def _kept_loop(self) -> None:
        """``k`` counts in a loop that ends by a condition, so that it takes some rounds."""
        rng, guarded = self._rng, self._rng.random() < 0.25
        saved = len(self._frozen)
        if guarded:
            self._line(1, f"if {self._expression('bool', 1)} {{")
        if rng.random() < 0.25:
            name, count = self._name("i"), rng.randint(2, 20)
            self._line(1, f"for {name} in 0..{count} {{")
            self._counters.append(_Counter(name, 0, count - 1))
        else:
            kind = rng.choice(["u8", "u32", "u3"])
            self._lines.insert(0, f"    let mut k: {kind} = {literal(kind, rng.randint(0, 1))};")
            self._scalars.append(("k", kind))
            ends = f"({self._expression('bool', 2)} {rng.choice(['||', '&&'])} (k < 5{kind}))"
            self._line(1, f"while {ends}, max {rng.choice([1, 2, 7, 8, 20])} {{")
            self._line(2, f"k += 1{kind};")
        for _ in range(rng.randint(2, 5)):
            self._statement(2)
        del self._frozen[saved:]
        self._counters.clear()
        self._line(1, "}")
        if guarded:
            self._line(1, "}")

    def _whole(self, what: str, params: list[str]) -> str:
        rng = self._rng
        results = [(t.name, f"[{t.element}; {', '.join(map(str, t.shape))}]") for t in self._targets]
        results += self._scalars
        rng.shuffle(results)
        results = results[: rng.randint(1, 3)]
        names, types = (", ".join(column) for column in zip(*results))
        if len(results) > 1:
            names, types = f"({names})", f"({types})"
        body = "\n".join(self._lines)
        return f"pub {what} f({', '.join(params)}) -> {types} {{\n{body}\n    {names}\n}}\n"

    # Declarations

    def _kind(self) -> str:
        return self._rng.choice(INTEGERS if self._rng.random() < 0.8 else OTHERS)

    def _shape(self) -> tuple[int, ...]:
        rng = self._rng
        if self._small:
            return tuple(rng.randint(1, 6) for _ in range(rng.randint(1, 2)))
        return (rng.randint(66, 130),) if rng.random() < 0.5 else (rng.randint(5, 14), rng.randint(9, 14))

    def _declare(self, name: str, kinds: list[str], shapes: list[tuple[int, ...]]) -> None:
        rng = self._rng
        if rng.random() < 0.4:
            other = rng.choice(self._tensors)
            found = _Tensor(name, other.element, other.shape)
            self._line(1, f"let mut {name} = {other.name};")
        else:
            found = _Tensor(name, rng.choice(kinds), rng.choice(shapes))
            extents = ", ".join(map(str, found.shape))
            self._line(1, f"let mut {name} = [{literal(found.element, rng.randint(0, 1))}; {extents}];")
        self._tensors.append(found)
        self._targets.append(found)

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _name(self, stem: str) -> str:
        self._fresh += 1
        return f"{stem}{self._fresh}"

    # Statements

    def _loop(self, depth: int) -> None:
        rng = self._rng
        target = rng.choice(self._targets)
        count = rng.choice([rng.choice(target.shape), rng.randint(1, 5)])
        name, form = self._name("i"), rng.random()
        low, step = 0, 1
        if form < 0.6:
            head = f"0..{count}"
        elif form < 0.8:
            head = f"(0..{count}).rev()"
        else:
            step, low = rng.randint(1, 3), rng.randint(0, 1)
            count = max(count, low + 1)
            head = f"({low}..{count}).step_by({step})"
        self._line(depth, f"for {name} in {head} {{")
        self._counters.append(_Counter(name, low, count - 1))
        saved = len(self._frozen), len(self._scalars), len(self._tensors), len(self._targets)
        if rng.random() < 0.2:
            kind = self._kind()
            inner = self._name("a")
            self._line(depth + 1, f"let mut {inner}: {kind} = {self._expression(kind, 1)};")
            self._scalars.append((inner, kind))
        if rng.random() < 0.12:
            found = _Tensor(self._name("u"), rng.choice(self._tensors).element, (rng.randint(1, 4),))
            self._line(depth + 1,
                       f"let mut {found.name} = [{literal(found.element, 1)}; {found.shape[0]}];")
            self._tensors.append(found)
            self._targets.append(found)
        nested = 0
        for _ in range(rng.randint(1, 4)):
            if depth < _DEPTH and nested < 2 and rng.random() < 0.4 and self._budget > 0:
                self._budget -= 1
                self._loop(depth + 1)
                nested += 1
            else:
                self._statement(depth + 1)
        for several, size in zip((self._frozen, self._scalars, self._tensors, self._targets), saved):
            del several[size:]
        self._counters.pop()
        self._line(depth, "}")

    def _statement(self, depth: int) -> None:
        rng, form = self._rng, self._rng.random()
        if form < 0.5:
            self._store(depth)
        elif form < 0.7 and self._scalars:
            name, kind = rng.choice(self._scalars)
            self._line(depth, f"{name} = {self._expression(kind, 2)};")
        elif form < 0.8:
            kind, name = self._kind(), self._name("c")
            self._line(depth, f"let {name} = {self._expression(kind, 2)};")
            self._frozen.append((name, kind))
        elif form < 0.97:
            saved = len(self._frozen)
            self._line(depth, f"if {self._expression('bool', 1)} {{")
            self._store(depth + 1)
            if rng.random() < 0.5:
                self._line(depth, "} else {")
                self._store(depth + 1)
            self._line(depth, "}")
            del self._frozen[saved:]
        elif self._scalars:
            name, kind = rng.choice(self._scalars)
            self._line(depth, f"while {self._expression('bool', 1)}, max {rng.randint(1, 3)} {{")
            self._line(depth + 1, f"{name} = {self._expression(kind, 1)};")
            self._line(depth, "}")
        else:
            self._store(depth)

    def _store(self, depth: int) -> None:
        target = self._rng.choice(self._targets)
        place = f"{target.name}[{self._index(target)}]"
        self._line(depth, f"{place} = {self._expression(target.element, 2)};")

    # Expressions

    def _index(self, tensor: _Tensor) -> str:
        return ", ".join(map(self._place, tensor.shape))

    def _place(self, extent: int) -> str:
        rng, last = self._rng, extent - 1
        fitting = [item for item in self._counters if item.high <= last]
        form = rng.random()
        if fitting and form < 0.8:
            counter = rng.choice(fitting[-2:])
            name, room = counter.name, last - counter.high
            how = rng.randrange(5)
            if how == 0:
                return f"{last} - {name}"
            if how == 1 and room:
                return f"{name} + {rng.randint(1, room)}"
            if how == 2 and counter.low:
                return f"{name} - 1"
            if how == 3 and counter.high and counter.high * 2 <= last:
                return f"2 * {name}"
            return name
        if form < 0.9:
            return str(rng.randint(0, last))
        if self._counters and form < 0.95:
            return f"({self._counters[-1].name} * {rng.randint(1, 5)} + {rng.randint(0, 3)}) % {extent}"
        kind = rng.choice(["u8", "u32"])
        return f"({self._leaf(kind)} % {extent})" if extent > 1 else "0"

    def _leaf(self, kind: str) -> str:
        rng, form = self._rng, self._rng.random()
        if form < 0.6:
            tensor = rng.choice(self._tensors)
            return cast(kind, tensor.element, f"{tensor.name}[{self._plain_index(tensor)}]")
        scalars = [*self._scalars, *self._frozen]
        if scalars and form < 0.85:
            name, own = rng.choice(scalars)
            return cast(kind, own, name)
        if self._counters and form < 0.95:
            return cast(kind, "u32", rng.choice(self._counters).name)
        return literal(kind, rng.randint(0, 1))

    def _plain_index(self, tensor: _Tensor) -> str:
        if self._rng.random() < 0.05:
            return self._index(tensor)
        found: list[str] = []
        for extent in tensor.shape:
            part = self._place(extent)
            while "[" in part:
                part = self._place(extent)
            found.append(part)
        return ", ".join(found)

    def _expression(self, kind: str, depth: int) -> str:
        rng = self._rng
        if depth == 0 or rng.random() < 0.25:
            return self._leaf(kind)
        if rng.random() < 0.15:
            condition = self._expression("bool", depth - 1)
            parts = (self._expression(kind, depth - 1) for _ in range(2))
            return "(if {} {{ {} }} else {{ {} }})".format(condition, *parts)
        if kind == "bool":
            other = rng.choice(["i16", "u8", "i33", "bool"])
            one, two = (self._expression(other, depth - 1) for _ in range(2))
            sign = rng.choice(["==", "!="] if other == "bool" else ["<", ">=", "==", "!="])
            return f"({one} {sign} {two})"
        one, two = (self._expression(kind, depth - 1) for _ in range(2))
        if kind in INTEGERS:
            how = rng.choice(["+", "-", "*", "^", "&", "|", "min", "max", "+", "^"])
        else:
            how = rng.choice(["+", "-", "+"])
        return f"{how}({one}, {two})" if how in ("min", "max") else f"({one} {how} {two})"


def literal(kind: str, value: int) -> str:
    """A constant of a type of the language."""
    if kind == "bool":
        return "true" if value else "false"
    if kind in INTEGERS:
        return f"{value}{kind}"
    return f"({value}.5 as {kind})"


def cast(kind: str, own: str, text: str) -> str:
    """An expression of the type ``own`` as a ``kind``."""
    if kind == own:
        return text
    if own == "bool":
        return f"(if {text} {{ {literal(kind, 1)} }} else {{ {literal(kind, 0)} }})"
    if kind == "bool":
        return f"(({text} & 1) == 1)" if own in INTEGERS or own == "u32" else f"({text} > {literal(own, 0)})"
    return f"({text} as {kind})"
