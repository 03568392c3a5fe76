"""Native operations on lanes: scalars of n rounds side by side, each type in lanes of its own width."""
from __future__ import annotations

from collections.abc import Callable, Mapping

from kera_hw.cpu_gpu.machine.code import Mem, VReg
from kera_hw.cpu_gpu.select.emitter import AnyLanes
from kera_hw.cpu_gpu.select.isa import is_signed, width_of
from kera_hw.cpu_gpu.x86_64 import lanes as move
from kera_hw.cpu_gpu.x86_64.lanes import letter, span
from kera_hw.cpu_gpu.x86_64.machine import Emitter
from kera_hw.cpu_gpu.x86_64.scalars import FLOAT_CONDITIONS, ROUNDINGS, extreme_of, sign_mask
from kera_hw.types import BoolType, FloatType, IntType, Type


class Lanes(AnyLanes[Emitter]):
    """What a rule is given."""

    __slots__ = ()

    @property
    def length(self) -> int:
        return span(self.width, self.count)

    def literal(self, kind: Type, bits: int) -> VReg:
        return move.splat_literal(self.to, kind, bits, self.count)

    def last(self, k: int) -> VReg | Mem:
        """An operand that may lie in memory."""
        arg = self.args[k]
        if arg.bits is None:
            return self.get(k)
        return self.known(arg) or self.to.repeated(arg.bits, width_of(arg.type))

    def all(self) -> list[VReg | Mem]:
        """Of these only the last may be memory."""
        *first, final = range(len(self.args))
        return [*map(self.get, first), self.last(final)]

    def either(self) -> list[VReg | Mem]:
        """Two operands whose order does not matter: what may be memory comes last."""
        return [self.get(1), self.last(0)] if self.args[0].bits is not None else self.all()

    def mask(self, k: int, width_bits: int) -> VReg:
        """A bool operand as a mask of lanes of that width."""
        arg = self.args[k]
        if arg.uniform:
            return mask_of(self.to, arg.register, width_bits, self.count)
        return move.resize_mask(self.to, arg.register, arg.mask_bits, width_bits, self.count)

    def gives(self, op: str, *operands: VReg | Mem | int) -> VReg:
        return self.to.vgives(op, *operands, size_bits=self.length)

    def zero(self) -> VReg:
        return self.to.vgives("vmovdqu", self.to.repeated(0, 64), size_bits=self.length)


def mask_of(to: Emitter, condition: VReg, width_bits: int, lanes: int) -> VReg:
    """A scalar bool as a mask."""
    return move.splat(to, IntType(width_bits, True), to.changed("neg", condition), lanes)


Rule = Callable[[Lanes], tuple[VReg, int] | None]
"""The result and the width of its mask, 0 for what is none; None where the machine has no instruction."""


def _integer(verb: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int] | None:
        operands = at.either() if verb == "add" else at.all()
        return at.gives(f"vp{verb}{letter(at.width)}", *operands), 0

    return rule


def _product(at: Lanes) -> tuple[VReg, int] | None:
    if at.width in (16, 32):
        return at.gives(f"vpmull{letter(at.width)}", *at.either()), 0
    if at.width == 64:
        return _long_product(at), 0
    if at.count * 16 > at.to.vector_bits:
        return None
    wide = [move.resize(at.to, at.get(k), 8, 16, at.count, False) for k in range(2)]
    product = at.to.vgives("vpmullw", *wide, size_bits=span(16, at.count))
    return move.resize(at.to, product, 16, 8, at.count, False), 0


def _long_product(at: Lanes) -> VReg:
    """Of 64-bit lanes from halves: the upper half's products only count below 2^64."""
    a, b = at.get(0), at.get(1)
    low = at.gives("vpmuludq", a, b)
    crossed = [
        at.gives("vpmuludq", at.gives("vpsrlqi", one, 32), other)
        for one, other, arg in ((a, b, at.args[0]), (b, a, at.args[1]))
        if arg.most is None or arg.most >> 32
    ]
    if not crossed:
        return low
    upper = at.gives("vpaddq", *crossed) if len(crossed) == 2 else crossed[0]
    return at.gives("vpaddq", low, at.gives("vpsllqi", upper, 32))


