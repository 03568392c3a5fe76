"""Pipelines as data. Dead code and common subexpressions need no pass: regions hold only what their results
reach, and the store holds each node once."""
from __future__ import annotations

from kera_hw.passes.fold_constants import fold_constants
from kera_hw.passes.inline import inline_calls
from kera_hw.passes.manager import Pass
from kera_hw.passes.prune import prune
from kera_hw.passes.simplify import simplify

PASSES: dict[str, Pass] = {
    "inline_calls": inline_calls,
    "fold_constants": fold_constants,
    "simplify": simplify,
    "prune": prune,
}

PIPELINES: dict[str, tuple[str, ...]] = {
    "none": (),
    "standard": ("inline_calls", "fold_constants", "simplify", "prune"),
}


def pipeline(name: str) -> list[tuple[str, Pass]]:
    """The named passes of a pipeline; KeyError for an unknown name."""
    return [(item, PASSES[item]) for item in PIPELINES[name]]
