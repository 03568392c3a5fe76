"""Interval rules are sound and complete: by the reference evaluator, over every operation of the registry."""
from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from kera_hw.interp.evaluator import Context
from kera_hw.ops.choosing import Chooser
from kera_hw.ops.intervals import (
    RULES,
    UNBOUNDED,
    Interval,
    MaybeInterval,
    OpShape,
    apply_rule,
    raw_interval,
    type_interval,
)
from kera_hw.ops.registry import OPS
from kera_hw.ops.sampling import sample
from kera_hw.ops.spec import Array, EvalCall, TypeRuleError
from kera_hw.types import (
    BOOL,
    BoolType,
    FixType,
    FloatType,
    IntType,
    TensorType,
    Type,
    element_type,
    numpy_dtype,
    shape_of,
)

I3, U3, X3, Y3 = IntType(3, True), IntType(3, False), FixType(3, 1, True), FixType(3, 2, False)
NARROW: list[Type] = [U3, I3, X3, Y3, BOOL, IntType(1, True)]
TARGETS = [*NARROW, IntType(7, True), IntType(2, False), FixType(8, 4, True), FixType(2, 0, False)]
ATTRS: dict[str, list[dict[str, Any]]] = {
    "convert.cast": [{"type": kind} for kind in TARGETS],
    "convert.bitcast": [{"type": kind} for kind in NARROW],
    "convert.round_to": [
        {"mode": mode, "overflow": overflow, "type": kind}
        for mode in ("floor", "trunc", "half_up", "half_even") for overflow in ("wrap", "saturate")
        for kind in TARGETS if isinstance(kind, FixType)
    ],
    "bits.extract": [{"high": high, "low": low} for low in range(3) for high in range(low, 3)],
    "bits.test": [{"index": index} for index in range(3)],
}
OPERANDS = {1: NARROW, 2: NARROW, 3: NARROW}
SCALAR = sorted(name for name in RULES if name.split(".")[0] in ("integer", "fixed", "bits", "compare",
                                                                 "convert", "control"))


def _evaluate(name: str, args: Sequence[Array], shape: OpShape, batch: int) -> Array:
    call = EvalCall(Context(batch), tuple(args), shape.arg_types, (shape.result,), shape.attrs)
    return np.asarray(OPS[name].evaluate(call)[0])


def _shapes(name: str) -> Iterator[OpShape]:
    """All ways to apply an operation to small types: every combination its typing rule takes."""
    for count, attrs in product(OPERANDS, ATTRS.get(name, [{}])):
        for kinds in product(OPERANDS[count], repeat=count):
            if name == "bits.cat" and count == 3 and kinds[0] != kinds[1]:
                continue  # enough mixtures
            try:
                (result,) = OPS[name].infer(kinds, attrs)
            except TypeRuleError:
                continue
            yield OpShape(kinds, result, attrs)


def _values(kind: Type) -> Array:
    full = raw_interval(kind)
    return np.arange(full.low, full.high + 1).astype(numpy_dtype(kind))


def _intervals(kind: Type, coarse: bool) -> Iterator[tuple[Interval, slice]]:
    """Every interval of a type, and where its values stand; ``coarse``: those from or to an edge."""
    low, high = raw_interval(kind)
    for a, b in product(range(low, high + 1), repeat=2):
        if a <= b and (not coarse or a == b or low in (a, a + 1) or b == high):
            yield Interval(a, b), slice(a - low, b - low + 1)


