"""What circuits of control logic cost: bounds on LUTs, flip-flops, cycles and interval."""
from __future__ import annotations

from pathlib import Path

import pytest

from .control_support import planned

LFSR = """
pub stream f(load: bool, seed: u32) -> u32 {
    state s: u32 = 1;
    for _ in 0..8 { s = if s.bit(0) { (s >> 1) ^ 0xa3000000 } else { s >> 1 }; }
    if load { s = seed; }
    s
}
"""
COUNTER = """
pub stream f(step: bool, up: bool) -> u4 {
    state digit: u4 = 0;
    if step {
        if up { digit = if digit == 9 { 0 } else { digit + 1 }; }
        else { digit = if digit == 0 { 9 } else { digit - 1 }; }
    }
    digit
}
"""
TIMER = """
pub stream f(go: bool, line: bool) -> bool {
    state phase: u2 = 0;
    state timer: u12 = 0;
    let mut done = false;
    match phase {
        0 => { if go { phase = 1; timer = 99; } }
        1 => { if timer == 0 { phase = if line { 2 } else { 0 }; timer = 867; } else { timer -= 1; } }
        2 => { if timer == 0 { phase = 3; timer = 867; } else { timer -= 1; } }
        _ => { if timer == 0 { done = true; phase = 0; } else { timer -= 1; } }
    }
    done
}
"""


def decoder() -> str:
    """A corrector of one wrong bit of 64 by a syndrome of seven: a table of positions, tested one by one."""
    places = [p for p in range(3, 72) if p & (p - 1)][:64]
    return (
        f"const PLACE: [u7; 64] = [{', '.join(map(str, places))}];\n"
        "pub fn f(data: u64, check: u7) -> u64 {\n    let mut syndrome = check;\n"
        "    for i in 0..64 { if data.bit(i) { syndrome ^= PLACE[i]; } }\n    let mut fixed = data;\n"
        "    for i in 0..64 { if syndrome == PLACE[i] { fixed ^= 1 << i; } }\n    fixed\n}\n"
    )


@pytest.mark.parametrize(("source", "clock_mhz", "lut", "cycles", "interval"), [
    (LFSR, 200.0, 60, 1, 1), (COUNTER, 200.0, 12, 2, 1), (TIMER, 100.0, 40, 1, 1),
    (decoder(), 200.0, 260, 4, 1),
])
def test_cost(
    tmp_path: Path, source: str, clock_mhz: float, lut: int, cycles: int, interval: int
) -> None:
    plan = planned(tmp_path, source, clock_mhz)
    assert (plan.initiation_interval, plan.latency_cycles) <= (interval, cycles), plan.estimate
    assert plan.estimate.lut <= lut
