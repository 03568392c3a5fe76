"""What a law is: a pattern of operations, what equals it, and the conditions under which it does.

Laws are values, in tables by family beside this module. Whoever applies them is a ``View``: it says what is
known of a value and makes new ones. There are two, the simplifying pass over regions and the builder of flat
regions, which simplifies while it grows.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from kera_hw.graph.node import Ref
from kera_hw.ops.intervals import Interval, MaybeInterval, OpShape, apply_rule
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import AttrValue, Trait
from kera_hw.types import Type, element_type

Attrs = Mapping[str, Any]
CONSTANT = "core.constant"


class View(Protocol):
    """What laws may ask, and what they make values with."""

    def value(self, ref: Ref) -> int | None:
        """The raw integer (bits of a float) that a constant holds everywhere; None for anything else."""
        ...

    def range(self, ref: Ref) -> MaybeInterval:
        """All raw integers that the elements of a value can be; None for floats."""
        ...

    def op(self, opcode: str, /, *inputs: Ref, **attrs: AttrValue) -> Ref:
        """The result of an operation."""
        ...

    def const(self, kind: Type, value: int) -> Ref:
        """A constant of a type that holds a raw integer (bits of a float) everywhere."""
        ...


@dataclass(frozen=True, slots=True)
class Var:
    """Any value; wherever the name comes again, the same one."""

    name: str


@dataclass(frozen=True, slots=True)
class Known:
    """A constant that is the same everywhere, named."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A particular constant, by the scalar type it is of; None where the type does not have it."""

    name: str
    of: Callable[[Type], int | None]


@dataclass(frozen=True, slots=True)
class Made:
    """A constant worked out from what was found, of a type worked out from it."""

    kind: Callable[[Match], Type]
    value: Callable[[Match], int]


@dataclass(frozen=True, slots=True)
class Chosen:
    """One of the values below what was found."""

    of: Callable[[Match], Ref]


@dataclass(frozen=True, slots=True)
class Op:
    """An operation on further terms; in a pattern None for whatever operands.

    ``name`` is that of its value. A pattern may ask for the whole's attributes. Where an operation is made it
    has the attributes that ``attrs`` works out, or else those of the whole.
    """

    opcode: str
    args: tuple[Term, ...] | None
    attrs: Callable[[Match], Attrs] | None = None
    name: str = ""
    same_attrs: bool = False


Term = Var | Known | Literal | Made | Chosen | Op
Condition = Callable[["Match"], bool]


class Match:
    """What a pattern was found to stand for."""

    def __init__(self, view: View, opcode: str, inputs: tuple[Ref, ...], attrs: Attrs) -> None:
        self.view = view
        self.opcode = opcode
        self.inputs = inputs
        self.attrs = attrs
        self.bound: dict[str, Ref] = {}

    def __getitem__(self, name: str) -> Ref:
        return self.bound[name]

    @cached_property
    def type(self) -> Type:
        """The type of the whole."""
        return OPS[self.opcode].infer(tuple(ref.type for ref in self.inputs), self.attrs)[0]

    def element(self, name: str) -> Type:
        """The scalar type of a value."""
        return element_type(self.bound[name].type)

    def value(self, name: str) -> int:
        """What a known constant holds."""
        found = self.view.value(self.bound[name])
        assert found is not None, f"{name} is no constant"
        return found

    def range(self, name: str) -> MaybeInterval:
        """The interval of a value."""
        return self.view.range(self.bound[name])

    @property
    def interval(self) -> MaybeInterval:
        """The interval of the whole."""
        ranges = [self.view.range(ref) for ref in self.inputs]
        shape = OpShape(tuple(ref.type for ref in self.inputs), self.type, self.attrs)
        return apply_rule(self.opcode, ranges, shape)

    def finds(self, term: Term, ref: Ref) -> bool:
        """Whether a value is what a term asks for; names are bound on the way."""
        if isinstance(term, Var):
            return self.bound.setdefault(term.name, ref) == ref
        if isinstance(term, Op):
            return self._finds_op(term, ref)
        value = self.view.value(ref) if ref.node.opcode == CONSTANT else None
        if value is None:
            return False
        if isinstance(term, Literal):
            return value == term.of(element_type(ref.type))
        assert isinstance(term, Known), "what is worked out is not looked for"
        return self.bound.setdefault(term.name, ref) == ref

    def _finds_op(self, term: Op, ref: Ref) -> bool:
        node = ref.node
        if node.opcode != term.opcode or (term.args is not None and len(node.inputs) != len(term.args)):
            return False
        if term.same_attrs and dict(node.attrs) != dict(self.attrs):
            return False
        if term.name:
            self.bound[term.name] = ref
        return term.args is None or all(map(self.finds, term.args, node.inputs))

    def make(self, term: Term) -> Ref:
        """The value of a term; a literal is of the whole's type."""
        if isinstance(term, (Var, Known)):
            return self.bound[term.name]
        if isinstance(term, Op):
            inputs = [self.make(arg) for arg in term.args or ()]
            attrs = term.attrs(self) if term.attrs is not None else self.attrs
            return self.view.op(term.opcode, *inputs, **{key: attrs[key] for key in OPS[term.opcode].attrs})
        if isinstance(term, Chosen):
            return term.of(self)
        if isinstance(term, Made):
            return self.view.const(term.kind(self), term.value(self))
        value = term.of(element_type(self.type))
        assert value is not None, f"{self.type} has no {term.name}"
        return self.view.const(self.type, value)


