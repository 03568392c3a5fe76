"""Machine code before registers are assigned: instructions of a target's table over virtual registers.

A virtual register has a class and may be written more than once. Operands are virtual registers (``VReg``),
fixed registers (``Fixed``, which are never assigned to a virtual one), memory, and constants. Loops are
marked, since a value made before one and used within lives until its end.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from kera_hw.graph.node import Origin


class RegClass(Enum):
    """Registers that can hold one another's values."""

    GENERAL = "general"
    VECTOR = "vector"
    MASK = "mask"
    FLOAT = "float"
    """Scalar floats, where a machine has them apart from vectors."""
    PAIR = "pair"
    """Two vector registers that lie beside each other."""


@dataclass(frozen=True, slots=True)
class VReg:
    """A virtual register."""

    number: int
    cls: RegClass

    def __hash__(self) -> int:
        return self.number


@dataclass(frozen=True, slots=True)
class Fixed:
    """A register of the machine by its number."""

    number: int
    cls: RegClass

    def __hash__(self) -> int:
        return self.number


Reg = VReg | Fixed


@dataclass(frozen=True, slots=True)
class Mem:
    """``base + index * scale + offset``; a ``label`` in place of a base is a constant of the code's own."""

    base: Reg | None
    index: Reg | None = None
    scale: int = 1
    offset: int = 0
    label: int | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """A place in the code."""

    number: int


@dataclass(frozen=True, slots=True)
class Part:
    """A register as an instruction takes it: one ``word`` of a pair, or its number ``negative``."""

    reg: Reg
    word: int | None = None
    negative: bool = False


@dataclass(frozen=True, slots=True)
class Name:
    """What stands in the text as it is, and registers are not assigned to."""

    text: str


Operand = Reg | Mem | Label | Part | Name | int


@dataclass(slots=True)
class Inst:
    """``op`` is a row of the target's table; ``roles`` says of each operand if it is read, written or both.

    ``size_bits``: of a general register's part, or of a vector. ``comment``: for readers of text. ``place``:
    the source that it is for, where that is known. Operands and roles stay what they are.
    """

    op: str
    operands: tuple[Operand, ...]
    roles: tuple[str, ...]
    size_bits: int = 64
    comment: str = ""
    place: Origin | None = None
    _accesses: list[tuple[Reg, str]] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def accesses(self) -> list[tuple[Reg, str]]:
        """Registers that it reads ("r"), writes ("w") or both ("m"); addresses are read. Not for changing."""
        if self._accesses is None:
            self._accesses = _accesses(self.operands, self.roles)
        return self._accesses


@dataclass(frozen=True, slots=True)
class Mark:
    """Not an instruction: ``place`` is where a label stands, where a loop begins or ends."""

    kind: str  # "label", "loop", "end"
    label: Label | None = None


Item = Inst | Mark


@dataclass(slots=True)
class Code:
    """One function under construction. ``pool``: constants by label, as bytes."""

    items: list[Item] = field(default_factory=list[Item])
    pool: dict[int, bytes] = field(default_factory=dict[int, bytes])
    registers: int = 0
    labels: int = 0
    _pooled: dict[bytes, Label] = field(default_factory=dict[bytes, Label])

    def vreg(self, cls: RegClass) -> VReg:
        self.registers += 1
        return VReg(self.registers, cls)

    def label(self) -> Label:
        self.labels += 1
        return Label(self.labels)

    def place(self, label: Label) -> None:
        self.items.append(Mark("label", label))

    def constant(self, contents: bytes) -> Mem:
        """A constant in memory beside the code, aligned to its size."""
        label = self._pooled.get(contents)
        if label is None:
            label = self._pooled[contents] = self.label()
            self.pool[label.number] = contents
        return Mem(None, label=label.number)


def _accesses(operands: tuple[Operand, ...], roles: tuple[str, ...]) -> list[tuple[Reg, str]]:
    found: list[tuple[Reg, str]] = []
    for operand, role in zip(operands, roles):
        if isinstance(operand, (VReg, Fixed)):
            found.append((operand, role))
        elif isinstance(operand, Mem):
            if operand.base is not None:
                found.append((operand.base, "r"))
            if operand.index is not None:
                found.append((operand.index, "r"))
        elif isinstance(operand, Part):
            found.append((operand.reg, role))
    return found
