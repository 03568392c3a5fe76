"""Table of sigmoid on f32.

Written by tools/derive_rtl_elementary.py; not edited by hand.
"""
from __future__ import annotations

from kera_hw.support.tables import read_tables

_TABLES = read_tables(__name__)

POINT = 0x39
OFFSET_BITS = 0x12
FIRST = 0x6e
SEGMENTS: tuple[int, ...] = _TABLES.integers("SEGMENTS")
CUTS: tuple[int, ...] = _TABLES.integers("CUTS")
TABLE: tuple[tuple[int, ...], ...] = _TABLES.integer_columns("TABLE")
