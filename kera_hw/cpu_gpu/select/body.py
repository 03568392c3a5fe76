"""Statements of a native loop program as machine code: blocks, loops and branches around straight code."""
from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kera_hw.cpu_gpu.machine.code import Inst, Label, Mark, RegClass, VReg
from kera_hw.cpu_gpu.select.addresses import Scope
from kera_hw.cpu_gpu.select.isa import Isa
from kera_hw.cpu_gpu.select.paired import Paired
from kera_hw.cpu_gpu.select.straight import Held
from kera_hw.loops.program import (
    Affine,
    Alloc,
    Block,
    Carried,
    For,
    If,
    Load,
    LoopProgram,
    Op,
    Operand,
    Statement,
    Store,
    Var,
    While,
    blocks_of,
)
from kera_hw.schedule.software.interleaving import Side, side_by_side
from kera_hw.schedule.software.layout import Layout, element_bytes
from kera_hw.schedule.software.statements import results_of
from kera_hw.schedule.software.vector_loops import Plan, VectorLoop, flat_terms
from kera_hw.types import BoolType

_MOST_PIECES, _SHORT_PIECE = 2, 8
"""Vectors that are written after each other in place of a loop, and the most statements of its body."""
_MOST_AGAIN = 64
"""Statements of a loop whose last rounds are written for ever shorter vectors."""
_LEAST_WHOLE_BYTES, _LEAST_SHORT_BYTES = 1 << 14, 1 << 11
"""Stored by a loop that begins with some rounds alone, so that its vectors lie in lines of the cache; and by
a loop with a short body."""
_SHORT = 16
"""Statements of a body that is written for each length of a vector, for rounds before and after others."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rounds of a loop that are known when the function runs: from ``first`` below ``end``."""

    loop: For
    first: VReg
    end: VReg


