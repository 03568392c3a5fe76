"""Operations that unrolling a program is sure to make, counted before any of them is made."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from kera_hw.loops.program import Block, For, Index, Load, LoopProgram, Op, Var

_CHANGING_TYPE = frozenset({"convert.cast", "convert.bitcast"})


def certain_operations(program: LoopProgram) -> int:
    """At least so many nodes: operations on elements of two parameters, a different pair in every round.

    No law makes anything simpler of those, and no two of them are the same.
    """
    given = {buffer.name for buffer in program.buffers if buffer.kind == "param"}
    return sum(_counted(program.body, {}, given))


def _counted(block: Block, around: Mapping[str, int], given: set[str]) -> Iterator[int]:
    """What each operation directly in a nest of loops comes to; branches are passed over."""
    loads: dict[Var, Load] = {}
    for statement in block.body:
        match statement:
            case Load(result=result, buffer=buffer) if buffer in given:
                loads[result] = statement
            case Op(opcode=opcode, operands=(Var() as one,), results=(result,)) if opcode in _CHANGING_TYPE:
                if one in loads:
                    loads[result] = loads[one]
            case Op(operands=(Var() as one, Var() as two)) if one in loads and two in loads:
                a, b = loads[one], loads[two]
                told = _told(a.index) | _told(b.index)
                if a.buffer != b.buffer and {name for name, count in around.items() if count > 1} <= told:
                    yield prod(around.values())
            case For(var=var, count=count, body=body):
                yield from _counted(body, {**around, var.name: count}, given)
            case _:
                pass


def _told(index: Index) -> set[str]:
    """Variables of which an index tells the value: alone along an axis."""
    return {part.terms[0][0].name for part in index if len(part.terms) == 1}
