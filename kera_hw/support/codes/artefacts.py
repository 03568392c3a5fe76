"""K08xx: malformed or inconsistent artefacts."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
)
