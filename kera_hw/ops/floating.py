"""Floating point: typing rules of every operation; evaluation is refused until soft floats exist."""
from __future__ import annotations

from kera_hw.ops.rules import FLOAT, first_float, fixed_result_rule, refuse, same_type_rule
from kera_hw.ops.spec import OpSpec, Trait
from kera_hw.types import BOOL

C = Trait.COMMUTATIVE


def _row(verb: str, count: int, doc: str, *traits: Trait) -> OpSpec:
    name = f"floating.{verb}"
    return OpSpec(
        name, doc, same_type_rule(name, count, FLOAT), refuse(name),
        frozenset({Trait.ELEMENTWISE, *traits}), unsupported=first_float,
    )


def _test(verb: str, doc: str) -> OpSpec:
    name = f"floating.{verb}"
    return OpSpec(
        name, doc, fixed_result_rule(name, 1, FLOAT, BOOL), refuse(name),
        frozenset({Trait.ELEMENTWISE}), unsupported=first_float,
    )


TABLE: tuple[OpSpec, ...] = (
    _row("add", 2, "Sum, rounded once to nearest even.", C),
    _row("sub", 2, "Difference, rounded once to nearest even."),
    _row("mul", 2, "Product, rounded once to nearest even.", C),
    _row("div", 2, "Quotient, rounded once to nearest even."),
    _row("neg", 1, "The other sign; NaN stays the canonical NaN.", Trait.INVOLUTION),
    _row("abs", 1, "Sign cleared; NaN stays the canonical NaN."),
    _row("sign", 1, "-1, a zero kept, 1, or NaN."),
    _row("min", 2, "IEEE 754-2019 minimum: NaN if either is, and -0 is below +0.", C, Trait.IDEMPOTENT),
    _row("max", 2, "IEEE 754-2019 maximum: NaN if either is, and -0 is below +0.", C, Trait.IDEMPOTENT),
    _row("fma", 3, "a * b + c with one rounding."),
    _row("sqrt", 1, "Correctly rounded square root."),
    _row("rsqrt", 1, "The real 1/sqrt(x), rounded once."),
    _row("recip", 1, "1/x, rounded once."),
    _row("floor", 1, "The greatest integer not above x."),
    _row("ceil", 1, "The least integer not below x."),
    _row("round", 1, "The nearest integer, ties to even."),
    _row("trunc", 1, "The integer part of x."),
    _row("exp", 1, "e to the power x, correctly rounded below f64."),
    _row("exp2", 1, "2 to the power x, correctly rounded below f64."),
    _row("log", 1, "Natural logarithm, correctly rounded below f64."),
    _row("log2", 1, "Binary logarithm, correctly rounded below f64."),
    _row("sin", 1, "Sine of x in radians, correctly rounded below f64."),
    _row("cos", 1, "Cosine of x in radians, correctly rounded below f64."),
    _row("tanh", 1, "Hyperbolic tangent, correctly rounded below f64."),
    _row("sigmoid", 1, "1 / (1 + exp(-x)), correctly rounded below f64."),
    _row("erf", 1, "The error function, correctly rounded below f64."),
    _row("relu", 1, "The greater of x and +0."),
    _row("gelu", 1, "x times the normal distribution function of x, correctly rounded below f64."),
    _row("silu", 1, "x times sigmoid(x), correctly rounded below f64."),
    _row("copysign", 2, "The first operand's magnitude with the second's sign; NaN stays NaN."),
    _test("is_nan", "Whether the value is NaN."),
    _test("is_finite", "Whether the value is neither infinite nor NaN."),
)
