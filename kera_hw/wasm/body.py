"""Statements of a loop program in native operations as structured code of WebAssembly."""
from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import chain

from kera_hw.loops.program import (
    Alloc,
    Block,
    Carried,
    For,
    If,
    Load,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    While,
    statements,
)
from kera_hw.schedule.software.interleaving import most_alive
from kera_hw.schedule.software.statements import results_of
from kera_hw.schedule.software.vector_loops import VectorLoop
from kera_hw.types import BoolType
from kera_hw.wasm import fused, vectors
from kera_hw.wasm.code import Mark, value_type
from kera_hw.wasm.module import ValueType
from kera_hw.wasm.operands import Held
from kera_hw.wasm.straight import Straight

_MOST_ALIVE = 18
"""Vectors that registers hold while two go side by side."""


class Body(Straight):
    """Writes one program's body."""

    # Blocks

    def block(self, block: Block) -> None:
        """The statements; what nobody reads after one gives its local back."""
        if self._copies > 1:
            self._side_by_side(block)
            return
        dying = self._lifetimes.dying[id(block)]
        for k, statement in enumerate(block.body):
            self._statement(statement)
            for var in dying.get(k, ()):
                self._forget(var)

    def _side_by_side(self, block: Block) -> None:
        """Each statement for one vector of rounds after another; what all have alike once."""
        dying = self._lifetimes.dying[id(block)]
        around, held = self._held, [dict(self._held) for _ in range(self._copies)]
        for k, statement in enumerate(block.body):
            (result,) = results_of(statement) or (None,)
            alike = result is not None and not self._varies(result)
            for self._copy, self._held in enumerate(held[:1] if alike else held):
                self._statement(statement)
            if alike and result is not None:
                for other in held[1:]:
                    other[result] = held[0][result]
            for var in dying.get(k, ()):
                for one in held if self._varies(var) else held[:1]:
                    self._held = one
                    self._forget(var)
        self._copy, self._held = 0, around

    def _statement(self, statement: Statement) -> None:
        if isinstance(statement, Alloc):
            super()._statement(statement)
            return
        around = self.code.mark(Mark(_label(statement), statement.place))
        super()._statement(statement)
        self.code.mark(around)

    # Control

    def _for(self, loop: For) -> None:
        vector = self._plan.get(id(loop)) if self._vector is None else None
        if vector is not None:
            done = 0
            for copies in widths(vector, loop.body):
                end = loop.count - loop.count % (vector.count * copies)
                if done < end:
                    with self.hoisted(vector, loop.body, copies):
                        self.counted(loop.var, done, end, vector.count * copies, loop.body)
                    done = end
            if done < loop.count:
                self.counted(loop.var, done, loop.count, 1, loop.body)
            return
        if self._is_for_haste(loop):
            self._hastily(loop)
        else:
            self._in_order(loop)

    def _hastily(self, loop: For) -> None:
        """All rounds, and if sums may be wrong all of them from the beginning, exactly.

        Where that was so, numbers have few digits, and the next loops are exact at once, but for one in 16.
        """
        code = self.code
        if self._doubt is None:
            self._doubt = code.new_local(ValueType.I32)
        wrong = code.new_local(ValueType.I32)
        code.number(1)
        code.set(wrong)
        code.get(self._doubt)
        code.op("i32.eqz")
        code.begin("if")
        self._watch = fused.Watch.begun(code)
        self._in_order(loop)
        self._watch.ask()
        self._watch = None
        code.set(wrong)
        code.end()
        found = {one.outer: self._held[one.outer] for one in loop.carried}
        code.get(wrong)
        code.begin("if")
        self._again = True
        self._in_order(loop)
        self._again = False
        for outer, held in found.items():
            code.get(self._held[outer].local)
            code.set(held.local)
            self._forget(outer)
        code.get(self._doubt)
        code.number(1)
        code.op("i32.sub")
        code.number(fused.EXACT_AT_ONCE)
        code.op("i32.and")
        code.set(self._doubt)
        code.end()
        code.release(wrong)
        self._held |= found

    def _in_order(self, loop: For) -> None:
        self._carry(loop.carried)
        if loop.count:
            with self._rounds(loop.var, 0, loop.count, 1):
                self.block(loop.body)
                self._advance(loop.carried, loop.body)
        self._hand_out(loop.carried)

    def _is_for_haste(self, loop: For) -> bool:
        """Whether a loop has fused products on lanes, and can be done again since it stores nothing."""
        if self._vector is None or self._watch is not None or self._again or loop.count < 2:
            return False
        inside = [*statements(loop.body)]
        return not any(isinstance(item, Store | Alloc) for item in inside) and any(
            isinstance(item, Op) and item.opcode == fused.OPCODE and self._varies(item.results[0])
            for item in inside
        )

    def counted(self, var: Var, first: int, end: int, step: int, body: Block) -> None:
        with self._rounds(var, first, end, step):
            self.block(body)

    @contextmanager
    def _rounds(self, var: Var, first: int, end: int, step: int) -> Generator[None]:
        """Around what rounds ``first``, ``first + step``, ... below ``end`` do; there is one at least."""
        counter = self._start(var, first)
        again = first + step < end
        if again:
            self.code.begin("loop")
        yield
        if again:
            self._next(counter, step)
            self.code.number(end)
            self.code.op("i32.lt_u")
            self.code.op("br_if", 0)
            self.code.end()
        self._forget(var)

    def _start(self, var: Var, first: int) -> int:
        counter = self.code.new_local(ValueType.I32)
        self.code.number(first)
        self.code.set(counter)
        self._held[var] = Held(counter, counter=True)
        self._nesting[var] = len(self._nesting)
        return counter

    def hold_counter(self, var: Var, local: int) -> None:
        """A counter that somebody else steps."""
        self._held[var] = Held(local, counter=True)

    def _next(self, counter: int, step: int) -> None:
        """The counter's next value, which stays on the stack."""
        self.code.get(counter)
        self.code.number(step)
        self.code.op("i32.add")
        self.code.op("local.tee", counter)

    def _carry(self, carried: Sequence[Carried]) -> None:
        """Locals for what is carried, which begin as the initial values."""
        for one in carried:
            self._give(one.inner, one.initial)

    def _give(self, var: Var, value: Operand) -> None:
        """A scalar of its own with that value."""
        mask_bits = self._push(var, value)
        self._bind(var, mask_bits=mask_bits)

    def _push(self, var: Var, value: Operand) -> int:
        """The value as ``var`` holds it; the width of its mask."""
        if not self._varies(var):
            self._scalar(value).push()
            return 0
        assert self._vector is not None
        source = self._lanes_of(value)
        if not isinstance(var.type, BoolType):
            source.push()
            return 0
        width = vectors.VECTOR_BITS // self._vector.count
        source.push_mask(width)
        return width

    def _advance(self, carried: Sequence[Carried], body: Block) -> None:
        """The next values, all computed before any is replaced."""
        for one, value in zip(carried, body.yields):
            self._push(one.inner, value)
        for one in reversed(carried):
            self.code.set(self._held[one.inner].local)
        self._drop(body)

    def _drop(self, block: Block) -> None:
        """What the block computed and gave is nobody's any more."""
        made = set(chain.from_iterable(map(results_of, block.body)))
        for value in dict.fromkeys(block.yields):
            if isinstance(value, Var) and value in made:
                self._forget(value)

    def _hand_out(self, carried: Sequence[Carried]) -> None:
        """What was carried goes on under the name that it has after the loop."""
        for one in carried:
            self._held[one.outer] = self._held.pop(one.inner)

    def _while(self, loop: While) -> None:
        self._carry(loop.carried)
        rounds = self.code.new_local(ValueType.I32)
        self.code.number(0)
        self.code.set(rounds)
        self.code.begin("block")
        self.code.begin("loop")
        self.code.get(rounds)
        self.code.number(loop.most)
        self.code.op("i32.ge_u")
        self.code.op("br_if", 1)
        self.block(loop.condition)
        self._scalar(loop.condition.yields[0]).push()
        self.code.op("i32.eqz")
        self.code.op("br_if", 1)
        self._drop(loop.condition)
        self.block(loop.body)
        self._advance(loop.carried, loop.body)
        self._next(rounds, 1)
        self.code.op("drop")
        self.code.op("br", 0)
        self.code.end()
        self.code.end()
        self.code.release(rounds)
        self._hand_out(loop.carried)

    def _if(self, branch: If) -> None:
        results = {var: self._room(var) for var in branch.results}
        self._scalar(branch.condition).push()
        self.code.begin("if")
        self._arm(branch, branch.then, results)
        if branch.otherwise.body or branch.results:
            self.code.otherwise()
            self._arm(branch, branch.otherwise, results)
        self.code.end()
        self._held |= results

    def _room(self, var: Var) -> Held:
        if not self._varies(var):
            return Held(self.code.new_local(value_type(var.type)))
        assert self._vector is not None
        lanes = self._vector.count
        mask_bits = vectors.VECTOR_BITS // lanes if isinstance(var.type, BoolType) else 0
        return Held(self.code.new_local(ValueType.V128), lanes, mask_bits)

    def _arm(self, branch: If, arm: Block, results: dict[Var, Held]) -> None:
        self.block(arm)
        for var, value in zip(branch.results, arm.yields):
            self._push(var, value)
        for held in reversed(results.values()):
            self.code.set(held.local)
        self._drop(arm)


def widths(loop: VectorLoop, block: Block) -> tuple[int, ...]:
    """How many vectors of a loop's rounds go side by side, and then one by one.

    Where a round is one chain of operations, a processor that looks ahead only so far is kept busy by two.
    """
    straight = all(isinstance(statement, Op | Load | Store) for statement in block.body)
    return (2, 1) if straight and 2 * most_alive(block, loop) <= _MOST_ALIVE else (1,)


def _label(statement: Statement) -> str:
    """What a statement does, as the loop program's text has it."""
    match statement:
        case Op(opcode=opcode):
            return opcode
        case Load(buffer=buffer):
            return f"load {buffer}"
        case Store(buffer=buffer):
            return f"store {buffer}"
        case For(count=count):
            return f"for {count}"
        case While(most=most):
            return f"while {most}"
        case _:
            return "if"
