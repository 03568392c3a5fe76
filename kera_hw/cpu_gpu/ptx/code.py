"""Code of one kernel while it is written: instructions as text, held against the table; registers, labels."""
from __future__ import annotations

from collections import Counter

from kera_hw.cpu_gpu.ptx.table import Instruction, instructions, width_bits
from kera_hw.types import BoolType, FloatType, IntType, Type

CLASSES = {"p": "pred", "r": "b32", "d": "b64", "f": "f32", "g": "f64"}
"""The type that the registers %p0, %p1, ... are declared with, and so on; integers have none of their own."""
_LETTERS = {kind: letter for letter, kind in CLASSES.items()}


def register_type(kind: Type) -> str:
    """Of a native scalar: integers narrower than 32 bits live in 32."""
    if isinstance(kind, BoolType):
        return "pred"
    if isinstance(kind, FloatType):
        return f"f{kind.width_bits}"
    assert isinstance(kind, IntType)
    return "b64" if kind.width_bits == 64 else "b32"


def float_text(bits: int, width: int) -> str:
    """A constant by its bits."""
    return f"0{'f' if width == 32 else 'd'}{bits:0{width // 4}X}"


class Code:
    """Instructions in order. Registers are virtual, and made as they are needed."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._count: Counter[str] = Counter()
        self._labels = 0
        self._comment = ""
        self.instructions = 0

    @property
    def lines(self) -> list[str]:
        """The kernel's body without its declarations."""
        return self._lines

    def registers(self) -> list[str]:
        """Their declarations."""
        return [f".reg .{CLASSES[letter]} %{letter}<{count}>;" for letter, count in self._count.items()]

    def new(self, kind: str) -> str:
        """A register for values of a type, such as b32 or s64."""
        letter = _LETTERS[kind if kind == "pred" or kind[0] == "f" else f"b{width_bits(kind)}"]
        self._count[letter] += 1
        return f"%{letter}{self._count[letter] - 1}"

    def op(self, name: str, *operands: str, guard: str = "") -> None:
        """An instruction; ``guard``: a predicate under which alone it is carried out, as `%p1` or `!%p1`."""
        row = instructions()[name]
        _check(row, operands)
        written = [one.written(text) for one, text in zip(row.operands, operands)]
        self._lines.append(f"\t{f'@{guard} ' if guard else ''}{name} {', '.join(written)}".rstrip() + ";")
        self.instructions += 1

    def give(self, name: str, *operands: str) -> str:
        """An instruction with a result, in a register of its own."""
        result = self.new(instructions()[name].operands[0].kind)
        self.op(name, result, *operands)
        return result

    def label(self) -> str:
        self._labels += 1
        return f"$L{self._labels}"

    def place(self, label: str) -> None:
        self._lines.append(f"{label}:")

    def comment(self, text: str) -> None:
        """A line for readers, unless it says what the last one did."""
        if text != self._comment:
            self._lines.append(f"\t// {text}")
            self._comment = text


def _check(row: Instruction, operands: tuple[str, ...]) -> None:
    """As many operands as the row has, and registers as wide as they should be."""
    assert len(operands) == len(row.operands), f"{row.name} takes {len(row.operands)} operands"
    for one, text in zip(row.operands, operands):
        declared = CLASSES.get(text[1]) if text.startswith("%") and text[2:].isdigit() else None
        if declared is None or one.address or not one.kind:
            continue
        narrow = row.row.startswith(("ld.", "st.", "cvt.")) and one.kind[0] != "f"
        fits = width_bits(declared) == width_bits(one.kind) or (
            narrow and width_bits(declared) > width_bits(one.kind)
        )
        assert fits, f"{text} as an operand of {row.name}"
