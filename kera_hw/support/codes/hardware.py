"""K06xx: no schedule, does not fit, not expressible in hardware."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
)
