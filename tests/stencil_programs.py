"""Random programs of stencils: windows, borders of every kind, chains, strides, updates in place, slices."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.process_programs import cast, literal

INTEGERS = ("u1", "i2", "u3", "u8", "i8", "i16", "u16", "i31", "u32", "i33", "i64")
OTHERS = ("bool", "f32", "fix<12, 5>", "f16")


@dataclass(frozen=True, slots=True)
class _Picture:
    name: str
    element: str
    shape: tuple[int, ...]


class Generator:
    """Programs with one export, ``f``: a few pictures in, chains of stages, one picture or two out."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._lines: list[str] = []
        self._pictures: list[_Picture] = []
        self._fresh = 0
        self._scalar: str | None = None

    def program(self) -> str:
        """A module."""
        rng = self._rng
        rank = rng.choice([1, 2, 2, 2, 2, 3])
        least, most = ((9, 30), (4, 9), (2, 5))[rank - 1]
        shape = tuple(rng.randint(least, most) for _ in range(rank))
        params: list[str] = []
        for k in range(rng.choice([1, 1, 1, 2])):
            picture = _Picture(f"p{k}", self._kind(), shape)
            self._pictures.append(picture)
            params.append(f"p{k}: {_type(picture)}")
        if rng.random() < 0.3:
            self._scalar = rng.choice(["u8", "i16"])
            params.append(f"q: {self._scalar}")
        for _ in range(rng.randint(1, 4)):
            self._stage()
        made = self._pictures[len([p for p in params if not p.startswith("q")]) :]
        results = [made[-1], *(rng.sample(made[:-1], 1) if len(made) > 1 and rng.random() < 0.3 else [])]
        names, types = ", ".join(r.name for r in results), ", ".join(map(_type, results))
        if len(results) > 1:
            names, types = f"({names})", f"({types})"
        body = "\n".join(self._lines)
        return f"pub fn f({', '.join(params)}) -> {types} {{\n{body}\n    {names}\n}}\n"

    def _kind(self) -> str:
        return self._rng.choice(INTEGERS if self._rng.random() < 0.8 else OTHERS)

    def _name(self, stem: str) -> str:
        self._fresh += 1
        return f"{stem}{self._fresh}"

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _stage(self) -> None:
        rng = self._rng
        form = rng.random()
        if form < 0.45:
            self._interior()
        elif form < 0.6:
            self._held()
        elif form < 0.7:
            self._running()
        elif form < 0.8:
            self._pooled()
        elif form < 0.9:
            self._slices()
        else:
            self._mapped()

    # Loops around windows

    def _interior(self) -> None:
        """The inside from windows, the border from a constant or from another picture."""
        rng, source = self._rng, self._recent()
        margins = [(rng.randint(0, 2), rng.randint(0, 2)) for _ in source.shape]
        margins = [m if sum(m) < extent else (0, 0) for m, extent in zip(margins, source.shape)]
        name = self._name("t")
        kind = self._kind()
        same = [p for p in self._pictures if p.shape == source.shape and p.element == kind]
        if same and rng.random() < 0.4:
            self._line(1, f"let mut {name} = {rng.choice(same).name};")
        else:
            extents = ", ".join(map(str, source.shape))
            self._line(1, f"let mut {name} = [{literal(kind, rng.randint(0, 1))}; {extents}];")
        made = _Picture(name, kind, source.shape)
        counters = self._loops([(low, extent - high) for (low, high), extent in zip(margins, source.shape)])

        def place(picture: _Picture) -> str:
            parts: list[str] = []
            for counter, (low, high) in zip(counters, margins):
                offset = rng.randint(-low, high)
                sign = "+" if offset > 0 else "-"
                parts.append(counter if not offset else f"{counter} {sign} {abs(offset)}")
            return f"{picture.name}[{', '.join(parts)}]"

        others = [p for p in self._pictures if p.shape == source.shape]
        value = self._expression(kind, 2, lambda: place(rng.choice(others)), counters)
        self._line(1 + len(counters), f"{name}[{', '.join(counters)}] = {value};")
        self._end(len(counters))
        self._pictures.append(made)

    def _held(self) -> None:
        """Every element from a window that is held at the border."""
        rng, source = self._rng, self._recent()
        name, kind = self._name("t"), self._kind()
        self._line(1, f"let mut {name} = [{literal(kind, 0)}; {', '.join(map(str, source.shape))}];")
        counters = self._loops([(0, extent) for extent in source.shape])

        def place() -> str:
            parts: list[str] = []
            for counter, extent in zip(counters, source.shape):
                offset, form = rng.randint(0, 2), rng.randrange(4)
                if form == 0:
                    parts.append(f"max({counter} as i32 - {offset}, 0) as u32")
                elif form == 1:
                    parts.append(f"min({counter} + {offset}, {extent - 1})")
                elif form == 2:
                    parts.append(f"clamp({counter} as i32 + {offset} - 1, 0, {extent - 1}) as u32")
                else:
                    parts.append(counter)
            return f"{source.name}[{', '.join(parts)}]"

        value = self._expression(kind, 2, place, counters)
        self._line(1 + len(counters), f"{name}[{', '.join(counters)}] = {value};")
        self._end(len(counters))
        self._pictures.append(_Picture(name, kind, source.shape))

    def _running(self) -> None:
        """An update in place that reads what earlier rounds wrote, or what later ones will."""
        rng, source = self._rng, self._recent()
        name = self._name("t")
        self._line(1, f"let mut {name} = {source.name};")
        axis = rng.randrange(len(source.shape))
        back = rng.choice([1, 1, 2]) if source.shape[axis] > 2 else 1
        ahead = rng.random() < 0.3
        ranges = [(0, extent) for extent in source.shape]
        if source.shape[axis] <= back:
            ranges[axis] = (0, 0)
        else:
            ranges[axis] = (0, source.shape[axis] - back) if ahead else (back, source.shape[axis])
        counters = self._loops(ranges)
        parts = list(counters)
        parts[axis] = f"{counters[axis]} {'+' if ahead else '-'} {back}"
        here = f"{name}[{', '.join(counters)}]"
        there = f"{name}[{', '.join(parts)}]"
        own = source.element
        value = self._expression(own, 1, lambda: rng.choice([here, there]), counters, own)
        self._line(1 + len(counters), f"{here} = {_joined(rng, source.element, there, value)};")
        self._end(len(counters))
        self._pictures.append(_Picture(name, source.element, source.shape))

    def _pooled(self) -> None:
        """Every second element along an axis or more, or every fourth."""
        rng, source = self._rng, self._recent()
        steps = [rng.choice([1, 2, 2]) if extent >= 4 else 1 for extent in source.shape]
        shape = tuple(extent // step for extent, step in zip(source.shape, steps))
        name, kind = self._name("t"), self._kind()
        self._line(1, f"let mut {name} = [{literal(kind, 1)}; {', '.join(map(str, shape))}];")
        counters = self._loops([(0, extent) for extent in shape])

        def place() -> str:
            parts = [
                counter if step == 1 else f"{step} * {counter} + {rng.randint(0, step - 1)}"
                for counter, step in zip(counters, steps)
            ]
            return f"{source.name}[{', '.join(parts)}]"

        value = self._expression(kind, 2, place, counters)
        self._line(1 + len(counters), f"{name}[{', '.join(counters)}] = {value};")
        self._end(len(counters))
        self._pictures.append(_Picture(name, kind, shape))

    # Whole tensors

    def _slices(self) -> None:
        rng, source = self._rng, self._recent()
        cuts = [rng.randint(0, 2) if extent > 3 else 0 for extent in source.shape]
        shape = tuple(extent - cut for extent, cut in zip(source.shape, cuts))

        def part() -> str:
            lows = [rng.randint(0, cut) for cut in cuts]
            inside = ", ".join(f"{low}..{low + extent}" for low, extent in zip(lows, shape))
            return f"{source.name}[{inside}]"

        name = self._name("t")
        how = rng.choice(["^", "&", "|"] if source.element == "bool" else ["+", "-"])
        self._line(1, f"let {name} = {part()} {how} {part()};")
        self._pictures.append(_Picture(name, source.element, shape))
        if rng.random() < 0.5 and any(cuts):
            padded, rest = self._name("t"), [rng.randint(0, cut) for cut in cuts]
            comma = "," if len(rest) == 1 else ""
            lows = ", ".join(map(str, rest)) + comma
            highs = ", ".join(str(cut - low) for cut, low in zip(cuts, rest)) + comma
            self._line(1, f"let {padded} = pad({name}, ({lows}), ({highs}), {literal(source.element, 1)});")
            self._pictures.append(_Picture(padded, source.element, source.shape))

    def _mapped(self) -> None:
        source, name, kind = self._recent(), self._name("t"), self._kind()
        value = self._expression(kind, 2, lambda: "e", [], source.element)
        self._line(1, f"let {name} = map({source.name}, |e| {value});")
        self._pictures.append(_Picture(name, kind, source.shape))

    # Parts

    def _recent(self) -> _Picture:
        return self._rng.choice(self._pictures[-2:])

    def _loops(self, ranges: list[tuple[int, int]]) -> list[str]:
        counters = [self._name("i") for _ in ranges]
        for depth, (counter, (low, high)) in enumerate(zip(counters, ranges), start=1):
            self._line(depth, f"for {counter} in {low}..{max(low, high)} {{")
        return counters

    def _end(self, depth: int) -> None:
        for left in range(depth, 0, -1):
            self._line(left, "}")

    def _expression(
        self, kind: str, depth: int, place: Callable[[], str], counters: list[str],
        element: str | None = None,
    ) -> str:
        rng = self._rng
        if depth == 0 or rng.random() < 0.2:
            return self._leaf(kind, place, counters, element)
        if rng.random() < 0.15:
            left, right = (self._leaf("i16", place, counters, element) for _ in range(2))
            sides = (self._expression(kind, depth - 1, place, counters, element) for _ in range(2))
            return "(if {} < {} {{ {} }} else {{ {} }})".format(left, right, *sides)
        one, two = (self._expression(kind, depth - 1, place, counters, element) for _ in range(2))
        return _joined(rng, kind, one, two)

    def _leaf(
        self, kind: str, place: Callable[[], str], counters: list[str], element: str | None
    ) -> str:
        rng, form = self._rng, self._rng.random()
        if form < 0.75:
            text = place()
            name = text.split("[")[0]
            own = element or next((p.element for p in self._pictures if p.name == name), kind)
            return cast(kind, own, text)
        if form < 0.85 and counters:
            return cast(kind, "u32", rng.choice(counters))
        if form < 0.92 and self._scalar is not None:
            return cast(kind, self._scalar, "q")
        return literal(kind, rng.randint(0, 1))


def _joined(rng: Random, kind: str, one: str, two: str) -> str:
    if kind == "bool":
        return f"({one} {rng.choice(['^', '&', '|'])} {two})"
    if kind in INTEGERS:
        how = rng.choice(["+", "-", "*", "^", "min", "max", "+"])
        return f"{how}({one}, {two})" if how in ("min", "max") else f"({one} {how} {two})"
    return f"({one} {rng.choice(['+', '-'])} {two})"


def _type(picture: _Picture) -> str:
    return f"[{picture.element}; {', '.join(map(str, picture.shape))}]"
