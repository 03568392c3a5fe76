"""In-file tests: lowered like functions, run by the reference evaluator, compared bit for bit.

Each assertion has a hidden variable: whether it has failed, and both sides where it first did. So an
assertion may stand anywhere in a test, in loops and branches too, and a test is one region without effects.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kera_hw.frontend.sema.constants.printed import read_record
from kera_hw.frontend.sema.constants.run import RunError, run_closed
from kera_hw.frontend.sema.constants.values import bit_pattern, format_value
from kera_hw.frontend.sema.lowering.core import FailedCallee, LowerError, Lowering, Watch, nest_leaves
from kera_hw.frontend.sema.lowering.frame import Frame
from kera_hw.frontend.sema.lowering.observe import begin, finish
from kera_hw.frontend.sema.lowering.whole import new_lowering
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.observing import Site, Sites
from kera_hw.frontend.sema.tree.walk import walk
from kera_hw.graph.node import Node, Origin, Ref, Region
from kera_hw.graph.store import Store
from kera_hw.ops.spec import Array
from kera_hw.support import Diagnostic, deep_recursion
from kera_hw.types import (
    BOOL,
    FloatType,
    IntType,
    TensorType,
    TupleType,
    Type,
    element_type,
    flatten_type,
    leaf_types,
)


@dataclass(frozen=True, slots=True)
class Covered:
    """A cover point that a test's calls may reach, and whether they did."""

    site: Site
    hit: bool


@dataclass(frozen=True, slots=True)
class TestResult:
    """``diagnostic`` says why a test did not pass; its span is the assertion's.

    ``printed`` are the lines that the test and what it calls printed.
    """

    __test__ = False  # not for pytest to collect

    name: str
    passed: bool
    diagnostic: Diagnostic | None
    printed: tuple[str, ...] = ()
    covered: tuple[Covered, ...] = ()


@dataclass(frozen=True, slots=True)
class LoweredTest:
    """The region of a test: no parameters; per assertion a flag, then the leaves of the sides.

    After those what the functions it calls observe, ``sites``, then the test's own record. ``origins`` are
    the places of nodes, of this test's and of what it calls.
    """

    name: str
    region: Region
    origins: Mapping[Node, Origin]
    watches: tuple[tuple[hir.AssertEq | hir.Assert, Watch], ...]
    sites: Sites


Evaluate = Callable[[LoweredTest], Sequence[Array]]


def evaluate_test(test: LoweredTest) -> Sequence[Array]:
    """The results of the test's region by the reference evaluator."""
    return run_closed(test.region)


def run_tests(
    program: hir.CheckedProgram, selected: Callable[[str], bool] | None = None,
    evaluate: Evaluate = evaluate_test,
) -> list[TestResult]:
    """Run the program's tests in order; ``selected`` chooses by name. One result each, never an exception."""
    ctx = new_testing()
    with deep_recursion():
        return [
            run_test(ctx, test, evaluate)
            for test in program.tests if selected is None or selected(test.name)
        ]


def new_testing(store: Store | None = None) -> Lowering:
    """A lowering that also knows the assertions."""
    ctx = new_lowering(store)
    ctx.add_statements({hir.AssertEq: _lower_assert_eq, hir.Assert: _lower_assert})
    return ctx


def run_test(ctx: Lowering, test: hir.Test, evaluate: Evaluate = evaluate_test) -> TestResult:
    try:
        lowered = lower_test(ctx, test)
        values = evaluate(lowered)
    except LowerError as error:
        return TestResult(test.name, False, error.diagnostic)
    except RunError as error:
        return TestResult(test.name, False, Diagnostic(error.code, error.message, test.file, test.span))
    except FailedCallee:
        return TestResult(test.name, False, ctx.diagnostics[-1])
    checks = lowered.sites.checks
    split = len(values) - lowered.sites.leaves
    flags = [bool(flag.item()) for flag in values[split : split + len(checks)]]
    diagnostic = _first_failure(test, lowered, values) or _first_check(test, checks, flags)
    covered = [Covered(site, flag) for site, flag in zip(checks, flags) if _kind(site) == "cover"]
    printed = printed_lines(lowered.sites, values[split + len(checks):])
    return TestResult(test.name, diagnostic is None, diagnostic, tuple(printed), tuple(covered))


def _kind(site: Site) -> str:
    assert isinstance(site.part, hir.Observe)
    return site.part.kind


def _first_check(test: hir.Test, checks: Sequence[Site], flags: Sequence[bool]) -> Diagnostic | None:
    """The first assertion in a function called that failed."""
    for site, flag in zip(checks, flags):
        if flag and _kind(site) == "assert":
            what = f"the assertion `{site.label}`" if site.label else "an assertion"
            message = f'In test "{test.name}" {what} of a function called fails.'
            return Diagnostic("K0921", message, site.file, site.span)
    return None


def printed_lines(sites: Sites, record: Sequence[Array]) -> list[str]:
    """What a record holds, a line each."""
    if not sites.entries:
        return []
    labels = tuple(site.label for site in sites.prints)
    types = tuple(tuple(arg.type for arg in site.part.args) for site in sites.prints
                  if isinstance(site.part, hir.Op))
    return [line for _, line in read_record(labels, types, *(leaf[None] for leaf in record))]


