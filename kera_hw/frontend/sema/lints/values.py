"""Lints on values: shifts past the width, division by 0, comparisons that are always so, loops that never
run, values that nothing uses.

A range here follows from the expression alone: variables may be anything of their types, immutable ones what
they are bound to. So a lint holds in every iteration, and does not come and go with the rest of the body. A
generic function is at fault only where all its instances are; and a comparison is judged without the values
of named constants and sizes, which are there to be changed.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kera_hw.frontend.sema.checking.index import acts
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.usage import Usage
from kera_hw.frontend.sema.tree.walk import parts, walk
from kera_hw.ops.intervals import Interval, MaybeInterval, OpShape, apply_rule, type_interval
from kera_hw.support import Diagnostic, Fix, Severity, SourceFile, Span
from kera_hw.types import FixType, IntType, TupleType, Type, element_type

_FLIPPED = {"compare.gt": "compare.lt", "compare.ge": "compare.le"}


class _Range(NamedTuple):
    """Of an expression: with the values of named constants, and without."""

    exact: MaybeInterval
    general: MaybeInterval


@dataclass(frozen=True, slots=True)
class _Finding:
    code: str
    message: str
    file: SourceFile
    span: Span
    fix: Fix | None = None


def lint_values(functions: Iterable[hir.Function], usage: Usage, root: SourceFile) -> Iterator[Diagnostic]:
    """Warnings about the bodies of the root file's functions."""
    found: dict[tuple[str, Span], list[_Finding | None]] = {}
    for function in functions:
        if function.file is root and function.body is not None:
            search = _Search(function, usage)
            search.visit(function.body)
            for place, finding in search.found.items():
                found.setdefault(place, []).append(finding)
    for verdicts in found.values():
        item = verdicts[0]
        if item is not None and all(other is not None and other.code == item.code for other in verdicts):
            yield Diagnostic(
                item.code, item.message, item.file, item.span, fix=item.fix, severity=Severity.WARNING
            )


