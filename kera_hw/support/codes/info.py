"""The shape of one code's entry."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CodeInfo:
    """Title (a noun phrase) and explanation (one or two sentences on cause and remedy)."""

    title: str
    explanation: str


Table = tuple[tuple[str, str, str], ...]
