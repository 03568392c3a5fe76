"""What a processor offers to the selection of instructions."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kera_hw.cpu_gpu.machine.code import Code, Label, Mem, Reg, VReg
from kera_hw.legal.native import Signature
from kera_hw.types import BoolType, FloatType, IntType, Type


@dataclass(frozen=True, slots=True)
class Arg:
    """An operand of a vector operation: lanes in a register, or one scalar for all of them.

    ``mask_bits``: of a bool's mask, how wide a lane is; 0 for a scalar bool, of which any mask can be made.
    ``bits``: of a number that is known, which has no register. ``most``: what no unsigned lane exceeds.
    """

    type: Type
    reg: VReg | None
    uniform: bool
    mask_bits: int = 0
    bits: int | None = None
    most: int | None = None

    @property
    def register(self) -> VReg:
        assert self.reg is not None
        return self.reg


Splat = Callable[[Arg], VReg]
"""A number that is not known, in all lanes; ahead of the loop where it is made there."""


Known = Callable[[Arg], VReg | None]
"""A number that is known, in all lanes, if there is a register for it throughout the loop."""


class Strips(Protocol):
    """Loops that take as many rounds at once as the machine has lanes for."""

    def begin(self, counter: Reg, end: Reg | int, count: int) -> VReg:
        """How many of the rounds that are left go at once, ``count`` lanes being the least that there are."""
        ...

    def looks_up(self, kind: Type, entries: int) -> bool:
        """Whether ``Isa.look_up`` is for tables of so many."""
        ...

    def over(self) -> None:
        """From here on, lanes are as many as instructions are told."""
        ...

    def move(self, register: VReg, rounds: VReg, distance: int) -> None:
        """On by so much a round."""
        ...


class Pairs(Protocol):
    """Products of 16 bits, of which each two neighbouring ones are added in 32 bits."""

    def takes(self, count: int) -> bool:
        """Whether so many lanes of 32 bits are multiplied so."""
        ...

    def sums(self, parts: Sequence[tuple[Type, Mem, VReg]], count: int) -> tuple[VReg, VReg]:
        """Of elements from each place on and two factors in each lane: sums of an element and the next one by
        the factors, for ``count`` elements and as many after them."""
        ...


class Isa(Protocol):
    """Instructions are appended to ``code``; results are new registers.

    A narrow integer scalar is extended to 32 bits by its sign unless it is *loose*; a bool is 0 or 1. With n
    lanes each type lies in the low n lanes of its own width. A bool is then a mask of lanes of ``mask_bits``;
    where machines have registers for masks, of one bit each.
    """

    code: Code

    @property
    def vector_bits(self) -> int: ...
    @property
    def vector_registers(self) -> int: ...
    @property
    def pairs(self) -> Pairs | None: ...
    @property
    def strips(self) -> Strips | None:
        """For a machine that says itself how long its vectors are; ``vector_bits`` are then the least."""
        ...


    def arguments(self) -> tuple[VReg, VReg, VReg]:
        """Those that the function is called with."""
        ...

    # Addresses and control: 64-bit integers
    def number(self, value: int) -> VReg: ...
    def copy(self, target: VReg, source: Reg, vector: bool = False) -> None: ...
    def add_number(self, register: VReg, value: int) -> None: ...
    def sum_of(self, base: Reg, index: Reg, scale: int, offset: int) -> VReg: ...
    def times(self, register: Reg, value: int) -> VReg: ...
    def multiple_below(self, register: Reg, step: int) -> VReg:
        """The greatest multiple of a power of two that is no more."""
        ...

    def rounds_to_whole(self, place: Mem, each: int) -> VReg | None:
        """How many elements of ``each`` bytes lie before the next whole vector in memory; None where it takes
        no longer to store to any place."""
        ...

    def branch_below(self, register: Reg, end: Reg | int, label: Label) -> None: ...
    def branch_zero(self, condition: Reg, label: Label) -> None: ...
    def jump(self, label: Label) -> None: ...
    def as_index(self, kind: Type, register: VReg) -> VReg: ...

    # Scalars
    def scalar_register(self, kind: Type) -> VReg:
        """A new one, of the class that holds such a scalar."""
        ...

    def literal(self, kind: Type, bits: int) -> VReg: ...
    def load(self, kind: Type, place: Mem) -> VReg: ...
    def store(self, kind: Type, place: Mem, register: VReg) -> None: ...
    def extend(self, kind: IntType, register: VReg) -> VReg: ...
    def scalar(self, op: Signature, args: Sequence[Scalar]) -> tuple[VReg, bool]: ...
    def chosen(
        self, compared: Signature, op: Signature, args: Sequence[Scalar]
    ) -> tuple[VReg, bool] | None: ...

    # Lanes
    def splat(self, kind: Type, register: VReg, count: int) -> VReg: ...
    def splat_literal(self, kind: Type, bits: int, count: int) -> VReg: ...
    def iota(self, counter: VReg, count: int, width_bits: int) -> VReg: ...
    def load_lanes(self, kind: Type, place: Mem, count: int) -> VReg: ...
    def load_splat(self, kind: Type, place: Mem, count: int) -> VReg: ...
    def gather(self, kind: Type, places: Sequence[Mem]) -> VReg: ...
    def look_up(self, kind: Type, table: Mem, entries: int, index: VReg, count: int) -> VReg | None: ...
    def wraps_entries(self, kind: Type, entries: int, count: int) -> bool:
        """Whether ``look_up`` gives what the low bits of an index say, of which there are as many entries."""
        ...

    def store_lanes(self, kind: Type, place: Mem, register: VReg, count: int) -> None: ...
    def extract(self, kind: Type, register: VReg, lane: int) -> VReg: ...
    def lanes_from(self, kind: Type, register: VReg, lane: int, count: int) -> VReg | None:
        """Some lanes as the low ones, where the machine takes no longer for that than for a load."""
        ...

    def insert(self, kind: Type, register: VReg | None, value: VReg, lane: int) -> VReg: ...
    def mask_bits(self, count: int) -> int: ...
    def lanes_register(self, kind: Type) -> VReg: ...
    def bool_lane(self, register: VReg, mask_bits: int, lane: int) -> VReg: ...
    def mask_of_lanes(self, values: Sequence[VReg]) -> tuple[VReg, int]: ...
    def mask_of(self, condition: VReg, mask_bits: int, count: int) -> VReg: ...
    def resize_mask(self, register: VReg, before: int, after: int, count: int) -> VReg: ...
    def vector(
        self, op: Signature, count: int, args: Sequence[Arg], splat: Splat, known: Known
    ) -> tuple[VReg, int] | None: ...
    def chosen_lanes(
        self, compared: Signature, op: Signature, count: int, args: Sequence[Arg], splat: Splat, known: Known
    ) -> VReg | None: ...
    def merged_sum(
        self, op: Signature, count: int, args: Sequence[Arg], splat: Splat, known: Known
    ) -> VReg | None: ...


class Scalar(Protocol):
    """A scalar operand: its register, extended to its width or loose."""

    @property
    def type(self) -> Type: ...
    def get(self, loose: bool = False) -> VReg: ...


COMPARED = 2
"""Of the operands of a selection by a comparison (``chosen``), so many are compared."""


def is_narrow(kind: Type) -> bool:
    return isinstance(kind, IntType) and kind.width_bits < 32


def is_signed(kind: Type) -> bool:
    return isinstance(kind, IntType) and kind.signed


def width_of(kind: Type) -> int:
    """Bits of a native number in memory; a bool has 8."""
    if isinstance(kind, BoolType):
        return 8
    assert isinstance(kind, IntType | FloatType)
    return kind.width_bits
