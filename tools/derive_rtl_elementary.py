"""Derive the tables of the elementary functions' circuits (kera_hw/rtl/lower/floats/elementary/*_data.py).

    .venv/bin/python tools/derive_rtl_elementary.py [NAME ...]

Every number is computed with mpmath at far more bits than it keeps, rounded once to an integer.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from mpmath import mp, mpf

mp.prec = 400
OUT = Path(__file__).resolve().parent.parent / "kera_hw/rtl/lower/floats/elementary"


def nearest(value: object) -> int:
    """The integer nearest to an mpf."""
    return int(mp.nint(value))


def write(name: str, title: str, parts: Iterable[tuple[str, object]]) -> None:
    """A module of constants; tables as rows of hexadecimal words."""
    lines = [f'"""{title}', "", "Written by tools/derive_rtl_elementary.py; not edited by hand.", '"""',
             "from __future__ import annotations", ""]
    for key, value in parts:
        if isinstance(value, int):
            lines.append(f"{key} = {value:#x}")
            continue
        assert isinstance(value, list)
        lines.append(f"{key}: tuple[int, ...] = (")
        row = "   "
        for word in value:
            text = f" {word:#x},"
            if len(row) + len(text) > 108:
                lines.append(row)
                row = "   "
            row += text
        lines += [row, ")"]
    (OUT / f"{name}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")


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
    write("exponential_data", "Tables of exp and exp2 on f32.", [
        ("LN2_HIGH", [nearest((16 * i - 256) * ln2 * mpf(2) ** 58) for i in range(32)]),
        ("LN2_LOW", [nearest(i * ln2 * mpf(2) ** 58) for i in range(16)]),
        ("LN2_SHORT", nearest(ln2 * mpf(2) ** 40)),
        ("FIRST_E", first_e), ("SECOND_E", second_e), ("FIRST_2", first_2), ("SECOND_2", second_2),
    ])


PARTS: dict[str, Callable[[], None]] = {"exponential": exponential}


def main(names: list[str]) -> None:
    for name in names or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
