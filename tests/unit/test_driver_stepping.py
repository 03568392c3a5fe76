"""Streams stepped item by item: the batch's results on every target, reset in between, and cleaning up."""
from __future__ import annotations

import gc
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.rtl_target import RtlStepper
from kera_hw.rtl.sim.live import LiveSimulation

PROGRAM = """
struct P { re: i12, im: i12 }
pub stream mix(p: P, go: bool) -> (P, u8) {
    state line: [i12; 3] = [1, 2, 3];
    state n: u8 = 250;
    line = shift_in(line, p.re);
    n = if go { n + 1 } else { n };
    (P { re: line[2] * p.im, im: line[0] }, n)
}
pub stream ratio(x: u16) -> u16 {
    state s: u16 = 1;
    s = (s / ((x % 7) + 1)) ^ x;
    s
}
pub stream filter(x: f32) -> f32 {
    state z: f32 = 0.5;
    z = fma(0.25, x, z);
    z
}
pub stream tick() -> u4 { state n: u4 = 14; n = n + 1; n }
pub fn plain(x: [u8; 2, 2]) -> [u8; 2] { x[0] + x[1] }
"""
TARGETS = ("interp", "cpu", "wasm", "ptx", "amdgcn", "rtl")
ITEMS = 12


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> kera_hw.Program:
    path = tmp_path_factory.mktemp("stepping") / "p.kera"
    path.write_text(PROGRAM)
    return kera_hw.load(path)


def inputs_of(name: str) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {
        "mix": {
            "p": {part: rng.integers(-2048, 2048, ITEMS).astype(np.int16) for part in ("re", "im")},
            "go": rng.integers(0, 2, ITEMS).astype(np.bool_),
        },
        "ratio": {"x": rng.integers(0, 1 << 16, ITEMS).astype(np.uint16)},
        "filter": {"x": rng.normal(size=ITEMS).astype(np.float32)},
        "plain": {"x": rng.integers(0, 256, (ITEMS, 2, 2)).astype(np.uint8)},
    }[name]


def item(value: Any, k: int) -> Any:
    if isinstance(value, dict):
        return {name: item(part, k) for name, part in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, tuple):
        return tuple(item(part, k) for part in value)  # pyright: ignore[reportUnknownVariableType]
    return value[k]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return all(same(one[name], other[name]) for name in one)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(one, tuple):
        return all(map(same, one, other))  # pyright: ignore[reportUnknownArgumentType]
    return np.asarray(one).dtype == np.asarray(other).dtype and np.array_equal(one, other)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["mix", "ratio", "filter", "plain"])
def test_steps_are_the_batch_and_reset_begins_again(program: kera_hw.Program, name: str, target: str) -> None:
    inputs = inputs_of(name)
    wanted = program.function(name).batch(**inputs)
    with program.stream(name, target) as stream:
        kept = []
        for round_items in (ITEMS, 5, ITEMS):
            found = [stream.step(**item(inputs, k)) for k in range(round_items)]
            assert all(same(found[k], item(wanted, k)) for k in range(round_items)), (target, round_items)
            kept = kept or found
            stream.reset()
        # Results are the caller's: later steps leave them alone.
        assert all(same(kept[k], item(wanted, k)) for k in range(ITEMS))


BUILT: list[dict[str, Any]] = [
    {"interface": "none"}, {"interval": 3}, {"latency": 6}, {"emitter": "amaranth"},
]


@pytest.mark.parametrize("options", BUILT)
def test_a_circuit_is_stepped_however_it_is_built(program: kera_hw.Program, options: dict[str, Any]) -> None:
    wanted = program.function("mix").batch(**inputs_of("mix"))
    with program.stream("mix", device="ecp5-25k", **options) as stream:
        assert stream.plan["target"] == "fpga:ecp5-25k"
        for _ in range(2):
            found = [stream.step(**item(inputs_of("mix"), k)) for k in range(ITEMS)]
            assert all(same(found[k], item(wanted, k)) for k in range(ITEMS))
            stream.reset()
    bare: dict[str, Any] = {"interface": "none", **options}
    with program.stream("plain", "rtl", **bare) as stream:
        assert stream.step(x=[[1, 2], [3, 4]]).tolist() == [4, 6]
        assert stream.step(x=[[9, 2], [3, 255]]).tolist() == [12, 1]