def lower_test(ctx: Lowering, test: hir.Test) -> LoweredTest:
    """Raises LowerError or FailedCallee where something in the test has no lowering."""
    ctx.file, ctx.store.origin = test.file, None
    frame = Frame(ctx.store)
    watches: list[tuple[hir.AssertEq | hir.Assert, Watch]] = []
    for part in walk(test.body):
        if isinstance(part, hir.AssertEq | hir.Assert):
            watch = _watch(part)
            ctx.watches[id(part)] = watch
            watches.append((part, watch))
            initial = [ctx.zeros(kind) for kind in leaf_types(watch.var.type)]
            frame.bind(watch.var, initial)
    sites = ctx.observations.within(test.body, test.file)
    ctx.print_numbers = {id(site.part): number for number, site in enumerate(sites.prints)}
    begin(ctx, frame, sites)
    ctx.block(frame, test.body)
    results = [leaf for _, watch in watches for leaf in frame.leaves(watch.var)]
    region = frame.region([*results, *finish(ctx, frame, sites)])
    return LoweredTest(test.name, region, ctx.store.origins, tuple(watches), sites)


def _watch(stmt: hir.AssertEq | hir.Assert) -> Watch:
    sides = (stmt.left.type, stmt.right.type) if isinstance(stmt, hir.AssertEq) else ()
    return Watch(hir.Var("<assertion>", TupleType((BOOL, *sides)), True, stmt.span), sides)


# ---------------------------------------------------------------- assertions


def _lower_assert(ctx: Lowering, frame: Frame, stmt: hir.Assert) -> None:
    watch = ctx.watches[id(stmt)]
    failed = ctx.store.op("bits.not", ctx.scalar(frame, stmt.cond))
    frame.assign(watch.var, 0, [ctx.store.op("bits.or", frame.leaf(watch.var, 0), failed)])


def _lower_assert_eq(ctx: Lowering, frame: Frame, stmt: hir.AssertEq) -> None:
    watch = ctx.watches[id(stmt)]
    left, right = ctx.expr(frame, stmt.left), ctx.expr(frame, stmt.right)
    flag = frame.leaf(watch.var, 0)
    differs = ctx.store.constant(BOOL, False)
    for a, b in zip(left, right):
        differs = ctx.store.op("bits.or", differs, _leaf_differs(ctx, a, b))
    first = ctx.store.op("bits.and", differs, ctx.store.op("bits.not", flag))
    kept = [
        ctx.store.op("control.select", first, new, frame.leaf(watch.var, 1 + index))
        for index, new in enumerate([*left, *right])
    ]
    frame.assign(watch.var, 0, [ctx.store.op("bits.or", flag, differs), *kept])


def _leaf_differs(ctx: Lowering, a: Ref, b: Ref) -> Ref:
    element = element_type(a.type)
    if isinstance(element, FloatType):
        # Bits, not numbers: -0 differs from +0, and a NaN equals itself.
        raw = IntType(element.width_bits, False)
        a, b = (ctx.store.op("convert.bitcast", side, type=raw) for side in (a, b))
    differs = ctx.store.op("compare.ne", a, b)
    if isinstance(differs.type, TensorType):
        return ctx.store.op("reduce.any", differs, axis=-1)
    return differs


# ---------------------------------------------------------------- reporting


def _first_failure(test: hir.Test, lowered: LoweredTest, values: Sequence[Array]) -> Diagnostic | None:
    position = 0
    for stmt, watch in lowered.watches:
        count = len(leaf_types(watch.var.type))
        flag, sides = values[position], values[position + 1 : position + count]
        position += count
        if flag.item():
            return _failure(test, stmt, watch, list(sides))
    return None


def _failure(
    test: hir.Test, stmt: hir.AssertEq | hir.Assert, watch: Watch, sides: list[Array]
) -> Diagnostic:
    if isinstance(stmt, hir.Assert):
        what = f"the assertion `{stmt.label}`" if stmt.label else "the asserted condition"
        message = f'Test "{test.name}" failed: {what} is false.'
        return Diagnostic("K0920", message, test.file, stmt.span)
    kind = watch.side_types[0]
    half = len(sides) // 2
    left, right = sides[:half], sides[half:]
    place, difference = _first_difference(kind, left, right)
    message = f'Test "{test.name}" failed: the two sides differ{place}: {difference}.'
    notes = (
        f"left:  {format_value(kind, nest_leaves(kind, list(left)))}",
        f"right: {format_value(kind, nest_leaves(kind, list(right)))}",
    )
    return Diagnostic("K0920", message, test.file, stmt.span, notes=notes)


def _first_difference(kind: Type, left: list[Array], right: list[Array]) -> tuple[str, str]:
    """Where the sides first differ (in the order of leaves, then row-major), and how."""
    for leaf, a, b in zip(flatten_type(kind), left, right):
        bits_a, bits_b = bit_pattern(leaf.type, a), bit_pattern(leaf.type, b)
        unequal = np.argwhere(bits_a != bits_b)
        if len(unequal) == 0:
            continue
        where: tuple[Any, ...] = tuple(unequal[0].tolist())
        element = element_type(leaf.type)
        path = "".join(f".{name}" for name in leaf.path)
        index = f"[{', '.join(map(str, where))}]" if where else ""
        place = f" first at `{path}{index}`" if path or index else ""
        width = (getattr(element, "width_bits", 1) + 3) // 4
        texts = [
            f"{format_value(element, side[where])} (0x{int(bits[where]):0{width}x})"
            for side, bits in ((a, bits_a), (b, bits_b))
        ]
        return place, f"{texts[0]} against {texts[1]}"
    raise AssertionError("a failed assertion has a difference")
