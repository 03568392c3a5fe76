"""Sums of products of neighbours as machine code, for several vectors of rounds at once."""
from __future__ import annotations

from kera_hw.cpu_gpu.machine.code import VReg
from kera_hw.cpu_gpu.select.isa import Arg, Isa
from kera_hw.cpu_gpu.select.straight import Held, LaneOf, Straight
from kera_hw.legal.native import Signature
from kera_hw.loops.program import Block, Literal, LoopProgram, Var
from kera_hw.schedule.software.layout import Layout
from kera_hw.schedule.software.pairs import NO_PAIRS, Pair, PairedSum, PairedSums, paired_sums, short_numbers
from kera_hw.schedule.software.vector_loops import Plan
from kera_hw.types import IntType

_WORD = IntType(32, False)
_HALF = (1 << 16) - 1


class Paired(Straight):
    """Statements without others inside, of which some are written for all vectors side by side."""

    def __init__(
        self, isa: Isa, program: LoopProgram, layout: Layout, plan: Plan, arena: VReg, ports: dict[str, VReg]
    ) -> None:
        super().__init__(isa, program, layout, plan, arena, ports)
        self._short = short_numbers(program)

    def _sums_of_pairs(self, block: Block) -> PairedSums:
        """Those of a block that are written as such: of two vectors, or twice as many."""
        machine = self.isa.pairs
        if machine is None or self._vector is None or self._copies % 2 or not machine.takes(self._lane_count):
            return NO_PAIRS
        return paired_sums(block, self._vector, self._buffers, self._uses, self._short)

    def _sum_of_pairs(self, result: Var, found: PairedSum, held: list[dict[Var, Held]]) -> None:
        """Its vectors, each two neighbouring ones together; ``held``: of each vector side by side."""
        machine = self.isa.pairs
        assert machine is not None
        for start in range(0, self._copies, 2):
            self._copy, self._held = start, held[start]
            parts = [
                (self._buffers[pair.first.load.buffer].element,
                 self._place(self._buffers[pair.first.load.buffer], pair.first.load.index),
                 self._factors(pair))
                for pair in found.pairs
            ]
            for number, whole in enumerate(machine.sums(parts, self._lane_count), start):
                self._copy, self._held = number, held[number]
                for other in found.others:
                    whole = self._with(result, whole, self._arg(other))
                self._held[result] = Held(whole, self._lane_count)

    def _with(self, result: Var, whole: VReg, other: Arg) -> VReg:
        signature = Signature("integer.add", (result.type, result.type), result.type)
        args = [Arg(result.type, whole, False), other]
        found = self.isa.vector(signature, self._lane_count, args, self._splat, self._known)
        assert found is not None
        return found[0]

    def _factors(self, pair: Pair) -> VReg:
        """Both in each lane, the first one's below."""
        first, second = pair.first.factor, pair.second.factor
        assert self._vector is not None
        if isinstance(first, Literal) and isinstance(second, Literal):
            bits = first.bits & _HALF | (second.bits & _HALF) << 16
            arg = Arg(_WORD, None, True, bits=bits)
            return self._known(arg) or self.isa.splat_literal(_WORD, bits, self._lane_count)
        sources = [self._scalar(factor).get(loose=True) for factor in (first, second)]

        def write() -> VReg:
            low = self._of_words("bits.and", sources[0], _HALF)
            high = self._of_words("bits.shl", sources[1], 16)
            both, _ = self.isa.scalar(
                Signature("bits.or", (_WORD, _WORD), _WORD), [LaneOf(_WORD, low), LaneOf(_WORD, high)]
            )
            return self.isa.splat(_WORD, both, self._lane_count)

        return self._addresses.ahead_of_all(self._vector.var, sources, write)

    def _of_words(self, opcode: str, value: VReg, number: int) -> VReg:
        literal = LaneOf(_WORD, self.isa.literal(_WORD, number))
        found, _ = self.isa.scalar(Signature(opcode, (_WORD, _WORD), _WORD), [LaneOf(_WORD, value), literal])
        return found
