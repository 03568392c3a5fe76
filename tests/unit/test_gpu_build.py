"""`kera build` for GPUs: what is written holds, is refused where hardware was meant, and is explained."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from kera_hw.cpu_gpu.amdgcn.interpreter.machine import Machine as AmdMachine
from kera_hw.cpu_gpu.ptx.interpreter.machine import Machine
from kera_hw.driver.recheck import recheck
from tests.tidy.repo import ROOT
from tests.unit.cli_support import Kera

FIR = ROOT / "examples" / "fir.kera"


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


def test_files_and_receipt(kera: Kera, tmp_path: Path) -> None:
    done = kera("build", FIR, "--fn", "fir", "--target", "ptx", "-o", tmp_path, "--json")
    assert done.status == 0, done.err
    assert {path.name for path in tmp_path.iterdir()} == {"fir.ptx", "fir.keg", "plan.json", "receipt.json"}
    plan = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    text = (tmp_path / "fir.ptx").read_text(encoding="utf-8")
    assert plan["fingerprint"] in text and done.json["kernels"] == plan["kernels"]
    assert set(Machine(text).module.entries) == {plan["kernels"][0]["name"], plan["reset"]["name"]}
    directions = [(row["what"], row["from"], row["bytes_of_an_item"]) for row in plan["transfers"]]
    assert directions == [("in.x", "host", 2), ("out.0", "device", 4)]
    up, down = (plan["transferred"][way] for way in ("host_to_device", "device_to_host"))
    assert up == {"copies_a_batch": 1, "bytes_of_an_item": 2, "pinned_bytes_of_an_item": 0}
    assert (down["copies_a_batch"], down["bytes_of_an_item"]) == (1, 4)
    assert recheck(tmp_path).holds
    (tmp_path / "fir.ptx").write_text(text.replace("add.s32", "sub.s32"), encoding="utf-8")
    assert {fault.code for fault in recheck(tmp_path).faults} == {"K0809", "K0811"}


@pytest.mark.parametrize("target", ["ptx", "wasm", "gfx90a"])
@pytest.mark.parametrize("option", [("--clock", "100MHz"), ("--device", "ecp5-25k"), ("--ii", "2")])
def test_options_of_hardware_are_for_hardware(
    kera: Kera, tmp_path: Path, target: str, option: tuple[str, str]
) -> None:
    done = kera("build", FIR, "--target", target, *option, "-o", tmp_path)
    assert done.status == 2 and "K0903" in done.err and not list(tmp_path.iterdir())


def test_explain_and_verify(kera: Kera) -> None:
    assert "every operation on every type" in kera("explain", "ptx").out
    done = kera("verify", FIR, "--fn", "fir", "--targets", "interp,ptx", "--vectors", "20", "--json")
    assert done.status == 0, done.err


@pytest.mark.parametrize(("target", "processor"), [
    ("amdgcn", "gfx90a"), ("gfx90a", "gfx90a"), ("gfx942", "gfx942"),
])
def test_the_same_for_amd(kera: Kera, tmp_path: Path, target: str, processor: str) -> None:
    done = kera("build", FIR, "--fn", "fir", "--target", target, "-o", tmp_path, "--json")
    assert done.status == 0, done.err
    assert {path.name for path in tmp_path.iterdir()} == {"fir.s", "fir.keg", "plan.json", "receipt.json"}
    plan = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    text = (tmp_path / "fir.s").read_text(encoding="utf-8")
    assert plan["processor"] == processor and f"amdhsa--{processor}" in text
    assert plan["fingerprint"] in text and plan["kernels"][0]["vector_registers"] > 0
    assert set(AmdMachine(text).module.entries) == {plan["kernels"][0]["name"], plan["reset"]["name"]}
    assert recheck(tmp_path).holds
    (tmp_path / "fir.s").write_text(text.replace("v_mul_lo_u32", "v_mul_hi_u32"), encoding="utf-8")
    assert {fault.code for fault in recheck(tmp_path).faults} == {"K0809", "K0811"}
    assert "every operation on every type" in kera("explain", "amdgcn").out
    done = kera("verify", FIR, "--fn", "fir", "--targets", f"interp,{target}", "--vectors", "20")
    assert done.status == 0 and f"{processor}, 1 kernel, run by our interpreter" in done.out, done.out


def test_plans_are_shown(kera: Kera) -> None:
    """`kera plan` with a GPU: launches, and what crosses between host and device."""
    done = kera("plan", FIR, "--fn", "fir", "--target", "ptx")
    assert done.status == 0, done.err
    assert "launches a batch: 1" in done.out
    assert "in.x: host to device once a batch, 2 bytes an item, not pinned" in done.out
    done = kera("plan", FIR, "--fn", "fir", "--target", "gfx942", "--json")
    assert done.json["transferred"]["between_kernels"] == {"copies_a_batch": 0, "bytes_of_an_item": 0}
    done = kera("plan", FIR, "--target", "wasm")
    assert done.status == 2 and "K0903" in done.err
