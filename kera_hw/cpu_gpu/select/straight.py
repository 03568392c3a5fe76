"""Operations and accesses of a native loop program as machine code, on scalars and on lanes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kera_hw.cpu_gpu.machine.code import Mem, RegClass, VReg
from kera_hw.cpu_gpu.select.addresses import Addresses
from kera_hw.cpu_gpu.select.bounds import Bounds
from kera_hw.cpu_gpu.select.isa import Arg, Isa, width_of
from kera_hw.cpu_gpu.select.stored import Stored
from kera_hw.legal.native import Signature
from kera_hw.loops.program import Buffer, Index, Literal, Load, LoopProgram, Op, Operand, Store, Var
from kera_hw.schedule.software.layout import Layout, element_bytes
from kera_hw.schedule.software.statements import StatementWriter
from kera_hw.schedule.software.uses import Uses
from kera_hw.schedule.software.vector_loops import ITEM, SHORT_BITS, Plan, flat_terms, is_short_number
from kera_hw.types import BoolType, IntType, Type


@dataclass(frozen=True, slots=True)
class Held:
    """A scalar's register; of several rounds at once, lanes in one. ``counter``: a loop's own."""

    reg: VReg
    lanes: int = 1
    mask_bits: int = 0
    loose: bool = False
    counter: bool = False


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


class Straight(StatementWriter):
    """Statements without others inside.

    ``arena``: a register with the address of constants, states and temporaries; ``ports``: with those of
    parameters and results.
    """

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
        self.item_elements: Mapping[str, int] = {}  # of leaves whose items are counted one by one in blocks
        self._stored = Stored()  # temporaries in the straight code that is being written
        self._fixed: dict[Var, int] = {}  # counters of loops whose one round is written
        self._copies = 1  # vectors of rounds that are written side by side
        self._copy = 0  # the one that is being written

    def _forget(self) -> None:
        """What was made within a block is not there in another."""
        self._lanes_as_index.clear()
        self._masks.clear()
        self._splats.clear()
        self._loaded.clear()

    # Scalars

    @property
    def _lane_var(self) -> Var | None:
        return None if self._vector is None else self._vector.var

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
            scalars = [LaneOf(arg.type, self._lane(arg, lane)) for arg in args]
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
        constant, terms = self._flat(buffer, index)
        if buffer.name in self.item_elements:
            terms[ITEM] = self.item_elements[buffer.name]
        private = self._is_private(buffer)
        each = self.isa.vector_bits // 8 if private else element_bytes(buffer.element)
        if self._vector is not None:
            constant += terms.get(self._vector.var, 0) * self._copy * self._lane_count
            constant += dict(flat_terms(buffer, index)[1]).get(self._vector.var, 0) * lane
        base = self._ports.get(buffer.name)
        offset = constant * each
        if base is None:
            base, offset = self._arena, offset + self._layout.addresses[buffer.name]
        scaled = {var: coefficient * each for var, coefficient in terms.items()}
        return self._addresses.of(base, offset, scaled, lambda var: self._index(var, lane))

    def _flat(self, buffer: Buffer, index: Index) -> tuple[int, dict[Var, int]]:
        """An element's number, with what is known of counters."""
        constant, terms = flat_terms(buffer, index)
        for var in terms.keys() & self._fixed.keys():
            step = terms.pop(var)
            constant += step * self._fixed[var]
            if self._vector is not None and var == self._vector.var:
                constant += step * self._copy * self._lane_count
        return constant, terms

    def _element(self, buffer: Buffer, index: Index) -> int | None:
        """The number of an element of a temporary, or of the first of lanes, where it is known."""
        constant, terms = self._flat(buffer, index)
        return None if terms or self._is_private(buffer) else constant

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
        if not spread and (found := self._handed_on(load, buffer)) is not None:
            return found
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

    def _handed_on(self, load: Load, buffer: Buffer) -> Held | None:
        """What was stored there, as it lies in a register."""
        varies = self._varies(load.result)
        first, lanes = self._element(buffer, load.index), self._lane_count if varies else 1
        if first is None or (varies and self._moving(buffer, load.index) != {self._lane_var: 1}):
            return None
        known = self._stored.find(buffer.name, first, lanes)
        if known is None:
            return None
        if known.lanes == lanes:
            return Held(known.register, lanes)
        if lanes == 1:
            return Held(self.isa.extract(buffer.element, known.register, first - known.first))
        part = self.isa.lanes_from(buffer.element, known.register, first - known.first, lanes)
        return None if part is None else Held(part, lanes)

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
        first = self._element(buffer, store.index) if width_of(kind) >= SHORT_BITS else None
        if not moving and not private:
            value = self._scalar(store.value).get(loose=True)
            self.isa.store(kind, self._place(buffer, store.index), value)
            self._stored.note(buffer.name, first, 1, value)
            return
        assert self._vector is not None
        lanes = self._lanes_of(store.value)
        if private or moving == {self._vector.var: 1}:
            self.isa.store_lanes(kind, self._place(buffer, store.index), lanes, self._lane_count)
            self._stored.note(buffer.name, first, self._lane_count, lanes)
            return
        self._stored.note(buffer.name, None, 1, lanes)
        for lane in range(self._lane_count):
            value = self.isa.extract(kind, lanes, lane)
            self.isa.store(kind, self._place(buffer, store.index, lane), value)


def _signature(op: Op) -> Signature:
    return Signature(op.opcode, tuple(operand.type for operand in op.operands), op.results[0].type)


def _var(operand: Operand) -> Var | None:
    return operand if isinstance(operand, Var) else None


@dataclass(frozen=True, slots=True)
class LaneOf:
    """One lane of an operand, as a scalar."""

    type: Type
    reg: VReg

    def get(self, loose: bool = False) -> VReg:
        return self.reg
