"""What a loop program costs to run, on no machine in particular: rounds, operations, bytes that are moved.

Counts are of one item, with loops at all their rounds and branches on both sides. An operation that machines
take many cycles for counts as many simple ones; a byte moved to or from a buffer counts as one.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from kera_hw.loops.program import Alloc, Block, For, If, Load, LoopProgram, Op, Store, While
from kera_hw.types import Type, numpy_dtype

_ITERATED = 8
_FUNCTION = 32
WEIGHTS: dict[str, int] = {
    **dict.fromkeys(
        ("integer.div", "integer.rem", "floating.div", "floating.recip", "floating.sqrt", "floating.rsqrt"),
        _ITERATED,
    ),
    **{
        f"floating.{name}": _FUNCTION for name in (
            "cos", "erf", "exp", "exp2", "gelu", "log", "log2", "sigmoid", "silu", "sin", "tanh"
        )
    },
}
"""Operations that take many simple ones; all others take one."""


@dataclass(frozen=True, slots=True)
class Cost:
    """``loops``, ``buffers`` and ``held_bytes`` (of temporaries) as written; the rest as run."""

    loops: int = 0
    buffers: int = 0
    held_bytes: int = 0
    rounds: int = 0
    operations: int = 0
    moved_bytes: int = 0

    @property
    def work(self) -> int:
        return self.rounds + self.operations + self.moved_bytes

    @property
    def rank(self) -> tuple[int, int]:
        """What a planner makes less of: work, and for equal work what is held."""
        return self.work, self.held_bytes

    def plus(self, other: Cost) -> Cost:
        return Cost(
            self.loops + other.loops, self.buffers + other.buffers, self.held_bytes + other.held_bytes,
            self.rounds + other.rounds, self.operations + other.operations,
            self.moved_bytes + other.moved_bytes,
        )

    def minus(self, other: Cost) -> Cost:
        return Cost(
            self.loops - other.loops, self.buffers - other.buffers, self.held_bytes - other.held_bytes,
            self.rounds - other.rounds, self.operations - other.operations,
            self.moved_bytes - other.moved_bytes,
        )

    def often(self, rounds: int) -> Cost:
        """Of a body that runs so often."""
        return Cost(
            self.loops, self.buffers, self.held_bytes, rounds * (1 + self.rounds), rounds * self.operations,
            rounds * self.moved_bytes,
        )


class Costs:
    """Costs of programs that share most of their blocks, each counted once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Block, Cost]] = {}  # by identity, which lasts while the block is kept

    def of(self, program: LoopProgram) -> Cost:
        return self.block(program.body)

    def block(self, block: Block) -> Cost:
        """Of a block, run once."""
        known = self._known.get(id(block))
        if known is not None:
            return known[1]
        found, operations, moved_bytes = Cost(), 0, 0
        for statement in block.body:
            match statement:
                case Op(opcode=opcode):
                    operations += WEIGHTS.get(opcode, 1)
                case Load(result=value) | Store(value=value):
                    moved_bytes += _size(value.type)
                case Alloc() | For() | While() | If():
                    found = found.plus(self._whole(statement))
        found = found.plus(Cost(operations=operations, moved_bytes=moved_bytes))
        self._known[id(block)] = block, found
        return found

    def _whole(self, statement: Alloc | For | While | If) -> Cost:
        match statement:
            case Alloc(buffer=buffer):
                return Cost(buffers=1, held_bytes=_size(buffer.element) * buffer.size)
            case For(count=count, body=body):
                return Cost(loops=1).plus(self.block(body).often(count))
            case While(most=most, condition=condition, body=body):
                inside = self.block(condition).plus(self.block(body))
                return Cost(loops=1).plus(inside.often(most))
            case If(then=then, otherwise=otherwise):
                return self.block(then).plus(self.block(otherwise))


def cost_of(program: LoopProgram) -> Cost:
    return Costs().of(program)


@cache
def _size(kind: Type) -> int:
    return numpy_dtype(kind).itemsize
