"""Native operations on scalars."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kera_hw.cpu_gpu.aarch64.machine import EQ, GE, GT, HI, HS, LE, LO, LS, LT, MI, NE, Emitter
from kera_hw.cpu_gpu.machine.code import Reg, VReg
from kera_hw.cpu_gpu.select.isa import Scalar, is_narrow, is_signed, width_of
from kera_hw.legal.native import Signature
from kera_hw.types import BoolType, FloatType, IntType, Type

Found = tuple[VReg, bool]
Rule = Callable[[Emitter, Sequence[Scalar], Signature], Found]
"""The result, and whether it is loose."""

_SIGNED = {"eq": EQ, "ne": NE, "lt": LT, "le": LE, "gt": GT, "ge": GE}
_UNSIGNED = {"eq": EQ, "ne": NE, "lt": LO, "le": LS, "gt": HI, "ge": HS}
_FLOAT = {"eq": EQ, "ne": NE, "lt": MI, "le": LS, "gt": GT, "ge": GE}
"""All but `ne` false with a NaN."""
ROUNDINGS = {"round": "frintn", "floor": "frintm", "ceil": "frintp", "trunc": "frintz"}
FLOAT_VERBS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "min": "fmin", "max": "fmax"}
FLOAT_SINGLE = {"sqrt": "fsqrt", "neg": "fneg", "abs": "fabs", **ROUNDINGS}


def size(kind: Type) -> str:
    """The registers that an integer is computed in, in the names of instructions."""
    return "x" if isinstance(kind, IntType) and kind.width_bits == 64 else "w"


def precision(kind: Type) -> str:
    return "s" if width_of(kind) == 32 else "d"


def extended(to: Emitter, kind: IntType, register: Reg) -> VReg:
    """A narrow integer extended to 32 bits by its sign."""
    return to.gives(f"{'s' if kind.signed else 'u'}bfm.w", register, 0, kind.width_bits - 1)


def widened(to: Emitter, source: Type, value: Reg, result_size: str) -> VReg:
    """An integer in a register of that size: what is 32 bits long has zeros above."""
    if result_size == "x" and size(source) == "w":
        return to.gives("sbfm.x", value, 0, 31) if is_signed(source) else to.gives("mov.w", value)
    return to.gives(f"mov.{result_size}", value)


def _two(op: str) -> Rule:
    """Where the result's low bits depend on the operands' low bits alone."""

    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        found = to.gives(f"{op}.{size(sign.result)}", args[0].get(True), args[1].get(True))
        return found, is_narrow(sign.result)

    return rule


def _one(op: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        return to.gives(f"{op}.{size(sign.result)}", args[0].get(True)), is_narrow(sign.result)

    return rule


def _absolute(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    which, value = size(sign.result), args[0].get()
    minus = to.gives(f"neg.{which}", value)
    to.put(f"cmpi.{which}", value, 0)
    return to.gives(f"csel.{which}", minus, value, LT), is_narrow(sign.result)


def _extreme(verb: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        which, (a, b) = size(sign.result), (arg.get() for arg in args)
        to.put(f"cmp.{which}", a, b)
        less, more = (LT, GT) if is_signed(sign.result) else (LO, HI)
        return to.gives(f"csel.{which}", a, b, less if verb == "min" else more), False

    return rule


def _divided(remainder: bool) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        which, (a, b) = size(sign.result), (arg.get() for arg in args)
        quotient = to.gives(f"{'s' if is_signed(sign.result) else 'u'}div.{which}", a, b)
        return (to.gives(f"msub.{which}", quotient, b, a) if remainder else quotient), False

    return rule


def _inverse(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    if isinstance(sign.result, BoolType):
        return to.gives("eori.w", args[0].get(), 1), False
    return _one("mvn")(to, args, sign)


def _shift(verb: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        left = verb == "shl"
        op = "lsl" if left else "asr" if is_signed(sign.result) else "lsr"
        found = to.gives(f"{op}.{size(sign.result)}", args[0].get(left), args[1].get())
        return found, left and is_narrow(sign.result)

    return rule


def _rotation(left: bool) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        which, (value, amount) = size(sign.result), (arg.get() for arg in args)
        if left:
            amount = to.gives(f"neg.{which}", amount)
        return to.gives(f"ror.{which}", value, amount), False

    return rule


def _leading(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    return to.gives(f"clz.{size(sign.operands[0])}", args[0].get()), False


def _trailing(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    which = size(sign.operands[0])
    return to.gives(f"clz.{which}", to.gives(f"rbit.{which}", args[0].get())), False


def _population(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    """Of a word's bytes by vector instructions, which the general ones have none for."""
    wide = size(sign.operands[0]) == "x"
    whole = to.vgives("fmov_to.dx" if wide else "fmov_to.sw", args[0].get())
    summed = to.vgives("addv.8b", to.vgives("cnt.8b", whole))
    return to.gives("umov.l8", summed, 0), False


