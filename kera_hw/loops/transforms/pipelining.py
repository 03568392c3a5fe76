"""Rounds that overlap, and operations that share units."""
from __future__ import annotations

from dataclasses import replace

from kera_hw.loops.program import For, LoopProgram, Op, Schedule, Statement, statements
from kera_hw.loops.recurrences import NoPipeline, check_interval
from kera_hw.loops.transforms.reason import Refused, loop_named, with_loop, with_schedule


def pipeline(program: LoopProgram, loop: str, interval: int, latencies: str) -> LoopProgram:
    """A round of a loop starts every ``interval`` cycles, before earlier ones are done.

    ``latencies`` are the cycles that operations take: ``integer.mul=3 load=2 other=1``. An interval below
    what a value that is carried, or stored and loaded again, takes to go round is refused with the least.
    """
    table = _table(latencies)

    def change(whole: For) -> list[Statement]:
        if interval < 1:
            raise Refused(f"A round of `{loop}` starts every cycle at most, not every {interval}.")
        made = replace(whole, schedule=Schedule(None, interval, table, whole.schedule.units))
        try:
            check_interval(made)
        except NoPipeline as error:
            raise Refused(str(error)) from None
        return [made]

    return with_loop(program, loop, change)


def _table(text: str) -> tuple[tuple[str, int], ...]:
    found: dict[str, int] = {}
    for row in text.split():
        name, _, cycles = row.partition("=")
        if not name or not cycles.isdecimal() or name in found:
            raise Refused(f"`{row}` is no latency; they are written like `integer.mul=3 load=2 other=1`.")
        found[name] = int(cycles)
    return tuple(sorted(found.items()))


def share(program: LoopProgram, loop: str, opcode: str, units: int) -> LoopProgram:
    """All operations of a kind within a loop on ``units`` units, which is enough if the interval is."""
    whole = loop_named(program, loop)
    uses = sum(isinstance(item, Op) and item.opcode == opcode for item in statements(whole.body))
    interval = whole.schedule.initiation_interval
    if opcode in dict(whole.schedule.units):
        raise Refused(f"`{loop}` shares `{opcode}` already.")
    if not uses:
        raise Refused(f"`{loop}` has no operation `{opcode}`.")
    if units < 1 or (interval and uses > units * interval):
        raise Refused(
            f"`{loop}` has {uses} operations `{opcode}` a round, and {units} units do {units * interval} in "
            f"the {interval} cycles between rounds."
        )
    schedule = replace(whole.schedule, units=(*whole.schedule.units, (opcode, units)))
    return with_schedule(program, loop, schedule)
