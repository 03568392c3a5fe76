"""One export lowered for a device: optimised once, flat and in cells once for each way that is asked for.

Planning again, for another clock or for slower wires, begins with what is already there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from kera_hw.driver.fitting import explained, refuse_oversize
from kera_hw.driver.mapping import Mappings
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import optimise, single_export_graph
from kera_hw.graph import Export, Graph, Store, without_probes
from kera_hw.loops.program import Block, For, LoopProgram, While, statements
from kera_hw.loops.transforms.planner import planned
from kera_hw.lower.export import lower_export
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.rtl.lower.design import LoweringError
from kera_hw.rtl.machine.compact import Compact, compact
from kera_hw.rtl.machine.nest_round import RegionDesign, region_designs
from kera_hw.rtl.machine.nests import MOST_UNROLLED, Regions, computes
from kera_hw.rtl.machine.parts import Parts, loops_over, operation_count, parts_of
from kera_hw.rtl.machine.raster import NoRaster, Raster
from kera_hw.rtl.machine.raster_round import RasterRound, raster_of, raster_round
from kera_hw.rtl.machine.rounds import RoundDesign, region_of
from kera_hw.schedule.fpga.device import find_device
from kera_hw.support import Diagnostic, KeraError, SourceFile

_LARGEST_ROUND = 1024
"""Operations of a round whose own loops are unrolled."""


def _times(loop: For | While) -> int:
    return loop.count if isinstance(loop, For) else loop.most


def _round_size(loop: For | While) -> int:
    return operation_count(loop) // max(1, _times(loop))


def _rounds_within(loop: For | While) -> int:
    """Rounds of a loop, or of all loops in it, where one is one too."""
    keeps = loops_over(MOST_UNROLLED)
    own = (item for item in statements(Block((loop,))) if item is not loop)
    inner = sum(_rounds_within(item) for item in own if isinstance(item, (For, While)) and keeps(item))
    return _times(loop) * max(1, inner)


class Lowering:
    """The lowered forms of one export; ``files`` are its sources by path, for messages."""

    def __init__(
        self, program: Graph, export: Export, options: TargetOptions, files: Mapping[str, SourceFile]
    ) -> None:
        device = find_device(options.device)
        assert device is not None, "options are checked when they are made"
        self.device = device
        self.files = dict(files)
        self._options = options
        self._optimised = optimise(single_export_graph(program, without_probes(export)))
        self._store = Store()
        self._store.origins.update(self._optimised.origins)
        self._store.scopes.update(self._optimised.scopes)
        self._by_interval: dict[tuple[int, bool], Mappings] = {}
        self._rounds: list[tuple[Regions, int, list[RegionDesign]]] = []

    def mappings(self, interval: int, rolled: bool = False) -> Mappings:
        """The flat design for an item every ``interval`` cycles, ready to be mapped.

        ``rolled``: of a round of the loop that stays one, for a round every ``interval`` cycles.
        Raises KeraError for what has no circuit (K06xx, K07xx), or none that fits the device (K0604).
        """
        found = self._by_interval.get((interval, rolled))
        if found is None:
            region = self._region(interval) if rolled else None
            flat = self._flat(interval) if region is None else region.flat
            same = (known for known in self._by_interval.values() if known.flat.region is flat.region)
            found = next(same, None) or Mappings(flat, self.device, interval, region)
            self._by_interval[interval, rolled] = found
        return found

    @cached_property
    def program(self) -> LoopProgram:
        """The export as a loop program. Raises KeraError (K07xx) where it has none."""
        return lower_export(
            self._optimised.exports[0], self._optimised.origins, scopes=self._optimised.scopes
        )

    @cached_property
    def compact(self) -> Compact | None:
        """The program with its long loops alone as loops, and small arrays in registers; None for others."""
        try:
            return compact(self.program)
        except KeraError:
            return None

    @cached_property
    def parts(self) -> Parts | None:
        """The program around the loop that stays one; None where there is none, or more than one.

        Of several, the one that is left where short loops are written out and neighbours joined.
        Loops inside its rounds are unrolled where that makes no large round and the interval is shorter
        than their rounds, which take turns in a process.
        """
        try:
            found = parts_of(self.program, loops_over(MOST_UNROLLED))
        except KeraError:
            return None
        alone = len(found.before) == 1
        if alone and found.is_innermost:
            return found
        written_out = None if self.compact is None else _of_one_loop(self.compact.program)
        if written_out is not None or not alone:
            return written_out
        ((_, kept),) = found.before
        interval = self._options.interval
        hurried = interval is not None and interval < _rounds_within(kept.loop)
        return found if hurried and _round_size(kept.loop) <= _LARGEST_ROUND else None

    @property
    def written_out(self) -> bool:
        """Whether one loop stays only where those within it are written out, or joined with it."""
        return self.parts is not None and self.parts.program is not self.program

    @property
    def most_rounds(self) -> int:
        """Rounds that an item takes at the most where one loop stays."""
        assert self.parts is not None, "asked for where a loop stays"
        ((_, kept),) = self.parts.before
        return kept.loop.count + self._rests if isinstance(kept.loop, For) else kept.loop.most + 1

    @property
    def _rests(self) -> bool:
        """Whether what stands behind the loop has a round of its own."""
        return self.written_out and self.parts is not None and computes(self.parts.after)

    def region_designs(self, regions: Regions, interval: int) -> list[RegionDesign]:
        """Rounds of a process's regions, for a round every ``interval`` cycles. Raises KeraError (K06xx)."""
        for known, every, designs in self._rounds:
            if known is regions and every == interval:
                return designs
        made = region_designs(
            self._optimised.exports[0], regions, self._store, interval, self.device.carry_logic
        )
        if isinstance(made, Diagnostic):
            raise KeraError([made])
        for design in made:
            refuse_oversize(design.flat, self._optimised, self.device, self._options, self.files)
        self._rounds.append((regions, interval, made))
        return made

    @cached_property
    def raster(self) -> Raster | None:
        """The export as stencils that run in step, those that keep the fewest bits; None where it is none."""
        export, found = self._optimised.exports[0], list[tuple[int, Raster]]()
        for program in (planned(self.program, lambda _: True).after, self.program):
            try:
                raster = raster_of(program, export, self.device.carry_logic)
                flat = raster_round(export, raster, Store(), 1, self.device.carry_logic).flat
            except (NoRaster, LoweringError):
                continue
            kept = sum(state.width_bits for state in flat.states)
            found.append((kept + sum(m.entries * m.word_bits for m in flat.memories), raster))
        return min(found, key=lambda item: item[0])[1] if found else None

    def raster_round(self, interval: int) -> RasterRound:
        """A round of the stencils, for one every ``interval`` cycles. Raises KeraError (K06xx)."""
        assert self.raster is not None, "asked for where there are stencils"
        export = self._optimised.exports[0]
        try:
            found = raster_round(export, self.raster, self._store, interval, self.device.carry_logic)
        except LoweringError as problem:
            raise KeraError([problem.diagnostic]) from None
        refuse_oversize(found.flat, self._optimised, self.device, self._options, self.files)
        return found

    def _region(self, interval: int) -> RoundDesign:
        assert self.parts is not None, "asked for where a loop stays"
        found = region_of(
            self._optimised.exports[0], self.parts, self._store, interval, self.device.carry_logic,
            rests=self._rests,
        )
        if isinstance(found, Diagnostic):
            raise KeraError([found])
        refuse_oversize(found.flat, self._optimised, self.device, self._options, self.files)
        return found

    def _flat(self, interval: int) -> FlatDesign:
        device, dsp = self.device, self._options.dsp
        flat = flatten_export(self._optimised.exports[0], self._store, interval, device.carry_logic)
        if isinstance(flat, Diagnostic):
            if flat.code == "K0610":
                flat = explained(flat, self._optimised, device, dsp, self.files)
            raise KeraError([flat])
        refuse_oversize(flat, self._optimised, device, self._options, self.files)
        return flat


def _of_one_loop(program: LoopProgram) -> Parts | None:
    """The program around its one loop that stays, if there is no other."""
    found = parts_of(program, loops_over(MOST_UNROLLED))
    return found if len(found.before) == 1 and found.is_innermost else None
