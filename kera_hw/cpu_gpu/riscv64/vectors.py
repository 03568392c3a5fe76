"""Native operations on lanes; truth values are bits of mask registers. Every operation has instructions."""
from __future__ import annotations

from collections.abc import Callable, Mapping

from kera_hw.cpu_gpu.machine.code import Operand, VReg
from kera_hw.cpu_gpu.riscv64.machine import MASK, Emitter
from kera_hw.cpu_gpu.riscv64.scalars import FLOAT_VERBS, WHOLE_FROM
from kera_hw.cpu_gpu.select.emitter import AnyLanes
from kera_hw.cpu_gpu.select.isa import is_signed, width_of
from kera_hw.types import BoolType, FloatType, IntType, Type

MASK_BITS = 1
_MOST_IMMEDIATE = 31


class Lanes(AnyLanes[Emitter]):
    """What a rule is given."""

    __slots__ = ()

    @property
    def unsigned(self) -> str:
        return "" if is_signed(self.kind) else "u"

    def literal(self, kind: Type, bits: int) -> VReg:
        return repeated(self.to, bits, width_of(kind), self.count)

    def all(self) -> list[VReg]:
        return [self.get(k) for k in range(len(self.args))]

    def mask(self, k: int) -> VReg:
        """A bool operand."""
        arg = self.args[k]
        return mask_of(self.to, arg.register, self.count) if arg.uniform else arg.register

    def lanes(self, width_bits: int = 0) -> None:
        """Sets the lanes' width, the operands' if none is given."""
        self.to.lanes(width_bits or self.width, self.count)

    def gives(self, op: str, *operands: Operand) -> VReg:
        """An instruction on lanes of the operands' width."""
        self.lanes()
        return self.to.vgives(op, *operands)


def repeated(to: Emitter, bits: int, width_bits: int, count: int) -> VReg:
    """A constant in every lane."""
    value = bits & (1 << width_bits) - 1
    value -= (value >> width_bits - 1) << width_bits
    if -16 <= value < 16:
        to.all_lanes(width_bits, count)
        return to.vgives("vmvi", value)
    register = to.integer(value)
    to.all_lanes(width_bits, count)
    return to.vgives("vmvx", register)


def mask_of(to: Emitter, condition: VReg, count: int) -> VReg:
    """A scalar bool in every lane."""
    to.lanes(8, count)
    return to.vgives("vmsnei", to.vgives("vmvx", condition), 0)


def chosen(to: Emitter, mask: VReg, then: VReg, otherwise: VReg) -> VReg:
    """Of lanes as they are set."""
    to.put("vmv1", MASK, mask)
    return to.vgives("vmerge", otherwise, then)


def resize(to: Emitter, register: VReg, before: int, after: int, count: int, signed: bool) -> VReg:
    """Lanes of one width as lanes of another: widened by sign or zeros, or cut off."""
    if before < after:
        to.lanes(after, count)
        return to.apart(f"v{'s' if signed else 'z'}ext{after // before}", register)
    while before > after:
        before //= 2
        to.lanes(before, count)
        register = to.vgives("vnsrli", register, 0)
    return register


Rule = Callable[[Lanes], tuple[VReg, int]]
"""The result and the width of its mask, 0 for what is none."""


def _alike(op: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int]:
        return at.gives(op, *at.all()), 0

    return rule


def _signed(op: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int]:
        return at.gives(f"{op}{at.unsigned}", *at.all()), 0

    return rule


def _negative(at: Lanes) -> tuple[VReg, int]:
    return at.gives("vrsubi", at.get(0), 0), 0


def _absolute(at: Lanes) -> tuple[VReg, int]:
    value = at.get(0)
    return at.gives("vmax", value, at.gives("vrsubi", value, 0)), 0


def _bitwise(verb: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int]:
        if not isinstance(at.op.result, BoolType):
            return at.gives(f"v{verb}", *at.all()), 0
        masks = at.mask(0), at.mask(1)
        at.lanes(8)
        return at.to.vgives(f"vm{verb}", *masks), MASK_BITS

    return rule


def _inverse(at: Lanes) -> tuple[VReg, int]:
    if isinstance(at.op.result, BoolType):
        value = at.mask(0)
        at.lanes(8)
        return at.to.vgives("vmnand", value, value), MASK_BITS
    return at.gives("vxori", at.get(0), -1), 0


def _shift(verb: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int]:
        op = "vsll" if verb == "shl" else "vsra" if is_signed(at.kind) else "vsrl"
        amount = at.args[1].bits
        if amount is not None and amount <= min(_MOST_IMMEDIATE, at.width - 1):
            return at.gives(f"{op}i", at.get(0), amount), 0
        return at.gives(op, *at.all()), 0

    return rule


