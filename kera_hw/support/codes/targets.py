"""K07xx: a target that cannot keep an operation's meaning."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
)
