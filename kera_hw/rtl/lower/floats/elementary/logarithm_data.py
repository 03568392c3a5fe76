"""Tables of log and log2 on f32: a column a power; segments above 0, then below.

Written by tools/derive_rtl_elementary.py; not edited by hand.
"""
from __future__ import annotations

from kera_hw.support.tables import read_tables

_TABLES = read_tables(__name__)

POINT = 0x3a
LN2_HIGH: tuple[int, ...] = _TABLES.integers("LN2_HIGH")
LN2_LOW: tuple[int, ...] = _TABLES.integers("LN2_LOW")
NATURAL: tuple[tuple[int, ...], ...] = _TABLES.integer_columns("NATURAL")
BINARY: tuple[tuple[int, ...], ...] = _TABLES.integer_columns("BINARY")
