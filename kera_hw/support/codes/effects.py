"""K05xx: effects and capabilities."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
)
