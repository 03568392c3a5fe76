"""The interpreter as a target: it evaluates every operation, since that is what defines one."""
from __future__ import annotations

from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import OpSpec
from kera_hw.target import TargetTable

TABLE: TargetTable[OpSpec] = TargetTable("interp", "evaluation", OPS)