@pytest.mark.parametrize("name", SCALAR)
def test_sound_on_every_interval_of_small_types(name: str) -> None:
    tried = 0
    for shape in _shapes(name):
        axes = [_values(kind) for kind in shape.arg_types]
        grid = [axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")]
        found = _evaluate(name, grid, shape, len(grid[0])).reshape([len(axis) for axis in axes])
        for chosen in product(*(_intervals(kind, len(axes) > 2) for kind in shape.arg_types)):
            part = found[tuple(where for _, where in chosen)]
            said = apply_rule(name, [interval for interval, _ in chosen], shape)
            assert said is not None
            exact = Interval(int(part.min()), int(part.max()))
            assert exact.within(said), (name, shape, chosen)
            tried += 1
    assert tried, f"{name} takes no small types"


def _random_interval(kind: Type, rng: random.Random) -> MaybeInterval:
    """Wide or narrow, at the edges and around zero more often than chance would have it."""
    full = type_interval(kind)
    if full is None:
        return None
    near = [full.low, full.high, max(full.low, -1), min(full.high, 2), rng.randint(full.low, full.high)]
    a = rng.choice(near)
    few = rng.randrange(9)
    b = rng.choice([a, min(full.high, a + few), max(full.low, a - few), rng.choice(near)])
    return Interval(min(a, b), max(a, b))


def _random_values(kind: Type, interval: Interval, batch: int, rng: random.Random) -> Array:
    count = batch * int(np.prod(shape_of(kind), dtype=int))
    numbers = [rng.choice([interval.low, interval.high, rng.randint(*interval)]) for _ in range(count)]
    return np.array(numbers, object).astype(numpy_dtype(kind)).reshape(batch, *shape_of(kind))


def _holds_regions(attrs: Mapping[str, Any]) -> bool:
    return any(key in attrs for key in ("body", "region", "regions"))


def _samples(name: str, count: int) -> Iterator[tuple[OpShape, random.Random]]:
    """Random applications of an operation that give one result of integers, on operands of integers."""
    rng = random.Random(name)
    for _ in range(count):
        made = sample(name, Chooser(rng.randrange, floats=False))
        if _holds_regions(made.attrs):
            return
        results = OPS[name].infer(made.types, made.attrs)
        if len(results) == 1 and all(type_interval(kind) is not None for kind in (*made.types, *results)):
            yield OpShape(made.types, results[0], made.attrs), rng


@pytest.mark.parametrize("name", sorted(RULES))
def test_sound_on_random_types_tensors_and_values(name: str) -> None:
    tried = 0
    for shape, rng in _samples(name, 120):
        args = [_random_interval(kind, rng) for kind in shape.arg_types]
        known = [arg for arg in args if arg is not None]
        values = [_random_values(*pair, 8, rng) for pair in zip(shape.arg_types, known, strict=True)]
        found = _evaluate(name, values, shape, 8)
        said = apply_rule(name, args, shape)
        assert said is not None and said.within(raw_interval(element_type(shape.result)))
        if found.size:
            assert Interval(int(found.min()), int(found.max())).within(said), (name, shape, args)
        tried += 1
    assert tried >= 20, f"{name} was tried {tried} times"


def _gives_integers(name: str) -> bool:
    """Whether the operation has a result with an interval for some operands; those with regions may."""
    rng = random.Random(name)
    for _ in range(60):
        made = sample(name, Chooser(rng.randrange))
        if _holds_regions(made.attrs):
            return True
        if any(type_interval(kind) is not None for kind in OPS[name].infer(made.types, made.attrs)):
            return True
    return False


def test_every_operation_with_integer_results_has_a_rule_or_a_reason_for_none() -> None:
    assert not set(RULES) & set(UNBOUNDED)
    assert {name for name in OPS if _gives_integers(name)} == set(RULES) | set(UNBOUNDED)


def _class(kind: Type) -> str:
    kind = element_type(kind)
    if isinstance(kind, BoolType):
        return "bool"
    assert isinstance(kind, (IntType, FixType))
    return f"{'signed' if kind.signed else 'unsigned'} {type(kind).__name__}"


@pytest.mark.parametrize("name", sorted(set(RULES) - {"core.constant"}))
def test_every_rule_says_something_on_every_class_of_types_it_takes(name: str) -> None:
    """A rule that gives the whole type for some class of operands is none: it would have to be listed."""
    seen: set[str] = set()
    said: set[str] = set()
    for shape, rng in _samples(name, 400):
        full = raw_interval(element_type(shape.result))
        subject = _class(shape.arg_types[0] if shape.arg_types else shape.result)
        seen.add(subject)
        for _ in range(6):
            args = [_random_interval(kind, rng) for kind in shape.arg_types]
            if apply_rule(name, args, shape) != full:
                said.add(subject)
    assert seen and said == seen


def test_floats_and_empty_operands_say_nothing() -> None:
    f32 = FloatType("f32", 8, 23)
    assert apply_rule("compare.lt", [None, None], OpShape((f32, f32), BOOL, {})) == Interval(0, 1)
    chosen = OpShape((BOOL, f32, f32), f32, {})
    assert apply_rule("control.select", [Interval(0, 1), None, None], chosen) is None
    both = OpShape((U3, U3), U3, {})
    assert apply_rule("bits.and", [Interval(3, 2), Interval(0, 1)], both) == Interval(0, 7)


def test_intervals_are_as_narrow_as_they_can_be() -> None:
    """One case a rule that would be sound, and useless, if it said less."""
    u8, u32 = IntType(8, False), IntType(32, False)
    low, high = Interval(1, 3), Interval(4, 9)
    cases: list[tuple[str, list[Interval], OpShape, Interval]] = [
        ("bits.ctz", [Interval(1, 255)], OpShape((u8,), u32, {}), Interval(0, 7)),
        ("bits.clz", [Interval(4, 31)], OpShape((u8,), u32, {}), Interval(3, 5)),
        ("bits.popcount", [Interval(1, 31)], OpShape((u8,), u32, {}), Interval(1, 5)),
        ("bits.test", [Interval(128, 200)], OpShape((u8,), BOOL, {"index": 7}), Interval(1, 1)),
        ("bits.extract", [Interval(131, 133)], OpShape((u8,), U3, {"high": 2, "low": 0}), Interval(3, 5)),
        ("bits.cat", [Interval(-1, -1), low], OpShape((I3, U3), IntType(6, False), {}), Interval(57, 59)),
        ("compare.lt", [low, high], OpShape((u8, u8), BOOL, {}), Interval(1, 1)),
        ("compare.ne", [low, high], OpShape((u8, u8), BOOL, {}), Interval(1, 1)),
        ("compare.gt", [low, Interval(3, 9)], OpShape((u8, u8), BOOL, {}), Interval(0, 0)),
        ("convert.cast", [Interval(256, 260)], OpShape((u32,), u8, {"type": u8}), Interval(0, 4)),
        ("convert.bitcast", [Interval(254, 255)], OpShape((u8,), IntType(8, True), {}), Interval(-2, -1)),
        ("fixed.sign", [Interval(-3, 0)], OpShape((X3,), X3, {}), Interval(-2, 0)),
    ]
    for name, args, shape, exact in cases:
        assert apply_rule(name, args, shape) == exact, name


@pytest.mark.parametrize(("name", "args", "attrs", "exact"), [
    ("reduce.dot", [Interval(-2, 3), Interval(0, 5)], {"mul": ""}, Interval(-30, 45)),
    ("reduce.prod", [Interval(-2, 1)], {"axis": -1}, Interval(-8, 4)),
    ("reduce.mean", [Interval(-7, 9)], {"axis": 0}, Interval(-7, 9)),
    ("reduce.argmax", [Interval(-7, 9)], {"axis": 0}, Interval(0, 2)),
])
def test_reductions_count_their_elements(
    name: str, args: list[Interval], attrs: dict[str, Any], exact: Interval
) -> None:
    kind = TensorType(IntType(16, True), (3,))
    assert apply_rule(name, args, OpShape((kind,) * len(args), kind.element, attrs)) == exact
