"""Derives the constants of the elementary functions: polynomials, rationals, tables, reductions, patches.

Run ``python tools/derive_elementary.py`` to write the data module of ``kera_hw.numerics.elementary`` again,
or with ``--check`` to find out whether it holds what this script derives. All of it is computed by mpmath at
``DIGITS`` decimal digits, so the file comes out the same byte for byte.

Method. A polynomial is the least-squares fit at Chebyshev nodes, within a small factor of the minimax one;
its coefficients are rounded to f64 one at a time, lowest power first, each time fitting the rest again so
that it makes up for the rounding. A rational solves the linear equations p(x) - f(x) q(x) = 0 at
mapped Chebyshev nodes. Beside each set stands the greatest error of the
rounded set, in bits, seen on a dense grid.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mpmath import mp, mpf

DIGITS = 80
TARGET = Path(__file__).parent.parent / "kera_hw/numerics/elementary/coefficients.py"

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
            value = f(x)
            return [x**k if top else -value * x**k for top, k in chosen]

        free = [name for name in names if name not in fixed]
        rows = [[w * term for term in terms(free, x)] for w, x in zip(weights, xs)]
        right = [
            -w * sum(c * t for c, t in zip(fixed.values(), terms(list(fixed), x)))
            for w, x in zip(weights, xs)
        ]
        return dict(zip(free, mp.lu_solve(mp.matrix(rows), mp.matrix(right))))

    with mp.workdps(3 * DIGITS):
        first = solve([1 / f(x) for x in xs])
        q = [mpf(1), *(first[False, k] for k in range(1, below + 1))]
        xs = [variable(node) for node in nodes(mpf(low), mpf(high), 2 * len(names))]
        weights = [1 / (f(x) * horner(q, x)) for x in xs]
        for name in names:
            fixed[name] = to_f64(solve(weights)[name])
    return [fixed[True, k] for k in range(above + 1)], [fixed[False, k] for k in range(below + 1)]


def error_bits(approximation: Function, f: Function, low: mpf, high: mpf, relative: bool = True) -> str:
    """log2 of the greatest error on a grid of 1997 intervals, as text."""
    worst = mpf(0)
    for i in range(1, 1997):
        x = low + (high - low) * i / mpf(1997)
        difference = abs(approximation(x) - f(x))
        worst = max(worst, difference / abs(f(x)) if relative else difference)
    return f"2^{mp.nstr(mp.log(worst, 2), 4)}"


class Writer:
    """Lines of the data module."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines += ["", f"# {text}"]

    def number(self, name: str, value: mpf) -> None:
        assert mpf(float(value)) == value, name
        self.lines.append(f"{name} = {float(value)!r}")

    def numbers(self, name: str, values: Sequence[mpf]) -> None:
        assert all(mpf(float(value)) == value for value in values), name
        self._sequence(name, "float", [repr(float(value)) for value in values])

    def words(self, name: str, values: Sequence[int]) -> None:
        self._sequence(name, "int", [hex(value) for value in values])

    def _sequence(self, name: str, kind: str, items: list[str]) -> None:
        self.lines.append(f"{name}: tuple[{kind}, ...] = (")
        line = "   "
        for item in items:
            if len(line) + len(item) + 2 > 108:
                self.lines.append(line)
                line = "   "
            line += f" {item},"
        self.lines += [line, ")"]


def exponentials(out: Writer) -> None:
    half = mp.log(2) / 2 + mpf(2) ** -20
    out.note("exp: x = k ln 2 + r; k * LN2_HIGH is exact for |k| < 2^9. e^r = 1 + (r + r^2 * polynomial).")
    out.number("LOG2_E", to_f64(1 / mp.log(2)))
    high = to_grid(mp.log(2), -42)
    out.number("LN2_HIGH", high)
    out.number("LN2_LOW", to_f64(mp.log(2) - high))
    tail = fit(lambda r: (mp.exp(r) - 1 - r) / r**2, -half, half, 10)
    out.numbers("EXP", tail)
    bits = error_bits(lambda r: 1 + r + r * r * horner(tail, r), mp.exp, -half, half)
    out.lines.append(f"# relative error {bits}")
    out.note("exp2: x = k + r. 2^r = 1 + r * polynomial.")
    half = mpf("0.5")
    tail = fit(lambda r: (mp.power(2, r) - 1) / r, -half, half, 11)
    out.numbers("EXP2", tail)
    bits = error_bits(lambda r: 1 + r * horner(tail, r), lambda r: mp.power(2, r), -half, half)
    out.lines.append(f"# relative error {bits}")


# Where the significand range of the logarithms begins, as f64 bits above 2^-1, and the bits of the index.
LOG_INDEX_BITS = 6
LOG_START = 0x3FE6_1000_0000_0000 - (1 << 45)


