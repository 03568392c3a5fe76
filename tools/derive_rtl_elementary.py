"""Derive the tables of the elementary functions' circuits (*_data.py and *_data.tables in
kera_hw/rtl/lower/floats/elementary).

    .venv/bin/python tools/derive_rtl_elementary.py [--check] [NAME ...]

With --check nothing is written: it tells whether the modules hold what is derived here. Every number is
computed with mpmath at far more bits than it keeps, rounded once to an integer.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from mpmath import mp, mpf
from table_files import TableText, reading, table_file

mp.prec = 400
CHECK = "--check" in sys.argv
STALE: list[str] = []
OUT = Path(__file__).resolve().parent.parent / "kera_hw/rtl/lower/floats/elementary"


def nearest(value: object) -> int:
    """The integer nearest to an mpf."""
    return int(mp.nint(value))


def write(name: str, title: str, parts: Iterable[tuple[str, object]]) -> None:
    """A module of constants, and the file with its tables."""
    tables: list[TableText] = []
    lines = [f'"""{title}', "", "Written by tools/derive_rtl_elementary.py; not edited by hand.", '"""',
             "from __future__ import annotations", "", "from kera_hw.support.tables import read_tables", "",
             "_TABLES = read_tables(__name__)", ""]
    for key, value in parts:
        if isinstance(value, int):
            lines.append(f"{key} = {value:#x}")
            continue
        assert isinstance(value, list)
        table = TableText(key, "integer", value if isinstance(value[0], list) else [value])
        tables.append(table)
        lines.append(reading(table))
    keep(f"{name}.py", "\n".join(lines) + "\n")
    keep(f"{name}.tables", table_file(f"{title} Written by tools/derive_rtl_elementary.py.", tables))


def keep(name: str, text: str) -> None:
    """Write a file, or find out that it holds this."""
    path = OUT / name
    if not CHECK:
        path.write_text(text, encoding="utf-8")
    elif path.read_text(encoding="utf-8") != text:
        STALE.append(name)


def exponential() -> None:
    """Tables of e^r and 2^r in two digits, and multiples of ln 2."""
    ln2 = mp.log(2)

    def powers(base: object) -> tuple[list[int], list[int]]:
        log = mp.log(base)
        count = 404 if base != 2 else 512
        first = [nearest(mp.exp(log * i / 512) * mpf(2) ** 57) + 1 for i in range(count)]
        second = [nearest(mp.expm1(log * i / mpf(2) ** 19) * mpf(2) ** 58) for i in range(1024)]
        return first, second

    (first_e, second_e), (first_2, second_2) = powers(mp.e), powers(2)
    first_2[0] -= 2  # below the exact powers of two: they round up to themselves, 2^-150 to 0
    first_2[496] += 2  # bcf3a937 lies within the error of a half-way point
    write("exponential_data", "Tables of exp and exp2 on f32.", [
        ("LN2_HIGH", [nearest((16 * i - 256) * ln2 * mpf(2) ** 58) for i in range(32)]),
        ("LN2_LOW", [nearest(i * ln2 * mpf(2) ** 58) for i in range(16)]),
        ("LN2_SHORT", nearest(ln2 * mpf(2) ** 40)),
        ("FIRST_E", first_e), ("SECOND_E", second_e), ("FIRST_2", first_2), ("SECOND_2", second_2),
    ])


Function = Callable[[object], object]


def fit(function: Function, low: object, width: object, degree: int, unit: object) -> list[int]:
    """Coefficients, in units, of the polynomial in (x - low) / width that meets ``function`` at Chebyshev's
    points of [low, low + width]: within a few parts of the best one's error.
    """
    count = degree + 1
    points = [(1 - mp.cos(mp.pi * (2 * i + 1) / (2 * count))) / 2 for i in range(count)]
    matrix = mp.matrix(count, count)
    for i, point in enumerate(points):
        for j in range(count):
            matrix[i, j] = point**j
    values = mp.matrix([function(low + width * point) for point in points])
    return [nearest(c / unit) for c in mp.lu_solve(matrix, values)]


FLOORS = 2
"""What the floors of five Horner steps lose on average, in units; most of it in the last ones."""


def logarithm() -> None:
    """|log(1 + t)| and |log2(1 + t)| on segments of 2^-9: 256 above 0, 129 below."""
    point, width, degree = 58, mpf(2) ** -9, 5
    unit = mpf(2) ** -point
    columns: dict[str, list[list[int]]] = {}
    for name, scale in (("NATURAL", mpf(1)), ("BINARY", 1 / mp.log(2))):
        rows: list[list[int]] = []
        for sign, count in ((1, 256), (-1, 129)):
            for i in range(count):
                if i == 0:
                    rows.append([0, *_through_zero(sign, scale, width, degree, unit)])
                    continue
                row = fit(lambda u, s=sign, k=scale: s * k * mp.log1p(s * u), i * width, width, degree, unit)
                rows.append([row[0] + FLOORS, *row[1:]])
        columns[name] = [list(column) for column in zip(*rows)]
    ln2 = mp.log(2)
    title = "Tables of log and log2 on f32: a column a power; segments above 0, then below."
    write("logarithm_data", title, [
        ("POINT", point),
        ("LN2_HIGH", [nearest(16 * i * ln2 * mpf(2) ** 54) for i in range(10)]),
        ("LN2_LOW", [nearest(i * ln2 * mpf(2) ** 54) for i in range(16)]),
        ("NATURAL", columns["NATURAL"]), ("BINARY", columns["BINARY"]),
    ])


def _through_zero(sign: int, scale: object, width: object, degree: int, unit: object) -> list[int]:
    """Coefficients 1 to ``degree`` of the segment that touches 0, of the function's quotient by u."""
    return fit(lambda u: sign * scale * mp.log1p(sign * u) / u * width, mpf(0), width, degree - 1, unit)


