"""Code of one kernel while it is written: instructions over virtual registers, held against the table."""
from __future__ import annotations

from kera_hw.cpu_gpu.amdgcn.table import INLINE_FLOATS, INLINE_INTEGERS, instructions
from kera_hw.cpu_gpu.machine.code import Code as MachineCode
from kera_hw.cpu_gpu.machine.code import Fixed, Inst, Label, Mark, Name, Operand, Part, Reg, RegClass, VReg

VCC, EXEC, OFF = Name("vcc"), Name("exec"), Name("off")
MOVE, MOVE_PAIR = "v_mov_b32", "v_mov_b64"
"""The latter is two of the former in the end."""
MOVES = frozenset({MOVE, MOVE_PAIR})
SKIP = "skip"
"""A branch over what no lane runs, for speed alone: to lanes it is as if that ran under an empty mask, and so
are registers assigned and checked."""
_RESULTS = {"v": RegClass.VECTOR, "v2": RegClass.PAIR}


def low(pair: Reg) -> Part:
    return Part(pair, 0)


def high(pair: Reg) -> Part:
    return Part(pair, 1)


class Code:
    """``mirrored``: the bool that vcc holds as a mask. ``small``: pairs whose upper word is 0."""

    def __init__(self) -> None:
        self.machine = MachineCode()
        self.mirrored: VReg | None = None
        self.small: set[VReg] = set()
        self._comment = self._said = ""

    def comment(self, text: str) -> None:
        """For readers, unless it says what the last one did."""
        if text != self._said:
            self._comment = self._said = text

    def word(self) -> VReg:
        return self.machine.vreg(RegClass.VECTOR)

    def pair(self) -> VReg:
        return self.machine.vreg(RegClass.PAIR)

    def op(self, name: str, *operands: Operand, offset: int = 0) -> None:
        """An instruction; of a pair's words the lower is written first. ``offset``: bytes on an address."""
        if name in (MOVE_PAIR, SKIP):
            roles = ("w", "r")[-len(operands) :]
        else:
            row = instructions()[name]
            assert len(operands) == len(row.kinds), f"{name} takes {len(row.kinds)} operands"
            for kind, operand in zip(row.kinds, operands):
                assert _fits(kind, operand), f"{operand} as {kind} of {name}"
            roles = tuple(
                "r" if k >= row.written else "m" if isinstance(one, Part) and one.word else "w"
                for k, one in enumerate(operands)
            )
            if "vcc" in row.kinds[: row.written]:
                self.mirrored = None
        if offset:
            operands, roles = (*operands, Name(f"offset:{offset}")), (*roles, "r")
        self.machine.items.append(Inst(name, operands, roles, comment=self._comment))
        self._comment = ""

    def give(self, name: str, *operands: Operand, offset: int = 0) -> VReg:
        """An instruction with a result in a register of its own."""
        row = instructions()[name]
        result = self.machine.vreg(_RESULTS[row.kinds[0]])
        carry = (VCC,) if row.kinds[1:2] == ("vcc",) and row.written == 2 else ()
        self.op(name, result, *carry, *operands, offset=offset)
        return result

    # Words and pairs

    def both(self, lower: VReg | Part | int, upper: VReg | Part | int) -> VReg:
        """A pair of two words."""
        result = self.pair()
        self.op(MOVE, low(result), lower)
        self.op(MOVE, high(result), upper)
        if upper == 0:
            self.small.add(result)
        return result

    def halves(self, name: str, *pairs: Reg | int) -> VReg:
        """An instruction on the lower words, then on the upper; a constant is the lower word's."""
        result = self.pair()
        for part in (low, high):
            args = [part(one) if not isinstance(one, int) else one if part is low else 0 for one in pairs]
            self.op(name, part(result), *args)
        return result

    def mask(self, flag: VReg) -> None:
        """A bool into vcc."""
        if self.mirrored != flag:
            self.op("v_cmp_ne_u32", VCC, 0, flag)
            self.mirrored = flag

    def flag(self) -> VReg:
        """What vcc holds, as a bool."""
        result = self.word()
        self.op("v_cndmask_b32", result, 0, 1, VCC)
        self.mirrored = result
        return result

    # Control

    def mark(self, kind: str) -> None:
        """The lanes that run, or the course, change here."""
        self.machine.items.append(Mark(kind))
        self.mirrored = None

    def label(self) -> Label:
        return self.machine.label()

    def place(self, label: Label) -> None:
        self.machine.place(label)
        self.mirrored = None


def is_inline(value: int) -> bool:
    return value in INLINE_INTEGERS


def _fits(kind: str, operand: Operand) -> bool:
    match operand:
        case int():
            inline = kind in ("arg", "arg2", "neg2") and is_inline(operand)
            return kind in ("any", "src", "ssrc", "ssrc2", "offset", "count") or inline
        case Part(word=None, negative=True):
            return kind == "neg2"
        case Part(reg=VReg(cls=RegClass.PAIR)):
            return operand.word is not None and kind in ("v", "src", "arg", "any")
        case VReg(cls=cls) | Fixed(cls=cls):
            words = {"v", "src", "arg", "any"}
            return kind in (words if cls is RegClass.VECTOR else {"v2", "arg2", "neg2"})
        case Name(text=text):
            if text in INLINE_FLOATS:
                return kind in ("arg2", "neg2")
            return kind in (text, "any", "arg", "s", "s2", "m2", "ssrc", "ssrc2", "counts")
        case Label():
            return kind == "label"
        case _:
            return False