def _carry_less(at: Lanes) -> tuple[VReg, int] | None:
    """Of each pair of lanes the lower ones' product, the upper ones', and the low halves of both."""
    length = at.length if at.to.level.evex else 128
    a, b = at.get(0), at.get(1)
    parts: list[VReg] = []
    for part in range(at.length // length):
        one, other = (move.piece(at.to, value, part) for value in (a, b))
        products = [
            at.to.vgives("vpclmulqdq", one, other, which, size_bits=length) for which in (0x00, 0x11)
        ]
        parts.append(at.to.vgives("vpunpcklqdq", *products, size_bits=length))
    found = parts[0]
    for part, other in enumerate(parts[1:], 1):
        found = move.with_piece(at.to, found, other, part)
    return found, 0


def _extreme(verb: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int] | None:
        if at.width < 64:
            name = f"vp{verb}{'s' if is_signed(at.kind) else 'u'}{letter(at.width)}"
            return at.gives(name, *at.either()), 0
        a, b = at.get(0), at.get(1)
        more = _greater(at, a, b)
        return at.gives("vpblendvb", *((a, b) if verb == "min" else (b, a)), more), 0

    return rule


def _greater(at: Lanes, a: VReg, b: VReg) -> VReg:
    """a > b. Instructions compare by sign; with the top bit turned over they order words without one."""
    if not is_signed(at.kind):
        turned = sign_mask(at.to, at.kind, False)
        a, b = at.gives("vpxor", a, turned), at.gives("vpxor", b, turned)
    return at.gives(f"vpcmpgt{letter(at.width)}", a, b)


def _negative(at: Lanes) -> tuple[VReg, int] | None:
    return at.gives(f"vpsub{letter(at.width)}", at.zero(), at.get(0)), 0


def _absolute(at: Lanes) -> tuple[VReg, int] | None:
    value = at.get(0)
    if at.width < 64:
        return at.gives(f"vpabs{letter(at.width)}", value), 0
    zero = at.zero()
    minus = at.gives("vpsubq", zero, value)
    return at.gives("vpblendvb", value, minus, at.gives("vpcmpgtq", zero, value)), 0


def _bitwise(verb: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int] | None:
        if not isinstance(at.op.result, BoolType):
            return at.gives(f"vp{verb}", *at.either()), 0
        width = max(arg.mask_bits for arg in at.args)
        masks = [at.mask(k, width) for k in range(2)]
        return at.to.vgives(f"vp{verb}", *masks, size_bits=span(width, at.count)), width

    return rule


def _inverse(at: Lanes) -> tuple[VReg, int] | None:
    width = at.args[0].mask_bits if isinstance(at.op.result, BoolType) else 0
    value = at.mask(0, width) if width else at.get(0)
    return at.to.vgives("vpxor", value, at.to.repeated(-1, 64), size_bits=at.to.vector_bits), width


def _shift(verb: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int] | None:
        amount = at.args[1].bits
        if amount is not None and amount < at.width:
            found = _known_shift(at, verb, amount)
            if found is not None:
                return found, 0
        if at.width >= 32:
            return _long_shift(at, verb, at.width, at.get(0), at.get(1)), 0
        if at.count * 32 > at.to.vector_bits:
            return None
        signed = is_signed(at.kind)
        value = move.resize(at.to, at.get(0), at.width, 32, at.count, signed)
        wide = move.resize(at.to, at.get(1), at.width, 32, at.count, False)
        found = _long_shift(at, verb, 32, value, wide)
        return move.resize(at.to, found, 32, at.width, at.count, False), 0

    return rule


def _known_shift(at: Lanes, verb: str, amount: int) -> VReg | None:
    """All lanes by one amount below the width; of bytes the words that hold two, without what crosses."""
    arithmetic = verb == "shr" and is_signed(at.kind)
    if (at.width == 64 and arithmetic) or (at.width == 8 and arithmetic):
        return None
    name = "vpsll" if verb == "shl" else "vpsra" if arithmetic else "vpsrl"
    found = at.gives(f"{name}{letter(max(at.width, 16))}i", at.get(0), amount)
    if at.width > 8:
        return found
    kept = 0xFF << amount & 0xFF if verb == "shl" else 0xFF >> amount
    return at.gives("vpand", found, at.to.repeated(kept, 8))


def _rotation(left: bool) -> Rule:
    """Of words, by two shifts; those by the whole width give 0, so that an amount of 0 is no exception."""

    def rule(at: Lanes) -> tuple[VReg, int] | None:
        value, known, which = at.get(0), at.args[1].bits, letter(at.width)
        if known is not None:
            there = known % at.width
            if there == 0:
                return value, 0
            amounts = (there, at.width - there) if left else (at.width - there, there)
            moved = [at.gives(f"vps{side}{which}i", value, n) for side, n in zip(("ll", "rl"), amounts)]
        else:
            amount = at.gives("vpand", at.get(1), at.to.repeated(at.width - 1, at.width))
            whole = at.to.vgives("vmovdqu", at.to.repeated(at.width, at.width), size_bits=at.length)
            other = at.gives(f"vpsub{which}", whole, amount)
            pair = (amount, other) if left else (other, amount)
            moved = [at.gives(f"vps{side}v{which}", value, n) for side, n in zip(("ll", "rl"), pair)]
        return at.gives("vpor", *moved), 0

    return rule


def _long_shift(at: Lanes, verb: str, width: int, value: VReg, amount: VReg) -> VReg:
    """Of 32- and 64-bit lanes, each by its own amount."""
    length = span(width, at.count)
    to, which = at.to, letter(width)
    if verb == "shl":
        return to.vgives(f"vpsllv{which}", value, amount, size_bits=length)
    if not is_signed(at.kind):
        return to.vgives(f"vpsrlv{which}", value, amount, size_bits=length)
    if width == 32:
        return to.vgives("vpsravd", value, amount, size_bits=length)
    # The sign's bit, moved along, is subtracted where it was: ((x ^ s) - s) with s = top >> n.
    top = to.vgives("vpsrlvq", _top(to), amount, size_bits=length)
    moved = to.vgives("vpsrlvq", value, amount, size_bits=length)
    return to.vgives("vpsubq", to.vgives("vpxor", moved, top, size_bits=length), top, size_bits=length)


def _top(to: Emitter) -> VReg:
    return to.vgives("vmovdqu", sign_mask(to, IntType(64, True), False), size_bits=to.vector_bits)


def _compare(verb: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int] | None:
        if isinstance(at.kind, FloatType):
            return _float_mask(at, verb, False), at.width
        if verb in ("eq", "ne"):
            found = at.gives(f"vpcmpeq{letter(at.width)}", *at.either())
        else:
            a, b = at.get(0), at.get(1)
            found = _greater(at, *((a, b) if verb in ("gt", "le") else (b, a)))
        if verb in ("ne", "le", "ge"):
            found = at.to.vgives("vpxor", found, at.to.repeated(-1, 64), size_bits=at.to.vector_bits)
        return found, at.width

    return rule


def _float_mask(at: Lanes, verb: str, inverted: bool) -> VReg:
    """Where the comparison holds, or where it does not."""
    turned = at.args[0].bits is not None
    operands, verb = (at.either(), TURNED.get(verb, verb)) if turned else (at.all(), verb)
    condition = FLOAT_CONDITIONS[verb] ^ (INVERSE if inverted else 0)
    return at.gives(f"vcmp{_packed(at.kind)}", *operands, condition)


TURNED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
INVERSE = 0x04
"""Exclusive or with a predicate of vcmp gives its opposite, NaNs included."""


def chosen(compared: Lanes, at: Lanes) -> VReg | None:
    """A selection of floats by a comparison of floats as wide."""
    kind, verb = compared.kind, compared.op.opcode.partition(".")[2]
    if not isinstance(kind, FloatType) or at.op.result != kind:
        return None
    extreme = extreme_of(verb, compared.args, at.args)
    if extreme is not None:
        return at.to.vgives(f"v{extreme}{_packed(kind)}", *at.all(), size_bits=compared.length)
    inverted = at.args[1].bits is not None and at.args[0].bits is None
    mask = _float_mask(compared, verb, inverted)
    base, other = (at.get(0), at.last(1)) if inverted else (at.get(1), at.last(0))
    return at.to.vgives("vpblendvb", base, other, mask, size_bits=compared.length)


def _select(at: Lanes) -> tuple[VReg, int] | None:
    if isinstance(at.op.result, BoolType):
        width = max(arg.mask_bits for arg in at.args)
        then, otherwise = at.mask(1, width), at.mask(2, width)
    else:
        width, then, otherwise = 0, at.last(1), at.get(2)
    each = width or width_of(at.op.result)
    condition = at.mask(0, each)
    return at.to.vgives("vpblendvb", otherwise, then, condition, size_bits=span(each, at.count)), width


def _packed(kind: Type) -> str:
    return "ps" if width_of(kind) == 32 else "pd"


def _float(verb: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int] | None:
        operands = at.either() if verb in ("add", "mul") else at.all()
        return at.gives(f"v{verb}{_packed(at.kind)}", *operands), 0

    return rule


def bound_of(at: Lanes) -> tuple[int, bool] | None:
    """Which of two operands is a number that is known, and whether it is the zero that a tie is to give.

    Of a NaN and a number, as of two zeros, ``vmin`` and ``vmax`` give their second operand: the other one.
    """
    assert isinstance(at.kind, FloatType)
    sign = 1 << (at.width - 1)
    infinity = at.kind.canonical_nan & ~(1 << (at.kind.fraction_bits - 1))
    for k in (1, 0):
        bits = at.args[k].bits
        if bits is not None and bits & (sign - 1) <= infinity and at.args[1 - k].bits is None:
            return k, bits == (sign if at.op.opcode == "floating.min" else 0)
    return None


def bounded(at: Lanes, verb: str) -> VReg | None:
    """The lesser or greater of a number that is known and one that is not."""
    bound = bound_of(at)
    if bound is None:
        return None
    k, ties = bound
    if not ties:
        return at.gives(f"v{verb}{_packed(at.kind)}", at.get(k), at.get(1 - k))
    if verb == "max":
        return greater_than_zero(at, k)
    value, limit = at.get(1 - k), at.last(k)
    beyond = at.gives(f"vcmp{_packed(at.kind)}", value, limit, FLOAT_CONDITIONS["ge"])
    return at.gives("vpblendvb", value, limit, beyond)


def greater_than_zero(at: Lanes, k: int) -> VReg:
    """The greater of a number and of 0, operand k. Of two zeros vmax may give -0, to which 0 is added."""
    kind = _packed(at.kind)
    return at.gives(f"vadd{kind}", at.gives(f"vmax{kind}", at.get(k), at.get(1 - k)), at.last(k))


def _minimum(at: Lanes) -> tuple[VReg, int] | None:
    """The lesser one both ways round: of two zeros they are both, of a NaN and a number too, and `or` has
    the sign of either and the exponent of the NaN."""
    if (found := bounded(at, "min")) is not None:
        return found, 0
    a, b = at.get(0), at.get(1)
    name = f"vmin{_packed(at.kind)}"
    return at.gives("vpor", at.gives(name, a, b), at.gives(name, b, a)), 0


def _maximum(at: Lanes) -> tuple[VReg, int] | None:
    """Of what is negated the least, negated."""
    if (found := bounded(at, "max")) is not None:
        return found, 0
    sign = sign_mask(at.to, at.kind, False)
    a, b = (at.gives("vpxor", at.get(k), sign) for k in range(2))
    name = f"vmin{_packed(at.kind)}"
    least = at.gives("vpor", at.gives(name, a, b), at.gives(name, b, a))
    return at.gives("vpxor", least, sign), 0


def _rounded(verb: str) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int] | None:
        return at.gives(f"vround{_packed(at.kind)}", at.get(0), ROUNDINGS[verb]), 0

    return rule


