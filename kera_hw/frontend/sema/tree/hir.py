"""The typed tree between checking and lowering: names resolved, sizes known, one function per instance.

Every expression carries its full type (structs and tuples included; the graph's leaves come later) and its
span. Literals have their final type. Built-ins are registry operations (``Op``) or one of the
structured forms below. Generic functions are monomorphised: each instance is a ``Function``.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kera_hw.frontend.sema.tree.usage import Usage
from kera_hw.support import SourceFile, Span
from kera_hw.types import Type


@dataclass(eq=False, slots=True)
class Var:
    """A local, parameter, loop variable or state variable; identity is the object."""

    name: str
    type: Type
    mutable: bool = False
    span: Span = Span(0, 0)


# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Expr:
    type: Type
    span: Span


@dataclass(frozen=True, slots=True)
class Const(Expr):
    """A compile-time value in interpreter form without a batch axis: NumPy scalar/array in the storage dtype
    of a leaf type, nested tuples of them for tuples and structs (one entry per item/field; a tensor of
    structs is a tuple of per-field arrays, as in ``flatten_type``)."""

    value: Any


@dataclass(frozen=True, slots=True)
class Local(Expr):
    var: Var


@dataclass(frozen=True, slots=True)
class Op(Expr):
    """A registry operation on leaf-typed operands (scalars or tensors of scalars).

    ``attrs`` are exactly the operation's attributes. Element-wise operations may mix a scalar with tensors.
    Multi-result operations give a tuple type.
    """

    name: str
    args: tuple[Expr, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Structural(Expr):
    """A data-moving tensor built-in applied leaf by leaf, so it also takes tensors of structs and tuples:
    reshape permute broadcast concat pad reverse gather shift_in select clone. ``args`` and ``attrs`` are
    those of the ``tensor.*`` operation (``control.select`` for select); operands in ``per_leaf`` positions
    are split into leaves."""

    name: str
    args: tuple[Expr, ...]
    per_leaf: tuple[bool, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Aggregate(Expr):
    """Tuple or struct construction; items in declaration order."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Project(Expr):
    """Field ``index`` of a tuple or struct."""

    base: Expr
    index: int


@dataclass(frozen=True, slots=True)
class TensorLit(Expr):
    """``[a, b, c]``: the items become the outermost axis."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class TensorFill(Expr):
    """``[v; d0, d1]``."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Slice:
    """A range entry of an index: dynamic start, static length; ``None`` start stands for 0.

    ``stop`` is the source's upper bound (exclusive) for the range proof and messages."""

    start: Expr | None
    stop: Expr | None
    length: int
    span: Span


@dataclass(frozen=True, slots=True)
class Index(Expr):
    """``a[i, r0..r1, ...]``; entries for leading axes, the rest kept whole. An index entry drops its axis.

    mode: "proved" (must be proved in range, K0301), "clamped" (`a.clamped(i)`), "at" (`a.at(i, else: v)`).
    """

    base: Expr
    entries: tuple[Expr | Slice, ...]
    mode: str = "proved"
    otherwise: Expr | None = None


@dataclass(frozen=True, slots=True)
class Block(Expr):
    """Statements, then the value (``None`` result: unit)."""

    stmts: tuple[Stmt, ...]
    result: Expr | None


@dataclass(frozen=True, slots=True)
class If(Expr):
    cond: Expr
    then: Block
    otherwise: Block | None


@dataclass(frozen=True, slots=True)
class Logical(Expr):
    """``&&`` / ``||`` on bools (no effects inside, so both may be evaluated): the proof uses the left."""

    op: str  # "and" or "or"
    lhs: Expr
    rhs: Expr


@dataclass(frozen=True, slots=True)
class Arm:
    """One match arm: alternatives of patterns, then its value."""

    patterns: tuple[Pattern, ...]
    body: Block
    span: Span


