"""Tables of exp and exp2 on f32.

Written by tools/derive_rtl_elementary.py; not edited by hand.
"""
from __future__ import annotations

from kera_hw.support.tables import read_tables

_TABLES = read_tables(__name__)

LN2_HIGH: tuple[int, ...] = _TABLES.integers("LN2_HIGH")
LN2_LOW: tuple[int, ...] = _TABLES.integers("LN2_LOW")
LN2_SHORT = 0xb17217f7d2
FIRST_E: tuple[int, ...] = _TABLES.integers("FIRST_E")
SECOND_E: tuple[int, ...] = _TABLES.integers("SECOND_E")
FIRST_2: tuple[int, ...] = _TABLES.integers("FIRST_2")
SECOND_2: tuple[int, ...] = _TABLES.integers("SECOND_2")