def _sign(op: str, inverted: bool) -> Rule:
    def rule(at: Lanes) -> tuple[VReg, int] | None:
        return at.gives(op, at.get(0), sign_mask(at.to, at.kind, inverted)), 0

    return rule


def _fused(at: Lanes) -> tuple[VReg, int] | None:
    if at.args[2].bits is not None and at.args[0].bits is None:  # in place of a factor, mostly read last here
        found = at.gives("vmovaps", at.get(0))
        at.to.put(f"vfmadd213{_packed(at.kind)}", found, at.get(1), at.last(2), size_bits=at.length)
        return found, 0
    found = at.gives("vmovaps", at.last(2))
    a, b = (at.get(1), at.last(0)) if at.args[0].bits is not None else (at.get(0), at.last(1))
    at.to.put(f"vfmadd231{_packed(at.kind)}", found, a, b, size_bits=at.length)
    return found, 0


def _cast(at: Lanes) -> tuple[VReg, int] | None:
    source, target = at.kind, at.op.result
    if isinstance(source, BoolType):
        width = width_of(target)
        mask = at.mask(0, width)
        return at.to.vgives("vpand", mask, at.to.repeated(1, width), size_bits=at.to.vector_bits), 0
    if isinstance(source, IntType) and isinstance(target, IntType):
        before, after = source.width_bits, target.width_bits
        return move.resize(at.to, at.get(0), before, after, at.count, source.signed), 0
    name = _CONVERSIONS.get((_short(source), _short(target)))
    if name is None:
        return None
    length = max(span(width_of(source), at.count), span(width_of(target), at.count))
    return at.to.vgives(name, at.get(0), size_bits=length), 0