def _condition(to: Emitter, kind: Type, verb: str, pair: Sequence[Scalar]) -> int:
    """The condition by which a comparison that is written here holds."""
    a, b = (arg.get() for arg in pair)
    if isinstance(kind, FloatType):
        to.put(f"fcmp.{precision(kind)}", a, b)
        return _FLOAT[verb]
    to.put(f"cmp.{size(kind)}", a, b)
    return (_SIGNED if is_signed(kind) else _UNSIGNED)[verb]


def _compare(verb: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        return to.gives("cset.w", _condition(to, sign.operands[0], verb, args)), False

    return rule


def _choice(to: Emitter, kind: Type, then: Reg, otherwise: Reg, condition: int) -> Found:
    if isinstance(kind, FloatType):
        return to.vgives(f"fcsel.{precision(kind)}", then, otherwise, condition), False
    return to.gives(f"csel.{size(kind)}", then, otherwise, condition), is_narrow(kind)


def _select(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    then, otherwise = (arg.get(True) for arg in args[1:])
    to.put("cmpi.w", args[0].get(), 0)
    return _choice(to, sign.result, then, otherwise, NE)


def chosen(
    to: Emitter, compared: Signature, sign: Signature, pair: Sequence[Scalar], choice: Sequence[Scalar]
) -> Found | None:
    """A selection by a comparison."""
    if isinstance(compared.operands[0], BoolType):
        return None
    then, otherwise = (arg.get(True) for arg in choice)
    condition = _condition(to, compared.operands[0], compared.opcode.partition(".")[2], pair)
    return _choice(to, sign.result, then, otherwise, condition)


def _float(op: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        return to.vgives(f"{op}.{precision(sign.result)}", *(arg.get() for arg in args)), False

    return rule


def _cast(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    source, target = sign.operands[0], sign.result
    if isinstance(source, FloatType) and isinstance(target, FloatType):
        return to.vgives("fcvt_ds" if width_of(target) == 64 else "fcvt_sd", args[0].get()), False
    if isinstance(source, FloatType):
        op = "fcvtzs" if is_signed(target) else "fcvtzu"
        return to.gives(f"{op}.{precision(source)}{size(target)}", args[0].get()), False
    if isinstance(target, FloatType):
        op = "scvtf" if is_signed(source) else "ucvtf"
        return to.vgives(f"{op}.{precision(target)}{size(source)}", args[0].get()), False
    shorter = not isinstance(source, BoolType) and width_of(target) <= width_of(source)
    return widened(to, source, args[0].get(loose=shorter), size(target)), is_narrow(target)


def _bitcast(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    source, target = sign.operands[0], sign.result
    pair = "dx" if width_of(source) == 64 else "sw"
    if isinstance(source, FloatType):
        return to.gives(f"fmov_from.{pair}", args[0].get()), False
    if isinstance(target, FloatType):
        return to.vgives(f"fmov_to.{pair}", args[0].get()), False
    return to.gives(f"mov.{size(target)}", args[0].get(True)), is_narrow(target)


RULES: Mapping[str, Rule] = {
    "integer.add": _two("add"), "integer.sub": _two("sub"), "integer.mul": _two("mul"),
    "integer.neg": _one("neg"), "integer.abs": _absolute,
    "integer.min": _extreme("min"), "integer.max": _extreme("max"),
    "integer.div": _divided(False), "integer.rem": _divided(True),
    "bits.and": _two("and"), "bits.or": _two("orr"), "bits.xor": _two("eor"), "bits.not": _inverse,
    "bits.shl": _shift("shl"), "bits.shr": _shift("shr"),
    "bits.rotl": _rotation(True), "bits.rotr": _rotation(False),
    "bits.popcount": _population, "bits.clz": _leading, "bits.ctz": _trailing,
    **{f"floating.{verb}": _float(op) for verb, op in (FLOAT_VERBS | FLOAT_SINGLE).items()},
    "floating.fma": _float("fmadd"),
    **{f"compare.{verb}": _compare(verb) for verb in _SIGNED},
    "control.select": _select, "convert.cast": _cast, "convert.bitcast": _bitcast,
}
"""By operation of the registry."""
