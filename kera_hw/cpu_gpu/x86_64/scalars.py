"""Native operations on scalars."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kera_hw.cpu_gpu.machine.code import Fixed, Mem, Operand, RegClass, VReg
from kera_hw.cpu_gpu.select.isa import Scalar, is_narrow, is_signed, width_of
from kera_hw.cpu_gpu.x86_64.machine import RAX, RCX, RDX, Emitter
from kera_hw.legal.native import Signature
from kera_hw.types import BoolType, FloatType, IntType, Type

_ANY = Fixed(15, RegClass.VECTOR)
"""Whatever it holds: exclusive or with itself is zero."""
Found = tuple[VReg, bool]
Rule = Callable[[Emitter, Sequence[Scalar], Signature], Found]
"""The result, and whether it is loose."""

FLOAT_CONDITIONS: Mapping[str, int] = {"eq": 0x00, "ne": 0x04, "lt": 0x11, "le": 0x12, "gt": 0x1E, "ge": 0x1D}
"""Predicates of vcmp: all false with a NaN, but `ne`."""
_SIGNED = {"eq": "e", "ne": "ne", "lt": "l", "le": "le", "gt": "g", "ge": "ge"}
_UNSIGNED = {"eq": "e", "ne": "ne", "lt": "b", "le": "be", "gt": "a", "ge": "ae"}
ROUNDINGS = {"round": 8, "floor": 9, "ceil": 10, "trunc": 11}
"""Of vround, without the exception for inexact results."""


def size_of(kind: Type) -> int:
    """Bits of the register's part that a scalar is computed in."""
    return 64 if isinstance(kind, IntType) and kind.width_bits == 64 else 32


def suffix(kind: Type) -> str:
    """Of an instruction on a scalar float."""
    return "ss" if width_of(kind) == 32 else "sd"


def extended(to: Emitter, kind: IntType, register: Operand) -> VReg:
    """A narrow integer extended to 32 bits by its sign."""
    return to.gives(f"mov{'s' if kind.signed else 'z'}x{kind.width_bits}", register, size_bits=32)


def _two(op: str) -> Rule:
    """Where the result's low bits depend on the operands' low bits alone."""

    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        size = size_of(sign.result)
        found = to.changed(op, args[0].get(True), args[1].get(True), size_bits=size)
        return found, is_narrow(sign.result)

    return rule


