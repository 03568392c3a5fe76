"""Intervals of integers, and what each operation does to them: for index proofs, narrowing and circuits.

A rule maps the operands' intervals to one that holds all exact results, or None for "anything of the type";
results that may wrap are anything of the type. Fixed-point values are their raw integers, bools 0 and 1; a
tensor has one interval for all its elements.
"""
from kera_hw.ops.intervals.interval import (
    TRUTH,
    Interval,
    MaybeInterval,
    OpShape,
    Rule,
    fitted,
    raw_interval,
    type_interval,
)
from kera_hw.ops.intervals.table import RULES, UNBOUNDED, apply_rule

__all__ = [
    "RULES", "TRUTH", "UNBOUNDED", "Interval", "MaybeInterval", "OpShape", "Rule", "apply_rule", "fitted",
    "raw_interval", "type_interval",
]
