"""What an operation is: one row that states it once, for every reader.

The type checker, verifier, constant folder, interpreter, fuzzer, delay model, docs and the conformance
suite read ``OpSpec``; nothing restates it. Values are NumPy arrays with a leading batch axis: a scalar is
``(B,)``, a tensor ``(B, *shape)``, in the dtypes of ``kera_hw.types.numpy_dtype``, always in canonical
form (an i13 in an int16 is sign-extended, a u5 in a uint8 has its upper bits clear).
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from kera_hw.support import Encoder
from kera_hw.types import Type

Array = np.ndarray[Any, np.dtype[Any]]


class RegionLike(Protocol):
    """What an attribute may hold for a callee: ``kera_hw.graph.Region`` (ops sits below graph)."""

    @property
    def hash(self) -> bytes: ...
    @property
    def params(self) -> tuple[Type, ...]: ...
    @property
    def result_types(self) -> tuple[Type, ...]: ...


# `bool` before `int`: both encode, with different tags.
AttrValue = bool | int | str | bytes | Type | RegionLike | tuple["AttrValue", ...]
Attrs = Mapping[str, Any]


class TypeRuleError(Exception):
    """Operands or attributes an operation does not take; the message is a whole sentence."""


class Trait(Enum):
    """Facts about an operation that passes may use; each is proved by a test."""

    ELEMENTWISE = "elementwise"  # applies per element; operands are scalars or tensors of one shape
    COMMUTATIVE = "commutative"
    ASSOCIATIVE = "associative"
    IDEMPOTENT = "idempotent"  # f(x, x) = x
    INVOLUTION = "involution"  # f(f(x)) = x when both have the same attributes
    LOW_BITS = "low bits"  # the low n bits of the result depend on the low n bits of the operands alone
    STRUCTURAL = "structural"  # moves data, computes nothing: free in hardware
    CONTROL = "control"  # holds regions
    SOURCE = "source"  # param, constant
    OBSERVES = "observes"  # gives its operands; says what an export shows beside its results


class EvalContext(Protocol):
    """What an ``evaluate`` may ask of its evaluator."""

    @property
    def batch(self) -> int: ...

    def run(self, region: RegionLike, args: Sequence[Array], batch: int | None = None) -> list[Array]:
        """Evaluate a region on batch-first arguments (``batch`` when it differs from the current one)."""
        ...


class Typed(Protocol):
    """A value while an expansion is written."""

    @property
    def type(self) -> Type: ...


V = TypeVar("V", bound=Typed)


class Writer(Protocol[V]):
    """Where an expansion's operations go: a store of a graph's nodes, or what stands for one."""

    def op(self, opcode: str, *inputs: V, **attrs: AttrValue) -> V:
        """The result of an operation that has one."""
        ...

    def constant(self, kind: Type, value: Array | int) -> V:
        """A constant from its elements in storage form."""
        ...

    def param(self, index: int, kind: Type) -> V:
        """A parameter of a region that is being written."""
        ...

    def region(self, params: Sequence[Type], results: Sequence[V]) -> RegionLike:
        """What an operation with control takes: values of the parameters given."""
        ...


Expansion = Callable[[Writer[Any], Sequence[Any], Attrs], "Sequence[Any] | None"]
"""An operation's results by other operations; None on types where it is not made of others.

That of an element-wise operation is given scalars.
"""
InferRule = Callable[[tuple[Type, ...], Attrs], tuple[Type, ...]]
EvaluateRule = Callable[["EvalCall"], Sequence[Array]]


class EvalCall(NamedTuple):
    """One evaluation: operand values with their types, the result types and the attributes.

    ``reusable``: nobody reads the first operand's array again, so that the result may be made in it.
    A named tuple because one is made for every operation evaluated.
    """

    context: EvalContext
    args: tuple[Array, ...]
    arg_types: tuple[Type, ...]
    types: tuple[Type, ...]
    attrs: Attrs
    reusable: bool = False


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One operation.

    ``infer`` gives the result types or raises TypeRuleError; ``evaluate`` is the reference meaning, on all
    types that it allows; ``attrs`` names the attributes in canonical (bytewise) order; ``effect`` the token
    kind it orders on. ``expansion`` writes it as other operations, with the same bits on every input; its
    docstring is printed.
    """

    name: str
    doc: str
    infer: InferRule
    evaluate: EvaluateRule
    traits: frozenset[Trait] = field(default_factory=frozenset[Trait])
    attrs: tuple[str, ...] = ()
    effect: str | None = None
    expansion: Expansion | None = None
    since: int = 1


def encode_attr(out: Encoder, value: AttrValue) -> None:
    """Canonical encoding of an attribute: a tag, then the value. Integers are zigzag LEB128."""
    if isinstance(value, bool):
        out.raw(b"T" if value else b"F")
    elif isinstance(value, int):
        out.raw(b"i").uint(value * 2 if value >= 0 else -value * 2 - 1)
    elif isinstance(value, str):
        out.raw(b"s").text(value)
    elif isinstance(value, bytes):
        out.raw(b"y").bytes(value)
    elif isinstance(value, tuple):
        out.raw(b"(").uint(len(value))
        for item in value:
            encode_attr(out, item)
    elif isinstance(value, Type):
        out.raw(b"t").raw(value.hash)
    else:
        out.raw(b"r").raw(value.hash)