@dataclass(frozen=True, slots=True)
class Match(Expr):
    """Exhaustive (checked); the first arm that matches decides."""

    scrutinee: Expr
    arms: tuple[Arm, ...]


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A user function instance. ``borrows[i]``: "" by value, "&" shared, "&mut" exclusive; the argument of a
    borrow is a ``PlaceExpr``."""

    function: Function
    args: tuple[Expr, ...]
    borrows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlaceExpr(Expr):
    """A place lent by ``&`` or ``&mut`` to a call."""

    place: Place


@dataclass(frozen=True, slots=True)
class StreamApply(Expr):
    """A stream called on tensors ``[T; n]`` from reset: gives ``[U; n]``."""

    stream: Function
    args: tuple[Expr, ...]
    length: int


@dataclass(frozen=True, slots=True)
class StreamStep(Expr):
    """``f.step(x)``: advances the stream instance held in ``instance`` (see ``Function.instances``)."""

    instance: Var
    stream: Function
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Lambda:
    params: tuple[Var, ...]
    body: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class HigherOrder(Expr):
    """``map``/``zip`` (every element, any rank), ``reduce``/``scan`` (axis 0; args = tensor, init)."""

    name: str
    args: tuple[Expr, ...]
    body: Lambda


# ---------------------------------------------------------------- patterns


@dataclass(frozen=True, slots=True)
class Pattern:
    span: Span


@dataclass(frozen=True, slots=True)
class Wildcard(Pattern):
    pass


@dataclass(frozen=True, slots=True)
class Binding(Pattern):
    """A name: matches anything and binds it."""

    var: Var


@dataclass(frozen=True, slots=True)
class IntRange(Pattern):
    """Inclusive range of raw integer values; a literal has low == high. Bools use 0 and 1."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class TuplePattern(Pattern):
    """Sub-patterns for a tuple's items, in order."""

    items: tuple[Pattern, ...]


# ---------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Stmt:
    span: Span


@dataclass(frozen=True, slots=True)
class Let(Stmt):
    """Pattern is irrefutable: Binding, Wildcard or TuplePattern of them."""

    pattern: Pattern
    value: Expr


@dataclass(frozen=True, slots=True)
class FieldStep:
    index: int


@dataclass(frozen=True, slots=True)
class IndexStep:
    """Index entries as in ``Index`` (always "proved")."""

    entries: tuple[Expr | Slice, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Place:
    """A variable and a path into it; ``type`` is the type at the end of the path."""

    root: Var
    path: tuple[FieldStep | IndexStep, ...]
    type: Type
    span: Span


@dataclass(frozen=True, slots=True)
class Assign(Stmt):
    """``place = value``. Compound assignment arrives as place = op(place read, value)."""

    place: Place
    value: Expr


@dataclass(frozen=True, slots=True)
class ExprStmt(Stmt):
    value: Expr


@dataclass(frozen=True, slots=True)
class For(Stmt):
    """``count`` iterations; the loop variable takes start, start + step, ... (.rev() is done already)."""

    var: Var
    start: int
    step: int
    count: int
    body: Block


@dataclass(frozen=True, slots=True)
class While(Stmt):
    cond: Expr
    max_count: int
    body: Block


@dataclass(frozen=True, slots=True)
class AssertEq(Stmt):
    """Tests only: bit-for-bit equality."""

    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Assert(Stmt):
    """Tests only: a condition that must hold."""

    cond: Expr
    label: str = ""


@dataclass(frozen=True, slots=True)
class Observe(Stmt):
    """In functions and streams: a condition that must hold (``assert``) or that should occur (``cover``)."""

    kind: str
    cond: Expr
    label: str


# ---------------------------------------------------------------- items


@dataclass(frozen=True, slots=True)
class Param:
    var: Var
    borrow: str = ""  # "", "&", "&mut"


@dataclass(frozen=True, slots=True)
class State:
    """A state variable with its constant initial value."""

    var: Var
    initial: Const


@dataclass(frozen=True, slots=True)
class Instance:
    """``state f: fir;``: an instance of another stream inside a stream."""

    var: Var
    stream: Function


@dataclass(eq=False, slots=True)
class Function:
    """One function or stream instance, sizes substituted. ``body`` is set once checked."""

    name: str  # qualified and with sizes, unique
    kind: str  # "fn" or "stream"
    params: tuple[Param, ...]
    result: Type
    effects: tuple[str, ...]
    file: SourceFile
    span: Span
    public_name: str | None = None  # export name for a `pub` item of the root file
    states: tuple[State, ...] = ()
    instances: tuple[Instance, ...] = ()
    body: Block | None = None


@dataclass(frozen=True, slots=True)
class Test:
    name: str
    file: SourceFile
    span: Span
    body: Block


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """A checked program: instances in dependency order (callees first), exports among them, tests.

    ``constants`` are the expressions evaluated at compile time, with their files: their indices are proved
    like any other's. ``usage`` is what lints are told from.
    """

    functions: tuple[Function, ...]
    tests: tuple[Test, ...]
    root: SourceFile
    constants: tuple[tuple[Expr, SourceFile], ...] = ()
    usage: Usage = field(default_factory=Usage)
