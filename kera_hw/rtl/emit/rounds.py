"""How many rounds of a pipeline an item takes, and how long that is, where a loop stays a loop."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counted", "until"]


@dataclass(frozen=True, slots=True)
class Rounds:
    """How many rounds an item takes: ``count`` exactly, or at most before that which finds the exit.

    ``flags`` are the datapath's first inputs, with their widths: whether a round is the first of its item;
    whether it is the last, or of a loop that ends by a condition, beyond the most; and of a counted loop its
    number. The first output says that the result is there.
    """

    kind: Kind
    count: int
    flags: tuple[tuple[str, int], ...]
    rests: bool = False
    """Whether the last round is one more than are numbered: its number is 0."""
    units: int = 1
    """Circuits that take items in turn, where a loop ends by a condition."""

    @property
    def least(self) -> int:
        """Rounds of the item that takes the fewest."""
        return self.count if self.kind == "counted" else 0

    def latency_cycles(self, latency_cycles: int, interval: int, rounds: int | None = None) -> int:
        """Of an item of so many rounds that go on (of the most, for None), from a round's own pace."""
        going = self.count if rounds is None else rounds
        return (going - (self.kind == "counted")) * interval + latency_cycles

    def initiation_interval(self, latency_cycles: int, interval: int, rounds: int | None = None) -> int:
        """Cycles from such an item to the next, of many that are alike."""
        if self.kind == "counted":
            return self.count * interval
        return -(-(self.latency_cycles(latency_cycles, interval, rounds) + 1) // self.units)
