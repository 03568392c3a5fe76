"""Operations and accesses of a native loop program as code of WebAssembly, on scalars and on lanes."""
from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from kera_hw.legal.native import Signature
from kera_hw.loops.program import (
    Block,
    Buffer,
    Index,
    Literal,
    Load,
    LoopProgram,
    Op,
    Operand,
    Store,
    Var,
    statements,
)
from kera_hw.schedule.software.layout import Layout, element_bytes
from kera_hw.schedule.software.statements import StatementWriter
from kera_hw.schedule.software.uses import Uses
from kera_hw.schedule.software.vector_loops import (
    ITEM,
    SHORT_BITS,
    Plan,
    VectorLoop,
    flat_terms,
    is_short_number,
)
from kera_hw.types import BoolType, FloatType, IntType, Type
from kera_hw.wasm import fused, scalars, vectors
from kera_hw.wasm.code import Code, value_type
from kera_hw.wasm.lifetimes import Lifetimes
from kera_hw.wasm.module import ValueType
from kera_hw.wasm.operands import Held, ScalarSource, VectorSource

_CONTIGUOUS_LOADS = {16: "v128.load", 8: "v128.load64_zero", 4: "v128.load32_zero"}
_CONTIGUOUS_STORES = {8: "v128.store64_lane", 4: "v128.store32_lane", 2: "v128.store16_lane"}
_UNSIGNED_LIMIT = 1 << 32
_INNERMOST = 1 << 30
VECTOR_BYTES = vectors.VECTOR_BITS // 8


