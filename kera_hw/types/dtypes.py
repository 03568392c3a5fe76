"""Type constructors, their spelling in source, and their canonical hashes.

Equality of two types in source follows declarations (a struct carries its name); equality of meaning
follows ``Type.hash``, which holds a struct's field names and types but not its name.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kera_hw.support import Encoder, content_hash


class Type:
    """Base of all types. Subclasses are frozen and compare by value."""

    __slots__ = ()

    def encode(self, out: Encoder) -> None:
        """Append the canonical encoding: a tag byte, then the parts."""
        raise NotImplementedError

    @property
    def hash(self) -> bytes:
        """32-byte canonical hash; equal exactly for types of equal meaning."""
        out = Encoder()
        self.encode(out)
        return content_hash("type", out.finish())


@dataclass(frozen=True, slots=True)
class BoolType(Type):
    def encode(self, out: Encoder) -> None:
        out.raw(b"b")

    def __str__(self) -> str:
        return "bool"


WORD_BITS = 64
"""Width of the widest integer of the language; wider ones live in the flat regions of circuits."""


@dataclass(frozen=True, slots=True)
class IntType(Type):
    """Two's complement or unsigned integer, wrapping: of 1 to 64 bits, in circuits of any width."""

    width_bits: int
    signed: bool

    def __post_init__(self) -> None:
        assert self.width_bits >= 1

    def __hash__(self) -> int:
        return self.width_bits << 1 | self.signed

    @property
    def min(self) -> int:
        return -(1 << (self.width_bits - 1)) if self.signed else 0

    @property
    def max(self) -> int:
        return (1 << (self.width_bits - self.signed)) - 1

    def wrap(self, value: int) -> int:
        """The value modulo 2^W, in this type's range."""
        value &= (1 << self.width_bits) - 1
        return value - (1 << self.width_bits) if self.signed and value >> (self.width_bits - 1) else value

    @staticmethod
    def holding(low: int, high: int) -> IntType:
        """The narrowest type that holds ``low ..= high``: unsigned where no value is negative."""
        if low >= 0:
            return IntType(max(1, high.bit_length()), False)
        return IntType(max((-low - 1).bit_length(), high.bit_length()) + 1, True)

    def encode(self, out: Encoder) -> None:
        out.raw(b"i" if self.signed else b"u").uint(self.width_bits)

    def __str__(self) -> str:
        return f"{'i' if self.signed else 'u'}{self.width_bits}"


@dataclass(frozen=True, slots=True)
class FloatType(Type):
    """IEEE 754 binary format (or bfloat16): name, exponent bits, stored fraction bits."""

    name: str
    exponent_bits: int
    fraction_bits: int

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def width_bits(self) -> int:
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def canonical_nan(self) -> int:
        """Bit pattern of the one NaN: sign 0, quiet, payload 0."""
        return ((1 << (self.exponent_bits + 1)) - 1) << (self.fraction_bits - 1)

    def encode(self, out: Encoder) -> None:
        out.raw(b"f").uint(self.exponent_bits).uint(self.fraction_bits)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class FixType(Type):
    """Fixed point: value = raw * 2^-F, raw being a W-bit integer."""

    width_bits: int
    fraction_bits: int
    signed: bool

    def __post_init__(self) -> None:
        assert 1 <= self.width_bits <= 64 and 0 <= self.fraction_bits <= self.width_bits

    @property
    def raw(self) -> IntType:
        """The integer type of the raw value."""
        return IntType(self.width_bits, self.signed)

    def encode(self, out: Encoder) -> None:
        out.raw(b"x" if self.signed else b"y").uint(self.width_bits).uint(self.fraction_bits)

    def __str__(self) -> str:
        return f"{'' if self.signed else 'u'}fix<{self.width_bits}, {self.fraction_bits}>"


@dataclass(frozen=True)
class TensorType(Type):
    """Dense row-major tensor of static shape (rank >= 1) in one memory space.

    A tensor of tensors is one tensor: construct it through ``tensor`` to keep that normal form.
    """

    element: Type
    shape: tuple[int, ...]
    space: str = "host"

    @staticmethod
    def tensor(element: Type, shape: tuple[int, ...], space: str = "host") -> TensorType:
        """Normalising constructor: nested tensors merge into one shape, outer extents first."""
        if isinstance(element, TensorType):
            return TensorType(element.element, shape + element.shape, space)
        return TensorType(element, shape, space)

    @cached_property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def encode(self, out: Encoder) -> None:
        out.raw(b"t")
        self.element.encode(out)
        out.uint(len(self.shape))
        for extent in self.shape:
            out.uint(extent)
        out.text(self.space)

    def __str__(self) -> str:
        body = f"[{self.element}; {', '.join(map(str, self.shape))}]"
        return body if self.space == "host" else f"{self.space} {body}"


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    items: tuple[Type, ...]

    def encode(self, out: Encoder) -> None:
        out.raw(b"(").uint(len(self.items))
        for item in self.items:
            item.encode(out)

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.items))
        return f"({inner},)" if len(self.items) == 1 else f"({inner})"


@dataclass(frozen=True, slots=True)
class StructType(Type):
    """``name`` tells declarations apart in source and is no part of the hash."""

    name: str
    fields: tuple[tuple[str, Type], ...]

    def encode(self, out: Encoder) -> None:
        out.raw(b"s").uint(len(self.fields))
        for name, kind in self.fields:
            out.text(name)
            kind.encode(out)

    def __str__(self) -> str:
        return self.name.rsplit("::", 1)[-1]


@dataclass(frozen=True, slots=True)
class TokenType(Type):
    """Orders effects of one kind (``io``, ``rand``, ...); carries no bits."""

    effect: str

    def encode(self, out: Encoder) -> None:
        out.raw(b"k").text(self.effect)

    def __str__(self) -> str:
        return f"token<{self.effect}>"


Scalar = BoolType | IntType | FloatType | FixType

BOOL = BoolType()
I32 = IntType(32, True)
U32 = IntType(32, False)
F16 = FloatType("f16", 5, 10)
BF16 = FloatType("bf16", 8, 7)
F32 = FloatType("f32", 8, 23)
F64 = FloatType("f64", 11, 52)
UNIT = TupleType(())


def is_scalar(kind: Type) -> bool:
    """Whether the type is a bool, integer, float or fixed-point number."""
    return isinstance(kind, (BoolType, IntType, FloatType, FixType))


def element_type(kind: Type) -> Type:
    """A tensor's element type; any other type itself."""
    return kind.element if isinstance(kind, TensorType) else kind


def shape_of(kind: Type) -> tuple[int, ...]:
    """A tensor's shape; ``()`` for any other type."""
    return kind.shape if isinstance(kind, TensorType) else ()


def with_element(kind: Type, element: Type) -> Type:
    """The same shape and space with another element type."""
    return TensorType(element, kind.shape, kind.space) if isinstance(kind, TensorType) else element