class Body(Paired):
    """A program's statements, each kind by a method."""

    def __init__(
        self, isa: Isa, program: LoopProgram, layout: Layout, plan: Plan, arena: VReg, ports: dict[str, VReg]
    ) -> None:
        super().__init__(isa, program, layout, plan, arena, ports)
        self._inners: set[Var] = set()  # what the loop around carries
        self.part: Part | None = None

    # Blocks

    def block(self, block: Block) -> None:
        self._stored.clear()
        self._block(block)
        self._stored.clear()

    def _block(self, block: Block) -> None:
        """The same where nothing but it comes before and after."""
        self._forget()
        if self._copies > 1:
            self._side_by_side(block)
        else:
            for statement in block.body:
                self._statement(statement)
        self._forget()

    def _side_by_side(self, block: Block) -> None:
        """Each statement for one vector of rounds after another; what all have alike once."""
        around, held = self._held, [dict(self._held) for _ in range(self._copies)]
        paired = self._sums_of_pairs(block)
        for statement in block.body:
            (result,) = results_of(statement) or (None,)
            if result in paired.inside:
                continue
            if result is not None and (found := paired.sums.get(result)) is not None:
                self._sum_of_pairs(result, found, held)
                continue
            if result is None or self._varies(result):
                for self._copy, self._held in enumerate(held):
                    self._statement(statement)
                continue
            self._copy, self._held = 0, held[0]
            self._statement(statement)
            if result in held[0]:
                for other in held[1:]:
                    other[result] = held[0][result]
        self._copy, self._held = 0, around

    def _statement(self, statement: Statement) -> None:
        place = None if isinstance(statement, Alloc) else statement.place
        start = len(self.isa.code.items)
        super()._statement(statement)
        if place is not None:
            for item in self.isa.code.items[start:]:
                if isinstance(item, Inst) and item.place is None:
                    item.place = place

    # Control

    def _for(self, loop: For) -> None:
        vector = self._plan.get(id(loop)) if self._vector is None else None
        if self.part is not None and self.part.loop is loop:
            self._some_rounds(self.part, vector)
            return
        if vector is not None and self.in_strips(vector, loop.body):
            self.strips(vector, self.isa.number(0), loop.count, loop.body)
            return
        if vector is not None:
            if (start := self._whole_from(loop, vector)) is not None:
                self._some_rounds(Part(loop, start, self.isa.number(loop.count)), vector)
                return
            if (pieces := self._few_pieces(loop, vector)) is not None:
                for lanes, side, start in pieces:
                    with self.lanes(lanes), self.side_by_side(side):
                        self._one_round(loop, start)
                return
            done = 0
            for side in self.widths(vector, loop.body):
                step = vector.count * side.copies
                end = loop.count - loop.count % step
                if done < end:
                    with self.lanes(vector), self.side_by_side(side):
                        self._counted(loop, done, end, step)
                    done = end
            lanes = vector.count // 2 if len(loop.body.body) <= _MOST_AGAIN else 1
            while lanes > 1:
                if loop.count - done >= lanes:
                    with self.lanes(replace(vector, count=lanes)):
                        self._counted(loop, done, done + lanes, lanes)
                    done += lanes
                lanes //= 2
            if done < loop.count:
                self._counted(loop, done, loop.count, 1)
            return
        if loop.count == 1 and not loop.carried:
            self._one_round(loop, 0)
            return
        self._carry(loop.carried)
        if loop.count:
            self._counted(loop, 0, loop.count, 1)
        self._hand_out(loop.carried)

    def _few_pieces(self, loop: For, vector: VectorLoop) -> Sequence[tuple[VectorLoop, Side, int]] | None:
        """Vectors that are all of a loop's rounds: those side by side, or two of a short body; each with its
        first round."""
        wide = self.widths(vector, loop.body)[0]
        pieces, left = loop.count // vector.count, loop.count % vector.count
        if left or not all(isinstance(item, Op | Load | Store) for item in loop.body.body):
            return None
        if pieces == wide.copies:
            return [(vector, wide, 0)]
        if pieces > _MOST_PIECES or len(loop.body.body) > _SHORT_PIECE:
            return None
        return [(vector, replace(wide, copies=1), vector.count * k) for k in range(pieces)]

    def _one_round(self, loop: For, number: int) -> None:
        """A loop's round, or rounds side by side, whose number is known, as if there were no loop."""
        counter = self.isa.number(number)
        place, made = len(self.isa.code.items), self.isa.code.registers
        self._addresses.scopes.append(Scope(loop.var, counter, 0, place, place, made))
        self._held[loop.var] = Held(counter, counter=True)
        self._fixed[loop.var] = number
        self._block(loop.body)
        self._addresses.scopes.pop()
        del self._fixed[loop.var]

    def _whole_from(self, loop: For, vector: VectorLoop) -> VReg | None:
        """The round from which on vectors are stored to places of their size, with the ones before it done;
        None where that is of no use."""
        body = loop.body.body
        if len(body) > _MOST_AGAIN or not all(isinstance(item, Op | Load | Store) for item in body):
            return None
        for store in (item for item in body if isinstance(item, Store)):
            buffer = self._buffers[store.buffer]
            each = element_bytes(buffer.element)
            _, terms = flat_terms(buffer, store.index)
            if buffer.name not in self._ports or terms.get(loop.var) != 1:
                continue
            least = _LEAST_SHORT_BYTES if len(body) <= _SHORT else _LEAST_WHOLE_BYTES
            if each * vector.count * 8 != self.isa.vector_bits or each * loop.count < least:
                continue
            at_first = tuple(part.replace({loop.var: Affine(0)}) for part in store.index)
            rounds = self.isa.rounds_to_whole(self._place(buffer, at_first), each)
            if rounds is not None:
                self._few_rounds(loop, vector, self.isa.number(0), rounds)
            return rounds
        return None

    def _some_rounds(self, part: Part, vector: VectorLoop | None) -> None:
        """Vectors of rounds side by side, then one by one, then the rounds that are left."""
        loop, first = part.loop, part.first
        if vector is not None and self.in_strips(vector, loop.body):
            with self.any_from(first, part.end):
                self.strips(vector, first, part.end, loop.body)
            return
        for side in self.widths(vector, loop.body) if vector is not None else ():
            assert vector is not None
            step = vector.count * side.copies
            whole = self._whole_steps(first, part.end, step)
            with self.lanes(vector), self.side_by_side(side), self.any_from(first, whole):
                self._counted(loop, first, whole, step)
            first = whole
        self._few_rounds(loop, vector, first, part.end)

    def _few_rounds(self, loop: For, vector: VectorLoop | None, first: VReg, end: VReg) -> None:
        """Less than a vector has, if there is one: in ever shorter ones, or one by one."""
        if vector is None or len(loop.body.body) > _SHORT:
            with self.any_from(first, end):
                self._counted(loop, first, end, 1)
            return
        start, last = (self.isa.code.vreg(RegClass.GENERAL) for _ in range(2))
        self.isa.copy(start, first)
        lanes = vector.count // 2
        while lanes:
            self.isa.copy(last, start)
            self.isa.add_number(last, lanes - 1)
            with self.any_from(last, end):
                with self.lanes(replace(vector, count=lanes) if lanes > 1 else None):
                    self._counted(loop, start, start, lanes)
                self.isa.add_number(start, lanes)
            lanes //= 2

    def _whole_steps(self, first: VReg, end: VReg, step: int) -> VReg:
        """Where the last step of so many rounds ends that goes no further than the end."""
        rounds = self.isa.sum_of(end, self.isa.times(first, -1), 1, 0)
        return self.isa.sum_of(first, self.isa.multiple_below(rounds, step), 1, 0)

    @contextmanager
    def any_from(self, first: VReg, end: VReg) -> Generator[None]:
        """Within it, what is done where there are rounds left."""
        some, out = self.isa.code.label(), self.isa.code.label()
        self.isa.branch_below(first, end, some)
        self.isa.jump(out)
        self.isa.code.place(some)
        yield
        self.isa.code.place(out)

    def widths(self, loop: VectorLoop, body: Block) -> tuple[Side, ...]:
        """How many vectors of rounds go side by side, and then one by one."""
        wide = side_by_side(body, loop, self.isa.vector_registers)
        return (wide, replace(wide, copies=1)) if wide.copies > 1 else (wide,)

    @contextmanager
    def side_by_side(self, side: Side) -> Generator[None]:
        """Within it, so many vectors of the loop's rounds are written at once."""
        self._copies, self._spare = side.copies, side.constants
        yield
        self._copies, self._spare = 1, 0

    def _counted(self, loop: For, first: VReg | int, end: VReg | int, step: int) -> None:
        def body() -> None:
            around, self._inners = self._inners, {one.inner for one in loop.carried}
            self.block(loop.body)
            self._inners = around
            self._advance(loop.carried, loop.body)

        begin = self.isa.number(first) if isinstance(first, int) else first
        self.rounds(loop.var, begin, end, step, body)

    def rounds(self, var: Var, first: VReg, end: VReg | int, step: int, body: Callable[[], None]) -> VReg:
        """Rounds from ``first`` in steps below ``end``, one at least; the counter after them."""
        with self._around(var, first, step) as (scope, start):
            body()
        counter = scope.register
        for pointer, distance in scope.steps:
            self.isa.add_number(pointer, distance)
        self.isa.add_number(counter, step)
        self.isa.branch_below(counter, end, start)
        self.isa.code.items.append(Mark("end"))
        return counter

    @contextmanager
    def _around(self, var: Var, first: VReg, step: int) -> Generator[tuple[Scope, Label]]:
        """Within it, a loop's body is written, which begins at the label."""
        code = self.isa.code
        made = code.registers
        counter = code.vreg(RegClass.GENERAL)
        self.isa.copy(counter, first)
        before, start = len(code.items), code.label()
        code.items.append(Mark("loop"))
        code.place(start)
        scope = Scope(var, counter, step, before, len(code.items), made)
        self._addresses.scopes.append(scope)
        self._held[var] = Held(counter, counter=True)
        yield scope, start
        self._addresses.scopes.pop()

    def in_strips(self, loop: VectorLoop, body: Block) -> bool:
        """Whether as many rounds go at once as the machine has lanes for: none goes by its number."""
        if self.isa.strips is None or loop.private:
            return False
        with self.lanes(loop):
            return self._is_even(body)

    def _is_even(self, block: Block) -> bool:
        """Whether neighbouring rounds touch neighbouring elements, or the same."""
        for statement in block.body:
            if isinstance(statement, Load | Store):
                buffer = self._buffers[statement.buffer]
                moving = self._moving(buffer, statement.index)
                assert self._vector is not None and self.isa.strips is not None
                entry = self._entry_of(buffer, statement.index)
                table = entry not in (None, self._vector.var)
                if moving not in ({}, {self._vector.var: 1}) and not (
                    table and self.isa.strips.looks_up(buffer.element, buffer.size)
                ):
                    return False
            if isinstance(statement, Alloc):
                self._buffers[statement.buffer.name] = statement.buffer
            if not all(map(self._is_even, blocks_of(statement))):
                return False
        return True

    def strips(self, loop: VectorLoop, first: VReg, end: VReg | int, body: Block) -> None:
        """Rounds from ``first`` below ``end``, one at least, as many at once as there are lanes."""
        machine = self.isa.strips
        assert machine is not None
        with self._around(loop.var, first, 1) as (scope, start):
            rounds = machine.begin(scope.register, end, loop.count)
            around, self._inners = self._inners, set()
            with self.lanes(loop), self.side_by_side(self.widths(loop, body)[-1]):
                self.block(body)
            self._inners = around
            machine.over()
        for pointer, distance in scope.steps:
            machine.move(pointer, rounds, distance)
        machine.move(scope.register, rounds, 1)
        self.isa.branch_below(scope.register, end, start)
        self.isa.code.items.append(Mark("end"))

    def _carry(self, carried: Sequence[Carried]) -> None:
        """Registers for what is carried, which begin as the initial values."""
        for one in carried:
            self._held[one.inner] = self._given(one.inner, one.initial)

    def _given(self, var: Var, value: Operand) -> Held:
        """A register of its own with that value."""
        source, held = self._form(var, value)
        if isinstance(value, Var) and value in self._inners and held == self._held[value]:
            # What nobody reads again before the loop around gives it another value, goes on in its register.
            alone = self._copies == 1 and len(self._uses.readers(value)) == 1
            if alone:
                return held
        register = self.isa.code.vreg(source.cls)
        self.isa.copy(register, source, held.lanes > 1)
        return Held(register, held.lanes, held.mask_bits)

    def _form(self, var: Var, value: Operand) -> tuple[VReg, Held]:
        """The value as ``var`` holds it."""
        if not self._varies(var):
            register = self._scalar(value).get()
            return register, Held(register)
        if isinstance(var.type, BoolType):
            mask_bits = self.isa.mask_bits(self._lane_count)
            register = self._mask_of(value, mask_bits)
            return register, Held(register, self._lane_count, mask_bits)
        register = self._lanes_of(value)
        return register, Held(register, self._lane_count)

    def _advance(self, carried: Sequence[Carried], body: Block) -> None:
        """The next values, all taken before any is replaced."""
        news = [self._form(one.inner, value)[0] for one, value in zip(carried, body.yields)]
        olds = {self._held[one.inner].reg for one in carried}
        vector = [self._varies(one.inner) for one in carried]
        for k, new in enumerate(news):
            if new in olds and new != self._held[carried[k].inner].reg:
                kept = self.isa.code.vreg(new.cls)
                self.isa.copy(kept, new, vector[k])
                news[k] = kept
        for one, new, wide in zip(carried, news, vector):
            if new != self._held[one.inner].reg:
                self.isa.copy(self._held[one.inner].reg, new, wide)
        self._forget()

    def _hand_out(self, carried: Sequence[Carried]) -> None:
        """What was carried goes on under the name that it has after the loop."""
        for one in carried:
            self._held[one.outer] = self._held[one.inner]

    def _while(self, loop: While) -> None:
        code = self.isa.code
        self._carry(loop.carried)
        around, self._inners = self._inners, set()
        rounds = code.vreg(RegClass.GENERAL)
        self.isa.copy(rounds, self.isa.number(0))
        start, out = code.label(), code.label()
        code.items.append(Mark("loop"))
        code.place(start)
        self.block(loop.condition)
        self.isa.branch_zero(self._scalar(loop.condition.yields[0]).get(), out)
        self.block(loop.body)
        self._advance(loop.carried, loop.body)
        self.isa.add_number(rounds, 1)
        self.isa.branch_below(rounds, self.isa.number(loop.most), start)
        code.items.append(Mark("end"))
        code.place(out)
        self._inners = around
        self._hand_out(loop.carried)

    def _if(self, branch: If) -> None:
        code = self.isa.code
        results = {var: self._room(var) for var in branch.results}
        otherwise, after = code.label(), code.label()
        self.isa.branch_zero(self._scalar(branch.condition).get(), otherwise)
        self._arm(branch, branch.then, results)
        self.isa.jump(after)
        code.place(otherwise)
        self._arm(branch, branch.otherwise, results)
        code.place(after)
        self._held |= results

    def _room(self, var: Var) -> Held:
        if not self._varies(var):
            return Held(self.isa.scalar_register(var.type))
        lanes = self._lane_count
        mask_bits = self.isa.mask_bits(lanes) if isinstance(var.type, BoolType) else 0
        return Held(self.isa.lanes_register(var.type), lanes, mask_bits)

    def _arm(self, branch: If, arm: Block, results: dict[Var, Held]) -> None:
        self.block(arm)
        for var, value in zip(branch.results, arm.yields):
            register, held = self._form(var, value)
            self.isa.copy(results[var].reg, register, held.lanes > 1)
        self._forget()
