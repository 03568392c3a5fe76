"""Native operations on lanes; truth values are masks of lanes, all ones or none."""
from __future__ import annotations

from collections.abc import Callable, Mapping

from kera_hw.cpu_gpu.aarch64 import lanes as move
from kera_hw.cpu_gpu.aarch64.lanes import lower, shape
from kera_hw.cpu_gpu.aarch64.machine import Emitter
from kera_hw.cpu_gpu.aarch64.scalars import FLOAT_SINGLE, FLOAT_VERBS
from kera_hw.cpu_gpu.machine.code import VReg
from kera_hw.cpu_gpu.select.emitter import AnyLanes
from kera_hw.cpu_gpu.select.isa import is_signed, width_of
from kera_hw.types import BoolType, FloatType, IntType, Type


class Lanes(AnyLanes[Emitter]):
    """What a rule is given."""

    __slots__ = ()

    @property
    def shape(self) -> str:
        return shape(self.width)

    @property
    def sign(self) -> str:
        return "s" if is_signed(self.kind) else "u"

    def literal(self, kind: Type, bits: int) -> VReg:
        return self.to.repeated(bits, width_of(kind))

    def all(self) -> list[VReg]:
        return [self.get(k) for k in range(len(self.args))]

    def mask(self, k: int, width_bits: int) -> VReg:
        """A bool operand as a mask of lanes of that width."""
        arg = self.args[k]
        if arg.uniform:
            return mask_of(self.to, arg.register, width_bits)
        return move.resize(self.to, arg.register, arg.mask_bits, width_bits, True)

    def gives(self, op: str, *operands: VReg | int) -> VReg:
        """An instruction on lanes of the operands' width."""
        return self.to.vgives(f"{op}.{self.shape}", *operands)


def mask_of(to: Emitter, condition: VReg, width_bits: int) -> VReg:
    """A scalar bool as a mask."""
    return move.splat(to, IntType(width_bits, True), to.gives("neg.x", condition))


Rule = Callable[[Lanes], tuple[VReg, int] | None]
"""The result and the width of its mask, 0 for what is none; None where the machine has no instruction."""


def _alike(op: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int] | None:
        return at.gives(op, *at.all()), 0

    return rule


def _product(at: Lanes) -> tuple[VReg, int] | None:
    a, b = at.all()
    if at.width < 64:
        return at.gives("mul", a, b), 0
    # Of words from halves: the upper half's products only count below 2^64.
    low, high = (at.to.vgives("xtn.2s", one) for one in (a, b))
    if all(arg.most is not None and not arg.most >> 32 for arg in at.args):
        return at.to.vgives("umull.2s", low, high), 0
    crossed = at.to.vgives("mul.4s", at.to.vgives("rev64.4s", b), a)
    found = at.to.vgives("shl.2d", at.to.vgives("uaddlp.4s", crossed), 32)
    at.to.put("umlal.2s", found, low, high)
    return found, 0


def _extreme(verb: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int] | None:
        a, b = at.all()
        if at.width < 64:
            return at.gives(f"{at.sign}{verb}", a, b), 0
        more = at.gives("cmgt" if is_signed(at.kind) else "cmhi", a, b)
        at.to.put("bsl.16b", more, *((b, a) if verb == "min" else (a, b)))
        return more, 0

    return rule


def _bitwise(op: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int] | None:
        if not isinstance(at.op.result, BoolType):
            return at.to.vgives(f"{op}.16b", *at.all()), 0
        width = max(arg.mask_bits for arg in at.args)
        return at.to.vgives(f"{op}.16b", at.mask(0, width), at.mask(1, width)), width

    return rule


def _inverse(at: Lanes) -> tuple[VReg, int] | None:
    if isinstance(at.op.result, BoolType):
        arg = at.args[0]
        return at.to.vgives("mvn.16b", arg.register), arg.mask_bits
    return at.to.vgives("mvn.16b", at.get(0)), 0


def _shift(verb: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int] | None:
        amount = at.args[1].bits
        if amount == 0:
            return at.get(0), 0
        if amount is not None and amount < at.width:
            return at.gives("shl" if verb == "shl" else f"{at.sign}shr", at.get(0), amount), 0
        by = at.get(1)
        if verb == "shr":  # a negative amount, of which the low byte counts
            by = at.gives("neg", by)
        return at.gives(f"{at.sign}shl", at.get(0), by), 0

    return rule


def _rotation(left: bool) -> Rule:
    """Of words, by two shifts; those by the whole width give 0, so that an amount of 0 is no exception."""

    def rule(at: Lanes) -> tuple[VReg, int] | None:
        value, known = at.get(0), at.args[1].bits
        if known is not None:
            there = known % at.width
            if there == 0:
                return value, 0
            up = there if left else at.width - there
            moved = [at.gives("shl", value, up), at.gives("ushr", value, at.width - up)]
        else:
            amount = at.to.vgives("and.16b", at.get(1), at.to.repeated(at.width - 1, at.width))
            over = at.gives("sub", amount, at.to.repeated(at.width, at.width))  # to the right by the rest
            if not left:
                amount, over = at.gives("neg", amount), at.gives("neg", over)
            moved = [at.gives("ushl", value, amount), at.gives("ushl", value, over)]
        return at.to.vgives("orr.16b", *moved), 0

    return rule


