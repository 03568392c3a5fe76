"""Lanes moved about: into vectors and out of them, from one width to another."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.cpu_gpu.machine.code import Mem, VReg
from kera_hw.cpu_gpu.select.isa import is_signed, width_of
from kera_hw.cpu_gpu.x86_64.machine import Emitter
from kera_hw.types import FloatType, IntType, Type

_LETTERS = {8: "b", 16: "w", 32: "d", 64: "q"}


def letter(width_bits: int) -> str:
    """Of an integer lane's width in the names of instructions."""
    return _LETTERS[width_bits]


def span(width_bits: int, lanes: int) -> int:
    """The length of an instruction on so many lanes."""
    bits = width_bits * lanes
    return 512 if bits > 256 else 256 if bits > 128 else 128


def splat(to: Emitter, kind: Type, register: VReg, lanes: int) -> VReg:
    """A scalar in all lanes."""
    width = width_of(kind)
    if not isinstance(kind, FloatType):
        register = to.vgives("vmovq", register)
    return to.vgives(f"vpbroadcast{letter(width)}", register, size_bits=span(width, lanes))


def splat_literal(to: Emitter, kind: Type, bits: int, lanes: int) -> VReg:
    """A constant in all lanes."""
    width = width_of(kind)
    return to.vgives("vmovdqu", to.repeated(bits, width), size_bits=span(width, lanes))


def load_splat(to: Emitter, kind: Type, place: Mem, lanes: int) -> VReg:
    """One element in all lanes."""
    width = width_of(kind)
    return to.vgives(f"vpbroadcast{letter(width)}", place, size_bits=span(width, lanes))