@pytest.mark.parametrize("target", TARGETS)
def test_streams_are_apart_from_each_other_and_from_functions(program: kera_hw.Program, target: str) -> None:
    one, two = (program.stream("tick", target) for _ in range(2))
    function = program.function("tick", target)
    assert [int(one.step()) for _ in range(3)] == [15, 0, 1] and int(function()) == 15
    assert int(two.step()) == 15 and int(one.step()) == 2
    assert repr(one) == f"<stream tick() -> u4 on {one.plan['target']}, stepped>"
    one.close()
    one.close()
    with pytest.raises(kera_hw.KeraError, match="K0916"):
        one.step()
    with pytest.raises(kera_hw.KeraError, match="K0916"):
        one.reset()
    assert int(two.step()) == 0 and "closed" in repr(one)


@pytest.mark.parametrize("target", TARGETS)
def test_what_does_not_fit_is_told_and_steps_go_on(program: kera_hw.Program, target: str) -> None:
    stream = program.stream("ratio", target)
    first = stream.step(x=5)
    for wrong in ({}, {"x": 1 << 16}, {"x": [1, 2]}, {"x": 1.5}, {"x": 1, "y": 2}):
        with pytest.raises(kera_hw.KeraError):
            stream.step(**wrong)
    second = stream.step(x=9)
    wanted = program.function("ratio").batch(x=np.array([5, 9], np.uint16))
    assert [int(first), int(second)] == wanted.tolist()
    stream.close()


def simulation_of(stream: kera_hw.Stream) -> LiveSimulation:
    stepper = stream._stepper  # pyright: ignore[reportPrivateUsage]
    assert isinstance(stepper, RtlStepper)
    return stepper._simulation  # pyright: ignore[reportPrivateUsage]


def test_a_simulation_ends_with_its_object_and_leaves_nothing(program: kera_hw.Program) -> None:
    for end in ("close", "del"):
        stream = program.stream("tick", "rtl")
        process = simulation_of(stream)._process  # pyright: ignore[reportPrivateUsage]
        home = Path(f"/proc/{process.pid}/cwd").readlink()
        assert home.is_dir() and process.poll() is None
        if end == "close":
            stream.close()
        del stream
        gc.collect()
        assert process.poll() == 0 and not home.exists()


def test_a_simulation_that_dies_is_told(program: kera_hw.Program) -> None:
    stream = program.stream("tick", "rtl")
    process = simulation_of(stream)._process  # pyright: ignore[reportPrivateUsage]
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with pytest.raises(kera_hw.KeraError, match="K0951"):
        stream.step()
    stream.close()


def test_a_circuit_that_departs_from_its_plan_is_told(program: kera_hw.Program) -> None:
    export = program.graph.export("ratio")
    assert export is not None
    design = design_hardware(program.graph, export, TargetOptions(interval=16))
    item = {"x": np.array([3], np.uint16)}
    wanted = program.function("ratio").batch(**item)
    for late, wrong in ((0, False), (1, True)):
        # A circuit that is a cycle quicker than the plan says.
        core = design.emitted.core
        assert core is not None
        planned = replace(design.emitted, core=replace(core, latency_cycles=core.latency_cycles + late))
        stepper = RtlStepper(design, LiveSimulation(planned))
        if wrong:
            with pytest.raises(kera_hw.KeraError, match=r"K0910.*out_valid"):
                stepper.step(item)
        else:
            assert np.array_equal(stepper.step(item), wanted)
        stepper.close()
