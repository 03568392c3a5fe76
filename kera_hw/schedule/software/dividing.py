"""Parts of a program that several threads can do at once.

The statements of a program are cut into phases, one after another. A parallel loop with enough to do is a
phase of its own, whose rounds threads divide among them: no round touches what another writes, and each is
computed whole by one thread, so that the bits are the same for any number of threads. What lies between is
done by one. Each phase is a program of its own: what phases hand on lies in buffers that are results of each,
and scalars are computed again.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kera_hw.loops.contents import defined, indexing, used
from kera_hw.loops.program import (
    Alloc,
    Block,
    Buffer,
    For,
    Load,
    LoopProgram,
    Op,
    Statement,
    Store,
    Var,
    statements,
)
from kera_hw.loops.transforms.cost import Costs

LEAST_WORK = 1 << 22
"""Operations and bytes of a loop that is divided: fractions of a millisecond, where a thread wakes in tens of
microseconds."""
_LARGE_CONSTANT_BYTES = 1 << 14
"""Of one that all threads read in one place; each has smaller ones beside its temporaries."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A program, and which of its loops is divided, if one is."""

    program: LoopProgram
    loop: For | None


@dataclass(frozen=True, slots=True)
class Division:
    """``shared``: buffers that lie in memory of the whole, after parameters and results in each phase."""

    phases: tuple[Phase, ...]
    shared: tuple[Buffer, ...]


def work_of(program: LoopProgram) -> int:
    """Operations and bytes of one item."""
    return Costs().of(program).work


def divide(program: LoopProgram, least_work: int = LEAST_WORK) -> Division | None:
    """The phases of a program without state; None where no loop is worth dividing, or one phase needs a
    scalar of another that takes more than operations on parameters and constants."""
    if program.of_kind("state"):
        return None
    costs = Costs()
    pure = {buffer.name for buffer in program.buffers if buffer.kind in ("param", "const")}
    again: list[Statement] = []  # what computes scalars that any phase may need
    parts: list[tuple[list[Statement], For | None]] = []
    between: list[Statement] = []
    known: set[str] = set()
    for statement in program.body.body:
        if isinstance(statement, Alloc):
            continue
        if _is_cheap(statement, pure) and all(var.name in known for var in _free([statement])):
            again.append(statement)
            known |= set(defined(Block((statement,))))
            continue
        if isinstance(statement, For) and _is_divided(statement, costs, least_work):
            if between:
                parts.append((between, None))
                between = []
            parts.append(([statement], statement))
        else:
            between.append(statement)
    if between:
        parts.append((between, None))
    taken = {var.name for part, _ in parts for var in _free(part)}
    if all(loop is None for _, loop in parts) or not taken <= known:
        return None
    constants = program.of_kind("const")
    shared = [item.buffer for item in program.body.body if isinstance(item, Alloc)]
    shared += [buffer for buffer in constants if len(buffer.data) > _LARGE_CONSTANT_BYTES]
    phases = tuple(Phase(_program(program, [*again, *part], shared), loop) for part, loop in parts)
    return Division(phases, tuple(shared))


def _is_cheap(statement: Statement, pure: set[str]) -> bool:
    return isinstance(statement, Op) or (isinstance(statement, Load) and statement.buffer in pure)


def _is_divided(loop: For, costs: Costs, least_work: int) -> bool:
    plain = loop.parallel and not loop.carried and loop.count > 1
    return plain and costs.block(Block((loop,))).work >= least_work


def _free(body: Sequence[Statement]) -> set[Var]:
    """Scalars that come from outside."""
    block = Block(tuple(body))
    inside = set(defined(block))
    return {var for var in used(block) | indexing(block) if var.name not in inside}


def _program(program: LoopProgram, body: Sequence[Statement], shared: Sequence[Buffer]) -> LoopProgram:
    """Statements with all that is in memory of the whole as results, which they are for each thread."""
    outside = [replace(buffer, kind="result", data=b"") for buffer in shared]
    touched = {item.buffer for item in statements(Block(tuple(body))) if isinstance(item, (Load, Store))}
    constants = [one for one in program.of_kind("const") if one.name in touched and one not in shared]
    ports = (*program.of_kind("param"), *program.of_kind("result"))
    return LoopProgram(program.name, (*ports, *outside, *constants), Block(tuple(body)))
