"""Each processor has instructions for all native operations, and for what its levels have beyond them."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kera_hw.cpu_gpu.aarch64 import scalars as arm
from kera_hw.cpu_gpu.aarch64 import vectors as arm_lanes
from kera_hw.cpu_gpu.architectures import ARCHITECTURES, LEVELS
from kera_hw.cpu_gpu.machine.level import Level
from kera_hw.cpu_gpu.riscv64 import scalars as riscv
from kera_hw.cpu_gpu.riscv64 import vectors as riscv_lanes
from kera_hw.cpu_gpu.x86_64 import masks, vectors
from kera_hw.cpu_gpu.x86_64 import scalars as x86
from kera_hw.legal.native import NATIVE
from kera_hw.ops.registry import OPS
from kera_hw.schedule.software.native import rows_of

SCALARS: Mapping[str, Mapping[str, Any]] = {
    "x86-64": x86.RULES, "aarch64": arm.RULES, "riscv64": riscv.RULES,
}
LANES: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "x86-64": (vectors.RULES, masks.RULES), "aarch64": (arm_lanes.RULES,), "riscv64": (riscv_lanes.RULES,),
}


def test_every_architecture_is_held_against_it() -> None:
    assert set(SCALARS) == set(LANES) == set(ARCHITECTURES)


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_no_native_operation_is_without_instructions(level: Level) -> None:
    """Of lanes there may be none: they go one by one."""
    asked = {signature.opcode for signature in (*NATIVE, *rows_of(level.capabilities))}
    rules = SCALARS[level.architecture]
    assert asked - set(rules) == set()
    assert all(set(found) <= set(rules) <= set(OPS) for found in LANES[level.architecture])


def test_riscv_deals_with_no_lane_by_itself() -> None:
    """A loop that takes as many as there are can't."""
    (level,) = ARCHITECTURES["riscv64"].levels
    asked = {signature.opcode for signature in (*NATIVE, *rows_of(level.capabilities))}
    assert asked == set(riscv_lanes.RULES)
