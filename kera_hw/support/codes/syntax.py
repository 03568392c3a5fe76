"""K01xx: the parser's diagnostics."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
)
