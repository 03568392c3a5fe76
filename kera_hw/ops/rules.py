"""What the family tables share: typing checks that speak in sentences, and operand spreading."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from kera_hw.ops.spec import Array, Attrs, TypeRuleError
from kera_hw.types import (
    FORMATS,
    BoolType,
    FixType,
    FloatType,
    IntType,
    TensorType,
    Type,
    element_type,
    is_scalar,
)

Types = tuple[Type, ...]
Kinds = tuple[type[Type], ...]

INT: Kinds = (IntType,)
FIX: Kinds = (FixType,)
FLOAT: Kinds = (FloatType,)
NUMBER: Kinds = (IntType, FixType, FloatType)
SCALAR: Kinds = (BoolType, IntType, FixType, FloatType)

_NOUNS: dict[type[Type], str] = {
    BoolType: "bool", IntType: "integer", FixType: "fixed-point", FloatType: "floating-point",
}
ORDERS = ("lanes", "sequential", "tree", "exact")
_COUNTS = ("no operands", "one operand", "two operands", "three operands", "four operands")


def fail(message: str) -> NoReturn:
    """Reject the operands; the message is a whole sentence."""
    raise TypeRuleError(message)


def title(op: str) -> str:
    """How messages name an operation: its verb, as in source."""
    return f"`{op.partition('.')[2]}`"


def nouns(kinds: Kinds) -> str:
    """The kinds as prose: ``integer or bool``."""
    names = [_NOUNS[kind] for kind in kinds]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]


def check_count(op: str, types: Types, count: int) -> None:
    if len(types) != count:
        wanted = _COUNTS[count] if count < len(_COUNTS) else f"{count} operands"
        fail(f"{title(op)} takes {wanted}, but got {len(types)}.")


def check_least(op: str, types: Types, count: int) -> None:
    if len(types) < count:
        fail(f"{title(op)} takes at least {count} operands, but got {len(types)}.")


def check_kind(op: str, kind: Type, kinds: Kinds) -> Type:
    """The element type of an operand, which must be of one of the kinds."""
    element = element_type(kind)
    if not isinstance(element, kinds):
        fail(f"{title(op)} takes {nouns(kinds)} operands, but got {kind}.")
    return element


def check_same(op: str, first: Type, second: Type) -> None:
    if first != second:
        fail(f"{title(op)} takes operands of one type, but got {first} and {second}.")


def int_element(op: str, kind: Type) -> IntType:
    element = check_kind(op, kind, INT)
    assert isinstance(element, IntType)
    return element


def raw_int(kind: Type) -> IntType:
    """The integer type behind the elements of an integer or fixed-point operand."""
    element = element_type(kind)
    if isinstance(element, FixType):
        return element.raw
    assert isinstance(element, IntType)
    return element


def float_kind(kind: Type) -> FloatType:
    """The format of a floating-point operand's elements."""
    element = element_type(kind)
    assert isinstance(element, FloatType)
    return element


def joint_shape(op: str, types: Types) -> TensorType | None:
    """The tensor type that gives an element-wise result its shape and space; None for all scalars."""
    found: TensorType | None = None
    for kind in types:
        if not isinstance(kind, TensorType):
            continue
        if found is None:
            found = kind
        elif found.shape != kind.shape:
            fail(f"{title(op)} takes tensors of one shape, but got {found} and {kind}.")
        elif found.space != kind.space:
            fail(f"{title(op)} takes tensors in one memory space, but got {found} and {kind}.")
    return found


def like(model: TensorType | None, element: Type) -> Type:
    """``element`` in the shape and space of the model."""
    return element if model is None else TensorType(element, model.shape, model.space)


def elementwise(op: str, types: Types, count: int, kinds: Kinds) -> tuple[Type, TensorType | None]:
    """Operands of one element type: that type and the result's shape."""
    check_count(op, types, count)
    elements = [check_kind(op, kind, kinds) for kind in types]
    for element in elements[1:]:
        check_same(op, elements[0], element)
    return elements[0], joint_shape(op, types)


def same_type_rule(op: str, count: int, kinds: Kinds) -> Callable[[Types, Attrs], Types]:
    """Typing rule: ``count`` operands of one element type give that type."""

    def infer(types: Types, attrs: Attrs) -> Types:
        element, model = elementwise(op, types, count, kinds)
        return (like(model, element),)

    return infer


def fixed_result_rule(op: str, count: int, kinds: Kinds, result: Type) -> Callable[[Types, Attrs], Types]:
    """Typing rule: ``count`` operands of one element type give ``result`` elements."""

    def infer(types: Types, attrs: Attrs) -> Types:
        _, model = elementwise(op, types, count, kinds)
        return (like(model, result),)

    return infer


def tensor_of(op: str, kind: Type) -> TensorType:
    """The operand as a tensor of scalars."""
    if not isinstance(kind, TensorType):
        fail(f"{title(op)} takes a tensor, but got {kind}.")
    if not is_scalar(kind.element):
        fail(f"{title(op)} takes a tensor of scalars, but got {kind}.")
    return kind


def check_leaf(op: str, kind: Type) -> Type:
    """A scalar, or a tensor of scalars: what the graph holds."""
    if not is_scalar(element_type(kind)):
        fail(f"{title(op)} takes scalars and tensors of scalars, but got {kind}.")
    return kind


def check_format(op: str, kind: Type) -> None:
    """Where values come from, floats are of the formats that can be stored, so that they are everywhere."""
    element = element_type(kind)
    if isinstance(element, FloatType) and element not in FORMATS:
        known = ", ".join(map(str, FORMATS))
        fail(f"{title(op)} knows the formats {known}, and {element} is none of them.")


def check_axis(op: str, kind: TensorType, axis: int) -> None:
    if not 0 <= axis < len(kind.shape):
        fail(f"{title(op)} got axis {axis}, but {kind} has axes 0 to {len(kind.shape) - 1}.")


def check_order(op: str, element: Type, attrs: Attrs) -> None:
    """A float reduction names its order; any other has none."""
    order = attrs["order"]
    if isinstance(element, FloatType):
        if order not in ORDERS:
            fail(f"{title(op)} knows the orders {', '.join(ORDERS)}, and `{order}` is none of them.")
    elif order != "":
        fail(f"{title(op)} on {element} gives the same in every order, so it takes no `order`.")


def tensor_or_scalar(element: Type, shape: Sequence[int], space: str) -> Type:
    """A tensor, or the element itself where no axis is left."""
    return TensorType(element, tuple(shape), space) if shape else element


def spread(args: Sequence[Array]) -> Sequence[Array]:
    """Operands made to broadcast: a scalar batch gets one axis for each of the tensors'."""
    rank = args[0].ndim
    for arg in args:
        if arg.ndim != rank:
            break
    else:
        return args
    rank = max(arg.ndim for arg in args)
    return [
        arg.reshape(arg.shape[0], *(1,) * (rank - 1)) if arg.ndim == 1 else arg for arg in args
    ]
