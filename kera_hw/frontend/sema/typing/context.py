"""What checking one body (or one constant) needs: scopes, open questions about types, and reports.

A body is walked once. The walk gives each expression a type that may hold unknowns, and a closure that
makes its typed tree; closures run after ``solve`` has found every unknown, so a literal learns from any
later use.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from kera_hw.frontend.sema.names.scope import Broken, Constant, ItemSymbol, Local, Module, Scopes, Symbol
from kera_hw.frontend.sema.ranges.core import Guard, Scope
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.usage import Declared, Usage
from kera_hw.frontend.sema.typing.fixes import conversion
from kera_hw.frontend.sema.typing.unify import (
    ANY,
    ERROR,
    Unknown,
    default,
    describe,
    has_error,
    resolve,
    shallow,
    unify,
)
from kera_hw.frontend.syntax import ast
from kera_hw.support import Fix, Label, Severity, SourceFile, Span
from kera_hw.types import U32, UNIT, BoolType, FixType, FloatType, IntType, TensorType, Type

Build = Callable[[], hir.Expr]


@dataclass(slots=True)
class Value:
    """A walked expression: its type, and how to make its typed tree once types are known.

    ``literal`` is set for a number literal without suffix, alone or in parentheses; ``borrow`` for a name
    that is itself a borrow ("&" or "&mut"). ``dropped`` is set for a block without a value whose last
    statement has one: its type, and its `;`.
    """

    type: Type
    span: Span
    build: Build
    literal: ast.Literal | None = None
    borrow: str = ""
    dropped: tuple[Type, Span] | None = None


@dataclass(slots=True)
class Obligation:
    """A relation between types that waits until enough of it is known.

    ``attempt`` gives True when it is settled (or reported); ``insist`` settles it by choosing. A late one
    chooses only after literals have taken their default types.
    """

    attempt: Callable[[], bool]
    insist: Callable[[], None]
    late: bool


def poison(span: Span) -> hir.Expr:
    """Stands for an expression that was reported; never leaves the checker."""
    return hir.Const(ERROR, span, None)


def broken(span: Span) -> Value:
    """The value of an expression that was reported."""
    return Value(ERROR, span, lambda: poison(span))


def is_poison(expr: hir.Expr) -> bool:
    return has_error(expr.type)


class WholeProgram(Protocol):
    """The whole program, as far as a body may ask about what stands elsewhere (``checking.program``)."""

    @property
    def root(self) -> Module: ...
    @property
    def usage(self) -> Usage: ...

    def report(
        self, file: SourceFile, code: str, message: str, span: Span, labels: tuple[Label, ...] = (),
        fix: Fix | None = None, notes: tuple[str, ...] = (), severity: Severity = Severity.ERROR,
    ) -> None: ...

    def context(self, symbol: ItemSymbol) -> Context: ...
    def item(self, module: Module, name: str) -> ItemSymbol | None: ...
    def module(self, file: SourceFile, name: str, span: Span, shared: Shared) -> Module | None: ...
    def member(
        self, file: SourceFile, module: Module, name: str, span: Span, shared: Shared,
    ) -> ItemSymbol | None: ...
    def note_use(self, owner: ItemSymbol | None, module: Module, name: str, found: ItemSymbol) -> None: ...
    def named_type(self, symbol: ItemSymbol) -> Type: ...
    def constant(self, symbol: ItemSymbol) -> Constant | None: ...
    def constant_item(self, context: Context, node: ast.ConstItem) -> Constant | None: ...
    def constant_value(
        self, context: Context, tree: hir.Expr, calls: Iterable[tuple[Instance, Span]],
    ) -> Any: ...
    def complete(self, context: Context, calls: Iterable[tuple[Instance, Span]]) -> bool: ...
    def instance(
        self, context: Context | None, symbol: ItemSymbol, sizes: tuple[int, ...], span: Span,
    ) -> Instance | None: ...


@dataclass(eq=False, slots=True)
class Instance:
    """One function or stream with its sizes. ``parent`` is the instance whose body first asked for it."""

    checker: WholeProgram
    symbol: ItemSymbol
    sizes: tuple[int, ...]
    function: hir.Function
    parent: Instance | None = None
    status: str = "new"  # then "checking", "done"
    signed: bool = True  # whether the signature could be resolved
    ok: bool = True
    calls: list[tuple[Instance, Span]] = field(default_factory=list[tuple["Instance", Span]])

    @property
    def item(self) -> ast.FnItem | ast.StreamItem:
        assert isinstance(self.symbol.node, (ast.FnItem, ast.StreamItem))
        return self.symbol.node


@dataclass(slots=True)
class Shared:
    """What a body and the constants inside it have in common."""

    checker: WholeProgram
    module: Module
    scopes: Scopes = field(default_factory=Scopes)
    calls: list[tuple[Instance, Span]] = field(default_factory=list[tuple[Instance, Span]])
    owner: Instance | None = None
    item: ItemSymbol | None = None  # whose text this is; None: a test's
    errors: int = 0
    unknown_names: set[str] = field(default_factory=set[str])  # reported once in a body
    last_value: tuple[Type, Span] | None = None  # of the statement before: the value it drops, and its `;`
    advice: Fix | None = None  # for a run-time value at this place
    declared: list[Declared] = field(default_factory=list[Declared])


class Context:
    """One unit of inference. ``constant`` forbids run-time names."""

    def __init__(self, shared: Shared, constant: bool = False) -> None:
        self.shared = shared
        self.constant = constant
        self.in_test = False
        self.lambda_level = 0
        self.effects: list[tuple[str, Span]] = []
        self.vars: list[hir.Var] = []
        self.own: set[Local] = set()
        self.states: list[tuple[hir.Var, hir.Const]] = []
        self.instances: list[hir.Instance] = []
        self.state_ok = False  # at the top level of a stream's body
        self.known = Scope(None)  # where in the body trees are made: loops around, definitions so far
        self._unknowns: list[Unknown] = []
        self._obligations: list[Obligation] = []

    # -- what the surroundings give ------------------------------------------------------------

    @property
    def checker(self) -> WholeProgram:
        return self.shared.checker

    @property
    def module(self) -> Module:
        return self.shared.module

    @property
    def file(self) -> SourceFile:
        return self.shared.module.file

    @property
    def scopes(self) -> Scopes:
        return self.shared.scopes

    @contextmanager
    def block(self):
        """A nested scope."""
        self.scopes.push()
        try:
            yield
        finally:
            self.scopes.pop()

    @contextmanager
    def guarded(self, cond: hir.Expr, truth: bool):
        """Within it, trees are made for where the condition has this value."""
        if is_poison(cond):
            yield
            return
        self.known.guards.append(Guard(cond, truth))
        try:
            yield
        finally:
            self.known.guards.pop()

    @contextmanager
    def advising(self, fix: Fix):
        """Within it, a run-time value where a constant is needed has this advice."""
        self.shared.advice = fix
        try:
            yield
        finally:
            self.shared.advice = None

    def lookup(self, name: str, reads: bool = True) -> Symbol | None:
        """A local name, else an item of the module; None leaves built-ins to the caller. ``reads``: whether
        the name is used here, and not merely looked at or assigned to."""
        found = self.scopes.find(name)
        if found is None:
            return self.item(name, reads)
        if reads and not isinstance(found, (Broken, ItemSymbol)):
            span = found.span if isinstance(found, Constant) else found.var.span
            self.checker.usage.read.add((self.file.path, span))
        return found

    def item(self, name: str, reads: bool = True) -> ItemSymbol | None:
        """An item of the module by its name."""
        found = self.checker.item(self.module, name)
        if found is not None and reads:
            self.checker.note_use(self.shared.item, self.module, name, found)
        return found

    def note_read(self, local: Local) -> None:
        """The variable is used where its place was asked for."""
        self.checker.usage.read.add((self.file.path, local.var.span))

    def note_written(self, local: Local) -> None:
        """The variable, or a part of it, is assigned or lent for that."""
        self.checker.usage.written.add((self.file.path, local.var.span))

    # -- reports ---------------------------------------------------------------------------------

    def report(
        self, code: str, message: str, span: Span, *, labels: Iterable[tuple[Span, str]] = (),
        fix: Fix | None = None, notes: tuple[str, ...] = (), severity: Severity = Severity.ERROR,
    ) -> None:
        if severity is Severity.ERROR:
            self.shared.errors += 1
        self.checker.report(
            self.file, code, message, span, tuple(Label(s, text) for s, text in labels), fix, notes, severity,
        )

    def fail(
        self, code: str, message: str, span: Span, whole: Span | None = None, *,
        labels: Iterable[tuple[Span, str]] = (), fix: Fix | None = None,
    ) -> Value:
        """Report, and stand in for the expression (``whole`` where it is larger than the carets)."""
        self.report(code, message, span, labels=labels, fix=fix)
        return broken(whole or span)

    # -- types -------------------------------------------------------------------------------------

    def unknown(self, kind: int) -> Unknown:
        made = Unknown(kind)
        self._unknowns.append(made)
        return made

    def expect(
        self, value: Value, wanted: Type, because: Iterable[tuple[Span, str]] = (), code: str = "K0302",
        fix: Callable[[], Fix | None] | None = None, message: str = "",
    ) -> bool:
        """Make the value's type the wanted one, or report at the value; ``fix`` makes another suggestion than
        to convert the value, and ``message`` says it otherwise."""
        if unify(value.type, wanted):
            return True
        if has_error(value.type) or has_error(wanted):
            return False
        if value.dropped is not None and unify(value.dropped[0], wanted):
            span = value.dropped[1]
            self.report(code, f"Expected {describe(wanted)}, and the `;` drops the value.", span,
                        labels=because, fix=Fix("remove the `;`", span, "", safe=True))
            return False
        found, aim = shallow(value.type), shallow(wanted)
        if self._differ_in_space(found, aim):
            self.space_mismatch(value, found, aim, because)
            return False
        advice = fix() if fix is not None else self._conversion(value, found, aim)
        text = message or f"Expected {describe(aim)}, found {describe(found)}."
        self.report(code, text, value.span, labels=because, fix=advice)
        return False

    def space_mismatch(
        self, value: Value, found: Type, aim: Type, because: Iterable[tuple[Span, str]] = (),
    ) -> None:
        """K0403 at the value, naming the transfer that would help."""
        assert isinstance(found, TensorType) and isinstance(aim, TensorType)
        move = TRANSFERS[aim.space]
        self.report(
            "K0403", f"This tensor is in {found.space} memory, and {aim.space} memory is needed here; "
            f"`{move}` moves it.", value.span, labels=because,
            fix=Fix(f"move it with `{move}`", value.span, f"{move}({self.file.text(value.span)})"),
        )

    @staticmethod
    def _differ_in_space(found: Type, aim: Type) -> bool:
        return (
            isinstance(found, TensorType) and isinstance(aim, TensorType) and found.space != aim.space
            and found.shape == aim.shape and unify(found.element, aim.element)
        )

    def _conversion(self, value: Value, found: Type, aim: Type) -> Fix | None:
        from_part = shallow(found.element) if isinstance(found, TensorType) else found
        to_part = shallow(aim.element) if isinstance(aim, TensorType) else aim
        same_shape = getattr(found, "shape", ()) == getattr(aim, "shape", ())
        return conversion(self, value.span, from_part, to_part) if same_shape else None

    def oblige(self, attempt: Callable[[], bool], insist: Callable[[], None], late: bool = False) -> None:
        """Settle a relation now if it can be, else when the body is solved."""
        if not attempt():
            self._obligations.append(Obligation(attempt, insist, late))

    def retry(self) -> None:
        """Settle what has become known since, for a place that needs a type now."""
        pending = self._obligations
        while True:
            rest = [item for item in pending if not item.attempt()]
            if len(rest) == len(pending):
                self._obligations = rest
                return
            pending = rest

    def solve(self) -> None:
        """Find every unknown: by what is known, then by choices in order, defaults last."""
        self.retry()
        self._choose(late=False)
        for unknown in self._unknowns:
            found = shallow(unknown)
            if isinstance(found, Unknown) and found.kind != ANY:
                default(found)
        self.retry()
        self._choose(late=True)
        for unknown in self._unknowns:
            default(unknown)
        for var in self.vars:
            var.type = resolve(var.type)

    def _choose(self, late: bool) -> None:
        while chosen := next((item for item in self._obligations if item.late == late), None):
            self._obligations.remove(chosen)
            chosen.insist()
            self.retry()

    def new_var(self, name: str, kind: Type, span: Span, mutable: bool = False) -> hir.Var:
        """A variable whose type is completed when the body is solved."""
        made = hir.Var(name, kind, mutable, span)
        self.vars.append(made)
        return made

    def declare(self, local: Local, name: str | None = None, elsewhere: bool = False) -> Local:
        """Bring a run-time name into the innermost scope. ``elsewhere``: renaming it takes more than here."""
        local.lambda_level = self.lambda_level
        self.own.add(local)
        var = local.var
        self.shared.declared.append(Declared(
            var.name, self.file, var.span, local.role, var.mutable and local.role != "state",
            local.borrow == "&mut", elsewhere,
        ))
        self.scopes.declare(name or local.var.name, local)
        return local

    # -- constants -----------------------------------------------------------------------------------

    def nested_constant(self) -> Context:
        """A context for a compile-time expression at this place."""
        inner = Context(self.shared, constant=True)
        inner.in_test = self.in_test
        return inner

    def evaluate(self, expr: ast.Expr, wanted: Type | None = None) -> Constant | None:
        """The value of a compile-time expression, None when something was reported."""
        inner = self.nested_constant()
        before, first_call = self.shared.errors, len(self.shared.calls)
        value = inner.expr(expr)
        if wanted is not None:
            inner.expect(value, wanted)
        inner.solve()
        tree = value.build()
        # What a constant calls is run now, and is no callee of the body around it.
        calls = self.shared.calls[first_call:]
        del self.shared.calls[first_call:]
        if self.shared.errors > before or is_poison(tree):
            return None
        if inner.effects:
            effect, span = inner.effects[0]
            self.report("K0210", f"A constant cannot have the effect `{effect}`.", span)
            return None
        known = self.checker.constant_value(self, tree, calls)
        return None if known is None else Constant("", tree.type, known, expr.span)

    def integer(self, expr: ast.Expr | None, what: str) -> int | None:
        """A compile-time integer; ``what`` begins the message when it is none ("An extent")."""
        if expr is None:
            return None
        if isinstance(expr, ast.Literal) and expr.is_int and expr.suffix is None:
            return expr.int_value
        found = self.evaluate(expr)
        if found is None:
            return None
        if not isinstance(found.type, IntType):
            self.report("K0309", f"{what} is an integer, and this is {describe(found.type)}.", expr.span)
            return None
        return int(found.value)

    def size(self, expr: ast.Expr | None, what: str = "An extent", least: int = 0) -> int | None:
        """A compile-time integer within the limits of an extent or count."""
        found = self.integer(expr, what)
        if found is None or expr is None:
            return None
        if not least <= found < 1 << 31:
            self.report(
                "K0309", f"{what} is {least} to {(1 << 31) - 1}, and this is {found}.", expr.span,
            )
            return None
        return found

    # -- walking, by rules that the check modules register -------------------------------------------

    def expr(self, expr: ast.Expr | None, span: Span | None = None) -> Value:
        """Walk an expression; a missing one was reported by the parser."""
        walk = RULES.get(type(expr)) if expr is not None else None
        if expr is None or walk is None:
            self.shared.errors += 1
            return broken(expr.span if expr is not None else span or Span(0, 0))
        return walk(self, expr)


Rule = Callable[[Context, Any], Value]

#: How each kind of expression is walked; filled by the check modules.
RULES: dict[type[ast.Expr], Rule] = {}


def rule(kind: type[ast.Expr]) -> Callable[[Rule], Rule]:
    """Register the walk of one kind of expression."""

    def register(function: Rule) -> Rule:
        assert kind not in RULES
        RULES[kind] = function
        return function

    return register


#: The built-in that moves a tensor into each space.
TRANSFERS = {
    "host": "to_host", "device": "to_device", "pinned": "pin", "unified": "unify", "remote": "to_remote",
}


def convertible(source: Type, target: Type) -> bool:
    """Whether ``as`` converts between two scalar types."""
    numbers = (IntType, FixType, FloatType)
    if isinstance(source, BoolType):
        return isinstance(target, IntType)
    return isinstance(source, numbers) and isinstance(target, numbers)


def constant_expr(kind: Type, span: Span, value: Any) -> hir.Expr:
    return hir.Const(kind, span, value)


def unit(span: Span) -> hir.Expr:
    """The unit value."""
    return hir.Aggregate(UNIT, span, ())


def u32_constant(value: int, span: Span) -> hir.Expr:
    return hir.Const(U32, span, np.uint32(value))
