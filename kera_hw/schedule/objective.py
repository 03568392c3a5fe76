"""What makes one circuit better than another: one number, from estimates, in sites and cycles.

The cost of a plan is ``interval · (sites + DSP price · DSPs + BRAM price · block RAMs)``: the sites that an
item occupies, times the cycles it occupies them for. Sites are the larger of LUTs and flip-flops, since both
families pair them. Blocks are counted in LUTs, at a share of the LUTs that the part has for each of them: one
that lies idle is worth nothing, so it is taken where it saves more than its share of the fabric around.
Circuits that fit the device come before those that do not; among equals the one of less latency is better.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.plan import Plan, Resources

_SHARE = 64
"""A block counts for a sixty-fourth of the LUTs that the part has per block."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What a block of a device counts for, in LUTs."""

    dsp: int
    bram: int


def prices(device: Device) -> Prices:
    """The exchange rates of a device."""
    return Prices(
        dsp=device.lut // (_SHARE * device.dsp) if device.dsp else 0,
        bram=device.lut // (_SHARE * device.bram) if device.bram else 0,
    )


def area(estimate: Resources, device: Device) -> int:
    """Sites, with blocks in their price."""
    price = prices(device)
    return max(estimate.lut, estimate.ff) + price.dsp * estimate.dsp + price.bram * estimate.bram


def fits(estimate: Resources, device: Device) -> bool:
    """Whether the device has as much of everything."""
    return (
        estimate.lut <= device.lut and estimate.ff <= device.ff
        and estimate.dsp <= device.dsp and estimate.bram <= device.bram
    )


def cost(plan: Plan, device: Device, interval: int | None = None) -> int:
    """What a plan costs, at its own interval or another; less is better."""
    return (interval or plan.initiation_interval) * area(plan.estimate, device)


Merit = tuple[bool, int, int]
"""Whether the device is exceeded, the cost, the latency: the least is the best."""


def merit(plan: Plan, device: Device, interval: int | None = None) -> Merit:
    """The order of plans, at an interval or their own: it grows in interval, latency, sites, DSPs, BRAMs."""
    return not fits(plan.estimate, device), cost(plan, device, interval), plan.latency_cycles


def measure_text(device: Device) -> str:
    """The cost as a formula, for people."""
    price = prices(device)
    blocks = [(price.dsp, "DSP"), (price.bram, "BRAM")]
    return "interval × (" + " + ".join(["sites", *(f"{p} {what}" for p, what in blocks if p)]) + ")"
