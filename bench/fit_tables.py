"""Fit a device table to measured samples and write it.

Delays inside cells are what the reported paths show. Wires (by kind of reader and fan-out) and crowding are
fitted by least squares on the logarithm of the clock period, with a soft loss so that one odd placement does
not count for much; the share of LUTs that synthesis leaves is a median.
"""
from __future__ import annotations

import re
import statistics
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from bench.sample_nets import sample_netlist
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import TABLES, Device, Timing, find_device
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.resource_model import netlist_luts
from kera_hw.schedule.problem import build_problem, staged_fanout, with_fanout
from kera_hw.schedule.timing import fmax_mhz, stage_arrivals

FOLDER = Path(__file__).parent.parent / "kera_hw" / "schedule" / "devices"
# name: (lowest, highest), in ps except for crowd
FITTED: Mapping[str, tuple[float, float]] = {
    "route_lut_ps": (200, 3000),
    "route_carry_ps": (200, 3000),
    "route_fanout_ps": (0, 110),  # what registers with 32 and 128 loads alone show
    "crowd": (0, 0.02),  # schedules do not allow for it: the wires must carry most
}
FITTED_DSP: Mapping[str, tuple[float, float]] = {"route_dsp_ps": (200, 4000), "dsp_ps": (1000, 20000)}
# A chain's way through several tiles and its exit are wires too on iCE40, and wide multiplexers are LUTs.
FITTED_ICE40: Mapping[str, tuple[float, float]] = {
    "carry_base_ps": (200, 2000), "carry_bit_ps": (100, 400), "mux_level_ps": (200, 3000),
}
_SAMPLED_PRODUCTS = 4
Records = Mapping[str, Mapping[str, Any]]


def _delays(records: Records, kind: str, start: str, end: str) -> list[int]:
    """Delays of path steps of a kind between ports whose names match."""
    return [
        delay for record in records.values() for step_kind, delay, a, b in record["path"]
        if step_kind == kind and re.fullmatch(start, a) and re.fullmatch(end, b)
    ]


def _median(values: Iterable[float], otherwise: float) -> float:
    found = list(values)
    return statistics.median(found) if found else otherwise


def read_ecp5_cells(records: Records, seed: Timing) -> Timing:
    """Cell delays of ECP5 from the paths; set-up includes the wire from a LUT to the register beside it."""
    enter = _median(_delays(records, "logic", "[ABCD]", "FCO"), 447)
    leave = _median(_delays(records, "logic", "FCI", "F"), 403)
    pair = _median(_delays(records, "logic", "FCI", "FCO"), 71)
    return replace(
        seed,
        clk_to_q_ps=_median(_delays(records, "clk-to-q", "Q", "Q"), seed.clk_to_q_ps),
        setup_ps=_median(_delays(records, "routing", "F|OFX", "DI"), seed.setup_ps),
        lut_ps=_median((d for d in _delays(records, "logic", "[ABCD]", "F") if d < 300), seed.lut_ps),
        carry_bit_ps=pair / 2,
        carry_base_ps=enter + leave - pair,
        dsp_clk_to_q_ps=_out_of_dsp(records, seed),
        dsp_setup_ps=_median(_delays(records, "setup", "[AB][0-9]+", "[AB][0-9]+"), seed.dsp_setup_ps),
    )


def _out_of_dsp(records: Records, seed: Timing) -> float:
    """From the clock edge to a product, and what its wire takes more than a flip-flop's: columns are far.

    Samples have a few products; what more of them add (``block_spread_ps``) comes from whole programs.
    """
    product = _delays(records, "clk-to-q", "P.*", "P.*")
    far, near = (_delays(records, "routing", start, "[ABCD]") for start in ("P[0-9]+", "Q"))
    if not product:
        return seed.dsp_clk_to_q_ps
    usual = _median(near, 0.0)
    spread = _SAMPLED_PRODUCTS * seed.block_spread_ps
    return _median(product, 0.0) + max(0.0, _median(far, usual) - usual - spread)


def read_ice40_cells(records: Records, seed: Timing) -> Timing:
    """Cell delays of iCE40 from the paths."""
    lut = _median(_delays(records, "logic", "I[0-3]", "O"), seed.lut_ps)
    setup = _median(_delays(records, "setup", "I[0-3]", "I[0-3]"), lut)
    return replace(
        seed,
        clk_to_q_ps=_median(_delays(records, "clk-to-q", "O", "O"), seed.clk_to_q_ps),
        # A path's last LUT is timed as set-up: about as long as its logic.
        setup_ps=max(0.0, setup - lut), lut_ps=lut,
    )


