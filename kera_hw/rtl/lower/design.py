"""What flattening gives: one region of scalar operations, and where its leaves sit on the ports."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kera_hw.graph.node import Node, Origin, Region
from kera_hw.support import Diagnostic
from kera_hw.types import IntType, TensorType, Type

MemoryKind = Literal["state", "temp", "const", "param", "result"]


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
class FlatMemory:
    """Words that are kept from one item to the next and reached by address, not side by side.

    ``initial`` are the words at reset, or the contents of a constant, as unsigned integers; None where
    nothing is read before it is written. In a region a memory is a tensor of words: ``tensor.index`` reads
    one, ``tensor.update`` gives the memory after a write, and ``control.select`` between that and the version
    before makes a write conditional. All versions form one chain from the parameter to the result, and a
    read names the version that it sees. A constant has no result. ``distance``: items from a write to the
    first one that may read its address. ``writers`` and ``readers``: circuits that take turns at its ports.
    ``far``: whether it is among so many that the ways to its ports take a clock.
    """

    name: str
    entries: int
    word_bits: int
    initial: tuple[int, ...] | None
    kind: MemoryKind
    origin: Origin | None = None
    distance: int = 1
    writers: int = 1
    readers: int = 1
    far: bool = False

    @property
    def type(self) -> TensorType:
        """What a memory is in a region: its words as unsigned integers, floats as their bits."""
        return TensorType(IntType(self.word_bits, False), (self.entries,))


@dataclass(frozen=True, slots=True)
class FlatDesign:
    """A flat region: parameters are ``inputs``, ``states``, ``memories``; results ``outputs``, next states
    and the memories that are no constants.

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
    memories: tuple[FlatMemory, ...] = ()


class LoweringError(Exception):
    """The program is right but this hardware can't be made; carries the diagnostic. Stays in the package."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic
