"""Derives the constants of the elementary functions: polynomials, rationals, tables, reductions, patches.

Run ``python tools/derive_elementary.py`` to write the data modules of ``kera_hw.numerics.elementary`` again,
or with ``--check`` to find out whether they hold what this script derives. All of it is computed by mpmath at
``DIGITS`` decimal digits, so the files come out the same byte for byte.

Method. A polynomial is the least-squares fit at Chebyshev nodes, within a small factor of the minimax one;
its coefficients are rounded to f64 one at a time, lowest power first, each time fitting the rest again so
that it makes up for the rounding. A rational solves the linear equations p(x) - f(x) q(x) = 0 at mapped
Chebyshev nodes. Beside each set stands the greatest error of the rounded set on a dense grid.
"""
from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from elementary_fit import (
    DIGITS,
    Function,
    Writer,
    error_bits,
    fit,
    fit_rational,
    horner,
    interpolate,
    to_f64,
    to_grid,
)
from mpmath import mp, mpf
from table_files import TableText, table_file

TARGET = Path(__file__).parent.parent / "kera_hw/numerics/elementary"


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
    """Reciprocals of 24 fraction bits, one for each of 64 intervals of m, and the greatest |r|."""
    count = 1 << LOG_INDEX_BITS
    step = 1 << (52 - LOG_INDEX_BITS)
    reciprocals: list[mpf] = []
    greatest = mpf(0)
    for i in range(count):
        low, high = (from_bits(LOG_START + k * step) for k in (i, i + 1))
        c = mpf(1) if low < 1 < high else to_grid(2 / (low + high), -24)
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
    lead = to_grid(1 / ln2, -25)
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


def mills(a: mpf) -> mpf:
    """Phi(-a) e^(a^2 / 2) for the normal distribution function Phi."""
    return mp.erfc(a / mp.sqrt(2)) * mp.exp(a * a / 2) / 2


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
    p, q = fit_rational(mills, mpf(0), mpf(5) / 6, 10, 11, lambda u: 3 * u / (1 - u))
    out.numbers("PHI_P", p)
    out.numbers("PHI_Q", q)
    bits = error_bits(lambda a: horner(p, a) / horner(q, a), mills, mpf(0), mpf(15))
    out.lines.append(f"# relative error {bits}")


# f32 inputs at which the f64 program of a function lands on the wrong side of a rounding boundary; found by
# the exhaustive run (tests/exhaustive). The programs with fma miss the same ones.
MISSES: dict[str, tuple[int, ...]] = {
    "exp2": (0x3B42_9D37, 0xBCF3_A937),
    "sin": (0x4619_9998, 0xC619_9998),
    "cos": (0x5F18_B878, 0x6115_CB11, 0xDF18_B878, 0xE115_CB11),
}

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
        out.lines.append(f'    "{name}": (')
        out.lines += [f"        ({float(x)!r}, {float(y)!r})," for x, y in pairs]
        out.lines.append("    ),")
    out.lines.append("}")


def wide_exponentials(out: Writer) -> None:
    out.note("exp2: 2^r = 1 + r (EXP2_HIGH + EXP2_LOW) + r^2 * polynomial; EXP2_HIGH has 26 bits.")
    high = to_grid(mp.log(2), -26)
    low = to_f64(mp.log(2) - high)
    out.number("EXP2_HIGH", high)
    out.number("EXP2_LOW", low)
    half = mpf("0.5")
    tail = fit(lambda r: (mp.power(2, r) - 1 - r * (high + low)) / r**2, -half, half, 10)
    out.numbers("EXP2_TAIL", tail)
    bits = error_bits(
        lambda r: 1 + r * (high + low) + r * r * horner(tail, r), lambda r: mp.power(2, r), -half, half
    )
    out.lines.append(f"# relative error {bits}")
    out.note("tanh x = x + x^3 * polynomial(x^2) for |x| < 1/2.")
    cut = lambda t: (mp.tanh(mp.sqrt(t)) / mp.sqrt(t) - 1) / t  # noqa: E731
    tail = fit(lambda t: mp.re(cut(t)), mpf(0), mpf("0.25"), 10)
    out.numbers("TANH_TAIL", tail)
    bits = error_bits(lambda x: x + x**3 * horner(tail, x * x), mp.tanh, mpf(0), half)
    out.lines.append(f"# relative error {bits}")


