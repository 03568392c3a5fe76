"""Floating point, element by element: correctly rounded arithmetic and elementary functions."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from kera_hw.numerics import elementary, floats
from kera_hw.numerics.arrays import Array
from kera_hw.ops.rules import (
    FLOAT,
    fixed_result_rule,
    float_kind,
    same_type_rule,
    spread,
)
from kera_hw.ops.spec import EvalCall, OpSpec, Trait
from kera_hw.types import BOOL

C = Trait.COMMUTATIVE
Function = Callable[..., Array]  # operand arrays, then the format


def _evaluate(function: Function) -> Callable[[EvalCall], Sequence[Array]]:
    def evaluate(call: EvalCall) -> Sequence[Array]:
        return (function(*spread(call.args), float_kind(call.arg_types[0])),)

    return evaluate


def _row(verb: str, count: int, doc: str, function: Function, *traits: Trait) -> OpSpec:
    name = f"floating.{verb}"
    return OpSpec(
        name, doc, same_type_rule(name, count, FLOAT), _evaluate(function),
        frozenset({Trait.ELEMENTWISE, *traits}),
    )


def _test(verb: str, doc: str, function: Function) -> OpSpec:
    name = f"floating.{verb}"
    return OpSpec(
        name, doc, fixed_result_rule(name, 1, FLOAT, BOOL), _evaluate(function),
        frozenset({Trait.ELEMENTWISE}),
    )


def _elementary(verb: str, doc: str) -> OpSpec:
    name = f"floating.{verb}"

    def evaluate(call: EvalCall) -> Sequence[Array]:
        return (elementary.evaluate(verb, call.args[0], float_kind(call.arg_types[0])),)

    doc = f"{doc}: correctly rounded below f64; on f64 within 1 ulp, by a fixed program of +, -, * and /."
    return OpSpec(
        name, doc, same_type_rule(name, 1, FLOAT), evaluate, frozenset({Trait.ELEMENTWISE})
    )


TABLE: tuple[OpSpec, ...] = (
    _row("add", 2, "Sum, rounded once to nearest even.", floats.add, C),
    _row("sub", 2, "Difference, rounded once to nearest even.", floats.sub),
    _row("mul", 2, "Product, rounded once to nearest even.", floats.mul, C),
    _row("div", 2, "Quotient, rounded once to nearest even.", floats.div),
    _row("neg", 1, "The other sign; NaN stays the canonical NaN.", floats.neg, Trait.INVOLUTION),
    _row("abs", 1, "Sign cleared; NaN stays the canonical NaN.", floats.absolute),
    _row("sign", 1, "-1, a zero kept, 1, or NaN.", floats.sign),
    _row("min", 2, "IEEE 754-2019 minimum: NaN if either is, and -0 is below +0.", floats.minimum,
         C, Trait.ASSOCIATIVE, Trait.IDEMPOTENT),
    _row("max", 2, "IEEE 754-2019 maximum: NaN if either is, and -0 is below +0.", floats.maximum,
         C, Trait.ASSOCIATIVE, Trait.IDEMPOTENT),
    _row("fma", 3, "a * b + c with one rounding.", floats.fma),
    _row("sqrt", 1, "Correctly rounded square root; -0 stays.", floats.sqrt),
    _row("rsqrt", 1, "The real 1/sqrt(x), rounded once; ±0 gives ±infinity.", floats.rsqrt),
    _row("recip", 1, "1/x, rounded once.", floats.recip),
    _row("floor", 1, "The greatest integer not above x.", floats.floor),
    _row("ceil", 1, "The least integer not below x.", floats.ceil),
    _row("round", 1, "The nearest integer, ties to even; a zero has the sign of x.", floats.round_even),
    _row("trunc", 1, "The integer part of x.", floats.trunc),
    _elementary("exp", "e to the power x"),
    _elementary("exp2", "2 to the power x"),
    _elementary("log", "Natural logarithm"),
    _elementary("log2", "Binary logarithm"),
    _elementary("sin", "Sine of x in radians"),
    _elementary("cos", "Cosine of x in radians"),
    _elementary("tanh", "Hyperbolic tangent"),
    _elementary("sigmoid", "1 / (1 + exp(-x))"),
    _elementary("erf", "The error function"),
    _row("relu", 1, "The greater of x and +0.", floats.relu),
    _elementary("gelu", "x times the normal distribution function of x"),
    _elementary("silu", "x times sigmoid(x)"),
    _row("copysign", 2, "The first operand's magnitude with the second's sign; NaN stays NaN.",
         floats.copysign),
    _test("is_nan", "Whether the value is NaN.", floats.is_nan),
    _test("is_finite", "Whether the value is neither infinite nor NaN.", floats.is_finite),
)