def _compare(verb: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int]:
        a, b = at.all()
        if verb in ("gt", "ge"):
            a, b = b, a
        name = {"gt": "lt", "ge": "le"}.get(verb, verb)
        if isinstance(at.kind, FloatType):
            return at.gives(f"vmf{name}", a, b), MASK_BITS
        return at.gives(f"vms{name}{at.unsigned if name in ('lt', 'le') else ''}", a, b), MASK_BITS

    return rule


def _select(at: Lanes) -> tuple[VReg, int]:
    by = at.mask(0)
    if isinstance(at.op.result, BoolType):
        then, otherwise = at.mask(1), at.mask(2)
        at.lanes(8)
        kept = at.to.vgives("vmandn", otherwise, by)
        return at.to.vgives("vmor", at.to.vgives("vmand", then, by), kept), MASK_BITS
    then, otherwise = at.get(1), at.get(2)
    at.lanes(width_of(at.op.result))
    return chosen(at.to, by, then, otherwise), 0


def _root(at: Lanes) -> tuple[VReg, int]:
    return at.gives("vfsqrt", at.get(0)), 0


def _sign(op: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int]:
        value = at.get(0)
        return at.gives(op, value, value), 0

    return rule


def _integers(at: Lanes, op: str, mode: int, value: VReg) -> VReg:
    """Floats to integers, rounded in a mode, after which it is to the nearest again.

    Not by the conversions that are toward zero by themselves: QEMU before 8 ends at them.
    """
    if mode:
        at.to.put("rounding", mode)
    found = at.to.apart(op, value) if op == "vfwcvt_x" else at.to.vgives(op, value)
    if mode:
        at.to.put("rounding", 0)
    return found


MODES = {"round": 0, "trunc": 1, "floor": 2, "ceil": 3}
"""Of the register that says how to round."""


def _rounded(verb: str) -> Rule:
    """By way of an integer, with the sign that it had; of a number that is whole, or none, itself."""

    def rule(at: Lanes) -> tuple[VReg, int]:
        value, to = at.get(0), at.to
        limit = repeated(to, WHOLE_FROM[at.width], at.width, at.count)
        at.lanes()
        there = to.vgives("vfcvt_fx", _integers(at, "vfcvt_x", MODES[verb], value))
        there = to.vgives("vfsgnj", there, value)
        small = to.vgives("vmflt", to.vgives("vfsgnjx", value, value), limit)
        return chosen(to, small, there, value), 0

    return rule


def _fused(at: Lanes) -> tuple[VReg, int]:
    a, b, c = at.all()
    found = at.to.vgives("vmv1", c)
    at.lanes()
    at.to.put("vfmacc", found, a, b)
    return found, 0


def _cast(at: Lanes) -> tuple[VReg, int]:
    source, target, to = at.kind, at.op.result, at.to
    after = width_of(target)
    if isinstance(source, BoolType):
        by = at.mask(0)
        at.lanes(after)
        to.put("vmv1", MASK, by)
        return to.vgives("vmergei", to.vgives("vmvi", 0), 1), 0
    value, before = at.get(0), at.width
    if isinstance(source, IntType) and isinstance(target, IntType):
        return resize(to, value, before, after, at.count, source.signed), 0
    at.lanes(min(before, after))
    size = "w" if before < after else "n" if before > after else ""
    if not isinstance(target, FloatType):
        return _integers(at, f"vf{size}cvt_x", MODES["trunc"], value), 0
    op = f"vf{size}cvt_f{'f' if isinstance(source, FloatType) else f'x{at.unsigned}'}"
    return (to.apart if size == "w" else to.vgives)(op, value), 0


def _bitcast(at: Lanes) -> tuple[VReg, int]:
    return at.get(0), 0


RULES: Mapping[str, Rule] = {
    "integer.add": _alike("vadd"), "integer.sub": _alike("vsub"), "integer.mul": _alike("vmul"),
    "integer.min": _signed("vmin"), "integer.max": _signed("vmax"),
    "integer.div": _signed("vdiv"), "integer.rem": _signed("vrem"),
    "integer.neg": _negative, "integer.abs": _absolute,
    "bits.and": _bitwise("and"), "bits.or": _bitwise("or"), "bits.xor": _bitwise("xor"), "bits.not": _inverse,
    "bits.shl": _shift("shl"), "bits.shr": _shift("shr"),
    **{f"floating.{verb}": _alike(f"vf{verb}") for verb in FLOAT_VERBS if verb != "sqrt"},
    "floating.sqrt": _root,
    **{f"floating.{verb}": _rounded(verb) for verb in MODES},
    "floating.neg": _sign("vfsgnjn"), "floating.abs": _sign("vfsgnjx"), "floating.fma": _fused,
    **{f"compare.{verb}": _compare(verb) for verb in ("eq", "ne", "lt", "le", "gt", "ge")},
    "control.select": _select, "convert.cast": _cast, "convert.bitcast": _bitcast,
}
"""By operation of the registry."""
