"""What a caller may ask of a target, and what a target gives back: the words that all of them share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class Executor(Protocol):
    """Runs one export on batches: values by parameter name, leading axis = items (a stream's sequence)."""

    @property
    def plan(self) -> Mapping[str, Any]:
        """What was decided: plain JSON data."""
        ...

    def run(self, inputs: Mapping[str, Any], batch: int) -> Any:
        """The results of ``batch`` items. Raises KeraError for unfit values or a tool's failure."""
        ...


INTERFACES = ("stream", "none")
EMITTERS = ("text", "amaranth")


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """Requests to any target; a target ignores what it has no use for.

    ``device`` is a part's name (`ecp5-85k`). None leaves a choice to the target: ``clock_mhz``, ``latency``
    and ``interval`` (cycles), ``dsp`` (multiplier blocks that may be used). ``interface`` is one of
    INTERFACES: valid and ready, or clock and data alone. ``emitter`` is one of EMITTERS: the way to Verilog.
    """

    device: str = "ecp5-85k"
    clock_mhz: float | None = None
    latency: int | None = None
    interface: str = "stream"
    interval: int | None = None
    dsp: int | None = None
    emitter: str = "text"
