"""Loops that sum products of bytes: four at a time where a machine has an instruction for that.

Sums of integers modulo 2^32 are the same in any order, so that nothing but the count of instructions changes.
Both factors have to lie one byte after another, and from where words begin: what comes before the first word
and after the last goes by one product at a time.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kera_hw.loops.program import Buffer, For, Index, Load, Op, Statement, Var
from kera_hw.schedule.software.vector_loops import ITEM, flat_terms
from kera_hw.types import IntType, Type

WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class ByteProducts:
    """The two loads of a loop that sums their products in its one carried scalar.

    ``before``: rounds until both factors are at the beginning of a word; then ``words`` of four rounds.
    """

    factors: tuple[Load, Load]
    before: int
    words: int


def byte_products(loop: For, buffers: Mapping[str, Buffer]) -> ByteProducts | None:
    """What a loop is, if it is nothing else."""
    if len(loop.carried) != 1 or len(loop.body.body) != 6:
        return None
    (one,) = loop.carried
    made: dict[Var, Statement] = {}
    for statement in loop.body.body:
        match statement:
            case Op(results=(result,)) | Load(result=result):
                made[result] = statement
            case _:
                return None
    total = _op(made, loop.body.yields[0], "integer.add", one.inner.type)
    if total is None or one.inner not in total.operands or not _is_word(one.inner.type):
        return None
    other = next((value for value in total.operands if value != one.inner), None)
    product = _op(made, other, "integer.mul", one.inner.type)
    if product is None:
        return None
    factors = [_widened_byte(made, operand) for operand in product.operands]
    first, second = factors
    if first is None or second is None:
        return None
    starts = [_start(buffers[load.buffer], load.index, loop.var) for load in (first, second)]
    if starts[0] is None or starts[0] != starts[1]:
        return None
    before = -starts[0] % WORD_BYTES
    words = max(0, loop.count - before) // WORD_BYTES
    return ByteProducts((first, second), before, words) if words else None


def _is_word(kind: Type) -> bool:
    return isinstance(kind, IntType) and kind.width_bits == 32


def _op(made: Mapping[Var, Statement], value: object, opcode: str, kind: Type) -> Op | None:
    found = made.get(value) if isinstance(value, Var) else None
    if not isinstance(found, Op) or found.opcode != opcode or found.results[0].type != kind:
        return None
    return found


def _widened_byte(made: Mapping[Var, Statement], value: object) -> Load | None:
    cast = made.get(value) if isinstance(value, Var) else None
    if not isinstance(cast, Op) or cast.opcode != "convert.cast":
        return None
    load = made.get(cast.operands[0]) if isinstance(cast.operands[0], Var) else None
    if not isinstance(load, Load) or not isinstance(load.result.type, IntType):
        return None
    return load if load.result.type.width_bits == 8 else None


def _start(buffer: Buffer, index: Index, var: Var) -> int | None:
    """Where in a word the first round begins, if that is the same for all that reach it."""
    constant, terms = flat_terms(buffer, index)
    terms.pop(ITEM, None)
    if terms.pop(var, 0) != 1 or buffer.size % WORD_BYTES or any(c % WORD_BYTES for c in terms.values()):
        return None
    return constant % WORD_BYTES
