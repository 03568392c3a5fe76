"""Cocotb tests of designs with AXI ports, by masters, sources and sinks that others wrote (cocotbext-axi).

The file that KERA_VECTORS names says which interface, where the values are, the items, and their results.
"""
from __future__ import annotations

import itertools
import json
import logging
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp, AxiStreamBus, AxiStreamSink, AxiStreamSource

VECTORS: dict[str, Any] = json.loads(Path(os.environ["KERA_VECTORS"]).read_text())
STREAM = VECTORS["interface"] == "axis"
LIMIT_US = 200
"""Simulated time, 20,000 cycles, after which a test fails: the end of a frame may never come."""
_START, _DONE, _IDLE, _READY, _AUTO = 1, 2, 4, 8, 128


def _pauses(seed: int, percent: int) -> Iterator[bool]:
    draw = random.Random(seed)
    return (draw.randrange(100) < percent for _ in itertools.count())


async def _reset(dut: Any) -> None:
    cocotb.start_soon(Clock(dut.aclk, 10, "ns").start())
    dut.aresetn.value = 0
    for _ in range(3):
        await RisingEdge(dut.aclk)
    await Timer(1, "ns")
    dut.aresetn.value = 1


async def _stream(dut: Any, percent: int) -> int:
    """Sends all items on all streams, compares all frames; the cycles it took."""
    await _reset(dut)
    sources = {name: AxiStreamSource(AxiStreamBus.from_prefix(dut, name), dut.aclk, dut.aresetn, False)
               for name in VECTORS["inputs"]}
    sinks = {name: AxiStreamSink(AxiStreamBus.from_prefix(dut, name), dut.aclk, dut.aresetn, False)
             for name in VECTORS["outputs"]}
    for k, end in enumerate([*sources.values(), *sinks.values()]):
        end.log.setLevel(logging.WARNING)
        if percent:
            end.set_pause_generator(_pauses(k + 1, percent))
    begun = get_sim_time("ns")
    for name, source in sources.items():
        for frame in VECTORS["inputs"][name]:
            source.send_nowait(bytes.fromhex(frame))
    for name, sink in sinks.items():
        for number, frame in enumerate(VECTORS["outputs"][name]):
            found = await sink.recv()
            assert bytes(found.tdata) == bytes.fromhex(frame), f"{name}, frame {number}"
    return int(get_sim_time("ns") - begun) // 10


@cocotb.test(skip=not STREAM, timeout_time=LIMIT_US, timeout_unit="us")
async def streams_at_full_rate(dut: Any) -> None:
    """Nothing pauses: an item comes every interval."""
    cycles = await _stream(dut, 0)
    count = len(next(iter(VECTORS["outputs"].values())))
    assert cycles <= VECTORS["item_cycles"] + VECTORS["initiation_interval"] * (count - 1) + 8, cycles


@cocotb.test(skip=not STREAM, timeout_time=LIMIT_US, timeout_unit="us")
async def streams_with_pauses(dut: Any) -> None:
    """Sources and sinks pause at random."""
    await _stream(dut, 45)


async def _master(dut: Any, percent: int) -> AxiLiteMaster:
    await _reset(dut)
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.aclk, dut.aresetn, False)
    for side in (master.write_if, master.read_if):
        side.log.setLevel(logging.WARNING)
    channels = (
        master.write_if.aw_channel, master.write_if.w_channel, master.write_if.b_channel,
        master.read_if.ar_channel, master.read_if.r_channel,
    )
    for k, channel in enumerate(channels):
        if percent:
            channel.set_pause_generator(_pauses(k + 1, percent))
    return master


async def _items(dut: Any, percent: int) -> None:
    """Runs all items as software would, by polling and by interrupt in turn."""
    master = await _master(dut, percent)
    assert (await master.read_dword(0)) & 0xFF == _IDLE
    await master.write_dword(0x4, 1)
    for number, (given, wanted) in enumerate(zip(VECTORS["items"], VECTORS["expected"])):
        by_interrupt = number % 2
        await master.write_dword(0x8, by_interrupt)
        for offset, data in given:
            await master.write(offset, bytes.fromhex(data))
        await master.write_dword(0, _START)
        if by_interrupt:
            while not int(dut.irq.value):
                await RisingEdge(dut.aclk)
            assert await master.read_dword(0xC) == 1
            await master.write_dword(0xC, 1)
            assert not int(dut.irq.value)
            assert await master.read_dword(0) == _DONE | _IDLE | _READY
        else:
            while not (await master.read_dword(0)) & _DONE:
                pass
        assert (await master.read_dword(0)) == _IDLE, "done and ready are told once"
        for offset, data in wanted:
            found = await master.read(offset, len(data) // 2)
            assert found.resp == AxiResp.OKAY
            assert found.data == bytes.fromhex(data), f"item {number}, at {offset:#x}"


@cocotb.test(skip=STREAM, timeout_time=LIMIT_US, timeout_unit="us")
async def software_runs_items(dut: Any) -> None:
    """Nothing pauses."""
    await _items(dut, 0)


@cocotb.test(skip=STREAM, timeout_time=LIMIT_US, timeout_unit="us")
async def software_runs_items_with_pauses(dut: Any) -> None:
    """All five channels pause at random."""
    await _items(dut, 40)


@cocotb.test(skip=STREAM, timeout_time=LIMIT_US, timeout_unit="us")
async def every_access_is_answered(dut: Any) -> None:
    """Where nothing is, where nothing can be written and between words: an error, and no effect."""
    master = await _master(dut, 20)
    size = 1 << len(dut.s_axi_awaddr)
    known = {word for first, count in VECTORS["readable"] for word in range(first, first + count, 4)}
    writable = {word for first, count in VECTORS["writable"] for word in range(first, first + count, 4)}
    for address in range(0, size, 4):
        found = await master.read(address, 4)
        assert found.resp == (AxiResp.OKAY if address in known else AxiResp.SLVERR), hex(address)
        if address >= 0x10:
            answer = await master.write(address, b"\x00\x00\x00\x00")
            assert answer.resp == (AxiResp.OKAY if address in writable else AxiResp.SLVERR), hex(address)
    target = max(writable)
    await master.write(target, b"\x11\x22\x33\x44")
    for lane in (1, 2, 3):
        assert (await master.write(target + lane, b"\xff")).resp == AxiResp.SLVERR
        assert (await master.read(target + lane, 1)).resp == AxiResp.SLVERR
    assert (await master.read(target, 4)).data == bytes.fromhex(VECTORS["kept"])
    await master.write(target, b"\x55\x66")  # the strobes of two bytes
    assert (await master.read(target, 4)).data == bytes.fromhex(VECTORS["kept_half"])
