"""What code is for: what a processor has, as far as loops are planned and programs written out for it."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Level:
    """Code for one level runs on processors of its architecture that have more.

    ``features`` are called as Linux calls them; ``capabilities`` are what it has beyond the native set. Loops
    are planned for ``vector_registers`` of ``vector_bits``, or at least so many where a machine says itself.
    """

    name: str
    architecture: str
    features: tuple[str, ...]
    capabilities: tuple[str, ...]
    vector_bits: int
    vector_registers: int
