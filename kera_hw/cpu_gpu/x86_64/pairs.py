"""Products of 16 bits added in pairs: PMADDWD, and VPDPWSSD, which adds them to a sum as well."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kera_hw.cpu_gpu.machine.code import Mem, VReg
from kera_hw.cpu_gpu.select.isa import is_signed, width_of
from kera_hw.cpu_gpu.x86_64.lanes import load, resize, span
from kera_hw.cpu_gpu.x86_64.machine import Emitter
from kera_hw.types import Type

_SUM_BITS, _FACTOR_BITS = 32, 16


@dataclass(frozen=True, slots=True)
class PairProducts:
    """Implements ``select.isa.Pairs``."""

    to: Emitter

    def takes(self, count: int) -> bool:
        return count * _SUM_BITS in (128, 256, 512)

    def sums(self, parts: Sequence[tuple[Type, Mem, VReg]], count: int) -> tuple[VReg, VReg]:
        """Those of every other element, from the first and from the second on, and both put together."""
        totals: list[VReg | None] = [None, None]
        for kind, place, factors in parts:
            for k in range(2):
                there = replace(place, offset=place.offset + k * width_of(kind) // 8)
                totals[k] = self._added(totals[k], self._elements(kind, there, count), factors, count)
        even, odd = totals
        assert even is not None and odd is not None
        return self._together(even, odd, count)

    def _elements(self, kind: Type, place: Mem, count: int) -> VReg | Mem:
        """Two in each lane."""
        width = width_of(kind)
        if width == _FACTOR_BITS and self.to.level.vex:
            return place
        whole = load(self.to, kind, place, 2 * count)
        return resize(self.to, whole, width, _FACTOR_BITS, 2 * count, is_signed(kind))

    def _added(self, total: VReg | None, values: VReg | Mem, factors: VReg, count: int) -> VReg:
        length = span(_SUM_BITS, count)
        if total is not None and self.to.level.evex:
            found = self.to.vgives("vmovaps", total, size_bits=length)
            self.to.put("vpdpwssd", found, factors, values, size_bits=length)
            return found
        found = self.to.vgives("vpmaddwd", factors, values, size_bits=length)
        return found if total is None else self.to.vgives("vpaddd", total, found, size_bits=length)

    def _together(self, even: VReg, odd: VReg, count: int) -> tuple[VReg, VReg]:
        to, length = self.to, span(_SUM_BITS, count)
        if to.level.evex:
            return self._chosen(even, odd, count, 0), self._chosen(even, odd, count, count // 2)
        low, high = (to.vgives(f"vpunpck{half}dq", even, odd, size_bits=length) for half in "lh")
        if length == 128:
            return low, high
        first, second = (to.vgives("vperm2i128", low, high, which, size_bits=256) for which in (0x20, 0x31))
        return first, second

    def _chosen(self, even: VReg, odd: VReg, count: int, start: int) -> VReg:
        """Lanes of one and the other in turn, from ``start`` on."""
        lanes = [lane for k in range(start, start + count // 2) for lane in (k, count + k)]
        content = sum(lane << _SUM_BITS * place for place, lane in enumerate(lanes))
        length = span(_SUM_BITS, count)
        found = self.to.vgives("vmovdqu", self.to.constant(content, length // 8), size_bits=length)
        self.to.put("vpermi2d", found, even, odd, size_bits=length)
        return found