@dataclass(frozen=True)
class Law:
    """``opcode(args) = result``, if all of ``when`` hold. A result is of the whole's type, or no result.

    With ``rest`` any further operands may come.
    """

    opcode: str
    args: tuple[Term, ...]
    result: Term
    when: tuple[Condition, ...] = ()
    rest: bool = False

    def __str__(self) -> str:
        return f"{spell(Op(self.opcode, self.args))} = {spell(self.result)}"

    @cached_property
    def constants(self) -> tuple[int, ...]:
        """The operands that have to be constants."""
        return tuple(i for i, arg in enumerate(self.args) if isinstance(arg, (Known, Literal)))

    @cached_property
    def inner(self) -> tuple[tuple[int, str], ...]:
        """The operands that have to be results of certain operations."""
        return tuple((i, arg.opcode) for i, arg in enumerate(self.args) if isinstance(arg, Op))

    def apply(self, view: View, inputs: tuple[Ref, ...], attrs: Attrs) -> Ref | None:
        """What the operation equals by this law; None where it says nothing."""
        if len(inputs) != len(self.args) and not (self.rest and len(inputs) > len(self.args)):
            return None
        for i in self.constants:
            if inputs[i].node.opcode != CONSTANT:
                return None
        for i, opcode in self.inner:
            if inputs[i].node.opcode != opcode:
                return None
        match = Match(view, self.opcode, inputs, attrs)
        for term, ref in zip(self.args, inputs):
            if not match.finds(term, ref):
                return None
        for condition in self.when:
            if not condition(match):
                return None
        # A scalar may stand where a tensor is due only after broadcasting: the law is not for such a case.
        result = self.result
        if isinstance(result, (Var, Known)) and match[result.name].type != match.type:
            return None
        made = match.make(result)
        return made if made.type == match.type else None


def laws(opcodes: str, args: tuple[Term, ...], result: Term, *when: Condition) -> tuple[Law, ...]:
    """A law of each operation named, in both orders where operands may be exchanged."""
    found: list[Law] = []
    for opcode in opcodes.split():
        orders = [args]
        if len(args) == 2 and Trait.COMMUTATIVE in OPS[opcode].traits and args[0] != args[1]:
            orders.append((args[1], args[0]))
        found += [Law(opcode, order, result, when) for order in orders]
    return tuple(found)


class Book:
    """Laws by operation, in the order in which they are tried."""

    def __init__(self, *tables: Sequence[Law]) -> None:
        self.laws: dict[str, list[Law]] = {}
        for law in (law for table in tables for law in table):
            self.laws.setdefault(law.opcode, []).append(law)

    def simpler(self, view: View, opcode: str, inputs: tuple[Ref, ...], attrs: Attrs) -> Ref | None:
        """What an operation equals by the first law that says anything of it."""
        for law in self.laws.get(opcode, ()):
            found = law.apply(view, inputs, attrs)
            if found is not None:
                return found
        return None


def spell(term: Term) -> str:
    """A term as text, for messages and tests."""
    if isinstance(term, Op):
        return f"{term.opcode}({', '.join(map(spell, term.args or ()))})"
    return "#" if isinstance(term, (Made, Chosen)) else term.name


def decided(interval: MaybeInterval) -> int | None:
    """The one integer of an interval that holds no other."""
    return interval.low if isinstance(interval, Interval) and interval.low == interval.high else None