def _leading(at: Lanes) -> tuple[VReg, int] | None:
    return (at.gives("clz", at.get(0)), 0) if at.width == 32 else None


def _population(at: Lanes) -> tuple[VReg, int] | None:
    """Of bytes, added up in pairs to the width, and given as lanes of 32 bits."""
    found = at.to.vgives("cnt.16b", at.get(0))
    for width in (8, 16, 32):
        if width < at.width:
            found = at.to.vgives(f"uaddlp.{shape(width)}", found)
    return move.resize(at.to, found, at.width, 32, False), 0


def _compare(verb: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int] | None:
        a, b = at.all()
        if verb in ("lt", "le"):
            a, b = b, a
        if verb in ("eq", "ne"):
            op = "cmeq"
        else:
            strict = verb in ("lt", "gt")
            op = ("cmgt" if strict else "cmge") if is_signed(at.kind) else ("cmhi" if strict else "cmhs")
        if isinstance(at.kind, FloatType):
            op = "fcmeq" if verb in ("eq", "ne") else "fcmgt" if verb in ("lt", "gt") else "fcmge"
        found = at.gives(op, a, b)
        return (at.to.vgives("mvn.16b", found) if verb == "ne" else found), at.width

    return rule


def _select(at: Lanes) -> tuple[VReg, int] | None:
    if isinstance(at.op.result, BoolType):
        width = max(arg.mask_bits for arg in at.args)
        then, otherwise = at.mask(1, width), at.mask(2, width)
    else:
        width, then, otherwise = 0, at.get(1), at.get(2)
    by = at.to.vgives("mov.16b", at.mask(0, width or width_of(at.op.result)))
    at.to.put("bsl.16b", by, then, otherwise)
    return by, width


def _fused(at: Lanes) -> tuple[VReg, int] | None:
    a, b, c = at.all()
    found = at.to.vgives("mov.16b", c)
    at.to.put(f"fmla.{at.shape}", found, a, b)
    return found, 0


def _cast(at: Lanes) -> tuple[VReg, int] | None:
    source, target = at.kind, at.op.result
    before, after = at.width if not isinstance(source, BoolType) else 0, width_of(target)
    if isinstance(source, BoolType):
        return at.to.vgives(f"neg.{shape(after)}", at.mask(0, after)), 0
    value = at.get(0)
    if isinstance(source, IntType) and isinstance(target, IntType):
        return move.resize(at.to, value, before, after, source.signed), 0
    if isinstance(source, FloatType) and isinstance(target, FloatType):
        return at.to.vgives("fcvtl.2s" if after == 64 else "fcvtn.2s", value), 0
    if isinstance(target, FloatType):
        if before > after:
            return None  # by way of f64 it would be rounded twice
        value = move.resize(at.to, value, before, after, is_signed(source))
        return at.to.vgives(f"{at.sign}cvtf.{shape(after)}", value), 0
    sign = "s" if is_signed(target) else "u"
    if before < after:
        value, before = at.to.vgives("fcvtl.2s", value), 64
    found = at.to.vgives(f"fcvtz{sign}.{shape(before)}", value)
    return (at.to.vgives(f"{sign}qxtn.{lower(32)}", found) if before > after else found), 0


def _bitcast(at: Lanes) -> tuple[VReg, int] | None:
    return at.get(0), 0


RULES: Mapping[str, Rule] = {
    "integer.add": _alike("add"), "integer.sub": _alike("sub"), "integer.mul": _product,
    "integer.min": _extreme("min"), "integer.max": _extreme("max"),
    "integer.neg": _alike("neg"), "integer.abs": _alike("abs"),
    "bits.and": _bitwise("and"), "bits.or": _bitwise("orr"), "bits.xor": _bitwise("eor"),
    "bits.not": _inverse,
    "bits.shl": _shift("shl"), "bits.shr": _shift("shr"),
    "bits.rotl": _rotation(True), "bits.rotr": _rotation(False),
    "bits.clz": _leading, "bits.popcount": _population,
    **{f"floating.{verb}": _alike(op) for verb, op in (FLOAT_VERBS | FLOAT_SINGLE).items()},
    "floating.fma": _fused,
    **{f"compare.{verb}": _compare(verb) for verb in ("eq", "ne", "lt", "le", "gt", "ge")},
    "control.select": _select, "convert.cast": _cast, "convert.bitcast": _bitcast,
}
"""By operation of the registry; what is absent, or gives None, goes lane by lane."""
