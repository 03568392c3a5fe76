"""The interval rule of every operation, and the operations of whose results nothing is said."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from kera_hw.ops.intervals import aggregate, scalar
from kera_hw.ops.intervals.interval import MaybeInterval, OpShape, Rule, fitted, type_interval

_ARITHMETIC: dict[str, Rule] = {
    "add": scalar.add,
    "sub": scalar.sub,
    "mul": scalar.mul,
    "min": scalar.corners(min),
    "max": scalar.corners(max),
    "abs": scalar.absolute,
    "neg": scalar.neg,
    "sign": scalar.sign,
    "saturating_add": scalar.saturating(lambda a, b: a + b),
    "saturating_sub": scalar.saturating(lambda a, b: a - b),
    "saturating_mul": scalar.saturating(lambda a, b: a * b),
}

RULES: Mapping[str, Rule] = {
    "core.constant": aggregate.constant,
    **{f"{family}.{verb}": rule for family in ("integer", "fixed") for verb, rule in _ARITHMETIC.items()},
    "integer.div": scalar.div,
    "integer.rem": scalar.rem,
    "integer.mul_wide": scalar.mul,
    "bits.and": scalar.bit_and,
    "bits.or": scalar.bit_or,
    "bits.xor": scalar.bit_xor,
    "bits.not": scalar.bit_not,
    "bits.shl": scalar.shl,
    "bits.shr": scalar.shr,
    "bits.rotl": scalar.rotate,
    "bits.rotr": scalar.rotate,
    "bits.extract": scalar.extract,
    "bits.test": scalar.test_bit,
    "bits.cat": scalar.cat,
    "bits.clmul": scalar.clmul,
    "bits.popcount": scalar.popcount,
    "bits.clz": scalar.clz,
    "bits.ctz": scalar.ctz,
    "compare.lt": scalar.less,
    "compare.le": scalar.less_or_equal,
    "compare.gt": scalar.swapped(scalar.less),
    "compare.ge": scalar.swapped(scalar.less_or_equal),
    "compare.eq": scalar.equal,
    "compare.ne": scalar.not_equal,
    "convert.cast": scalar.cast,
    "convert.bitcast": scalar.bitcast,
    "convert.round_to": scalar.round_to,
    "control.select": scalar.select,
    "tensor.iota": scalar.iota,
    "tensor.index": aggregate.element,
    "tensor.slice": aggregate.keep,
    "tensor.reshape": aggregate.keep,
    "tensor.permute": aggregate.keep,
    "tensor.broadcast": aggregate.keep,
    "tensor.reverse": aggregate.keep,
    "tensor.gather": aggregate.element,
    "tensor.concat": aggregate.hull,
    "tensor.stack": aggregate.hull,
    "tensor.pad": aggregate.hull,
    "tensor.shift_in": aggregate.hull,
    "tensor.update": aggregate.replace,
    "tensor.update_slice": aggregate.replace,
    "memory.transfer": aggregate.keep,
    "effect.assert": aggregate.keep,
    "effect.cover": aggregate.keep,
    "reduce.min": aggregate.keep,
    "reduce.max": aggregate.keep,
    "reduce.all": aggregate.every,
    "reduce.any": aggregate.some,
    "reduce.sum": aggregate.total,
    "reduce.prod": aggregate.product,
    "reduce.mean": aggregate.mean,
    "reduce.argmin": aggregate.position,
    "reduce.argmax": aggregate.position,
    "reduce.dot": aggregate.dot,
    "reduce.matmul": aggregate.matmul,
    "reduce.conv2d": aggregate.conv2d,
    "reduce.max_pool2d": aggregate.keep,
    "reduce.avg_pool2d": aggregate.average,
}

UNBOUNDED: Mapping[str, str] = {
    "core.param": "any value may be given",
    "integer.add_carry": "it has two results",
    "bits.reverse_bits": "the lowest bits become the highest",
    "bits.reverse_bytes": "the lowest bits become the highest",
    "floating.is_nan": "floats have no intervals",
    "floating.is_finite": "floats have no intervals",
    **{f"control.{verb}": "its regions say" for verb in ("branch", "call", "loop", "map", "scan", "while")},
    "effect.print": "it has three results",
}
"""Operations with integer results of which nothing is known, and why."""


def apply_rule(name: str, args: Sequence[MaybeInterval], shape: OpShape) -> MaybeInterval:
    """The interval of a one-result operation; its type's range where no rule is known."""
    rule = RULES.get(name)
    known = [arg for arg in args if arg is not None]
    if rule is None or len(known) != len(args) or any(arg.empty for arg in known):
        return type_interval(shape.result)
    return fitted(rule(known, shape), shape.result)
