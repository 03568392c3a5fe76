"""What a loop program costs to run, on no machine in particular: rounds, operations, bytes that are moved.

Counts are of one item, with loops at all their rounds and branches on both sides. An operation that machines
take many cycles for counts as many simple ones; a byte moved to or from a buffer counts as one.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.loops.program import Alloc, Block, For, If, Load, LoopProgram, Op, Store, While, statements
from kera_hw.types import numpy_dtype

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

    def minus(self, other: Cost) -> Cost:
        return Cost(
            self.loops - other.loops, self.buffers - other.buffers, self.held_bytes - other.held_bytes,
            self.rounds - other.rounds, self.operations - other.operations,
            self.moved_bytes - other.moved_bytes,
        )


def cost_of(program: LoopProgram) -> Cost:
    inside = list(statements(program.body))
    temporaries = [item.buffer for item in inside if isinstance(item, Alloc)]
    sizes = {
        buffer.name: numpy_dtype(buffer.element).itemsize for buffer in (*program.buffers, *temporaries)
    }
    rounds, operations, moved = _run(program.body, sizes)
    return Cost(
        sum(isinstance(item, (For, While)) for item in inside), len(temporaries),
        sum(sizes[buffer.name] * buffer.size for buffer in temporaries), rounds, operations, moved,
    )


def _run(block: Block, sizes: dict[str, int]) -> tuple[int, int, int]:
    """Rounds, operations and bytes of a block."""
    rounds = operations = moved = 0
    for statement in block.body:
        match statement:
            case Op(opcode=opcode):
                operations += WEIGHTS.get(opcode, 1)
            case Load(buffer=name) | Store(buffer=name):
                moved += sizes[name]
            case For(count=count, body=body):
                inner = _run(body, sizes)
                rounds += count * (1 + inner[0])
                operations, moved = operations + count * inner[1], moved + count * inner[2]
            case While(most=most, condition=condition, body=body):
                both = [_run(part, sizes) for part in (condition, body)]
                rounds += most * (1 + both[0][0] + both[1][0])
                operations += most * (both[0][1] + both[1][1])
                moved += most * (both[0][2] + both[1][2])
            case If(then=then, otherwise=otherwise):
                for inner in (_run(then, sizes), _run(otherwise, sizes)):
                    rounds, operations = rounds + inner[0], operations + inner[1]
                    moved += inner[2]
            case _:
                pass
    return rounds, operations, moved
