"""The ports of an emitted module."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Port:
    """One port of the top module; ``direction`` is "input" or "output"."""

    name: str
    direction: str
    width: int
