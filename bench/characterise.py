"""Fill a device table from measurements: netlists are synthesised, placed and routed, the table fitted.

    python -m bench.characterise sample ecp5-85k      # measure what bench/data lacks
    python -m bench.characterise fit ecp5-85k         # write the table, report the errors

Delays of cells are read off the reported paths; wires, size and crowding are fitted so that predicted and
routed clock periods agree. Measurements are kept in bench/data/characterise-DEVICE.json.
"""
from __future__ import annotations

import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.fit_tables import fit
from bench.sample_nets import DSP, MIXED, SINGLE, SLOW, sample_netlist
from kera_hw.rtl.emit.verilog import emit_verilog
from kera_hw.rtl.toolchain.harness import measure
from kera_hw.rtl.toolchain.nextpnr import CHIPS
from kera_hw.rtl.toolchain.process import ToolFailed
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.planner import schedule

DATA = Path(__file__).parent / "data"
ONE_STAGE_PS = 10**6
WORKERS = 2


def data_file(device: str) -> Path:
    return DATA / f"characterise-{device}.json"


def load(device: str) -> dict[str, dict[str, Any]]:
    path = data_file(device)
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def sample(name: str, device: str) -> dict[str, Any] | None:
    """Measure one sample; the stages it was planned with are part of the record. None: it did not fit."""
    part = find_device(device)
    assert part is not None
    netlist = sample_netlist(name)
    clock_ps = round(1e6 / float(name.split("@")[1])) if "@" in name else ONE_STAGE_PS
    plan, problems = schedule(netlist, part, clock_ps, interface="none")
    if plan is None:
        print(f"{name}: {problems[0].message}", file=sys.stderr)
        return None
    style = "ecp5" if part.family == "ecp5" else "generic"
    emitted = emit_verilog(netlist, plan, "none", style)
    with tempfile.TemporaryDirectory() as work:
        source = Path(work) / "sample.v"
        source.write_text(emitted.verilog, encoding="utf-8")
        try:
            result = measure([source], netlist.name, CHIPS[device], reset=None)
        except ToolFailed as error:
            print(f"{name}: {error}", file=sys.stderr)
            return None
    path = result.critical_path
    counts = result.counts
    return {
        "stage": list(plan.stage), "stages": plan.latency_cycles, "clock_ps": clock_ps,
        "lut": counts.lut, "ff": counts.ff, "dsp": counts.dsp, "lut4": counts.lut - 2 * counts.carry,
        "fmax_mhz": result.fmax_mhz,
        "path": [
            [step.kind, step.delay_ps, step.from_port, step.to_port]
            for step in (path.steps if path else ()) if step.delay_ps
        ],
    }


def sample_all(device: str) -> None:
    part = find_device(device)
    assert part is not None
    names = SLOW if part.family == "ice40" else (*MIXED, *SINGLE, *DSP)
    records = load(device)
    missing = [name for name in names if name not in records]
    DATA.mkdir(exist_ok=True)
    with ThreadPoolExecutor(WORKERS) as pool:
        for name, record in zip(missing, pool.map(lambda n: sample(n, device), missing)):
            if record is None:
                continue
            records[name] = record
            print(f"{name}: {record['lut']} LUT {record['ff']} FF {record['fmax_mhz']:.1f} MHz", flush=True)
            rows = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in records.items()]
            data_file(device).write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0] not in ("sample", "fit") or arguments[1] not in CHIPS:
        print(__doc__, file=sys.stderr)
        return 2
    action, device = arguments
    if action == "sample":
        sample_all(device)
    else:
        fit(device, load(device))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