def _predict(device: Device, netlist: Netlist, record: Mapping[str, Any]) -> float:
    """Clock period in ps that the model gives for the stages of a record."""
    problem = build_problem(netlist, DelayModel(device))
    stage = [*record["stage"], record["stages"]]
    problem = with_fanout(problem, staged_fanout(problem, stage))
    return 1e6 / fmax_mhz(problem, stage_arrivals(problem, stage))


def fit_lut_factor(device: Device, nets: Mapping[str, Netlist], records: Records) -> float:
    """What synthesis makes of the LUTs that cells ask for which it maps itself: the median over samples."""
    shares: list[float] = []
    plain = replace(device, area=replace(device.area, lut_factor=1.0))
    none = replace(device, area=replace(device.area, lut_factor=0.0))
    for name, netlist in nets.items():
        kept = netlist_luts(netlist, none)
        asked = netlist_luts(netlist, plain) - kept
        if asked >= 30:
            shares.append((records[name]["lut"] - kept) / asked)
    return round(_median(shares, 1.0), 3)


def _weight(name: str) -> float:
    """Regular pipelines count for more than other samples.

    A lone operation's wires lead from the wrapper's far registers; of a random mixture one path is slowest
    by much and gets all of the placer's attention.
    """
    return 3.0 if "@" in name and not name.startswith("mixture") else 1.0


def fit_timing(device: Device, nets: Mapping[str, Netlist], records: Records) -> Device:
    """The device with fitted wire parameters."""
    names = dict(FITTED)
    if any(record["dsp"] for record in records.values()):
        names |= FITTED_DSP
    if device.family == "ice40":
        names |= FITTED_ICE40
    lower, upper = (np.array([bounds[k] for bounds in names.values()]) for k in (0, 1))
    start = np.array([getattr(device.timing, name) for name in names])
    # Not at a bound: the steps that slopes are taken from are relative.
    start = np.clip(start, lower + 0.2 * (upper - lower), upper - 0.2 * (upper - lower))

    def with_values(values: np.ndarray) -> Device:
        table = {name: float(value) for name, value in zip(names, values * (upper - lower) + lower)}
        return replace(device, timing=replace(device.timing, **table))

    def errors(values: np.ndarray) -> np.ndarray:
        trial = with_values(values)
        return np.array([
            _weight(name) * log(_predict(trial, netlist, records[name]) * records[name]["fmax_mhz"] / 1e6)
            for name, netlist in nets.items()
        ])

    unit = (start - lower) / (upper - lower)
    found = least_squares(
        errors, unit, bounds=(0, 1), loss="soft_l1", f_scale=0.05, diff_step=0.1, xtol=1e-4,
    )
    return with_values(found.x)


def fit(device_name: str, records: Records) -> None:
    """Fit the family's table to the records, write it, print how far off it is."""
    device = find_device(device_name)
    assert device is not None
    nets = {name: sample_netlist(name) for name in records}
    read = read_ecp5_cells if device.family == "ecp5" else read_ice40_cells
    device = replace(device, timing=read(records, device.timing))
    device = replace(device, area=replace(device.area, lut_factor=fit_lut_factor(device, nets, records)))
    device = fit_timing(device, nets, records)
    report(device, nets, records)
    write(device)


def report(device: Device, nets: Mapping[str, Netlist], records: Records) -> None:
    """One line a sample, then the median errors."""
    clocks: list[float] = []
    areas: list[float] = []
    for name, netlist in nets.items():
        record = records[name]
        mhz = 1e6 / _predict(device, netlist, record)
        luts = netlist_luts(netlist, device)
        clocks.append(abs(mhz / record["fmax_mhz"] - 1))
        if record["lut"]:
            areas.append(abs(luts / record["lut"] - 1))
        print(f"{name:28} LUT {luts:5} / {record['lut']:5}   MHz {mhz:6.1f} / {record['fmax_mhz']:6.1f}")
    for what, errors in (("MHz", clocks), ("LUT", areas)):
        middle, worst = 100 * statistics.median(errors), 100 * max(errors)
        print(f"{what}: median error {middle:.1f} %, worst {worst:.1f} %")


def write(device: Device) -> None:
    """Put the values into the family's table, keeping its comments."""
    table = next(t for t in TABLES if f"[parts.{device.name}]" in (FOLDER / f"{t}.toml").read_text("utf-8"))
    path = FOLDER / f"{table}.toml"
    text = path.read_text("utf-8")
    values = {name: getattr(device.timing, name) for name in Timing.__dataclass_fields__}
    values["lut_factor"] = device.area.lut_factor
    for name, value in values.items():
        shown = f"{value:.4f}" if 0 < value < 2 else f"{value:.1f}".removesuffix(".0")
        text = re.sub(rf"^{name} = \S+", f"{name} = {shown}", text, flags=re.MULTILINE)
    tomllib.loads(text)  # a table that cannot be read back must not replace one that can
    path.write_text(text, encoding="utf-8")
