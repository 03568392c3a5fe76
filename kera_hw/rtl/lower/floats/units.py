"""What the table of float units holds: how to lower an operation, and on which formats."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kera_hw.graph.node import Ref
from kera_hw.types import BF16, F16, F32, F64, FloatType

ALL_FORMATS = frozenset({F16, BF16, F32, F64})


@dataclass(frozen=True, slots=True)
class Unit:
    """One operation on scalars.

    ``lower(builder, kind, *operands)`` takes operands as bit patterns that may hold any NaN. ``canonical``:
    the result never holds a NaN other than the canonical one (or is no float).
    """

    lower: Callable[..., Ref]
    formats: frozenset[FloatType] = ALL_FORMATS
    canonical: bool = True
