"""Kernels in AMDGCN: a wave of 64 threads has one course, and a mask of those that go along.

Whatever nests keeps the mask from before in scalar registers of its own, so that how deep things nest is
bounded. Loops that count keep their counter there too, since all threads make all rounds. Branches over what
no thread of a wave does are for speed alone; a loop ends when none is left.
"""
from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Literal as OneOf

from kera_hw.cpu_gpu.amdgcn.code import EXEC, MOVE, MOVE_PAIR, OFF, SKIP, VCC, Code, high, is_inline, low
from kera_hw.cpu_gpu.amdgcn.operands import WORD, is_signed, is_wide, pair, widened, word
from kera_hw.cpu_gpu.amdgcn.scalars import RULES
from kera_hw.cpu_gpu.amdgcn.table import GLOBAL_OFFSETS, SHARED_OFFSETS
from kera_hw.cpu_gpu.gpu.writer import Held, Place, Scalar, Space, Step, Writer
from kera_hw.cpu_gpu.machine.code import Fixed, Name, RegClass, VReg
from kera_hw.legal.native import Signature
from kera_hw.schedule.software.layout import element_bytes
from kera_hw.support import Diagnostic, KeraError
from kera_hw.types import IntType, Type

ARGUMENTS = Name("s[0:1]")
"""The address of what the kernel is launched with."""
_BLOCKS = {"x": Name("s2"), "y": Name("s3")}
_LOADED, _HERE = Name("s[4:5]"), Name("s[6:7]")
_FIRST_KEPT, SCALARS = 8, 100
"""Of scalar registers: those from the one on keep masks and counters, below the other."""
_ITEM_BITS = (1 << 10) - 1
ARGUMENT_BYTES = 8
_LOADS = {1: "byte", 2: "short", 4: "dword", 8: "dwordx2"}
_SHARED = {1: "8", 2: "16", 4: "32", 8: "64"}


