"""Instructions of AVX2 and BMI in those of SSE2: the same rules write code for both.

A form with three operands is a copy and a form with two. What SSE2 has no form of is written in its others.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from kera_hw.cpu_gpu.machine.code import Fixed, Mem, Operand, RegClass, VReg
from kera_hw.cpu_gpu.x86_64.encoder import table

_RCX = Fixed(1, RegClass.GENERAL)
_WIDTHS = {"b": 8, "w": 16, "d": 32, "q": 64}
_WORDS = {8: "bw", 16: "wd", 32: "dq"}


class Writer(Protocol):
    """What the expansions are written with."""

    def put(self, op: str, *operands: Operand, size_bits: int = 64) -> None: ...
    def plain(self, op: str, *operands: Operand, size_bits: int = 64) -> None:
        """An instruction of the table as it is."""
        ...

    def gives(self, op: str, *operands: Operand, size_bits: int = 64) -> VReg: ...
    def vgives(self, op: str, *operands: Operand, size_bits: int = 128) -> VReg: ...
    def repeated(self, bits: int, width_bits: int) -> Mem: ...
    def constant(self, value: int, size_bytes: int) -> Mem: ...


Expansion = Callable[[Writer, Sequence[Operand]], None]


def write_in_sse2(to: Writer, op: str, operands: Sequence[Operand], size_bits: int) -> None:
    """An instruction of AVX2 or BMI."""
    if op in SHIFTS:
        shift_by_count(to, op, operands, size_bits)
        return
    expansion = EXPANSIONS.get(op)
    if expansion is not None:
        expansion(to, operands)
        return
    if op.startswith("vcmp"):
        operands = _condition(operands)
    (row, *others) = table()[f"{op}.s"]
    if others or len(row.kinds) == len(operands):
        to.plain(f"{op}.s", *operands, size_bits=size_bits)
        return
    target, first, *rest = operands
    assert target not in rest, (op, operands)
    if target != first:
        to.put("vmovaps", target, first)
    to.plain(f"{op}.s", target, *rest, size_bits=size_bits)


_CONDITIONS = {0x00: 0, 0x04: 4, 0x11: 1, 0x12: 2, 0x15: 5, 0x16: 6}
_TURNED = {0x1E: 1, 0x1D: 2, 0x1A: 5, 0x19: 6}
"""Predicates of AVX among the first eight, and those that are by turned operands."""


def _condition(operands: Sequence[Operand]) -> Sequence[Operand]:
    target, a, b, condition = operands
    assert isinstance(condition, int)
    if condition in _TURNED:
        return target, b, a, _TURNED[condition]
    return target, a, b, _CONDITIONS[condition]


def _register(to: Writer, operand: Operand) -> Operand:
    """Not in memory."""
    return to.vgives("vmovdqu", operand) if isinstance(operand, Mem) else operand


def _zero(to: Writer) -> VReg:
    return to.vgives("vmovdqu", to.repeated(0, 64))


def shift_by_count(to: Writer, op: str, operands: Sequence[Operand], size_bits: int) -> None:
    """Of a general register, by an amount that goes to where such shifts have it: last, since what lies on
    the stack may pass through there."""
    target, value, amount = operands
    assert target != amount, (op, operands)
    to.put("mov", target, value, size_bits=size_bits)
    to.put("mov", _RCX, amount, size_bits=size_bits)
    to.put(SHIFTS[op], target, size_bits=size_bits)


SHIFTS = {"shlx": "shlcl", "shrx": "shrcl", "sarx": "sarcl"}
"""Of BMI, and those that every processor has."""


# Lanes in and out


def _broadcast(to: Writer, width: int, source: Operand) -> VReg:
    if isinstance(source, Mem):
        if width < 32:
            source = to.vgives("vmovd", to.gives(f"movzx{width}", source, size_bits=32))
        else:
            source = to.vgives("vmovd" if width == 32 else "vmovq", source)
    if width == 64:
        return to.vgives("vpshufd", source, 0x44)
    if width == 8:
        source, width = to.vgives("vpunpcklbw", source, source), 16
    if width == 16:
        source = to.vgives("vpshuflw", source, 0)
    return to.vgives("vpshufd", source, 0)


def _broadcasts(width: int) -> Expansion:
    def write(to: Writer, operands: Sequence[Operand]) -> None:
        target, source = operands
        to.put("vmovaps", target, _broadcast(to, width, source))

    return write


def _lane(width: int, number: int) -> int:
    """All bits of one lane."""
    return ((1 << width) - 1) << width * number


def _inserted(width: int) -> Expansion:
    """Moved up to where it belongs, and the rest around it."""

    def write(to: Writer, operands: Sequence[Operand]) -> None:
        target, whole, value, number = operands
        assert isinstance(number, int)
        if isinstance(value, Mem):
            value = to.gives("mov" if width >= 32 else f"movzx{width}", value, size_bits=max(width, 32))
        alone = to.vgives("vmovq", value)
        alone = to.vgives("vpand", alone, to.constant(_lane(width, 0), 16))
        if number:
            alone = to.vgives("vpslldqi", alone, number * width // 8)
        rest = to.vgives("vpand", whole, to.constant(_lane(128, 0) ^ _lane(width, number), 16))
        to.put("vpor", target, rest, alone)

    return write


def _extracted(width: int) -> Expansion:
    def write(to: Writer, operands: Sequence[Operand]) -> None:
        target, whole, number = operands
        assert isinstance(number, int)
        if number:
            whole = to.vgives("vpsrldqi", whole, number * width // 8)
        found = to.gives("vmovq_g" if width == 64 else "vmovd_g", whole)
        if isinstance(target, Mem):
            to.put("mov" if width >= 32 else f"store{width}", target, found, size_bits=max(width, 32))
        elif width < 32:
            to.put(f"movzx{width}", target, found, size_bits=32)
        else:
            to.put("mov", target, found, size_bits=width)

    return write


# Widths


def _widened(before: int, after: int, signed: bool) -> Expansion:
    """Beside what each lane has above: its sign, or zeros."""

    def write(to: Writer, operands: Sequence[Operand]) -> None:
        target, value = operands[0], _register(to, operands[1])
        width = before
        while width < after:
            pair = _WORDS[width]
            above = _zero(to)
            if signed:
                above = to.vgives(f"vpcmpgt{pair[0]}", above, value)
            value, width = to.vgives(f"vpunpckl{pair}", value, above), 2 * width
        to.put("vmovaps", target, value)

    return write


def _packed_words(to: Writer, operands: Sequence[Operand]) -> None:
    """Of what fits, the signs are put before, since packing saturates."""
    target, *halves = operands
    cut = [to.vgives("vpsradi", to.vgives("vpslldi", _register(to, half), 16), 16) for half in halves]
    to.put("vpackssdw", target, *cut)


# Choices, comparisons, extremes


def _blended(to: Writer, operands: Sequence[Operand]) -> None:
    target, otherwise, then, mask = operands
    kept = to.vgives("vpandn", mask, otherwise)
    to.put("vpor", target, kept, to.vgives("vpand", mask, then))


def _equal_words(to: Writer, operands: Sequence[Operand]) -> None:
    target, a, b = operands
    halves = to.vgives("vpcmpeqd", a, b)
    to.put("vpand", target, halves, to.vgives("vpshufd", halves, 0xB1))


def _greater_words(to: Writer, operands: Sequence[Operand]) -> None:
    """By the upper halves with their signs; where these are equal by the lower ones without."""
    target, a, b = operands
    b = _register(to, b)
    bias = to.repeated(1 << 31, 64)
    more = to.vgives("vpcmpgtd", to.vgives("vpxor", a, bias), to.vgives("vpxor", b, bias))
    equal = to.vgives("vpshufd", to.vgives("vpcmpeqd", a, b), 0xF5)
    below = to.vgives("vpand", equal, to.vgives("vpshufd", more, 0xA0))
    to.put("vpor", target, below, to.vgives("vpshufd", more, 0xF5))


def _extreme(verb: str, signed: bool, letter: str) -> Expansion:
    def write(to: Writer, operands: Sequence[Operand]) -> None:
        target, a, b = operands
        b = _register(to, b)
        pair = [a, b]
        if not signed:
            bias = to.repeated(1 << _WIDTHS[letter] - 1, _WIDTHS[letter])
            pair = [to.vgives("vpxor", one, bias) for one in pair]
        more = to.vgives(f"vpcmpgt{letter}", *pair)
        to.put("vpblendvb", target, *((a, b) if verb == "min" else (b, a)), more)

    return write


def _absolute(letter: str) -> Expansion:
    def write(to: Writer, operands: Sequence[Operand]) -> None:
        target, value = operands[0], _register(to, operands[1])
        signs = to.vgives(f"vpcmpgt{letter}", _zero(to), value)
        to.put(f"vpsub{letter}", target, to.vgives("vpxor", value, signs), signs)

    return write


# Arithmetic


def _product(to: Writer, operands: Sequence[Operand]) -> None:
    """Of 32-bit lanes, of which two at a time are multiplied."""
    target, a, b = operands
    b = _register(to, b)
    even = to.vgives("vpmuludq", a, b)
    odd = to.vgives("vpmuludq", *(to.vgives("vpsrlqi", one, 32) for one in (a, b)))
    low = to.vgives("vpand", even, to.repeated((1 << 32) - 1, 64))
    to.put("vpor", target, low, to.vgives("vpsllqi", odd, 32))


def _shifted(op: str, width: int) -> Expansion:
    """Each lane by its own amount: all by the amount of one after the other, of which that lane is kept."""

    def write(to: Writer, operands: Sequence[Operand]) -> None:
        target, value, amounts = operands
        value, amounts = _register(to, value), _register(to, amounts)
        whole: VReg | None = None
        for number in range(128 // width):
            amount = to.vgives("vpsrldqi", amounts, number * width // 8) if number else amounts
            amount = to.vgives("vpand", amount, to.constant(_lane(width, 0), 16))
            moved = to.vgives(op, value, amount)
            alone = to.vgives("vpand", moved, to.constant(_lane(width, number), 16))
            whole = alone if whole is None else to.vgives("vpor", whole, alone)
        assert whole is not None
        to.put("vmovaps", target, whole)

    return write


_NEAREST, _FLOOR, _CEIL, _TRUNC = range(4)


def _rounded(kind: str) -> Expansion:
    """A number below the power of two from which on all are whole, by adding that; then one to the side."""

    def write(to: Writer, operands: Sequence[Operand]) -> None:
        target, *given, mode = operands
        assert isinstance(mode, int)
        value = _register(to, given[-1])
        width, fraction, exponent = (32, 23, 127) if kind == "ps" else (64, 52, 1023)
        sign, one = 1 << width - 1, exponent << fraction
        whole_from = to.repeated(exponent + fraction << fraction, width)
        size = to.vgives("vpand", value, to.repeated(~sign, width))
        signs = to.vgives("vpand", value, to.repeated(sign, width))
        small = to.vgives(f"vcmp{kind}", size, whole_from, 0x11)
        near = to.vgives(f"vsub{kind}", to.vgives(f"vadd{kind}", size, whole_from), whole_from)
        if mode & 3 == _TRUNC:
            over = to.vgives(f"vcmp{kind}", size, near, 0x11)
            near = to.vgives(f"vsub{kind}", near, to.vgives("vpand", over, to.repeated(one, width)))
        near = to.vgives("vpor", near, signs)
        if mode & 3 in (_FLOOR, _CEIL):
            pair = (value, near) if mode & 3 == _FLOOR else (near, value)
            aside = to.vgives("vpand", to.vgives(f"vcmp{kind}", *pair, 0x11), to.repeated(one, width))
            near = to.vgives(f"v{'sub' if mode & 3 == _FLOOR else 'add'}{kind}", near, aside)
            near = to.vgives("vpor", near, signs)
        to.put("vpblendvb", target, value, near, small)

    return write


EXPANSIONS: Mapping[str, Expansion] = {
    **{f"vpbroadcast{letter}": _broadcasts(width) for letter, width in _WIDTHS.items()},
    **{f"vpinsr{letter}": _inserted(width) for letter, width in _WIDTHS.items()},
    **{f"vpextr{letter}": _extracted(width) for letter, width in _WIDTHS.items()},
    **{
        f"vpmov{'s' if signed else 'z'}x{a}{b}": _widened(_WIDTHS[a], _WIDTHS[b], signed)
        for a, b in ("bw", "bd", "bq", "wd", "wq", "dq") for signed in (True, False)
    },
    "vpackusdw": _packed_words, "vpblendvb": _blended, "vpcmpeqq": _equal_words, "vpcmpgtq": _greater_words,
    **{
        f"vp{verb}{'s' if signed else 'u'}{letter}": _extreme(verb, signed, letter)
        for verb in ("min", "max") for letter in "bwd" for signed in (True, False)
        if (letter, signed) not in (("b", False), ("w", True))
    },
    **{f"vpabs{letter}": _absolute(letter) for letter in "bwd"},
    "vpmulld": _product,
    **{
        f"vps{op}v{letter}": _shifted(f"vps{op}{letter}", _WIDTHS[letter])
        for op, letter in (("ll", "d"), ("ll", "q"), ("rl", "d"), ("rl", "q"), ("ra", "d"))
    },
    **{f"vround{kind}": _rounded(kind) for kind in ("ps", "pd")},
    **{f"vround{kind}": _rounded(f"p{kind[1]}") for kind in ("ss", "sd")},
}
"""By the name of the instruction of AVX2."""
