"""What flattening gives: one region of scalar operations, and where its leaves sit on the ports."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kera_hw.graph.node import Node, Origin, Region
from kera_hw.support import Diagnostic
from kera_hw.types import Type


@dataclass(frozen=True, slots=True)
class FlatLeaf:
    """One scalar leaf of a port: ``width_bits`` bits of bus ``bus`` from bit ``low``."""

    bus: str
    low: int
    width_bits: int
    type: Type


@dataclass(frozen=True, slots=True)
class FlatState:
    """One scalar of a stream's state with its initial raw value (the bits, as an unsigned integer)."""

    name: str
    width_bits: int
    type: Type
    initial: int
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class FlatDesign:
    """A flat region: parameters are ``inputs``, then ``states``; results ``outputs``, then next states.

    ``in_buses`` and ``out_buses`` give every data port with its width in bits, in order; a value of no bits,
    such as an empty tensor, has no port. ``general`` names what has no circuit of its own and is computed by
    arithmetic, each with the share of the design's operations that is for it.
    """

    name: str
    region: Region
    inputs: tuple[FlatLeaf, ...]
    outputs: tuple[FlatLeaf, ...]
    states: tuple[FlatState, ...]
    in_buses: tuple[tuple[str, int], ...]
    out_buses: tuple[tuple[str, int], ...]
    origins: Mapping[Node, Origin] = field(default_factory=dict[Node, Origin])
    general: Mapping[str, float] = field(default_factory=dict[str, float])


class LoweringError(Exception):
    """The program is right but this hardware can't be made; carries the diagnostic. Stays in the package."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic
