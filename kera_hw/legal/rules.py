"""The rule of each operation that is written out, by family."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from kera_hw.legal import bits, conversions, elementary, floats, integers
from kera_hw.legal.values import Call, Value
from kera_hw.legal.writer import Rule, Writer
from kera_hw.types import FloatType


def compare(to: Writer, call: Call) -> Sequence[Value]:
    family = floats if isinstance(call.args[0].type, FloatType) else integers
    return family.compare(to, call)


RULES: Mapping[str, Rule] = {
    **integers.RULES, **bits.RULES, **floats.RULES, **conversions.RULES,
    **elementary.RULES,
    **{f"compare.{verb}": compare for verb in ("eq", "ne", "lt", "le", "gt", "ge")},
}
"""By operation. What has none is written out by its expansion."""
