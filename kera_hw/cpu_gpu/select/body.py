"""Statements of a native loop program as machine code."""
from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kera_hw.cpu_gpu.machine.code import Inst, Label, Mark, Mem, RegClass, VReg
from kera_hw.cpu_gpu.select.addresses import Addresses, Scope
from kera_hw.cpu_gpu.select.bounds import Bounds
from kera_hw.cpu_gpu.select.isa import Arg, Isa, width_of
from kera_hw.legal.native import Signature
from kera_hw.loops.program import (
    Alloc,
    Block,
    Buffer,
    Carried,
    For,
    If,
    Index,
    Literal,
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
from kera_hw.schedule.software.statements import StatementWriter, results_of
from kera_hw.schedule.software.uses import Uses
from kera_hw.schedule.software.vector_loops import (
    ITEM,
    SHORT_BITS,
    Plan,
    VectorLoop,
    flat_terms,
    is_short_number,
)
from kera_hw.types import BoolType, IntType, Type

_MOST_AGAIN = 64
"""Statements of a loop whose last rounds are written for ever shorter vectors."""


@dataclass(frozen=True, slots=True)
class Held:
    """A scalar's register; of several rounds at once, lanes in one. ``counter``: a loop's own."""

    reg: VReg
    lanes: int = 1
    mask_bits: int = 0
    loose: bool = False
    counter: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Rounds of a loop that are known when the function runs: from ``first`` below ``end``."""

    loop: For
    first: VReg
    end: VReg


@dataclass(frozen=True, slots=True)
class _Scalar:
    """An operand of a scalar operation."""

    isa: Isa
    operand: Operand
    held: Held | None

    @property
    def type(self) -> Type:
        return self.operand.type

    def get(self, loose: bool = False) -> VReg:
        if self.held is None:
            assert isinstance(self.operand, Literal)
            return self.isa.literal(self.operand.type, self.operand.bits)
        if self.held.loose and not loose:
            assert isinstance(self.type, IntType)
            return self.isa.extend(self.type, self.held.reg)
        return self.held.reg


class Body(StatementWriter):
    """``arena``: a register with the address of constants, states and temporaries; ``ports``: with those of
    parameters and results."""

    def __init__(
        self, isa: Isa, program: LoopProgram, layout: Layout, plan: Plan, arena: VReg, ports: dict[str, VReg]
    ) -> None:
        super().__init__(program, layout, plan)
        self.isa = isa
        self._arena = arena
        self._ports = ports
        self._held: dict[Var, Held] = {}
        self._addresses = Addresses(isa)
        self._uses = Uses(program.body)
        self._compared: dict[Var | None, Op] = {}  # comparisons that the selections by them are written with
        self._merging: dict[Var | None, Op] = {}  # sums that selections are written with
        self._low_bits: dict[Var, Op] = {}  # entries of tables, until they are looked up
        self._bounds = Bounds(program)
        self._lanes_as_index: dict[tuple[VReg, int], VReg] = {}  # of the block that is being written
        self._masks: dict[VReg, VReg] = {}  # of scalars, in the same block
        self._splats: dict[tuple[VReg, int], VReg] = {}  # of scalars too
        self._loaded: dict[tuple[object, ...], Held] = {}  # of the same block, until a store there
        self._spare = 0  # registers that are left for constants throughout the vector loop
        self._inners: set[Var] = set()  # what the loop around carries
        self.item_elements: Mapping[str, int] = {}  # of leaves whose items are counted one by one in blocks
        self._copies = 1  # vectors of rounds that are written side by side
        self._copy = 0  # the one that is being written
        self.part: Part | None = None

    # Blocks

    def block(self, block: Block) -> None:
        self._forget()
        if self._copies > 1:
            self._side_by_side(block)
        else:
            for statement in block.body:
                self._statement(statement)
        self._forget()

    def _forget(self) -> None:
        """What was made within a block is not there in another."""
        self._lanes_as_index.clear()
        self._masks.clear()
        self._splats.clear()
        self._loaded.clear()

    def _side_by_side(self, block: Block) -> None:
        """Each statement for one vector of rounds after another; what all have alike once."""
        around, held = self._held, [dict(self._held) for _ in range(self._copies)]
        for statement in block.body:
            (result,) = results_of(statement) or (None,)
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

    # Scalars

    @property
    def _lane_count(self) -> int:
        return 1 if self._vector is None else self._vector.count

    def _held_of(self, operand: Operand) -> Held | None:
        if not isinstance(operand, Var):
            return None
        held = self._held[operand]
        if held.counter and self._varies(operand):
            return Held(self._numbers(held.reg), self._lane_count)
        return held

    def _numbers(self, counter: VReg, width_bits: int = 64) -> VReg:
        """The numbers of the rounds that are written, by the counter of the loop."""
        before = self._copy * self._lane_count
        if before:
            first = self.isa.code.vreg(RegClass.GENERAL)
            self.isa.copy(first, counter)
            self.isa.add_number(first, before)
            counter = first
        return self.isa.iota(counter, self._lane_count, width_bits)

    def _scalar(self, operand: Operand) -> _Scalar:
        return _Scalar(self.isa, operand, self._held_of(operand))

    def _arg(self, operand: Operand) -> Arg:
        held = self._held_of(operand)
        if held is not None and held.lanes > 1:
            most = self._bounds.of(operand)
            return Arg(operand.type, held.reg, False, held.mask_bits, most=most)
        if isinstance(operand, Literal) and not isinstance(operand.type, BoolType):
            return Arg(operand.type, None, True, bits=operand.bits, most=self._bounds.of(operand))
        register = _Scalar(self.isa, operand, held).get()
        if isinstance(operand.type, BoolType) and isinstance(operand, Var):
            bits = self.isa.mask_bits(self._lane_count)
            if register not in self._masks:
                self._masks[register] = self.isa.mask_of(register, bits, self._lane_count)
            return Arg(operand.type, self._masks[register], False, bits)
        return Arg(operand.type, register, True)

    def _splat(self, arg: Arg) -> VReg:
        """A scalar in all lanes; of one from before the vector loop, ahead of that."""
        source, count = arg.register, self._lane_count
        assert self._vector is not None
        key = source, width_of(arg.type)
        if key not in self._splats:
            self._splats[key] = self._addresses.ahead(
                self._vector.var, source, lambda: self.isa.splat(arg.type, source, count)
            )
        return self._splats[key]

    def _known(self, arg: Arg) -> VReg | None:
        """A constant in all lanes, made ahead of the vector loop while registers last."""
        assert self._vector is not None and arg.bits is not None
        kind, bits, count = arg.type, arg.bits, self._lane_count
        key = (width_of(kind) * count, width_of(kind), bits)

        def write() -> VReg | None:
            self._spare -= 1
            return self.isa.splat_literal(kind, bits, count) if self._spare >= 0 else None

        return self._addresses.constant(self._vector.var, key, write)

    def _lanes_of(self, operand: Operand) -> VReg:
        """A number's lanes."""
        arg = self._arg(operand)
        if arg.bits is not None:
            return self._known(arg) or self.isa.splat_literal(operand.type, arg.bits, self._lane_count)
        return self._splat(arg) if arg.uniform else arg.register

    def _mask_of(self, operand: Operand, mask_bits: int) -> VReg:
        """A bool's lanes as a mask."""
        arg = self._arg(operand)
        if arg.uniform:
            return self.isa.mask_of(arg.register, mask_bits, self._lane_count)
        return self.isa.resize_mask(arg.register, arg.mask_bits, mask_bits, self._lane_count)

    def _op(self, op: Op) -> None:
        (result,) = op.results
        if result in self._uses.chosen:
            self._compared[result] = op
            return
        if result in self._uses.merged:
            self._merging[result] = op
            return
        if result in self._uses.entries and self._varies(result):
            self._low_bits[result] = op
            self._held.pop(result, None)
            return
        if op.opcode == "control.select" and (added := self._merging.get(_var(op.operands[1]))):
            if self._varies(result) and self._merged(op, added):
                return
            self._written(added)
        if op.opcode == "control.select" and (compared := self._compared.get(_var(op.operands[0]))):
            if self._varies(result) == self._varies(compared.results[0]) and self._chosen(compared, op):
                return
            self._written(compared)
        self._written(op)

    def _chosen(self, compared: Op, op: Op) -> bool:
        """A selection and the comparison that it goes by in one, where the machine has that."""
        (result,), operands = op.results, (*compared.operands, *op.operands[1:])
        if self._varies(result):
            lanes = [self._arg(operand) for operand in operands]
            signatures = _signature(compared), _signature(op)
            register = self.isa.chosen_lanes(
                *signatures, self._lane_count, lanes, self._splat, self._known
            )
            if register is not None:
                self._held[result] = Held(register, self._lane_count)
            return register is not None
        scalars = [self._scalar(operand) for operand in operands]
        found = self.isa.chosen(_signature(compared), _signature(op), scalars)
        if found is not None:
            self._held[result] = Held(found[0], loose=found[1])
        return found is not None

    def _merged(self, op: Op, added: Op) -> bool:
        """A sum with a product in some lanes, and in the others what it was, where the machine has that."""
        if (compared := self._compared.get(_var(op.operands[0]))) is not None:
            self._written(compared)
        args = [self._arg(operand) for operand in (*added.operands, op.operands[0])]
        register = self.isa.merged_sum(_signature(added), self._lane_count, args, self._splat, self._known)
        if register is not None:
            self._held[op.results[0]] = Held(register, self._lane_count)
        return register is not None

    def _written(self, op: Op) -> None:
        (result,) = op.results
        self._bounds.note(op)
        signature = _signature(op)
        if not self._varies(result):
            register, loose = self.isa.scalar(signature, [self._scalar(operand) for operand in op.operands])
            self._held[result] = Held(register, loose=loose)
            return
        counter = op.operands[0]
        if isinstance(counter, Var) and self._held[counter].counter and is_short_number(op, counter):
            numbers = self._numbers(self._held[counter].reg, SHORT_BITS)
            self._held[result] = Held(numbers, self._lane_count)
            return
        args = [self._arg(operand) for operand in op.operands]
        found = self.isa.vector(signature, self._lane_count, args, self._splat, self._known)
        register, mask_bits = found if found is not None else self._lane_by_lane(signature, args)
        self._held[result] = Held(register, self._lane_count, mask_bits)

    def _lane_by_lane(self, op: Signature, args: Sequence[Arg]) -> tuple[VReg, int]:
        """Scalar instructions for one lane after another, where the machine has none for all."""
        values: list[VReg] = []
        for lane in range(self._lane_count):
            scalars = [_Lane(arg.type, self._lane(arg, lane)) for arg in args]
            value, loose = self.isa.scalar(op, scalars)
            if loose:
                assert isinstance(op.result, IntType)
                value = self.isa.extend(op.result, value)
            values.append(value)
        if isinstance(op.result, BoolType):
            return self.isa.mask_of_lanes(values)
        whole: VReg | None = None
        for lane, value in enumerate(values):
            whole = self.isa.insert(op.result, whole, value, lane)
        assert whole is not None
        return whole, 0

    def _lane(self, arg: Arg, lane: int) -> VReg:
        if arg.bits is not None:
            return self.isa.literal(arg.type, arg.bits)
        if arg.uniform:
            return arg.register
        if isinstance(arg.type, BoolType):
            return self.isa.bool_lane(arg.register, arg.mask_bits, lane)
        return self.isa.extract(arg.type, arg.register, lane)

    # Memory

    def _place(self, buffer: Buffer, index: Index, lane: int = 0) -> Mem:
        """An element; ``lane`` counts rounds from the first."""
        constant, terms = flat_terms(buffer, index)
        if buffer.name in self.item_elements:
            terms[ITEM] = self.item_elements[buffer.name]
        private = self._is_private(buffer)
        each = self.isa.vector_bits // 8 if private else element_bytes(buffer.element)
        if self._vector is not None:
            constant += terms.get(self._vector.var, 0) * (self._copy * self._lane_count + lane)
        base = self._ports.get(buffer.name)
        offset = constant * each
        if base is None:
            base, offset = self._arena, offset + self._layout.addresses[buffer.name]
        scaled = {var: coefficient * each for var, coefficient in terms.items()}
        return self._addresses.of(base, offset, scaled, lambda var: self._index(var, lane))

    def _index(self, var: Var, lane: int) -> VReg:
        """A scalar in an index as 64 bits."""
        held = self._held[var]
        if held.lanes > 1:
            known = self._lanes_as_index.get((held.reg, lane))
            if known is None:
                known = self.isa.as_index(var.type, self.isa.extract(var.type, held.reg, lane))
                self._lanes_as_index[held.reg, lane] = known
            return known
        return self.isa.as_index(var.type, _Scalar(self.isa, var, held).get())

    def _load(self, load: Load) -> None:
        buffer = self._buffers[load.buffer]
        self._bounds.loaded(load)
        self._settle(buffer, load.index)
        varies = self._varies(load.result)
        spread = not varies and self._vector is not None and self._is_wanted_in_lanes(load.result)
        key = (load.buffer, load.index, varies, spread, self._copy)
        if key not in self._loaded:
            self._loaded[key] = self._fetched(load, buffer, spread)
        self._held[load.result] = self._loaded[key]

    def _fetched(self, load: Load, buffer: Buffer, spread: bool) -> Held:
        """An element, or one a lane; ``spread``: the same in all lanes."""
        kind, lanes = buffer.element, self._lane_count
        if not self._varies(load.result):
            place = self._place(buffer, load.index)
            if spread:
                return Held(self.isa.load_splat(kind, place, lanes), lanes)
            return Held(self.isa.load(kind, place))
        assert self._vector is not None
        moving = self._moving(buffer, load.index)
        if buffer.name in self._vector.private or moving == {self._vector.var: 1}:
            found = self.isa.load_lanes(kind, self._place(buffer, load.index), lanes)
        elif not moving:
            found = self.isa.load_splat(kind, self._place(buffer, load.index), lanes)
        elif (known := self._looked_up(buffer, load.index)) is not None:
            found = known
        else:
            found = self.isa.gather(kind, [self._place(buffer, load.index, lane) for lane in range(lanes)])
        return Held(found, lanes)

    def _looked_up(self, buffer: Buffer, index: Index) -> VReg | None:
        """Entries of a short table of constants by lanes of their width, where the machine has that."""
        var = self._entry_of(buffer, index)
        if var is None or (held := self._held[var]).counter:
            return None
        table = Mem(self._arena, offset=self._layout.addresses[buffer.name])
        return self.isa.look_up(buffer.element, table, buffer.size, held.reg, held.lanes)

    def _settle(self, buffer: Buffer, index: Index) -> None:
        """Registers for low bits: those of the number itself where a look-up goes by no others."""
        for var in [var for axis in index for var, _ in axis.terms if var in self._low_bits]:
            if var in self._held:
                continue
            op = self._low_bits[var]
            number, low = op.operands
            wraps = (
                isinstance(number, Var) and isinstance(low, Literal) and low.bits == buffer.size - 1
                and self._entry_of(buffer, index) is not None
                and self.isa.wraps_entries(buffer.element, buffer.size, self._lane_count)
            )
            if wraps and isinstance(number, Var) and not self._held[number].counter:
                self._held[var] = self._held[number]
            else:
                self._written(op)

    def _entry_of(self, buffer: Buffer, index: Index) -> Var | None:
        """What says the entry of a table of constants, in numbers as wide as those in it."""
        if buffer.kind != "const" or len(index) != 1 or index[0].constant or len(index[0].terms) != 1:
            return None
        ((var, factor),) = index[0].terms
        return var if factor == 1 and width_of(var.type) == width_of(buffer.element) else None

    def _is_wanted_in_lanes(self, var: Var) -> bool:
        """Whether a number is read by nothing but operations on lanes."""
        readers = self._uses.readers(var)
        return bool(readers) and all(isinstance(one, Op) and self._varies(one.results[0]) for one in readers)

    def _store(self, store: Store) -> None:
        buffer = self._buffers[store.buffer]
        for key in [key for key in self._loaded if key[0] == store.buffer]:
            del self._loaded[key]
        kind = buffer.element
        moving = self._moving(buffer, store.index)
        private = self._is_private(buffer)
        if not moving and not private:
            value = self._scalar(store.value).get(loose=True)
            self.isa.store(kind, self._place(buffer, store.index), value)
            return
        assert self._vector is not None
        lanes = self._lanes_of(store.value)
        if private or moving == {self._vector.var: 1}:
            self.isa.store_lanes(kind, self._place(buffer, store.index), lanes, self._lane_count)
            return
        for lane in range(self._lane_count):
            value = self.isa.extract(kind, lanes, lane)
            self.isa.store(kind, self._place(buffer, store.index, lane), value)

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
        self._carry(loop.carried)
        if loop.count:
            self._counted(loop, 0, loop.count, 1)
        self._hand_out(loop.carried)

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
            whole = self.isa.multiple_below(part.end, step)
            with self.lanes(vector), self.side_by_side(side), self.any_from(first, whole):
                self._counted(loop, first, whole, step)
            first = whole
        with self.any_from(first, part.end):
            self._counted(loop, first, part.end, 1)

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


def _signature(op: Op) -> Signature:
    return Signature(op.opcode, tuple(operand.type for operand in op.operands), op.results[0].type)


def _var(operand: Operand) -> Var | None:
    return operand if isinstance(operand, Var) else None


@dataclass(frozen=True, slots=True)
class _Lane:
    """One lane of an operand, as a scalar."""

    type: Type
    reg: VReg

    def get(self, loose: bool = False) -> VReg:
        return self.reg