def wide_turn(out: Writer) -> None:
    out.note(
        "sin, cos: entry n + 2 is digit n of 2/pi, the sum of digit * 2^(-27 n) for n >= 1.\n"
        "# pi/2 = QUARTER + QUARTER_REST."
    )
    with mp.workprec(27 * 64):
        scaled = int(mp.floor(mp.ldexp(2 / mp.pi, 27 * 61)))
    digits = [scaled >> (27 * (61 - n)) & ((1 << 27) - 1) for n in range(1, 62)]
    out.words("TURN", [0, 0, 0, *digits])
    quarter = to_f64(mp.pi / 2)
    out.number("QUARTER", quarter)
    out.number("QUARTER_REST", to_f64(mp.pi / 2 - quarter))


def pieces(out: Writer, name: str, f: Function, intervals: Sequence[tuple[mpf, mpf]], degree: int) -> None:
    """Columns of a table: the value at the middle of each interval in two parts, then c_1 ... c_degree."""
    rows: list[list[mpf]] = []
    worst = mpf(0)
    for low, high in intervals:
        middle = (low + high) / 2
        about = lambda h, middle=middle: f(middle + h)  # noqa: E731
        first, *rest = interpolate(about, low - middle, high - middle, degree)
        lead = to_f64(first)
        row = [lead, to_f64(first - lead), *(to_f64(c) for c in rest)]
        for h in (low - middle, (low - middle) / 3, (high - middle) / 2, high - middle):
            found = row[0] + row[1] + h * horner(row[2:], h)
            worst = max(worst, abs(found / about(h) - 1))
        rows.append(row)
    rows += [rows[-1]] * (128 - len(rows))
    out.table(TableText(name, "real", [[float(value) for value in column] for column in zip(*rows)]))
    out.lines.append(f"# relative error 2^{mp.nstr(mp.log(worst, 2), 4)}")


def wide_errors(out: Writer) -> None:
    out.note("erf x = x (ERF_HIGH + ERF_LOW) + x^3 * polynomial(x^2) for |x| < 1/2; ERF_HIGH has 26 bits.")
    scale = 2 / mp.sqrt(mp.pi)
    high = to_grid(scale, -25)
    low = to_f64(scale - high)
    out.number("ERF_SCALE", to_f64(scale))
    out.number("ERF_HIGH", high)
    out.number("ERF_LOW", low)
    half = mpf("0.5")
    cut = lambda t: (mp.erf(mp.sqrt(t)) / mp.sqrt(t) - high - low) / t  # noqa: E731
    tail = fit(lambda t: mp.re(cut(t)), mpf(0), mpf("0.25"), 9)
    out.numbers("ERF_TAIL", tail)
    bits = error_bits(lambda x: x * (high + low) + x**3 * horner(tail, x * x), mp.erf, mpf(0), half)
    out.lines.append(f"# relative error {bits}")
    out.note(
        "erf about j/16, j = 8 ... 95: row j - 8 is the value there in two parts, then the coefficients of\n"
        "# the powers of the distance, at most 1/32. One tuple a column."
    )
    sixteenths = [(mpf(2 * j - 1) / 32, mpf(2 * j + 1) / 32) for j in range(8, 96)]
    pieces(out, "ERF_ROWS", mp.erf, sixteenths, 10)
    out.note(
        "Phi(-a) e^(a^2 / 2), likewise, by b = a + 1: 16 intervals in each of [1, 2), [2, 4) ... [32, 64).\n"
        "# PHI_MIDDLE is the middle of each, as a."
    )
    intervals = [
        (mp.ldexp(16 + i, octave - 4) - 1, mp.ldexp(17 + i, octave - 4) - 1)
        for octave in range(6) for i in range(16)
    ]
    middles = [(low + high) / 2 for low, high in intervals]
    out.numbers("PHI_MIDDLE", middles + middles[-1:] * (128 - len(middles)))
    pieces(out, "PHI_ROWS", mills, intervals, 11)
    out.note("gelu x = x / 2 + GELU_CURVE x^2 - ... near 0.")
    out.number("GELU_CURVE", to_f64(1 / mp.sqrt(2 * mp.pi)))


