"""What writing code for a loop program takes on any machine: each kind of statement, lanes or none."""
from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager

from kera_hw.loops.program import (
    Alloc,
    Buffer,
    For,
    If,
    Index,
    Load,
    LoopProgram,
    Op,
    Statement,
    Store,
    Var,
    While,
)
from kera_hw.schedule.software.layout import Layout
from kera_hw.schedule.software.vector_loops import Plan, VectorLoop, flat_terms


class StatementWalk(ABC):
    """One program's statements, each kind by a method. ``_buffers``: those that there are so far."""

    def __init__(self, program: LoopProgram) -> None:
        self._buffers: dict[str, Buffer] = {buffer.name: buffer for buffer in program.buffers}

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Op():
                self._op(statement)
            case Load():
                self._load(statement)
            case Store():
                self._store(statement)
            case Alloc(buffer=buffer):
                self._buffers[buffer.name] = buffer
            case For():
                self._for(statement)
            case While():
                self._while(statement)
            case If():
                self._if(statement)

    @abstractmethod
    def _op(self, op: Op) -> None: ...
    @abstractmethod
    def _load(self, load: Load) -> None: ...
    @abstractmethod
    def _store(self, store: Store) -> None: ...
    @abstractmethod
    def _for(self, loop: For) -> None: ...
    @abstractmethod
    def _while(self, loop: While) -> None: ...
    @abstractmethod
    def _if(self, branch: If) -> None: ...


class StatementWriter(StatementWalk):
    """The same in lanes. ``_vector`` is the loop of which several rounds are written at once."""

    def __init__(self, program: LoopProgram, layout: Layout, plan: Plan) -> None:
        super().__init__(program)
        self._layout = layout
        self._plan = plan
        self._vector: VectorLoop | None = None

    @contextmanager
    def lanes(self, loop: VectorLoop | None):
        """Within it, statements are written for several rounds of the loop at once."""
        before, self._vector = self._vector, loop
        try:
            yield
        finally:
            self._vector = before

    def _varies(self, var: Var) -> bool:
        """Whether the scalar has a value a lane."""
        return self._vector is not None and var in self._vector.varying

    def _is_private(self, buffer: Buffer) -> bool:
        """Whether the temporary has a place a lane."""
        return self._vector is not None and buffer.name in self._vector.private

    def _moving(self, buffer: Buffer, index: Index) -> dict[Var, int]:
        """What makes the element another one in each lane, and by how many elements it counts."""
        _, terms = flat_terms(buffer, index)
        return {var: c for var, c in terms.items() if self._varies(var)}


def results_of(statement: Statement) -> tuple[Var, ...]:
    """The scalars that a statement gives to its block."""
    match statement:
        case Op(results=results) | If(results=results):
            return results
        case Load(result=result):
            return (result,)
        case For(carried=carried) | While(carried=carried):
            return tuple(one.outer for one in carried)
        case _:
            return ()
