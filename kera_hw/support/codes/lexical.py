"""K00xx: the lexer's diagnostics."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
)