def octaves(
    name: str, title: str, function: Function, cuts: dict[int, int], *, last: int | None = None,
    offset_bits: int = 18, tweaks: dict[int, int] | None = None,
) -> None:
    """Polynomials of degree 5 over octaves of x > 0: ``cuts`` maps an octave to the log of its segments.

    Coefficients count 2^-57 of the octave's own power of two, chosen so that the quotient lies in [1, 4).
    ``last`` is how many segments of the last octave are kept; ``tweaks`` moves segments by so many units.
    """
    point = 57
    rows: list[list[int]] = []
    first: list[int] = []
    scales: list[int] = []
    for octave, cut in cuts.items():
        base, width = mpf(2) ** octave, mpf(2) ** (octave - cut)
        count = last if last is not None and octave == max(cuts) else 1 << cut
        # One scale for the octave: the quotient's least value in [1, 2).
        scale = int(mp.floor(mp.log(function(base), 2)))
        unit = mpf(2) ** (scale - point)
        first.append(len(rows))
        scales.append(scale - octave)
        for i in range(count):
            row = fit(function, base + i * width, width, 5, unit)
            rows.append([row[0] + 1, *row[1:]])
    for segment, units in (tweaks or {}).items():
        rows[segment][0] += units
    write(f"{name}_data", title, [
        ("POINT", point), ("OFFSET_BITS", offset_bits), ("FIRST", min(cuts) + 127),
        ("SEGMENTS", first), ("CUTS", list(cuts.values())), ("SCALES", scales),
        ("TABLE", [list(column) for column in zip(*rows)]),
    ])


def tanh() -> None:
    """tanh from 2^-12 to 9.25."""
    cuts = {**dict.fromkeys(range(-12, -1), 5), -1: 6, 0: 7, 1: 7, 2: 7, 3: 6}
    octaves("tanh", "Table of tanh on f32.", mp.tanh, cuts, last=10)


def erf() -> None:
    """erf from 2^-27 (and below, where it is linear) to 4."""
    cuts = {
        **dict.fromkeys(range(-27, -12), 4), **dict.fromkeys(range(-12, -1), 5), -1: 7, 0: 7, 1: 7,
    }
    octaves("erf", "Table of erf on f32.", mp.erf, cuts, offset_bits=19)


def sigmoid() -> None:
    """sigmoid from 2^-17 to 64, and 1 beyond; below 1/2 less x / 4."""
    point, rows, first = 57, list[list[int]](), list[int]()
    cuts = {
        **dict.fromkeys(range(-17, -11), 0), **dict.fromkeys(range(-11, 0), 5), 0: 6, 1: 7, 2: 7, 3: 7, 4: 6,
        5: 5, 6: 0,
    }
    for octave, cut in cuts.items():
        first.append(len(rows))
        width = mpf(2) ** (octave - cut)
        for i in range(1 << cut):
            start = mpf(2) ** octave + i * width
            if octave == 6:
                rows.append([1 << point, 0, 0, 0, 0, 0])
                continue
            slope = mpf(1) / 4 if octave < -1 else mpf(0)
            row = fit(lambda x, k=slope: 1 / (1 + mp.exp(-x)) - k * x, start, width, 5, mpf(2) ** -point)
            rows.append([row[0] + (1 if slope == 0 else -6), *row[1:]])
    write("sigmoid_data", "Table of sigmoid on f32.", [
        ("POINT", point), ("OFFSET_BITS", 18), ("FIRST", min(cuts) + 127), ("SEGMENTS", first),
        ("CUTS", list(cuts.values())), ("TABLE", [list(column) for column in zip(*rows)]),
    ])


PARTS: dict[str, Callable[[], None]] = {"exponential": exponential, "logarithm": logarithm,
    "tanh": tanh, "erf": erf, "sigmoid": sigmoid}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PARTS))
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a module differs")
    for name in parser.parse_args().names or PARTS:
        PARTS[name]()
    if STALE:
        print(f"not what this script derives: {', '.join(STALE)}", file=sys.stderr)
    return bool(STALE)


if __name__ == "__main__":
    sys.exit(main())
