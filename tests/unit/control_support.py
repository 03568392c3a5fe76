"""Plans of small programs, for tests of what logic costs."""
from __future__ import annotations

from pathlib import Path

from kera_hw.driver.hardware import plan_hardware
from kera_hw.driver.session import load_program
from kera_hw.driver.targets import TargetOptions
from kera_hw.schedule.plan import Plan


def planned(folder: Path, source: str, clock_mhz: float, interval: int | None = None) -> Plan:
    """The plan of a program's only export."""
    path = folder / "program.kera"
    path.write_text(source)
    loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    options = TargetOptions(clock_mhz=clock_mhz, interval=interval)
    return plan_hardware(loaded.graph, loaded.graph.exports[0], options).plan
