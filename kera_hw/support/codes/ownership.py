"""K04xx: ownership, borrows and memory spaces."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
)
