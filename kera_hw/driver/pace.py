"""Cycles of a plan for people: a number, or the least and the most where a loop ends by a condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

Cycles = int | Mapping[str, int]


def most_cycles(found: Cycles) -> int:
    """The number, or the most."""
    return found if isinstance(found, int) else found["max"]


def cycles_text(found: Cycles) -> str:
    """``12``, or ``4 to 2,004``."""
    return f"{found:,}" if isinstance(found, int) else f"{found['min']:,} to {found['max']:,}"


def latency_text(found: Cycles) -> str:
    """``12 cycles``."""
    return f"{cycles_text(found)} {'cycle' if found == 1 else 'cycles'}"


def interval_text(found: Cycles) -> str:
    """``an item every 3 cycles``."""
    return "an item every cycle" if found == 1 else f"an item every {cycles_text(found)} cycles"


def rate_text(per_s: float, what: str = "") -> str:
    """``1.94 k items/s``, ``548 calls/s``, ``84.1 MB/s``, ``150 M/s``."""
    known = (("G", 1e9), ("M", 1e6), ("k", 1e3))
    unit, size = next((row for row in known if per_s >= row[1]), ("", 1.0))
    gap = " " if unit and len(what) > 1 else ""
    number = f"{per_s / size:.3g}"
    return f"{number} {unit}{gap}{what}/s" if unit or what else f"{number}/s"


def region_text(region: Mapping[str, Any]) -> str:
    """A sentence on a loop that stays one."""
    if region.get("in_step"):
        place = f" of {region['loop']}" if region["loop"] else ""
        when = f"from cycle {region['starts_at']:,} on, for {region['cycles']:,} cycles"
        return f"The loop{place} runs in step: `{region['writes']}` {when}."
    rounds = cast("Cycles", region["rounds"])
    count = f"{rounds:,} rounds" if isinstance(rounds, int) else f"at most {rounds['max']:,} rounds"
    interval, latency = region["initiation_interval"], region["latency_cycles"]
    every = "in each cycle" if interval == 1 else f"every {interval:,} cycles"
    place = f" of {region['loop']}" if region["loop"] else ""
    through = f"through a pipeline of {latency_text(latency)}"
    text = f"The loop{place} stays a loop: {count}, one {every}, {through}."
    if "units" in region:
        alone = interval_text(region["interval_of_one"])
        text += f" Items take turns in {region['units']} units, of which one takes {alone}."
    return text


def side_by_side_text(found: Mapping[str, Any]) -> str:
    """A sentence on rounds that go at once."""
    loops = [f"{row['rounds']} of {row['loop'] or 'a loop'}" for row in found["loops"]]
    listed = " and ".join(filter(None, (", ".join(loops[:-1]), *loops[-1:])))
    return f"Rounds go side by side: {listed}."


def memory_text(memory: Mapping[str, Any]) -> str:
    """A sentence on a memory and what it is made of."""
    blocks, ports = memory.get("blocks", 0), memory["read_ports"]
    where = " in LUT RAM" if memory.get("style") == "lut" else ""
    if blocks:
        where = f" in {blocks} block RAM{'s' if blocks > 1 else ''}"
    reads = f", {ports} read ports" if ports > 1 else ""
    over = "; reads are handed what is on its way" if memory.get("hands_over") else ""
    banks = f"{memory['banks']} banks of " if memory.get("banks", 1) > 1 else ""
    size = f"{banks}{memory['words']:,} words of {memory['bits']} bits"
    return f"Memory `{memory['name']}`: {size}{where}{reads}{over}."


def reset_text(cycles: int) -> str:
    """A sentence on how long memories take to be initialised."""
    return f"After a reset, no item is taken for {cycles:,} cycles: memories get their initial words."