def log_table() -> tuple[list[mpf], mpf]:
    """Reciprocals of 27 fraction bits, one for each of 64 intervals of m, and the greatest |r|."""
    count = 1 << LOG_INDEX_BITS
    step = 1 << (52 - LOG_INDEX_BITS)
    reciprocals: list[mpf] = []
    greatest = mpf(0)
    for i in range(count):
        low, high = (from_bits(LOG_START + k * step) for k in (i, i + 1))
        c = mpf(1) if low < 1 < high else to_grid(2 / (low + high), -27)
        greatest = max(greatest, abs(low * c - 1), abs(high * c - 1))
        reciprocals.append(c)
    assert reciprocals.count(mpf(1)) == 1
    return reciprocals, greatest


def from_bits(bits: int) -> mpf:
    """Value of the bits of a normal positive f64."""
    return mp.ldexp(mpf((bits & ((1 << 52) - 1)) | (1 << 52)), (bits >> 52) - 1075)


def logarithms(out: Writer) -> None:
    reciprocals, reach = log_table()
    out.note(
        "log, log2: x = 2^e m, c near 1/m from the table, r = m c - 1 exactly. The high parts are multiples "
        "of\n# 2^-42, so that e * LN2_HIGH + LOG_HIGH is exact. "
        f"|r| <= 2^{mp.nstr(mp.log(reach, 2), 5)}. log(1 + r) = r + r^2 * polynomial."
    )
    out.words("LOG_START", [LOG_START])
    out.numbers("LOG_RECIPROCAL", reciprocals)
    high = [to_grid(-mp.log(c), -42) for c in reciprocals]
    out.numbers("LOG_HIGH", high)
    out.numbers("LOG_LOW", [to_f64(-mp.log(c) - h) for c, h in zip(reciprocals, high)])
    tail = fit(lambda r: (mp.log1p(r) - r) / r**2, -reach, reach, 6)
    out.numbers("LOG", tail)
    bits = error_bits(lambda r: r + r * r * horner(tail, r), mp.log1p, -reach, reach)
    out.lines.append(f"# relative error {bits}")
    out.note(
        "log2(1 + r) = r * LOG2_E_HIGH + (r * LOG2_E_LOW + r^2 * polynomial); the first product is "
        "exact at c = 1."
    )
    ln2 = mp.log(2)
    lead = to_grid(1 / ln2, -27)
    low = to_f64(1 / ln2 - lead)
    out.number("LOG2_E_HIGH", lead)
    out.number("LOG2_E_LOW", low)
    high = [to_grid(-mp.log(c) / ln2, -42) for c in reciprocals]
    out.numbers("LOG2_HIGH", high)
    out.numbers("LOG2_LOW", [to_f64(-mp.log(c) / ln2 - h) for c, h in zip(reciprocals, high)])
    tail = fit(lambda r: (mp.log1p(r) / ln2 - r * (lead + low)) / r**2, -reach, reach, 6)
    out.numbers("LOG2", tail)
    bits = error_bits(
        lambda r: r * (lead + low) + r * r * horner(tail, r), lambda r: mp.log1p(r) / ln2, -reach, reach
    )
    out.lines.append(f"# relative error {bits}")


# Exponents of arguments the trigonometric table covers: -1 (|x| >= 1/2) to 127.
TURN_EXPONENTS = range(-1, 128)


def trigonometric(out: Writer) -> None:
    out.note(
        "sin, cos: |x| = M 2^(E - 23) with a 24-bit integer M; row E + 1 holds 2/pi * 2^(E - 23) modulo 4 as "
        "32-bit\n# limbs of weight 2^0 (TURN_4), 2^-32 (TURN_3) ... 2^-128 (TURN_0)."
    )
    windows = [int(mp.floor(2 / mp.pi * mp.ldexp(1, e - 23 + 128))) % (1 << 130) for e in TURN_EXPONENTS]
    rows = windows + [0] * (256 - len(windows))
    for limb in range(5):
        out.words(f"TURN_{limb}", [row >> (32 * limb) & 0xFFFF_FFFF for row in rows])
    quarter = mp.pi / 2
    high = to_grid(quarter, -21)
    out.number("QUARTER", to_f64(quarter))
    out.number("QUARTER_HIGH", high)
    out.number("QUARTER_LOW", to_f64(quarter - high))
    reach = mp.pi / 4 + mpf(2) ** -20
    out.note("sin r = r + r z * polynomial(z), cos r = 1 - z / 2 + z^2 * polynomial(z), z = r^2.")
    tail = fit(lambda z: (mp.re(mp.sin(mp.sqrt(z)) / mp.sqrt(z)) - 1) / z, mpf(0), reach**2, 6)
    out.numbers("SIN", tail)
    bits = error_bits(lambda r: r + r**3 * horner(tail, r * r), mp.sin, mpf(0), reach)
    out.lines.append(f"# relative error {bits}")
    tail = fit(lambda z: (mp.re(mp.cos(mp.sqrt(z))) - 1 + z / 2) / z**2, mpf(0), reach**2, 5)
    out.numbers("COS", tail)
    bits = error_bits(lambda r: 1 - r * r / 2 + r**4 * horner(tail, r * r), mp.cos, mpf(0), reach)
    out.lines.append(f"# relative error {bits}")


