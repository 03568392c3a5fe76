"""Types with unknowns, their unification, and the defaults of what stays unknown.

Only scalars are ever unknown (a literal's type, or the result of an operation on literals): shapes, tuples
and structs are known as soon as an expression has been walked. So an ``Unknown`` may stand wherever a
scalar type may, inside tensors and tuples too.
"""
from __future__ import annotations

from kera_hw.types import (
    F32,
    I32,
    BoolType,
    FixType,
    FloatType,
    IntType,
    StructType,
    TensorType,
    TupleType,
    Type,
    is_scalar,
)

#: What an unknown stands for, weakest first: a later kind absorbs an earlier one.
ANY, INT_LITERAL, FLOAT_LITERAL = 0, 1, 2


class Unknown(Type):
    """A scalar type still to be found; ``bound`` once it is."""

    __slots__ = ("bound", "kind")

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.bound: Type | None = None

    def __str__(self) -> str:
        if self.bound is not None:
            return str(self.bound)
        return {ANY: "a number", INT_LITERAL: "an integer", FLOAT_LITERAL: "a decimal number"}[self.kind]


class ErrorType(Type):
    """The type of an expression already reported: agrees with everything, so that nothing follows up."""

    __slots__ = ()

    def __str__(self) -> str:
        return "an unknown type"


ERROR = ErrorType()


def shallow(kind: Type) -> Type:
    """The type itself with its outermost unknowns looked up."""
    while isinstance(kind, Unknown) and kind.bound is not None:
        kind = kind.bound
    return kind


def resolve(kind: Type) -> Type:
    """The type with every known unknown replaced, at any depth."""
    kind = shallow(kind)
    if isinstance(kind, TensorType):
        element = resolve(kind.element)
        return kind if element is kind.element else TensorType(element, kind.shape, kind.space)
    if isinstance(kind, TupleType):
        items = tuple(resolve(item) for item in kind.items)
        return kind if items == kind.items else TupleType(items)
    return kind


def has_error(kind: Type) -> bool:
    """Whether some part of the type is the error type."""
    kind = shallow(kind)
    if isinstance(kind, TensorType):
        return has_error(kind.element)
    if isinstance(kind, TupleType):
        return any(has_error(item) for item in kind.items)
    return kind is ERROR  # a struct with a wrong field has no type of its own


def scalar_part(kind: Type) -> Type:
    """The element of a tensor, or the type itself, looked up."""
    kind = shallow(kind)
    return shallow(kind.element) if isinstance(kind, TensorType) else kind


def may_be(kind: int, target: Type) -> bool:
    """Whether an unknown of this kind may become the (known) type."""
    if kind == ANY:
        return is_scalar(target)
    if kind == INT_LITERAL:
        return isinstance(target, (IntType, FloatType, FixType))
    return isinstance(target, (FloatType, FixType))


def unify(a: Type, b: Type) -> bool:
    """Make two types one; False where they cannot be. Spaces of tensors must agree as well."""
    a, b = shallow(a), shallow(b)
    if a is b or a is ERROR or b is ERROR:
        return True
    if isinstance(a, Unknown):
        return _bind(a, b)
    if isinstance(b, Unknown):
        return _bind(b, a)
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.shape == b.shape and a.space == b.space and unify(a.element, b.element)
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        if len(a.items) != len(b.items):
            return False
        agreed = [unify(x, y) for x, y in zip(a.items, b.items)]
        return all(agreed)
    if isinstance(a, StructType) and isinstance(b, StructType):
        return a.name == b.name
    return a == b


def _bind(unknown: Unknown, other: Type) -> bool:
    if isinstance(other, Unknown):
        other.kind = max(other.kind, unknown.kind)
        unknown.bound = other
        return True
    if not may_be(unknown.kind, other):
        return False
    unknown.bound = other
    return True


def default(unknown: Unknown) -> None:
    """Settle a literal that nothing else decides: i32, f32; anything else is an error already reported."""
    found = shallow(unknown)
    if isinstance(found, Unknown):
        found.bound = {ANY: ERROR, INT_LITERAL: I32, FLOAT_LITERAL: F32}[found.kind]


def describe(kind: Type) -> str:
    """The type for a message: in backquotes when it has a spelling in source."""
    found = resolve(kind)
    if isinstance(found, Unknown) or found is ERROR:
        return str(found)
    return f"`{spell(found)}`"


def spell(kind: Type) -> str:
    """The type as a reader would write it, with unknowns as `{integer}` and `{decimal}`."""
    kind = shallow(kind)
    if isinstance(kind, Unknown):
        return {ANY: "_", INT_LITERAL: "{integer}", FLOAT_LITERAL: "{decimal}"}[kind.kind]
    if kind is ERROR:
        return "_"
    if isinstance(kind, TensorType):
        body = f"[{spell(kind.element)}; {', '.join(map(str, kind.shape))}]"
        return body if kind.space == "host" else f"{kind.space} {body}"
    if isinstance(kind, TupleType):
        inner = ", ".join(spell(item) for item in kind.items)
        return f"({inner},)" if len(kind.items) == 1 else f"({inner})"
    return str(kind)


def is_bool(kind: Type) -> bool:
    return isinstance(kind, BoolType)
