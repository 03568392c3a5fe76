"""K02xx: name resolution, modules, items."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
)