def gather(to: Emitter, kind: Type, places: Sequence[Mem]) -> VReg:
    """Elements from places of their own."""
    width = width_of(kind)
    each = 128 // width
    whole: VReg | None = None
    for number in range(-(-len(places) // each)):
        place, *rest = places[number * each : (number + 1) * each]
        if width < 32:
            part = to.vgives("vmovd", to.gives(f"movzx{width}", place, size_bits=32))
        else:
            part = to.vgives("vmovd" if width == 32 else "vmovq", place)
        for lane, other in enumerate(rest, 1):
            part = to.vgives(f"vpinsr{letter(width)}", part, other, lane)
        whole = part if whole is None else with_piece(to, whole, part, number)
    assert whole is not None
    return whole


def load(to: Emitter, kind: Type, place: Mem, lanes: int) -> VReg:
    """Neighbouring elements."""
    bits = width_of(kind) * lanes
    if bits >= 128:
        return to.vgives("vmovdqu", place, size_bits=bits)
    if bits in (32, 64):
        return to.vgives("vmovq" if bits == 64 else "vmovd", place)
    return to.vgives("vmovd", to.gives(f"movzx{bits}", place, size_bits=32))


def store(to: Emitter, kind: Type, place: Mem, register: VReg, lanes: int) -> None:
    bits = width_of(kind) * lanes
    if bits >= 128:
        to.put("vmovdqu", place, register, size_bits=bits)
    elif bits in (32, 64):
        to.put("vmovq_g" if bits == 64 else "vmovd_g", place, register)
    else:
        to.put("vpextrw" if bits == 16 else "vpextrb", place, register, 0)


def extract(to: Emitter, kind: Type, register: VReg, lane: int) -> VReg:
    """A lane as a scalar, extended by its sign."""
    width = width_of(kind)
    part, lane = divmod(lane, 128 // width)
    register = piece(to, register, part)
    if isinstance(kind, FloatType):
        if lane == 0:
            return to.vgives("vmovaps", register)
        order = lane if width == 32 else 0x0E
        return to.vgives("vpshufd", register, order)
    found = to.gives(f"vpextr{letter(width)}", register, lane)
    if width < 32 and is_signed(kind):
        return to.gives(f"movsx{width}", found, size_bits=32)
    return found


def lanes_from(to: Emitter, kind: Type, register: VReg, lane: int, count: int) -> VReg | None:
    """Lanes of 32 bits or more as the low ones; None of those that lie across parts of 128 bits."""
    width = width_of(kind)
    first, bits = lane * width, count * width
    if bits == 256 and first == 256:
        return to.vgives("vextracti64x4", register, 1, size_bits=512)
    part, within = divmod(first, 128)
    if bits > 128 or within + bits > 128:
        return register if first == 0 else None
    found = piece(to, register, part)
    return to.vgives("vpshufd", found, _ALL_WORDS >> within // 16) if within else found


_ALL_WORDS = 0xE4
"""An order of four words as they are."""


def insert(to: Emitter, kind: Type, register: VReg | None, value: VReg, lane: int) -> VReg:
    """With one lane replaced; the first begins a vector."""
    width = width_of(kind)
    if isinstance(kind, FloatType):
        value = to.gives("vmovq_g" if width == 64 else "vmovd_g", value)
    if register is None:
        assert lane == 0
        return to.vgives("vmovq", value)
    part, within = divmod(lane, 128 // width)
    # Lanes come in order: of a part nothing above is there yet.
    if within == 0:
        changed = to.vgives("vmovq", value)
    else:
        changed = to.vgives(f"vpinsr{letter(width)}", piece(to, register, part), value, within)
    return with_piece(to, register, changed, part) if part else changed


def piece(to: Emitter, register: VReg, part: int) -> VReg:
    """128 bits of a vector, counted from the lowest."""
    if part == 0:
        return register
    if to.level.evex:
        return to.vgives("vextracti64x2", register, part, size_bits=256 if part == 1 else 512)
    return to.vgives("vextracti128", register, part, size_bits=256)


def with_piece(to: Emitter, register: VReg, changed: VReg, part: int) -> VReg:
    if to.level.evex:
        return to.vgives("vinserti64x2", register, changed, part, size_bits=256 if part == 1 else 512)
    return to.vgives("vinserti128", register, changed, part, size_bits=256)


def resize(to: Emitter, register: VReg, before: int, after: int, lanes: int, signed: bool) -> VReg:
    """Low lanes of one width as lanes of another: widened by sign or zeros, or cut off."""
    if before < after:
        name = f"vpmov{'s' if signed else 'z'}x{letter(before)}{letter(after)}"
        return to.vgives(name, register, size_bits=span(after, lanes))
    if before > after and to.level.evex:
        name = f"vpmov{letter(before)}{letter(after)}"
        return to.vgives(name, register, size_bits=span(before, lanes))
    while before > after:
        cut = _even_words(to, register, lanes) if before == 64 else _lower_halves(to, register, before, lanes)
        register, before = cut, before // 2
    return register


def _even_words(to: Emitter, register: VReg, lanes: int) -> VReg:
    if lanes <= 2:
        return to.vgives("vpshufd", register, 0x88)
    upper = to.vgives("vextracti128", register, 1, size_bits=256)
    return to.vgives("vshufps", register, upper, 0x88)


def _lower_halves(to: Emitter, register: VReg, before: int, lanes: int) -> VReg:
    """Packing saturates, so what is above the half goes first."""
    length = span(before, lanes)
    cut = to.vgives("vpand", register, to.repeated((1 << before // 2) - 1, before), size_bits=length)
    return _packed(to, cut, before, length, "vpackus")


def _packed(to: Emitter, register: VReg, before: int, length: int, op: str) -> VReg:
    name = f"{op}{'dw' if before == 32 else 'wb'}"
    if length == 128:
        return to.vgives(name, register, register)
    upper = to.vgives("vextracti128", register, 1, size_bits=256)
    return to.vgives(name, register, upper)


def resize_mask(to: Emitter, register: VReg, before: int, after: int, lanes: int) -> VReg:
    """All ones or none stay so."""
    if before < after:
        return resize(to, register, before, after, lanes, True)
    while before > after:
        if before == 64:
            register = _even_words(to, register, lanes)
        else:
            register = _packed(to, register, before, span(before, lanes), "vpackss")
        before //= 2
    return register


def iota(to: Emitter, counter: VReg, lanes: int, width_bits: int) -> VReg:
    """A counter and the numbers after it."""
    whole = splat(to, IntType(width_bits, True), counter, lanes)
    most = to.vector_bits // width_bits
    numbers = to.constant(sum(k << width_bits * k for k in range(most)), to.vector_bits // 8)
    return to.vgives(f"vpadd{letter(width_bits)}", whole, numbers, size_bits=span(width_bits, lanes))
