"""Native operations on lanes where AVX-512 differs from AVX2: truth values lie in mask registers."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kera_hw.cpu_gpu.machine.code import Mem, VReg
from kera_hw.cpu_gpu.select.isa import is_signed, width_of
from kera_hw.cpu_gpu.x86_64 import lanes as move
from kera_hw.cpu_gpu.x86_64 import vectors
from kera_hw.cpu_gpu.x86_64.lanes import letter, span
from kera_hw.cpu_gpu.x86_64.machine import Emitter
from kera_hw.cpu_gpu.x86_64.scalars import FLOAT_CONDITIONS, extreme_of
from kera_hw.cpu_gpu.x86_64.vectors import INVERSE, TURNED, Lanes, Rule
from kera_hw.types import BoolType, FloatType, Type

MASK_BITS = 1
"""Of a lane in a mask register."""
_CONDITIONS = {"eq": 0, "lt": 1, "le": 2, "ne": 4, "ge": 5, "gt": 6}
"""Predicates of vpcmp; exclusive or with 4 gives the opposite."""


def mask_of(to: Emitter, condition: VReg) -> VReg:
    """A scalar bool in every lane."""
    return to.mgives("kmovq_k", to.changed("neg", condition))


def bool_lane(to: Emitter, register: VReg, lane: int) -> VReg:
    """A lane as 0 or 1."""
    found = to.gives("kmovq_g", register)
    if lane:
        to.put("shri", found, lane)
    to.put("andi", found, 1)
    return found


def mask_of_lanes(to: Emitter, lanes: list[VReg]) -> VReg:
    """Of scalars, each 0 or 1."""
    whole = to.gives("mov", lanes[0], size_bits=32)
    for lane, value in enumerate(lanes[1:], 1):
        moved = to.gives("mov", value, size_bits=32)
        to.put("shli", moved, lane)
        to.put("or", whole, moved)
    return to.mgives("kmovq_k", whole)


def wraps_entries(to: Emitter, kind: Type, entries: int, count: int) -> bool:
    """Whether permutations of one vector, or of two, go by as many bits of an index as say an entry."""
    width = width_of(kind)
    return width >= 32 and width * count == to.vector_bits and entries in (count, 2 * count)


def look_up(to: Emitter, kind: Type, table: Mem, entries: int, index: VReg, count: int) -> VReg | None:
    """Entries of a table that one vector holds, or two, by indices in lanes as wide; None of another."""
    width = width_of(kind)
    if width < 32 or width * count != to.vector_bits or entries > 2 * count:
        return None
    length, name = to.vector_bits, letter(width)
    if entries <= count:
        return to.vgives(f"vperm{name}", index, table, size_bits=length)
    low = to.vgives("vmovdqu", table, size_bits=length)
    found = to.vgives("vmovaps", index, size_bits=length)
    to.put(f"vpermi2{name}", found, low, replace(table, offset=table.offset + length // 8), size_bits=length)
    return found


def mask(at: Lanes, k: int) -> VReg:
    """A bool operand."""
    arg = at.args[k]
    return mask_of(at.to, arg.register) if arg.uniform else arg.register


def compared(at: Lanes, inverted: bool = False) -> VReg:
    """Where the comparison holds, or where it does not; numbers only."""
    verb = at.op.opcode.partition(".")[2]
    operands = at.all()
    if at.args[0].bits is not None:
        operands, verb = at.either(), TURNED.get(verb, verb)
    if isinstance(at.kind, FloatType):
        name, condition = f"vcmp{'ps' if at.width == 32 else 'pd'}", FLOAT_CONDITIONS[verb]
    else:
        name, condition = f"vpcmp{'' if is_signed(at.kind) else 'u'}{letter(at.width)}", _CONDITIONS[verb]
    return at.to.mgives(name, *operands, condition ^ (INVERSE if inverted else 0), size_bits=at.length)


def merged_sum(at: Lanes) -> VReg:
    """a * b + c where the fourth operand, a mask, is set, else c."""
    found = at.gives("vmovaps", at.get(2))
    a, b = (at.get(1), at.last(0)) if at.args[0].bits is not None else (at.get(0), at.last(1))
    name = f"vfmadd231{'ps' if at.width == 32 else 'pd'}"
    at.to.put(name, found, a, b, mask(at, 3), size_bits=at.length)
    return found


def _compare(at: Lanes) -> tuple[VReg, int] | None:
    return compared(at), MASK_BITS


def blended(at: Lanes, kind: Type, base: VReg, other: VReg | Mem, by: VReg) -> VReg:
    """``other`` where the mask is set, else ``base``."""
    width = width_of(kind)
    name = f"vpblendm{letter(width)}"
    if isinstance(kind, FloatType):
        name = f"vblendm{'ps' if width == 32 else 'pd'}"
    return at.to.vgives(name, base, other, by, size_bits=span(width, at.count))


def _select(at: Lanes) -> tuple[VReg, int] | None:
    by = mask(at, 0)
    if isinstance(at.op.result, BoolType):
        then = at.to.mgives("kandq", by, mask(at, 1))
        otherwise = at.to.mgives("kandnq", by, mask(at, 2))
        return at.to.mgives("korq", then, otherwise), MASK_BITS
    return blended(at, at.op.result, at.get(2), at.last(1), by), 0


def chosen(pair: Lanes, at: Lanes) -> VReg | None:
    """A selection of numbers by a comparison."""
    kind = at.op.result
    if isinstance(kind, BoolType) or isinstance(pair.kind, BoolType):
        return None
    if isinstance(kind, FloatType) and kind == pair.kind:
        extreme = extreme_of(pair.op.opcode.partition(".")[2], pair.args, at.args)
        if extreme is not None:
            name = f"v{extreme}{'ps' if pair.width == 32 else 'pd'}"
            return at.to.vgives(name, *at.all(), size_bits=pair.length)
    inverted = at.args[1].bits is not None and at.args[0].bits is None
    by = compared(pair, inverted)
    base, other = (at.get(0), at.last(1)) if inverted else (at.get(1), at.last(0))
    return blended(at, kind, base, other, by)


def _bitwise(verb: str) -> Rule:
    inner = vectors.RULES[f"bits.{verb}"]

    def rule(at: Lanes) -> tuple[VReg, int] | None:
        if not isinstance(at.op.result, BoolType):
            return inner(at)
        return at.to.mgives(f"k{verb}q", mask(at, 0), mask(at, 1)), MASK_BITS

    return rule


def _inverse(at: Lanes) -> tuple[VReg, int] | None:
    if isinstance(at.op.result, BoolType):
        return at.to.mgives("knotq", mask(at, 0)), MASK_BITS
    return vectors.RULES["bits.not"](at)


def _extreme(verb: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int] | None:
        name = f"vp{verb}{'s' if is_signed(at.kind) else 'u'}{letter(at.width)}"
        return at.gives(name, *at.either()), 0

    return rule


def _minimum(at: Lanes) -> tuple[VReg, int] | None:
    bound = vectors.bound_of(at)
    if bound is None or not bound[1]:
        return vectors.RULES["floating.min"](at)
    value, limit, kind = at.get(1 - bound[0]), at.last(bound[0]), "ps" if at.width == 32 else "pd"
    by = at.to.mgives(f"vcmp{kind}", value, limit, FLOAT_CONDITIONS["ge"], size_bits=at.length)
    return blended(at, at.kind, value, limit, by), 0


def _absolute(at: Lanes) -> tuple[VReg, int] | None:
    return at.gives(f"vpabs{letter(at.width)}", at.last(0)), 0


def _product(at: Lanes) -> tuple[VReg, int] | None:
    small = all(arg.most is not None and not arg.most >> 32 for arg in at.args)
    if at.width == 64 and not small:
        return at.gives("vpmullq", *at.either()), 0
    return vectors.RULES["integer.mul"](at)


def _shift(verb: str) -> Rule:
    inner = vectors.RULES[f"bits.{verb}"]

    def rule(at: Lanes) -> tuple[VReg, int] | None:
        amount = at.args[1].bits
        arithmetic = verb == "shr" and is_signed(at.kind)
        if at.width == 64 and arithmetic and amount is not None and amount < 64:
            return at.gives("vpsraqi", at.get(0), amount), 0
        if amount is not None or at.width not in (16, 64):
            return inner(at)
        name = "vpsllv" if verb == "shl" else "vpsrav" if arithmetic else "vpsrlv"
        return at.gives(f"{name}{letter(at.width)}", at.get(0), at.get(1)), 0

    return rule


def _cast(at: Lanes) -> tuple[VReg, int] | None:
    source, target = at.kind, at.op.result
    if isinstance(source, BoolType):
        zero = move.splat_literal(at.to, target, 0, at.count)
        one = at.to.repeated(1, width_of(target))
        return blended(at, target, zero, one, mask(at, 0)), 0
    name = _CONVERSIONS.get((_short(source), _short(target)))
    if name is None:
        return vectors.RULES["convert.cast"](at)
    length = max(span(width_of(source), at.count), span(width_of(target), at.count))
    return at.to.vgives(name, at.get(0), size_bits=length), 0


def _short(kind: Type) -> str:
    return f"{'f' if isinstance(kind, FloatType) else 'i' if is_signed(kind) else 'u'}{width_of(kind)}"


_CONVERSIONS = {
    ("i64", "f64"): "vcvtqq2pd", ("i64", "f32"): "vcvtqq2ps", ("f64", "i64"): "vcvttpd2qq",
    ("f32", "i64"): "vcvttps2qq",
}

RULES: Mapping[str, Rule] = {
    **vectors.RULES,
    **{f"compare.{verb}": _compare for verb in _CONDITIONS},
    "control.select": _select, "convert.cast": _cast,
    **{f"bits.{verb}": _bitwise(verb) for verb in ("and", "or", "xor")}, "bits.not": _inverse,
    **{f"bits.{verb}": _shift(verb) for verb in ("shl", "shr")},
    "integer.min": _extreme("min"), "integer.max": _extreme("max"), "integer.abs": _absolute,
    "integer.mul": _product,
    "floating.min": _minimum,
}
"""By operation of the registry."""
