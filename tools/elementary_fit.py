"""Fitting and writing for tools/derive_elementary.py: polynomials and rationals with f64 coefficients."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from mpmath import mp, mpf
from table_files import LEAST_ENTRIES, TableText, reading

DIGITS = 80

Function = Callable[[mpf], mpf]


def nodes(low: mpf, high: mpf, count: int) -> list[mpf]:
    """Chebyshev nodes of an interval."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle + half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]


def horner(coefficients: Sequence[mpf], x: mpf) -> mpf:
    total = mpf(0)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def to_f64(value: mpf) -> mpf:
    return mpf(float(value))


def to_grid(value: mpf, step_log2: int) -> mpf:
    """The nearest multiple of 2^step_log2."""
    return mp.nint(mp.ldexp(value, -step_log2)) * mp.ldexp(1, step_log2)


def fit(f: Function, low: mpf, high: mpf, degree: int) -> list[mpf]:
    """A near-minimax polynomial with f64 coefficients, each rounded before the higher ones are fitted."""
    xs = nodes(mpf(low), mpf(high), 4 * degree + 8)
    values = [f(x) for x in xs]
    fixed: list[mpf] = []
    for power in range(degree + 1):
        matrix = mp.matrix([[x**k for k in range(power, degree + 1)] for x in xs])
        right = mp.matrix([value - horner(fixed, x) for x, value in zip(xs, values)])
        fixed.append(to_f64(mp.lu_solve(matrix, right)[0]))
    return fixed


def interpolate(f: Function, low: mpf, high: mpf, degree: int) -> list[mpf]:
    """The polynomial through f at Chebyshev nodes, lowest power first, unrounded."""
    xs = nodes(mpf(low), mpf(high), degree + 1)
    matrix = mp.matrix([[x**k for k in range(degree + 1)] for x in xs])
    return list(mp.lu_solve(matrix, mp.matrix([f(x) for x in xs])))


def fit_rational(
    f: Function, low: mpf, high: mpf, above: int, below: int, variable: Function
) -> tuple[list[mpf], list[mpf]]:
    """Rational p / q of the given degrees near f, q(0) = 1, fitted at nodes spread by ``variable``.

    The first fit gives q; with 1 / (f q) as the weight of each node the equations p - f q = 0 then measure
    the relative error, and are solved again after each coefficient that is rounded to f64, lowest
    powers first.
    """
    xs = [variable(node) for node in nodes(mpf(low), mpf(high), above + below + 1)]
    names = [(top, k) for k in range(max(above, below) + 1) for top in (True, False)]
    names = [(top, k) for top, k in names if (k <= above if top else 0 < k <= below)]
    fixed: dict[tuple[bool, int], mpf] = {(False, 0): mpf(1)}

    def solve(weights: list[mpf]) -> dict[tuple[bool, int], mpf]:
        def terms(chosen: Sequence[tuple[bool, int]], x: mpf) -> list[mpf]:
            value = known[x] = known[x] if x in known else f(x)
            powers = [mpf(1)]
            for _ in range(max(above, below)):
                powers.append(powers[-1] * x)
            return [powers[k] if top else -value * powers[k] for top, k in chosen]

        free = [name for name in names if name not in fixed]
        rows = [[w * term for term in terms(free, x)] for w, x in zip(weights, xs)]
        right = [
            -w * sum(c * t for c, t in zip(fixed.values(), terms(list(fixed), x)))
            for w, x in zip(weights, xs)
        ]
        return dict(zip(free, mp.lu_solve(mp.matrix(rows), mp.matrix(right))))

    known: dict[mpf, mpf] = {}
    with mp.workdps(2 * DIGITS):
        first = solve([1 / f(x) for x in xs])
        q = [mpf(1), *(first[False, k] for k in range(1, below + 1))]
        xs = [variable(node) for node in nodes(mpf(low), mpf(high), 2 * len(names))]
        weights = [1 / (f(x) * horner(q, x)) for x in xs]
        for name in names:
            fixed[name] = to_f64(solve(weights)[name])
    return [fixed[True, k] for k in range(above + 1)], [fixed[False, k] for k in range(below + 1)]


def error_bits(approximation: Function, f: Function, low: mpf, high: mpf, relative: bool = True) -> str:
    """log2 of the greatest error on a grid of 613 intervals, as text."""
    worst = mpf(0)
    for i in range(1, 613):
        x = low + (high - low) * i / mpf(613)
        difference = abs(approximation(x) - f(x))
        worst = max(worst, difference / abs(f(x)) if relative else difference)
    return f"2^{mp.nstr(mp.log(worst, 2), 4)}"


class Writer:
    """Lines of the data module, and the tables that go into the file beside it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.tables: list[TableText] = []

    def note(self, text: str) -> None:
        self.lines += ["", f"# {text}"]

    def number(self, name: str, value: mpf) -> None:
        assert mpf(float(value)) == value, name
        self.lines.append(f"{name} = {float(value)!r}")

    def numbers(self, name: str, values: Sequence[mpf]) -> None:
        assert all(mpf(float(value)) == value for value in values), name
        if len(values) > LEAST_ENTRIES:
            self.table(TableText(name, "real", [[float(value) for value in values]]))
        else:
            self._sequence(name, "float", [repr(float(value)) for value in values])

    def words(self, name: str, values: Sequence[int]) -> None:
        if len(values) > LEAST_ENTRIES:
            self.table(TableText(name, "integer", [values]))
        else:
            self._sequence(name, "int", [hex(value) for value in values])

    def table(self, table: TableText) -> None:
        self.tables.append(table)
        self.lines.append(reading(table))

    def _sequence(self, name: str, kind: str, items: list[str]) -> None:
        self.lines.append(f"{name}: tuple[{kind}, ...] = (")
        self._fill(items, "   ")
        self.lines.append(")")

    def _fill(self, items: list[str], indent: str) -> None:
        line = indent
        for item in items:
            if len(line) + len(item) + 2 > 108:
                self.lines.append(line)
                line = indent
            line += f" {item},"
        self.lines.append(line)