def _short(kind: Type) -> str:
    letter_ = "f" if isinstance(kind, FloatType) else "i" if is_signed(kind) else "u"
    return f"{letter_}{width_of(kind)}"


_CONVERSIONS = {
    ("i32", "f32"): "vcvtdq2ps", ("i32", "f64"): "vcvtdq2pd", ("f32", "f64"): "vcvtps2pd",
    ("f64", "f32"): "vcvtpd2ps", ("f32", "i32"): "vcvttps2dq", ("f64", "i32"): "vcvttpd2dq",
}


def _bitcast(at: Lanes) -> tuple[VReg, int] | None:
    return at.get(0), 0


RULES: Mapping[str, Rule] = {
    "integer.add": _integer("add"), "integer.sub": _integer("sub"), "integer.mul": _product,
    "integer.min": _extreme("min"), "integer.max": _extreme("max"),
    "integer.neg": _negative, "integer.abs": _absolute, "bits.clmul": _carry_less,
    "bits.and": _bitwise("and"), "bits.or": _bitwise("or"), "bits.xor": _bitwise("xor"), "bits.not": _inverse,
    "bits.shl": _shift("shl"), "bits.shr": _shift("shr"),
    "bits.rotl": _rotation(True), "bits.rotr": _rotation(False),
    **{f"floating.{verb}": _float(verb) for verb in ("add", "sub", "mul", "div", "sqrt")},
    **{f"floating.{verb}": _rounded(verb) for verb in ROUNDINGS},
    "floating.min": _minimum, "floating.max": _maximum,
    "floating.neg": _sign("vpxor", False), "floating.abs": _sign("vpand", True), "floating.fma": _fused,
    **{f"compare.{verb}": _compare(verb) for verb in ("eq", "ne", "lt", "le", "gt", "ge")},
    "control.select": _select, "convert.cast": _cast, "convert.bitcast": _bitcast,
}
"""By operation of the registry; what is absent, or gives None, goes lane by lane."""
