"""Rewrites of loop programs that keep every bit: each checks that it may, or says what is in the way."""
from __future__ import annotations

from kera_hw.loops.transforms.plan import TRANSFORMS, Step, apply_plan, parse_plan, print_plan
from kera_hw.loops.transforms.reason import Refused

__all__ = ["TRANSFORMS", "Refused", "Step", "apply_plan", "parse_plan", "print_plan"]
