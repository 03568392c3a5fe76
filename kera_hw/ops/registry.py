"""OPS: every operation by name, assembled from one table per family and what operations are made of."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kera_hw.ops import (
    bits,
    compare,
    control,
    convert,
    core,
    effect,
    fixed,
    floating,
    integer,
    memory,
    neural,
    reduce,
    tensor,
    wide,
)
from kera_hw.ops.expansions import EXPANSIONS
from kera_hw.ops.spec import EvaluateRule, OpSpec, Trait
from kera_hw.types import Type

_TABLES: Mapping[str, tuple[OpSpec, ...]] = {
    "core": core.TABLE,
    "integer": integer.TABLE,
    "fixed": fixed.TABLE,
    "floating": floating.TABLE,
    "compare": compare.TABLE,
    "convert": convert.TABLE,
    "bits": bits.TABLE,
    "tensor": tensor.TABLE,
    "reduce": reduce.TABLE,
    "control": control.TABLE,
    "memory": memory.TABLE,
    "neural": neural.TABLE,
    "effect": effect.TABLE,
}

FAMILIES: Mapping[str, tuple[OpSpec, ...]] = {
    family: tuple(replace(spec, expansion=EXPANSIONS.get(spec.name)) for spec in table)
    for family, table in _TABLES.items()
}
"""Rows by family, in the order of their tables."""

OPS: dict[str, OpSpec] = {
    spec.name: spec
    for spec in sorted((spec for table in FAMILIES.values() for spec in table), key=lambda spec: spec.name)
}
assert len(OPS) == sum(map(len, FAMILIES.values())), "an operation has two rows"
assert all(list(spec.attrs) == sorted(spec.attrs) for spec in OPS.values())
assert EXPANSIONS.keys() <= OPS.keys(), EXPANSIONS.keys() - OPS.keys()


def evaluation(opcode: str, arg_types: tuple[Type, ...], types: tuple[Type, ...]) -> EvaluateRule:
    """The reference meaning of an operation on these types: its row's, or that of wide integers."""
    spec = OPS[opcode]
    computes_wide = wide.any_wide(*arg_types, *types) and Trait.SOURCE not in spec.traits
    return wide.rule_of(opcode) if computes_wide else spec.evaluate