def rationals(out: Writer) -> None:
    out.note("tanh x = x p(x^2) / q(x^2) for |x| <= 9.125, where an f32 has long been 1.")
    p, q = fit_rational(
        lambda t: mp.tanh(mp.sqrt(t)) / mp.sqrt(t), mpf(0), mpf("9.125"), 7, 8, lambda u: u * u
    )
    out.numbers("TANH_P", p)
    out.numbers("TANH_Q", q)
    bits = error_bits(lambda x: x * horner(p, x * x) / horner(q, x * x), mp.tanh, mpf(0), mpf("9.125"))
    out.lines.append(f"# relative error {bits}")
    out.note("erf x = x p(x^2) / q(x^2) for |x| <= 3.96875, where an f32 has long been 1.")
    p, q = fit_rational(
        lambda t: mp.erf(mp.sqrt(t)) / mp.sqrt(t), mpf(0), mpf("3.96875"), 11, 11, lambda u: u * u
    )
    out.numbers("ERF_P", p)
    out.numbers("ERF_Q", q)
    bits = error_bits(lambda x: x * horner(p, x * x) / horner(q, x * x), mp.erf, mpf(0), mpf("3.96875"))
    out.lines.append(f"# relative error {bits}")
    out.note("Phi(-a) = e^(-a^2 / 2) p(a) / q(a) for 0 <= a <= 15; Phi is the normal distribution function.")

    def mills(a: mpf) -> mpf:
        return mp.erfc(a / mp.sqrt(2)) * mp.exp(a * a / 2) / 2

    p, q = fit_rational(mills, mpf(0), mpf(5) / 6, 10, 11, lambda u: 3 * u / (1 - u))
    out.numbers("PHI_P", p)
    out.numbers("PHI_Q", q)
    bits = error_bits(lambda a: horner(p, a) / horner(q, a), mills, mpf(0), mpf(15))
    out.lines.append(f"# relative error {bits}")


# f32 inputs at which the f64 program of a function lands on the wrong side of a rounding boundary; found by
# the exhaustive run (tests/exhaustive).
MISSES: dict[str, tuple[int, ...]] = {}

EXACT: dict[str, Function] = {
    "exp": mp.exp,
    "exp2": lambda x: mp.power(2, x),
    "log": mp.log,
    "log2": lambda x: mp.log(x, 2),
    "sin": mp.sin,
    "cos": mp.cos,
    "tanh": mp.tanh,
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "erf": mp.erf,
    "gelu": lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2,
    "silu": lambda x: x / (1 + mp.exp(-x)),
}


def f32_value(bits: int) -> mpf:
    """Value of the bits of a finite f32."""
    exponent, fraction = bits >> 23 & 255, bits & ((1 << 23) - 1)
    magnitude = mp.ldexp(mpf(fraction | (bool(exponent) << 23)), max(exponent, 1) - 150)
    return -magnitude if bits >> 31 else magnitude


def round_to_odd(value: mpf) -> mpf:
    """The value cut to 53 bits, the last one set unless it is exact, so that rounding again is right."""
    with mp.workdps(2 * DIGITS):
        scale = 53 - int(mp.floor(mp.log(abs(value), 2))) - 1
        scaled = abs(value) * mp.ldexp(1, scale)
        whole = int(mp.floor(scaled))
        odd = whole if scaled == whole else whole | 1
        return mp.sign(value) * mp.ldexp(odd, -scale)


def patches(out: Writer) -> None:
    out.note(
        "Inputs at which a program's f64 lies on the wrong side of a rounding boundary, with the value to\n"
        "# give there: the function's, rounded to odd. Found by running every f32 input."
    )
    out.lines.append("PATCHES: dict[str, tuple[tuple[float, float], ...]] = {")
    for name, f in EXACT.items():
        pairs = [(f32_value(bits), round_to_odd(f(f32_value(bits)))) for bits in MISSES.get(name, ())]
        text = ", ".join(f"({float(x)!r}, {float(y)!r})" for x, y in pairs)
        out.lines.append(f'    "{name}": ({text}{"," if pairs else ""}),')
    out.lines.append("}")


HEADER = '''"""Constants of the elementary functions. Written by tools/derive_elementary.py; do not edit."""
from __future__ import annotations
'''


def derive() -> str:
    """The text of the data module."""
    mp.dps = DIGITS
    out = Writer()
    for part in (exponentials, logarithms, trigonometric, rationals, patches):
        part(out)
    return HEADER + "\n".join(out.lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the module differs")
    arguments = parser.parse_args()
    text = derive()
    if not arguments.check:
        TARGET.write_text(text)
        return 0
    if TARGET.read_text() == text:
        return 0
    print(f"{TARGET} is not what this script derives; run it without --check", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
