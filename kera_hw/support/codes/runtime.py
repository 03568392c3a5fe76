"""K09xx: faults while running: inputs, files, tools."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
)