STEPS = 16
"""Parts of an octave, each with a power of 2 in a table that two vectors of eight f64 hold."""


def fused_exponentials(out: Writer) -> None:
    out.note(
        "2^(j/16): entry j as bits, less j in the place of the exponent's sixteenths; k = 16 n + j in that "
        "place\n# added, it is 2^(k/16)."
    )
    powers = [to_f64(mp.power(2, mpf(j) / STEPS)) for j in range(STEPS)]
    bits = [int.from_bytes(struct.pack("<d", float(value)), "little") for value in powers]
    out.words("POWERS", [word - (j << 48) for j, word in enumerate(bits)])
    out.note("exp, exp2: x = (k + r) ln 2 / 16, x = (k + r) / 16. 2^(r/16) = 1 + r * polynomial.")
    out.number("STEPS_OF_E", to_f64(STEPS / mp.log(2)))
    half = mpf("0.5") + mpf(2) ** -20
    tail = fit(lambda r: (mp.power(2, r / STEPS) - 1) / r, -half, half, 5)
    out.numbers("EXP", tail)
    error = error_bits(lambda r: 1 + r * horner(tail, r), lambda r: mp.power(2, r / STEPS), -half, half)
    out.lines.append(f"# relative error {error}")
    out.note("tanh: x = k ln 2 / 32 + r. e^2r = 1 + r * polynomial.")
    out.number("HALF_STEP", to_f64(mp.log(2) / (2 * STEPS)))
    half = mp.log(2) / (4 * STEPS) + mpf(2) ** -20
    tail = [mpf(2), *fit(lambda r: (mp.exp(2 * r) - 1 - 2 * r) / r**2, -half, half, 4)]
    out.numbers("TANH", tail)
    error = error_bits(lambda r: 1 + r * horner(tail, r), lambda r: mp.exp(2 * r), -half, half)
    out.lines.append(f"# relative error {error}")
    out.note("exp2: x = k / 16 + r. 2^r = 1 + r * polynomial.")
    half = mpf(1) / (2 * STEPS)
    tail = fit(lambda r: (mp.power(2, r) - 1) / r, -half, half, 5)
    out.numbers("EXP2", tail)
    error = error_bits(lambda r: 1 + r * horner(tail, r), lambda r: mp.power(2, r), -half, half)
    out.lines.append(f"# relative error {error}")


TITLE = "Constants of the elementary functions{which}. Written by tools/derive_elementary.py."
HEADER = '''"""{title}"""
from __future__ import annotations

from kera_hw.support.tables import read_tables

_TABLES = read_tables(__name__)
'''

MODULES: dict[str, tuple[str, tuple[Callable[[Writer], None], ...]]] = {
    "coefficients": ("", (exponentials, logarithms, trigonometric, rationals, patches)),
    "fused_coefficients": (", for machines with fma", (fused_exponentials,)),
    "wide_coefficients": (", for f64 alone", (wide_exponentials, wide_turn, wide_errors)),
}


def derive(name: str) -> dict[str, str]:
    """The text of a data module and of the file with its tables, by file name."""
    which, parts = MODULES[name]
    out, title = Writer(), TITLE.format(which=which)
    for part in parts:
        part(out)
    module = HEADER.format(title=title) + "\n".join(out.lines) + "\n"
    return {f"{name}.py": module, f"{name}.tables": table_file(title, out.tables)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a module differs")
    check: bool = parser.parse_args().check
    mp.dps = DIGITS
    differ = False
    for name, text in [file for module in MODULES for file in derive(module).items()]:
        if not check:
            (TARGET / name).write_text(text)
        elif (TARGET / name).read_text() != text:
            print(f"{name} is not what this script derives; run it without --check", file=sys.stderr)
            differ = True
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
