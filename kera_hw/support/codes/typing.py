"""K03xx: types, shapes, literals, index proofs."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
    ("K0301", "index not proved in range",
     "Every index must be provably within its axis at compile time. Mask it, clamp it, test it, or use "
     "`a.at(i, else: v)` or `a.clamped(i)`."),
)