class AmdWriter(Writer[VReg]):
    """``shared_bytes`` of a block; ``scalars``: registers from 0 on that are used."""

    def __init__(self, name: str, parameters: Sequence[str]) -> None:
        self.code = Code()
        self.name, self.parameters = name, parameters
        self.shared_bytes = 0
        self.scalars = _FIRST_KEPT
        self._kept = _FIRST_KEPT

    # Scalars

    def compute(self, op: Signature, args: Sequence[Scalar[VReg]]) -> Held[VReg]:
        rule = RULES.get(op.opcode)
        assert rule is not None, f"{op.opcode} is no operation of AMDGCN"
        return rule(self.code, args, op)

    def register(self, kind: Type) -> VReg:
        return self.code.pair() if is_wide(kind) else self.code.word()

    def move(self, register: VReg, value: Scalar[VReg]) -> None:
        if is_wide(value.type):
            self.code.op(MOVE_PAIR, register, pair(self.code, value))
        else:
            self.code.op(MOVE, register, word(self.code, value))

    # Memory

    def advance(self, base: VReg, steps: Sequence[Step[VReg]]) -> VReg:
        for scalar, bytes_each in steps:
            base = self._stepped(base, scalar, bytes_each)
        return base

    def _stepped(self, base: VReg, scalar: Scalar[VReg], bytes_each: int) -> VReg:
        code = self.code
        if is_wide(scalar.type):
            value = pair(code, scalar)
            if value not in code.small:
                return self._stepped_wide(base, value, bytes_each)
            count = low(value)
        elif is_signed(scalar.type):
            if -(1 << 31) <= bytes_each < 1 << 31:
                return code.give("v_mad_i64_i32", word(code, scalar), self._factor(bytes_each), base)
            return self._stepped_wide(base, widened(code, scalar), bytes_each)
        else:
            count = word(code, scalar)
        if 0 <= bytes_each <= WORD:
            return code.give("v_mad_u64_u32", count, self._factor(bytes_each), base)
        return self._stepped_wide(base, code.both(count, 0), bytes_each)

    def _stepped_wide(self, base: VReg, value: VReg, bytes_each: int) -> VReg:
        """Modulo 2^64, by words."""
        code, lower, upper = self.code, bytes_each & WORD, bytes_each >> 32 & WORD
        found = code.give("v_mad_u64_u32", low(value), self._factor(lower), base)
        parts = [code.give("v_mul_lo_u32", high(value), self._factor(lower))]
        if upper:
            parts.append(code.give("v_mul_lo_u32", low(value), self._factor(upper)))
        top = high(found)
        for part in parts:
            top = code.give("v_add_u32", top, part)
        return code.both(low(found), top)

    def _factor(self, value: int) -> VReg | int:
        return value if is_inline(value) else self.code.give(MOVE, value & WORD)

    def _global(self, place: Place[VReg], steps: Sequence[Step[VReg]]) -> tuple[VReg, int]:
        assert place.base is not None
        base = self.advance(place.base, steps)
        if place.offset in GLOBAL_OFFSETS:
            return base, place.offset
        return self._added(base, place.offset), 0

    def _added(self, base: VReg, offset: int) -> VReg:
        code, result = self.code, self.code.pair()
        code.op("v_add_co_u32", low(result), VCC, offset & WORD, low(base))
        upper = self._factor(offset >> 32)
        code.op("v_addc_co_u32", high(result), VCC, upper, high(base), VCC)
        return result

    def _shared(self, place: Place[VReg], steps: Sequence[Step[VReg]]) -> tuple[VReg, int]:
        """Addresses are words, and modulo 2^32 right whatever the sign."""
        code, offset = self.code, place.offset
        address = place.base
        for scalar, bytes_each in steps:
            count = low(pair(code, scalar)) if is_wide(scalar.type) else word(code, scalar)
            step = code.give("v_mul_lo_u32", count, self._factor(bytes_each))
            address = step if address is None else code.give("v_add_u32", address, step)
        if address is None:
            return code.give(MOVE, offset), 0
        # What an instruction adds must not make up for an address below 0, which a sum may be on the way.
        if offset in SHARED_OFFSETS and not steps:
            return address, offset
        return (code.give("v_add_u32", offset & WORD, address) if offset else address), 0

    def load(self, kind: Type, place: Place[VReg], steps: Sequence[Step[VReg]]) -> Held[VReg]:
        size_bytes = element_bytes(kind)
        narrow = isinstance(kind, IntType) and size_bytes < 4
        signed = is_signed(kind)
        if place.space == "shared":
            base, offset = self._shared(place, steps)
            letter = ("i" if signed else "u") if narrow else "b"
            return Held(self.code.give(f"ds_read_{letter}{_SHARED[size_bytes]}", base, offset=offset))
        base, offset = self._global(place, steps)
        letter = ("s" if signed else "u") if narrow else ""
        return Held(self.code.give(f"global_load_{letter}{_LOADS[size_bytes]}", base, OFF, offset=offset))

    def store(
        self, kind: Type, place: Place[VReg], steps: Sequence[Step[VReg]], value: Scalar[VReg]
    ) -> None:
        size_bytes = element_bytes(kind)
        held = pair(self.code, value) if is_wide(kind) else word(self.code, value, loose=True)
        if place.space == "shared":
            base, offset = self._shared(place, steps)
            self.code.op(f"ds_write_b{_SHARED[size_bytes]}", base, held, offset=offset)
            return
        base, offset = self._global(place, steps)
        self.code.op(f"global_store_{_LOADS[size_bytes]}", base, held, OFF, offset=offset)

    def parameter(self, name: str) -> VReg:
        offset = self.parameters.index(name) * ARGUMENT_BYTES
        self.code.op("s_load_dwordx2", _LOADED, ARGUMENTS, offset)
        return self._from_scalars(_LOADED)

    def pointer(self, name: str) -> VReg:
        return self.parameter(name)

    def symbol(self, name: str) -> VReg:
        """From where the code is, which is 4 and 12 bytes before the words that are added."""
        lower, upper = halves(_HERE)
        self.code.op("s_getpc_b64", _HERE)
        self.code.op("s_add_u32", lower, lower, Name(f"{name}@rel32@lo+4"))
        self.code.op("s_addc_u32", upper, upper, Name(f"{name}@rel32@hi+12"))
        return self._from_scalars(_HERE)

    def _from_scalars(self, scalars: Name) -> VReg:
        result = self.code.pair()
        for part, name in zip((low, high), halves(scalars)):
            self.code.op(MOVE, part(result), name)
        return result

    def array(self, space: Space, size_bytes: int) -> Place[VReg]:
        assert space == "shared", "threads have no memory of their own: what they need is in that of the item"
        self.shared_bytes += size_bytes
        return Place("shared", None, self.shared_bytes - size_bytes)

    # Threads

    def thread(self) -> VReg:
        """The machine has it with those of other axes in one register."""
        code = self.code
        return code.give("v_and_b32", _ITEM_BITS, Fixed(0, RegClass.VECTOR))

    def block(self, axis: OneOf["x", "y"]) -> VReg:
        return self.code.give(MOVE, _BLOCKS[axis])

    def barrier(self) -> None:
        """Behind a wait for all that was stored: see ``waits``."""
        self.code.op("s_barrier")

    # Control

    def comment(self, text: str) -> None:
        self.code.comment(text)

    @contextmanager
    def _keep(self) -> Generator[Name]:
        """A pair of scalar registers, for as long as something nests."""
        first = self._kept
        if first + 2 > SCALARS:
            most = (SCALARS - _FIRST_KEPT) // 2
            message = f"Loops and branches of `{self.name}` nest deeper than {most}, the most of AMDGCN."
            raise KeraError([Diagnostic("K0702", message)])
        self._kept += 2
        self.scalars = max(self.scalars, self._kept)
        yield Name(f"s[{first}:{first + 1}]")
        self._kept -= 2

    @contextmanager
    def either(self, condition: Scalar[VReg]) -> Generator[Callable[[], None]]:
        code, skip = self.code, self.code.label()
        turned = False

        def turn() -> None:
            nonlocal skip, turned
            code.place(skip)
            code.op("s_andn2_b64", EXEC, kept, EXEC)
            code.mark("lanes")
            skip = code.label()
            code.op(SKIP, skip)
            turned = True

        flag = word(code, condition)
        with self._keep() as kept:
            code.mask(flag)
            code.op("s_and_saveexec_b64", kept, VCC)
            code.mark("lanes")
            code.op(SKIP, skip)
            yield turn
            code.place(skip)
            code.op("s_mov_b64", EXEC, kept)
            code.mark("lanes")

    @contextmanager
    def counted(self, count: int) -> Generator[Held[VReg]]:
        code, again = self.code, self.code.label()
        if count > WORD:
            message = f"A loop of `{self.name}` has {count:,} rounds; {WORD:,} is the most of AMDGCN."
            raise KeraError([Diagnostic("K0705", message)])
        with self._keep() as kept:
            counter, _ = halves(kept)
            code.op("s_mov_b32", counter, 0)
            code.mark("loop")
            code.place(again)
            number = code.pair()
            code.op(MOVE, low(number), counter)
            code.op(MOVE, high(number), 0)
            code.small.add(number)
            yield Held(number)
            code.op("s_add_u32", counter, counter, 1)
            code.op("s_cmp_lg_u32", counter, count)
            code.op("s_cbranch_scc1", again)
            code.mark("end")

    @contextmanager
    def repeated(self, most: int | None) -> Generator[Callable[[Scalar[VReg]], None]]:
        """Threads that leave are masked until the last has left; those that run have made as many rounds."""
        code, again, done = self.code, self.code.label(), self.code.label()

        def leave_unless(condition: Scalar[VReg]) -> None:
            code.mask(word(code, condition))
            code.op("s_and_b64", EXEC, EXEC, VCC)
            code.mark("lanes")
            code.op("s_cbranch_execz", done)

        with self._keep() as kept, self._keep() as rounds, self._keep() as limit:
            code.op("s_mov_b64", kept, EXEC)
            if most is not None:
                code.op("s_mov_b64", rounds, 0)
                for name, half in zip(halves(limit), (most & WORD, most >> 32)):
                    code.op("s_mov_b32", name, half)
            code.mark("loop")
            code.place(again)
            if most is not None:
                code.op("s_cmp_eq_u64", rounds, limit)
                code.op("s_cbranch_scc1", done)
            yield leave_unless
            if most is not None:
                lower, upper = halves(rounds)
                code.op("s_add_u32", lower, lower, 1)
                code.op("s_addc_u32", upper, upper, 0)
            code.op("s_branch", again)
            code.place(done)
            code.mark("end")
            code.op("s_mov_b64", EXEC, kept)
            code.mark("lanes")

    @contextmanager
    def repeated_together(self) -> Generator[Callable[[Scalar[VReg]], None]]:
        code, again, done = self.code, self.code.label(), self.code.label()

        def leave_unless(condition: Scalar[VReg]) -> None:
            code.mask(word(code, condition))
            code.op("s_cbranch_vccz", done)

        code.mark("loop")
        code.place(again)
        yield leave_unless
        code.op("s_branch", again)
        code.place(done)
        code.mark("end")


def halves(scalars: Name) -> tuple[Name, Name]:
    """The registers of a pair such as s[4:5]."""
    first = int(scalars.text[2:].partition(":")[0])
    return Name(f"s{first}"), Name(f"s{first + 1}")