class Straight(StatementWriter):
    """Writes statements without others inside. ``pointers``: locals with where an item's parameters and
    results lie."""

    def __init__(
        self, code: Code, program: LoopProgram, layout: Layout, plan: Plan, pointers: dict[str, int]
    ) -> None:
        super().__init__(program, layout, plan)
        self.code = code
        self._pointers = pointers
        self._lifetimes = Lifetimes(program.body)
        self._uses = Uses(program.body)
        self._held: dict[Var, Held] = {}
        self._nesting: dict[Var, int] = {}  # counters from the outside in
        self._splats: dict[Operand, int] = {}
        self._compared: dict[Var, Op] = {}
        self._copies = 1  # vectors of rounds that are written side by side
        self._copy = 0  # the one that is being written
        self._watch: fused.Watch | None = None  # of a loop whose fused products are hasty
        self._again = False  # whether the rounds of such a loop are done again
        self._doubt: int | None = None  # a local: how many such loops are to be exact at once

    # Scalars

    def _held_of(self, operand: Operand) -> Held | None:
        if not isinstance(operand, Var):
            return None
        held = self._held[operand]
        if held.counter and self._varies(operand):
            return self._iota(held)
        return held

    def _iota(self, held: Held) -> Held:
        """The counter of a vector's loop as lanes: its rounds' numbers."""
        assert self._vector is not None
        self.code.get(held.local)
        self.code.op("i64.extend_i32_u")
        self.code.op("i64x2.splat")
        first = self._copy * self._vector.count
        self.code.op("v128.const", first | (first + 1) << 64)
        self.code.op("i64x2.add")
        local = self.code.new_local(ValueType.V128)
        self.code.set(local)
        return Held(local, self._vector.count)

    def _short_iota(self, held: Held) -> None:
        """The same in 32 bits, on the stack."""
        assert self._vector is not None
        first = self._copy * self._vector.count
        self.code.get(held.local)
        self.code.op("i32x4.splat")
        self.code.op("v128.const", sum((first + k) << SHORT_BITS * k for k in range(4)))
        self.code.op("i32x4.add")

    def _scalar(self, operand: Operand) -> ScalarSource:
        return ScalarSource(self.code, operand, self._held_of(operand))

    def _lanes_of(self, operand: Operand) -> VectorSource:
        return VectorSource(self.code, operand, self._held_of(operand), self._splats.get(operand))

    def _bind(self, var: Var, loose: bool = False, mask_bits: int = 0) -> None:
        """The value on the stack becomes the scalar's."""
        vector = self._varies(var)
        local = self.code.new_local(ValueType.V128 if vector else value_type(var.type), self.code.name)
        self.code.set(local)
        lanes = self._vector.count if vector and self._vector is not None else 1
        self._held[var] = Held(local, lanes, mask_bits, loose=loose)

    def _forget(self, var: Var) -> None:
        held = self._held.pop(var, None)
        if held is not None:
            self.code.release(held.local)

    def _op(self, op: Op) -> None:
        (result,) = op.results
        signature = Signature(op.opcode, tuple(operand.type for operand in op.operands), result.type)
        if self._varies(result):
            assert self._vector is not None
            if op.opcode in ("compare.lt", "compare.gt") and isinstance(op.operands[0].type, FloatType):
                self._compared[result] = op
            counter = op.operands[0]
            if isinstance(counter, Var) and self._held[counter].counter and is_short_number(op, counter):
                self._short_iota(self._held[counter])
                self._bind(result)
                return
            if self._extreme(op):
                self._bind(result)
                return
            sources = [self._lanes_of(operand) for operand in op.operands]
            at = vectors.Lanes(self.code, self._vector.count, signature, sources)
            mask_bits = self._fused(at) if op.opcode == fused.OPCODE else vectors.write(at)
            self._bind(result, mask_bits=mask_bits)
            return
        rule = fused.fused_scalar if op.opcode == fused.OPCODE else scalars.RULES.get(op.opcode)
        assert rule is not None, f"{op.opcode} is no operation of WebAssembly"
        self._bind(result, rule(self.code, [self._scalar(operand) for operand in op.operands], signature))

    def _fused(self, at: vectors.Lanes) -> int:
        """As the loop around has it, else by itself."""
        if self._again:
            fused.exact(at)
        elif self._watch is not None:
            fused.hasty(at, self._watch)
        else:
            fused.alone(at)
        return 0

    def _extreme(self, op: Op) -> bool:
        """The lesser or the greater of two floats, as a selection by their comparison, in one instruction."""
        if op.opcode != "control.select" or not isinstance(op.operands[0], Var):
            return False
        compared = self._compared.get(op.operands[0])
        if compared is None or compared.operands[0].type != op.results[0].type:
            return False
        a, b = compared.operands if compared.opcode == "compare.lt" else compared.operands[::-1]
        if op.operands[1:] not in ((a, b), (b, a)):
            return False
        lesser = op.operands[1:] == (a, b)
        for operand in (b, a) if lesser else (a, b):
            self._lanes_of(operand).push()
        self.code.op(f"{vectors.shape_of_lanes(op.results[0].type)}.{'pmin' if lesser else 'pmax'}")
        return True

    @contextmanager
    def hoisted(self, loop: VectorLoop, block: Block, copies: int) -> Generator[None]:
        """Within it, so many vectors of a loop's rounds are written at once, and what all of them take in all
        lanes is in locals already."""
        wanted = dict.fromkeys(operand for operand in taken(block, loop) if self._is_splat(operand, loop))
        for operand in wanted:
            self._lanes_of(operand).push()
            self._splats[operand] = self.code.new_local(ValueType.V128)
            self.code.set(self._splats[operand])
        self._copies = copies
        with self.lanes(loop):
            yield
        self._copies = 1
        for local in self._splats.values():
            self.code.release(local)
        self._splats.clear()

    def _is_splat(self, operand: Operand, loop: VectorLoop) -> bool:
        """Whether it is there before the loop, and putting it in all lanes takes more than a zero does."""
        if isinstance(operand, Literal):
            return operand.bits != 0
        held = self._held.get(operand)
        return held is not None and not held.counter and operand not in loop.varying

    # Memory

    def _address(self, buffer: Buffer, index: Index, lane: int = 0) -> int:
        """Pushes an element's address but for the offset that it gives; ``lane``: of which round."""
        constant, terms = flat_terms(buffer, index)
        private = self._is_private(buffer)
        each = VECTOR_BYTES if private else element_bytes(buffer.element)
        if self._vector is not None:
            constant += terms.get(self._vector.var, 0) * (self._copy * self._vector.count + lane)
        terms.pop(ITEM, None)
        pointer = self._pointers.get(buffer.name)
        offset = constant * each + (0 if pointer is not None else self._layout.addresses[buffer.name])
        forward = all(c >= 0 and self._never_negative(var) for var, c in terms.items())
        immediate = offset if forward and 0 <= offset < _UNSIGNED_LIMIT else 0
        started = pointer is not None
        if pointer is not None:
            self.code.get(pointer)
        if immediate != offset or (not started and not terms):
            self.code.number(offset - immediate)
            if started:
                self.code.op("i32.add")
            started = True
        # What stays the same in the innermost loop comes first: engines compute that ahead of it.
        for var in sorted(terms, key=lambda var: self._nesting.get(var, _INNERMOST)):
            coefficient = terms[var]
            self._push_index(var, lane)
            if coefficient * each != 1:
                self.code.number(coefficient * each)
                self.code.op("i32.mul")
            if started:
                self.code.op("i32.add")
            started = True
        return immediate

    def _never_negative(self, var: Var) -> bool:
        return self._held[var].counter or (isinstance(var.type, IntType) and not var.type.signed)

    def _push_index(self, var: Var, lane: int) -> None:
        """A variable of an index as an i32."""
        held = self._held[var]
        if held.counter:
            self.code.get(held.local)
            return
        if held.lanes > 1:
            self.code.get(held.local)
            vectors.extract(self.code, var.type, lane)
        else:
            ScalarSource(self.code, var, held).push()
        if value_type(var.type) is ValueType.I64:
            self.code.op("i32.wrap_i64")

    def _load(self, load: Load) -> None:
        buffer = self._buffers[load.buffer]
        kind = buffer.element
        if not self._varies(load.result):
            offset = self._address(buffer, load.index)
            if self._is_for_lanes(load.result):
                self.code.op(f"v128.load{element_bytes(kind) * 8}_splat", offset)
                self._held[load.result] = Held(self.code.new_local(ValueType.V128), everywhere=True)
                self.code.set(self._held[load.result].local)
                return
            self.code.op(f"{scalars.prefix(kind)}.load{_narrow(kind)}", offset)
            self._bind(load.result)
            return
        assert self._vector is not None
        moving, lanes = self._moving(buffer, load.index), self._vector.count
        if not moving:
            self._load_uniform(buffer, load.index)
        elif moving == {self._vector.var: 1} and lanes * element_bytes(kind) in _CONTIGUOUS_LOADS:
            offset = self._address(buffer, load.index)
            self.code.op(_CONTIGUOUS_LOADS[lanes * element_bytes(kind)], offset)
        else:
            self._gather(buffer, load.index, lanes)
        self._bind(load.result)

    def _is_for_lanes(self, var: Var) -> bool:
        """Whether nothing but operations on lanes reads a scalar that is the same in all."""
        readers = self._uses.readers(var)
        return bool(readers) and not isinstance(var.type, BoolType) and all(
            isinstance(item, Op) and self._varies(item.results[0]) for item in readers
        )

    def _load_uniform(self, buffer: Buffer, index: Index) -> None:
        """Of a temporary with a place a lane: all lanes. Of another, the element in all lanes."""
        assert self._vector is not None
        offset = self._address(buffer, index)
        if buffer.name in self._vector.private:
            self.code.op("v128.load", offset)
            return
        self.code.op(f"{scalars.prefix(buffer.element)}.load{_narrow(buffer.element)}", offset)
        vectors.splat(self.code, buffer.element)

    def _gather(self, buffer: Buffer, index: Index, lanes: int) -> None:
        """Every lane's element from where it lies."""
        whole = self.code.new_local(ValueType.V128)
        self.code.op("v128.const", 0)
        self.code.set(whole)
        for lane in range(lanes):
            offset = self._address(buffer, index, lane)
            self.code.get(whole)
            self.code.op(f"v128.load{element_bytes(buffer.element) * 8}_lane", offset, lane)
            self.code.set(whole)
        self.code.get(whole)
        self.code.release(whole)

    def _store(self, store: Store) -> None:
        buffer = self._buffers[store.buffer]
        kind = buffer.element
        size = element_bytes(kind)
        moving = self._moving(buffer, store.index)
        private = self._is_private(buffer)
        if not moving and not private:
            offset = self._address(buffer, store.index)
            self._scalar(store.value).push(loose=True)
            bits = {1: "8", 2: "16"}.get(size, "")
            self.code.op(f"{scalars.prefix(kind)}.store{bits}", offset)
            return
        assert self._vector is not None
        lanes = self._vector.count
        if private or (moving == {self._vector.var: 1} and lanes * size == VECTOR_BYTES):
            offset = self._address(buffer, store.index)
            self._lanes_of(store.value).push()
            self.code.op("v128.store", offset)
            return
        value = self.code.new_local(ValueType.V128)
        self._lanes_of(store.value).push()
        self.code.set(value)
        if moving == {self._vector.var: 1} and lanes * size in _CONTIGUOUS_STORES:
            offset = self._address(buffer, store.index)
            self.code.get(value)
            self.code.op(_CONTIGUOUS_STORES[lanes * size], offset, 0)
        else:
            for lane in range(lanes):
                offset = self._address(buffer, store.index, lane)
                self.code.get(value)
                self.code.op(f"v128.store{size * 8}_lane", offset, lane)
        self.code.release(value)


def taken(block: Block, loop: VectorLoop) -> Iterator[Operand]:
    """Numbers that the loop's statements take as lanes."""
    for statement in statements(block):
        match statement:
            case Op(opcode=opcode, operands=operands, results=(result,)) if result in loop.varying:
                lanes = operands[:1] if opcode in ("bits.shl", "bits.shr") else operands
                yield from (operand for operand in lanes if not isinstance(operand.type, BoolType))
            case _:
                pass


def _narrow(kind: Type) -> str:
    """The suffix of a load that extends."""
    if isinstance(kind, BoolType):
        return "8_u"
    if scalars.is_narrow(kind):
        assert isinstance(kind, IntType)
        return f"{kind.width_bits}_{scalars.sign(kind)}"
    return ""
