"""What operations mean on integers wider than a word, which only circuits' flat regions hold.

Rows of the registry evaluate arrays of machine words. Wider integers are Python's, so here each operation is
once more a function of one item; a test holds it against the registry's on words of every width. Operations
that are not here have no meaning beyond a word.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kera_hw.ops.spec import Array, Attrs, EvalCall, EvaluateRule
from kera_hw.types import BoolType, IntType, Type, bit_width, is_wide, numpy_dtype

Item = Callable[[Sequence[int], Sequence[Type], Attrs], int]
"""Operands, their types and the attributes, to the result before it wraps."""


def _bits(value: int, kind: Type) -> int:
    """An item's bits as an unsigned number."""
    return int(value) & ((1 << bit_width(kind)) - 1)


def _cat(args: Sequence[int], kinds: Sequence[Type], _: Attrs) -> int:
    joined = 0
    for value, kind in zip(args, kinds, strict=True):
        joined = joined << bit_width(kind) | _bits(value, kind)
    return joined


def _extract(args: Sequence[int], _: Sequence[Type], attrs: Attrs) -> int:
    return args[0] >> attrs["low"]


def _shl(args: Sequence[int], kinds: Sequence[Type], _: Attrs) -> int:
    return args[0] << min(args[1], bit_width(kinds[0]))


def _shr(args: Sequence[int], kinds: Sequence[Type], _: Attrs) -> int:
    return args[0] >> min(args[1], bit_width(kinds[0]))


def _clz(args: Sequence[int], kinds: Sequence[Type], _: Attrs) -> int:
    return bit_width(kinds[0]) - _bits(args[0], kinds[0]).bit_length()


ITEMS: dict[str, Item] = {
    "integer.add": lambda args, _, __: args[0] + args[1],
    "integer.sub": lambda args, _, __: args[0] - args[1],
    "integer.mul": lambda args, _, __: args[0] * args[1],
    "bits.and": lambda args, _, __: args[0] & args[1],
    "bits.or": lambda args, _, __: args[0] | args[1],
    "bits.xor": lambda args, _, __: args[0] ^ args[1],
    "bits.not": lambda args, _, __: ~args[0],
    "bits.shl": _shl,
    "bits.shr": _shr,
    "bits.clz": _clz,
    "bits.cat": _cat,
    "bits.extract": _extract,
    "bits.test": lambda args, _, attrs: args[0] >> attrs["index"] & 1,
    "compare.eq": lambda args, _, __: args[0] == args[1],
    "compare.lt": lambda args, _, __: args[0] < args[1],
    "control.select": lambda args, _, __: args[1] if args[0] else args[2],
    "convert.cast": lambda args, _, __: args[0],
    "convert.bitcast": lambda args, kinds, _: _bits(args[0], kinds[0]),
}


def rule_of(opcode: str) -> EvaluateRule:
    """The evaluation of an operation with a wide operand or result. KeyError where it has no such meaning."""
    item = ITEMS[opcode]

    def evaluate(call: EvalCall) -> Sequence[Array]:
        kind = call.types[0]
        columns = [column.tolist() for column in np.broadcast_arrays(*call.args)]
        found = [item(row, call.arg_types, call.attrs) for row in zip(*columns, strict=True)]
        if isinstance(kind, IntType):
            found = [kind.wrap(value) for value in found]
        else:
            assert isinstance(kind, BoolType), f"{opcode} gives {kind}"
        result = np.empty(len(found), numpy_dtype(kind))
        result[:] = found
        return (result,)

    return evaluate


def any_wide(*kinds: Type) -> bool:
    return any(map(is_wide, kinds))
