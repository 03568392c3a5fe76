"""Rewrites of loop programs that keep every bit: each checks that it may, or says what is in the way."""
from __future__ import annotations

from kera_hw.loops.transforms.plan import (
    TRANSFORMS,
    Plan,
    Step,
    apply_plan,
    apply_step,
    parse_plan,
    print_plan,
    program_hash,
    replay,
)
from kera_hw.loops.transforms.reason import Refused

__all__ = [
    "TRANSFORMS", "Plan", "Refused", "Step", "apply_plan", "apply_step", "parse_plan", "print_plan",
    "program_hash", "replay",
]
