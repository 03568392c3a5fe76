"""Short ways to append instructions, as every machine has them, and what rules on lanes are given."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kera_hw.cpu_gpu.machine.code import Code, Mem, Operand, RegClass, VReg
from kera_hw.cpu_gpu.machine.level import Level
from kera_hw.cpu_gpu.select.isa import Arg, Known, Pairs, Splat, width_of
from kera_hw.legal.native import Signature
from kera_hw.types import Type

LevelT = TypeVar("LevelT", bound=Level)
EmitterT = TypeVar("EmitterT")


class AnyEmitter(Generic[LevelT]):
    """Code for a level, and its registers."""

    def __init__(self, code: Code, level: LevelT) -> None:
        self.code = code
        self.level = level

    @property
    def vector_bits(self) -> int:
        return self.level.vector_bits

    @property
    def vector_registers(self) -> int:
        return self.level.vector_registers

    @property
    def pairs(self) -> Pairs | None:
        return None

    def general(self) -> VReg:
        return self.code.vreg(RegClass.GENERAL)

    def vector_register(self) -> VReg:
        return self.code.vreg(RegClass.VECTOR)

    def lanes_from(self, kind: Type, register: VReg, lane: int, count: int) -> VReg | None:
        return None

    def rounds_to_whole(self, place: Mem, each: int) -> VReg | None:
        """Vectors of 128 bits mostly lie within a line of the cache: allocators align to them."""
        return None


class WordEmitter(AnyEmitter[Level]):
    """Of a machine whose instructions tell the widths of their operands by their names."""

    @abstractmethod
    def put(self, op: str, *operands: Operand) -> None:
        """An instruction on operands that there are."""

    def gives(self, op: str, *operands: Operand) -> VReg:
        """A new general register with an instruction's result, which is its first operand."""
        found = self.general()
        self.put(op, found, *operands)
        return found

    def vgives(self, op: str, *operands: Operand) -> VReg:
        """A new vector register with an instruction's result."""
        found = self.vector_register()
        self.put(op, found, *operands)
        return found


@dataclass(frozen=True, slots=True)
class AnyLanes(Generic[EmitterT]):
    """What a rule on lanes is given: an operation on ``count`` rounds side by side, and its operands."""

    to: EmitterT
    count: int
    op: Signature
    args: Sequence[Arg]
    splat: Splat
    known: Known

    @property
    def kind(self) -> Type:
        return self.op.operands[0]

    @property
    def width(self) -> int:
        """Bits of a lane of the operands."""
        return width_of(self.kind)

    def get(self, k: int) -> VReg:
        """An operand's lanes."""
        arg = self.args[k]
        if arg.bits is not None:
            return self.known(arg) or self.literal(arg.type, arg.bits)
        return self.splat(arg) if arg.uniform else arg.register

    @abstractmethod
    def literal(self, kind: Type, bits: int) -> VReg:
        """A number that is known, in all lanes."""
