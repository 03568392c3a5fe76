"""Observations: what an export shows of a run beside its results. They change no result.

An observation is data. A function that asserts, covers or prints gives, after its results, whether each
assertion failed, whether each point was reached, and the record of what it printed; branches, loops and calls
hand these on as they do any value. The operations here stand around them at the very end of an export and say
what they are. The record is the token of the effect `io`: every print takes the record so far and gives the
next one, which orders them.
"""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.numerics.arrays import Array
from kera_hw.ops.rules import Types, check_count, fail, title
from kera_hw.ops.spec import Attrs, EvalCall, InferRule, OpSpec, Trait
from kera_hw.types import U32, BoolType, IntType, TensorType


def _flag_rule(op: str) -> InferRule:
    def infer(types: Types, attrs: Attrs) -> Types:
        check_count(op, types, 1)
        if not isinstance(types[0], BoolType):
            fail(f"{title(op)} takes a bool, but got {types[0]}.")
        return types

    return infer


def _infer_print(types: Types, attrs: Attrs) -> Types:
    op = "effect.print"
    check_count(op, types, 3)
    count, sites, words = types
    shaped = (
        count == U32
        and isinstance(sites, TensorType) and sites.element == IntType(16, False) and len(sites.shape) == 1
        and isinstance(words, TensorType) and isinstance(words.element, IntType)
        and not words.element.signed and len(words.shape) == 2 and words.shape[0] == sites.shape[0]
    )
    if not shaped:
        fail(f"{title(op)} takes a count, the numbers of prints and their words, but got {types}.")
    if len(attrs["labels"]) != len(attrs["types"]):
        fail(f"{title(op)} has as many labels as lists of types.")
    return types


def _same(call: EvalCall) -> Sequence[Array]:
    return call.args


_OBSERVES = frozenset({Trait.OBSERVES})

TABLE: tuple[OpSpec, ...] = (
    OpSpec(
        "effect.assert", "Whether the export's assertion number `site` failed.",
        _flag_rule("effect.assert"), _same, _OBSERVES, attrs=("label", "site"),
    ),
    OpSpec(
        "effect.cover", "Whether the export reached its point number `site`.",
        _flag_rule("effect.cover"), _same, _OBSERVES, attrs=("label", "site"),
    ),
    OpSpec(
        "effect.print",
        "What the export printed: how many times, then for each the number of its label in `labels` and its "
        "values' bits, an element a word, as `types` says.",
        _infer_print, _same, _OBSERVES, attrs=("labels", "types"), effect="io",
    ),
)