@dataclass(slots=True)
class _Search:
    """One body. ``found`` has an entry for every place looked at, None where nothing is wrong."""

    function: hir.Function
    usage: Usage
    found: dict[tuple[str, Span], _Finding | None] = field(
        default_factory=dict["tuple[str, Span]", "_Finding | None"]
    )
    known: dict[hir.Var, _Range] = field(default_factory=dict[hir.Var, _Range])

    @property
    def file(self) -> SourceFile:
        return self.function.file

    def visit(self, part: hir.Expr | hir.Stmt | hir.Arm) -> _Range:
        """The range of an expression; nothing for the rest."""
        if isinstance(part, hir.Const):
            return self._constant(part)
        if isinstance(part, hir.Local):
            return self.known.get(part.var) or _full(part.type)
        if isinstance(part, hir.Op):
            return self._op(part)
        if isinstance(part, hir.For):
            self._loop(part)
        elif isinstance(part, hir.While):
            self._bound(part)
        elif isinstance(part, hir.ExprStmt):
            self._statement(part)
        inner = [self.visit(item) for item in parts(part)]
        if isinstance(part, hir.Let):
            if isinstance(part.pattern, hir.Binding) and not part.pattern.var.mutable and inner:
                self.known[part.pattern.var] = inner[0]
            return _NOTHING
        if isinstance(part, hir.Block) and part.result is not None:
            return inner[-1]
        return _full(part.type) if isinstance(part, hir.Expr) else _NOTHING

    def _constant(self, part: hir.Const) -> _Range:
        full = _full(part.type)
        if full.exact is None or isinstance(part.value, tuple):
            return full
        array = np.asarray(part.value)
        if array.dtype.kind not in "iub" or not array.size:
            return full
        low, high = (array.min(), array.max()) if array.ndim else (array, array)
        exact = Interval(int(low), int(high))
        written = self.file.text(part.span).lstrip("-( ")[:1].isdigit()
        return _Range(exact, exact if written else full.general)

    def _op(self, part: hir.Op) -> _Range:
        args = [self.visit(arg) for arg in part.args]
        operator = self.usage.operators.get((self.file.path, part.span))
        if operator is not None:
            self._judge(part, operator, args)
        if isinstance(part.type, TupleType):
            return _NOTHING
        shape = OpShape(tuple(arg.type for arg in part.args), part.type, part.attrs)
        exact = apply_rule(part.name, [arg.exact for arg in args], shape)
        if all(arg.exact is arg.general for arg in args):
            return _Range(exact, exact)
        return _Range(exact, apply_rule(part.name, [arg.general for arg in args], shape))

    # -- judgements ------------------------------------------------------------------------------

    def _note(self, span: Span, finding: _Finding | None) -> None:
        self.found[self.file.path, span] = finding

    def _without_semicolon(self, span: Span) -> Span:
        return Span(span.start, span.end - self.file.text(span).endswith(";"))

    def _judge(self, part: hir.Op, operator: str, args: list[_Range]) -> None:
        family, name = part.name.split(".")
        if family == "compare":
            self._note(part.span, self._comparison(part, args))
        elif name in ("shl", "shr"):
            self._note(part.span, self._shift(part, operator, args[1].exact))
        elif name in ("div", "rem"):
            self._note(part.span, self._division(part, operator, args[1].exact))

    def _comparison(self, part: hir.Op, args: list[_Range]) -> _Finding | None:
        left, right = args[0].general, args[1].general
        if left is None or right is None or all(isinstance(arg, hir.Const) for arg in part.args):
            return None
        verdict = _decided(part.name, left, right)
        if verdict is None:
            return None
        because = "."
        if isinstance(element_type(part.args[0].type), IntType):
            because = f": the left side is {left}, and the right side {right}."
        message = f"This comparison is always {'true' if verdict else 'false'}{because}"
        return _Finding("K0353", message, self.file, part.span)

    def _shift(self, part: hir.Op, operator: str, amount: MaybeInterval) -> _Finding | None:
        kind = element_type(part.type)
        if not isinstance(kind, (IntType, FixType)) or amount is None or amount.low < kind.width_bits:
            return None
        signed_right = operator.startswith(">>") and kind.signed
        gives = "copies of the sign alone" if signed_right else "0"
        return _Finding(
            "K0351", f"Every bit of `{kind}` is shifted out: the amount is {amount}, so this gives {gives}.",
            self.file, self._without_semicolon(part.span),
            None if operator.startswith(">>") else Fix("convert to a wider type before the shift"),
        )

    def _division(self, part: hir.Op, operator: str, divisor: MaybeInterval) -> _Finding | None:
        kind = element_type(part.type)
        if divisor != Interval(0, 0) or not isinstance(kind, IntType):
            return None
        if operator.startswith("%"):
            message = "The divisor is always 0, so this gives the dividend."
        else:
            message = f"The divisor is always 0, so this gives {-1 if kind.signed else kind.max}."
        return _Finding("K0352", message, self.file, self._without_semicolon(part.span))

    def _loop(self, part: hir.For) -> None:
        if part.count:
            ends = part.start, part.start + (part.count - 1) * part.step
            self.known[part.var] = _Range(Interval(min(ends), max(ends)), _full(part.var.type).general)
        where = self.usage.empty_ranges.get((self.file.path, part.span))
        if where is not None:
            message = "This loop never runs: its range is empty."
            fix = Fix("to count down, write `(low..high).rev()`")
            self._note(where, None if part.count else _Finding("K0350", message, self.file, where, fix))

    def _bound(self, part: hir.While) -> None:
        where = Span(part.span.start, part.cond.span.end)
        message = "This loop never runs: its bound is 0."
        self._note(where, None if part.max_count else _Finding("K0350", message, self.file, where))

    def _statement(self, part: hir.ExprStmt) -> None:
        value = part.value
        if (self.file.path, part.span) not in self.usage.statements:
            return
        if isinstance(value.type, TupleType) and not value.type.items:
            return
        if _does_something(value) or any(isinstance(item, hir.Assign) for item in walk(value)):
            return
        fix = Fix("remove it, or write `let _ = ..;` to keep it on purpose")
        operator = self.usage.operators.get((self.file.path, value.span))
        if isinstance(value, hir.Op) and operator in ("<=", "=="):
            left, right = (self.file.text(arg.span) for arg in value.args)
            fix = Fix(f"an assignment is written `{left} = {right};`")
        self._note(part.span, _Finding(
            "K0354", "This value is used by nothing, and computing it does nothing else.", self.file,
            value.span, fix,
        ))


#: Statements that do no more than compute; assignments in a function that is called stay in it.
_COMPUTING = (hir.Let, hir.Assign, hir.ExprStmt, hir.For, hir.While)


def _does_something(value: hir.Expr) -> bool:
    """Whether evaluating does more than give a value: by itself, or by the functions that it calls."""
    seen: set[hir.Function] = set()
    stack: list[hir.Expr] = [value]
    while stack:
        root = stack.pop()
        if acts(root):
            return True
        for part in walk(root):
            if isinstance(part, hir.Stmt) and not isinstance(part, _COMPUTING):
                return True
            if isinstance(part, hir.Call) and part.function not in seen:
                seen.add(part.function)
                stack.extend([part.function.body] if part.function.body is not None else [])
    return False


_NOTHING = _Range(None, None)


def _full(kind: Type) -> _Range:
    """Anything of the type; nothing for products."""
    if not isinstance(element_type(kind), (IntType, FixType)):
        return _NOTHING
    found = type_interval(kind)
    return _Range(found, found)


def _decided(name: str, left: Interval, right: Interval) -> bool | None:
    """The one value that a comparison of the ranges can have; None where it may have either."""
    if name in _FLIPPED:
        name, left, right = _FLIPPED[name], right, left
    if name in ("compare.eq", "compare.ne"):
        apart = left.meet(right).empty
        same = left == right and left.low == left.high
        return (name == "compare.eq") is same if apart or same else None
    strict = name == "compare.lt"
    if left.high + strict <= right.low:
        return True
    return False if left.low + strict > right.high else None
