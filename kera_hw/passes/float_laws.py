"""Laws of float arithmetic that hold for every bit pattern: zeros keep their signs, and a NaN is the one NaN.

What is not here is mostly false: x + 0 loses -0, x * 0 and x - x miss infinities and NaN, x == x misses NaN,
sums do not associate.
"""
from __future__ import annotations

import numpy as np

from kera_hw.graph import Ref
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait
from kera_hw.passes.constants import constant_array
from kera_hw.passes.rewrite import Candidate
from kera_hw.types import FloatType, element_type


def float_law(node: Candidate) -> Ref | None:
    """The simpler value of an operation with a float operand, or None."""
    if len(node.inputs) == 1:
        return _unary(node)
    if node.opcode == "floating.fma":
        return _fma(node)
    if len(node.inputs) != 2:
        return None
    a, b = node.inputs
    traits = OPS[node.opcode].traits
    if a == b and Trait.IDEMPOTENT in traits:
        return a
    known = _splat(b)
    if known is None:
        if Trait.COMMUTATIVE in traits and _splat(a) is not None and a.type == b.type:
            return node.store.op(node.opcode, b, a, **node.attrs)
        return _signs(node, a, b)
    return _with_constant(node, a, b, known)


def _splat(ref: Ref) -> int | None:
    """The bit pattern that a float constant holds everywhere, or None."""
    array = constant_array(ref)
    if array is None or array.size == 0 or not isinstance(element_type(ref.type), FloatType):
        return None
    bits = np.ascontiguousarray(array).view(np.dtype(f"u{array.dtype.itemsize}")).reshape(-1)
    return int(bits[0]) if bool(np.all(bits == bits[0])) else None


def _parts(bits: int, kind: FloatType) -> tuple[bool, int, int]:
    """Sign, biased exponent, fraction."""
    exponent = (bits >> kind.fraction_bits) & ((1 << kind.exponent_bits) - 1)
    return bool(bits >> (kind.width_bits - 1)), exponent, bits & ((1 << kind.fraction_bits) - 1)


def _power_of_two(bits: int, kind: FloatType) -> tuple[bool, int] | None:
    """(negative, exponent) of a normal +-2^exponent."""
    negative, exponent, fraction = _parts(bits, kind)
    if fraction or not 0 < exponent < (1 << kind.exponent_bits) - 1:
        return None
    return negative, exponent - ((1 << (kind.exponent_bits - 1)) - 1)


def _inner(ref: Ref, opcode: str) -> Ref | None:
    """What an operation of one operand was applied to."""
    return ref.node.inputs[0] if ref.node.opcode == opcode else None


def _unary(node: Candidate) -> Ref | None:
    inner = node.inputs[0]
    if node.opcode == "floating.neg":
        return _inner(inner, "floating.neg")
    if node.opcode == "floating.abs":
        unsigned = _inner(inner, "floating.neg") or _inner(inner, "floating.abs")
        return None if unsigned is None else node.store.op("floating.abs", unsigned)
    if node.opcode == "convert.cast":
        return _there_and_back(node, inner)
    return None


def _there_and_back(node: Candidate, inner: Ref) -> Ref | None:
    """A value converted to a format that holds all of its own, and back."""
    source = _inner(inner, "convert.cast")
    if source is None or source.type != node.original.types[0]:
        return None
    kind, through = element_type(source.type), element_type(inner.type)
    if not isinstance(kind, FloatType) or not isinstance(through, FloatType):
        return None
    holds = through.exponent_bits >= kind.exponent_bits and through.fraction_bits >= kind.fraction_bits
    return source if holds else None


def _signs(node: Candidate, a: Ref, b: Ref) -> Ref | None:
    """a + -b is a - b, a - -b is a + b, -a * -b is a * b; the same for quotients."""
    first, second = _inner(a, "floating.neg"), _inner(b, "floating.neg")
    if node.opcode in ("floating.add", "floating.sub") and second is not None:
        other = "floating.sub" if node.opcode == "floating.add" else "floating.add"
        return node.store.op(other, a, second)
    if node.opcode == "floating.add" and first is not None:
        return node.store.op("floating.sub", b, first)
    if node.opcode in ("floating.mul", "floating.div") and first is not None and second is not None:
        return node.store.op(node.opcode, first, second)
    return None


def _with_constant(node: Candidate, a: Ref, b: Ref, known: int) -> Ref | None:
    kind = element_type(b.type)
    assert isinstance(kind, FloatType)
    minus_zero = 1 << (kind.width_bits - 1)
    if (node.opcode, known) in (("floating.add", minus_zero), ("floating.sub", 0)):
        return a
    if node.opcode not in ("floating.mul", "floating.div"):
        return None
    power = _power_of_two(known, kind)
    if power is None:
        return None
    negative, exponent = power
    if exponent == 0:
        return node.store.op("floating.neg", a) if negative else a
    bias = (1 << (kind.exponent_bits - 1)) - 1
    if node.opcode == "floating.div" and exponent < bias:
        # The same number scaled the same way: rounded once, it is the same.
        bits = minus_zero * negative | (bias - exponent) << kind.fraction_bits
        array = np.full(_shape(b), bits, np.dtype(f"u{kind.width_bits // 8}"))
        return node.store.op("floating.mul", a, node.store.op(
            "core.constant", type=b.type, value=array.astype(array.dtype.newbyteorder("<")).tobytes(),
        ))
    return None


def _shape(ref: Ref) -> tuple[int, ...]:
    array = constant_array(ref)
    assert array is not None
    return array.shape


def _fma(node: Candidate) -> Ref | None:
    """A factor of +-1 leaves a sum, an addend of -0 a product."""
    a, b, c = node.inputs
    kind = element_type(c.type)
    assert isinstance(kind, FloatType)
    one, sign = ((1 << (kind.exponent_bits - 1)) - 1) << kind.fraction_bits, 1 << (kind.width_bits - 1)
    if _splat(c) == sign:
        return node.store.op("floating.mul", a, b)
    for factor, other in ((a, b), (b, a)):
        known = _splat(factor)
        if known == one:
            return node.store.op("floating.add", other, c)
        if known == one | sign:
            return node.store.op("floating.sub", c, other)
    return None