def _one(op: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        return to.changed(op, args[0].get(True), size_bits=size_of(sign.result)), is_narrow(sign.result)

    return rule


def _absolute(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    size, value = size_of(sign.result), args[0].get()
    found = to.changed("neg", value, size_bits=size)
    to.put("cmovs", found, value, size_bits=size)
    return found, is_narrow(sign.result)


def _extreme(verb: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        size, (a, b) = size_of(sign.result), (arg.get() for arg in args)
        found = to.gives("mov", a, size_bits=size)
        to.put("cmp", found, b, size_bits=size)
        other = {"min": ("g", "a"), "max": ("l", "b")}[verb][0 if is_signed(sign.result) else 1]
        to.put(f"cmov{other}", found, b, size_bits=size)
        return found, False

    return rule


def _divided(remainder: bool) -> Rule:
    """rdx:rax by the divisor; the quotient in rax, the remainder in rdx."""

    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        size, (a, b) = size_of(sign.result), (arg.get() for arg in args)
        to.put("mov", RCX, b, size_bits=size)
        to.put("mov", RAX, a, size_bits=size)
        if is_signed(sign.result):
            to.put("cdq", size_bits=size)
            to.put("idiv", RCX, size_bits=size)
        else:
            to.put("xor", RDX, RDX, size_bits=32)
            to.put("div", RCX, size_bits=size)
        return to.gives("mov", RDX if remainder else RAX, size_bits=size), False

    return rule


def _inverse(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    if isinstance(sign.result, BoolType):
        return to.changed("xori", args[0].get(), 1, size_bits=32), False
    return _one("not")(to, args, sign)


def _shift(verb: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        size = size_of(sign.result)
        left = verb == "shl"
        op = "shlx" if left else "sarx" if is_signed(sign.result) else "shrx"
        found = to.gives(op, args[0].get(left), args[1].get(), size_bits=size)
        return found, left and is_narrow(sign.result)

    return rule


def _rotation(op: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        size = size_of(sign.result)
        found = to.gives("mov", args[0].get(), size_bits=size)
        to.put("mov", RCX, args[1].get(), size_bits=size)
        to.put(op, found, size_bits=size)
        return found, False

    return rule


def _count(op: str) -> Rule:
    """Of a 32- or 64-bit word, as a u32."""

    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        return to.gives(op, args[0].get(), size_bits=size_of(sign.operands[0])), False

    return rule


def _compare(verb: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        kind, (a, b) = sign.operands[0], (arg.get() for arg in args)
        if isinstance(kind, FloatType):
            if to.level.evex:
                bit = to.mgives(f"vcmp{suffix(kind)}", a, b, FLOAT_CONDITIONS[verb])
                return to.gives("kmovq_g", bit), False
            mask = to.vgives(f"vcmp{suffix(kind)}", a, b, FLOAT_CONDITIONS[verb])
            found = to.gives("vmovd_g", mask, size_bits=128)
            to.put("andi", found, 1, size_bits=32)
            return found, False
        to.put("cmp", a, b, size_bits=size_of(kind))
        found = to.gives(f"set{(_SIGNED if is_signed(kind) else _UNSIGNED)[verb]}")
        return to.gives("movzx8", found, size_bits=32), False

    return rule


def _blended(to: Emitter, kind: Type, base: VReg, other: VReg, by: VReg) -> VReg:
    """``other`` where the mask's first bit is set, else ``base``."""
    return to.vgives(f"vblendm{'ps' if width_of(kind) == 32 else 'pd'}", base, other, by)


def _select(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    condition, (then, otherwise) = args[0].get(), (arg.get(True) for arg in args[1:])
    if isinstance(sign.result, FloatType):
        mask = to.changed("neg", condition)
        if to.level.evex:
            return _blended(to, sign.result, otherwise, then, to.mgives("kmovq_k", mask)), False
        bits = to.vgives("vmovq", mask)
        return to.vgives("vpblendvb", otherwise, then, bits), False
    size = size_of(sign.result)
    found = to.gives("mov", then, size_bits=size)
    to.put("test", condition, condition, size_bits=32)
    to.put("cmove", found, otherwise, size_bits=size)
    return found, is_narrow(sign.result)


def extreme_of(verb: str, compared: Sequence[object], choice: Sequence[object]) -> str | None:
    """The instruction that gives ``a`` where ``a < b`` (``min a b``) or ``b < a`` (``max a b``), and else
    ``b``, with the NaNs and zeros that this means."""
    a, b = compared if verb == "lt" else reversed(compared)
    if verb not in ("lt", "gt") or a == b:
        return None
    return "min" if list(choice) == [a, b] else "max" if list(choice) == [b, a] else None


def chosen(
    to: Emitter, compared: Signature, sign: Signature, pair: Sequence[Scalar], choice: Sequence[Scalar]
) -> Found | None:
    """A selection by a comparison."""
    kind, verb = compared.operands[0], compared.opcode.partition(".")[2]
    if isinstance(kind, FloatType):
        if sign.result != kind:
            return None
        extreme = extreme_of(verb, pair, choice)
        then, otherwise = (arg.get() for arg in choice)
        if extreme is not None:
            return to.vgives(f"v{extreme}{suffix(kind)}", then, otherwise), False
        operands = [arg.get() for arg in pair]
        if to.level.evex:
            by = to.mgives(f"vcmp{suffix(kind)}", *operands, FLOAT_CONDITIONS[verb])
            return _blended(to, kind, otherwise, then, by), False
        mask = to.vgives(f"vcmp{suffix(kind)}", *operands, FLOAT_CONDITIONS[verb])
        return to.vgives("vpblendvb", otherwise, then, mask), False
    if isinstance(sign.result, FloatType) or isinstance(kind, BoolType):
        return None
    a, b = (arg.get() for arg in pair)
    size, (then, otherwise) = size_of(sign.result), (arg.get(True) for arg in choice)
    found = to.gives("mov", otherwise, size_bits=size)
    to.put("cmp", a, b, size_bits=size_of(kind))
    to.put(f"cmov{(_SIGNED if is_signed(kind) else _UNSIGNED)[verb]}", found, then, size_bits=size)
    return found, is_narrow(sign.result)


def _float(verb: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        return to.vgives(f"v{verb}{suffix(sign.result)}", *(arg.get() for arg in args)), False

    return rule


def _root(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    value = args[0].get()
    return to.vgives(f"vsqrt{suffix(sign.result)}", value, value), False


def _minimum(negated: bool) -> Rule:
    """As on lanes (``vectors``): the least both ways round, or'd; the greatest by way of what is negated."""

    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        a, b = (arg.get() for arg in args)
        turned = sign_mask(to, sign.result, False)
        if negated:
            a, b = to.vgives("vpxor", a, turned), to.vgives("vpxor", b, turned)
        name = f"vmin{suffix(sign.result)}"
        least = to.vgives("vpor", to.vgives(name, a, b), to.vgives(name, b, a))
        return to.vgives("vpxor", least, turned) if negated else least, False

    return rule


def _carry_less(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    a, b = (to.vgives("vmovq", arg.get()) for arg in args)
    return to.gives("vmovq_g", to.vgives("vpclmulqdq", a, b, 0x00)), False


def _rounded(verb: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        value = args[0].get()
        return to.vgives(f"vround{suffix(sign.result)}", value, value, ROUNDINGS[verb]), False

    return rule


def sign_mask(to: Emitter, kind: Type, inverted: bool) -> Mem:
    """The sign's bit of every lane, or all others."""
    one = 1 << (width_of(kind) - 1)
    return to.repeated(~one if inverted else one, width_of(kind))


def _sign(op: str, inverted: bool) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        return to.vgives(op, args[0].get(), sign_mask(to, sign.result, inverted)), False

    return rule


def _fused(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    a, b, c = (arg.get() for arg in args)
    found = to.vgives("vmovaps", c)
    to.put(f"vfmadd231{suffix(sign.result)}", found, a, b, size_bits=128)
    return found, False


def _cast(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    source, target = sign.operands[0], sign.result
    if isinstance(source, FloatType) and isinstance(target, FloatType):
        value = args[0].get()
        return to.vgives("vcvtss2sd" if width_of(target) == 64 else "vcvtsd2ss", value, value), False
    if isinstance(source, FloatType):
        return to.gives(f"vcvtt{suffix(source)}2si", args[0].get(), size_bits=size_of(target)), False
    if isinstance(target, FloatType):
        zero = to.vector_register()
        to.put("vpxor", zero, _ANY, _ANY, size_bits=128)
        return to.vgives(f"vcvtsi2{suffix(target)}", zero, args[0].get(), size_bits=size_of(source)), False
    shorter = not isinstance(source, BoolType) and width_of(target) <= width_of(source)
    value = args[0].get(loose=shorter)
    return widened(to, source, value, size_of(target)), is_narrow(target)


def widened(to: Emitter, source: Type, value: VReg, size_bits: int) -> VReg:
    """An integer in a register's part of that size: moves to the lower part clear the upper one."""
    if size_bits == 64 and size_of(source) == 32 and is_signed(source):
        return to.gives("movsxd", value)
    whole = size_bits == 64 and size_of(source) == 64
    return to.gives("mov", value, size_bits=64 if whole else 32)


def _bitcast(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    source, target = sign.operands[0], sign.result
    wide = width_of(source) == 64
    if isinstance(source, FloatType):
        return to.gives("vmovq_g" if wide else "vmovd_g", args[0].get()), False
    if isinstance(target, FloatType):
        return to.vgives("vmovq" if wide else "vmovd", args[0].get()), False
    return to.gives("mov", args[0].get(True), size_bits=size_of(target)), is_narrow(target)


RULES: Mapping[str, Rule] = {
    "integer.add": _two("add"), "integer.sub": _two("sub"), "integer.mul": _two("imul"),
    "integer.neg": _one("neg"), "integer.abs": _absolute,
    "integer.min": _extreme("min"), "integer.max": _extreme("max"),
    "integer.div": _divided(False), "integer.rem": _divided(True),
    "bits.and": _two("and"), "bits.or": _two("or"), "bits.xor": _two("xor"), "bits.not": _inverse,
    "bits.shl": _shift("shl"), "bits.shr": _shift("shr"),
    "bits.rotl": _rotation("rolcl"), "bits.rotr": _rotation("rorcl"),
    "bits.clmul": _carry_less,
    "bits.popcount": _count("popcnt"), "bits.clz": _count("lzcnt"), "bits.ctz": _count("tzcnt"),
    **{f"floating.{verb}": _float(verb) for verb in ("add", "sub", "mul", "div")},
    "floating.sqrt": _root, **{f"floating.{verb}": _rounded(verb) for verb in ROUNDINGS},
    "floating.min": _minimum(False), "floating.max": _minimum(True),
    "floating.neg": _sign("vpxor", False), "floating.abs": _sign("vpand", True), "floating.fma": _fused,
    **{f"compare.{verb}": _compare(verb) for verb in _SIGNED},
    "control.select": _select, "convert.cast": _cast, "convert.bitcast": _bitcast,
}
"""By operation of the registry."""
