"""`kera build --target wasm`: what is written holds, and runs in Node.js with the reference's bits."""
from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.recheck import recheck
from tests.node import ABSENT, node_path
from tests.tidy.repo import ROOT
from tests.unit.cli_support import Kera

_MIXED = """
struct Pair { a: i13, b: bool }
pub fn mixed(p: Pair, x: f16, y: fix<8, 4>, t: [u64; 3], e: [u8; 0]) -> (Pair, [f32; 2], bf16) {
    let s = t[0] + t[1] * 3 + t[2];
    (Pair { a: p.a + (s as i13), b: !p.b }, [x as f32, (y as f32) * 0.1], x as bf16)
}
"""


def node() -> str:
    found = node_path()
    if found is None:
        pytest.skip(ABSENT)
    return found


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


def built(kera: Kera, source: str, name: str, directory: Path) -> Path:
    path = directory / f"{name}.kera"
    path.write_text(source, encoding="utf-8")
    out = directory / "out"
    done = kera("build", path, "--fn", name, "--target", "wasm", "-o", out, "--json")
    assert done.status == 0, done.err
    assert done.json["target"] == "wasm"
    return out


def test_files_and_receipt(kera: Kera, tmp_path: Path) -> None:
    out = built(kera, (ROOT / "examples" / "fir.kera").read_text(encoding="utf-8"), "fir", tmp_path)
    names = {"fir.wasm", "fir.wasm.map", "fir.js", "fir.d.ts", "fir.keg", "plan.json", "receipt.json"}
    assert {path.name for path in out.iterdir()} == names
    plan = json.loads((out / "plan.json").read_text(encoding="utf-8"))
    assert plan["fingerprint"].encode() in (out / "fir.wasm").read_bytes()
    assert recheck(out).holds
    binary = bytearray((out / "fir.wasm").read_bytes())
    binary[-1] ^= 1
    (out / "fir.wasm").write_bytes(binary)
    assert {fault.code for fault in recheck(out).faults} == {"K0809", "K0811"}


def test_node_gives_the_same_bits(kera: Kera, tmp_path: Path) -> None:
    """Leaves of every kind: structs, odd widths, floats as bits, 64-bit integers, tensors, nothing at all."""
    out = built(kera, _MIXED, "mixed", tmp_path)
    items = 9
    rng = np.random.default_rng(1)
    a, b = rng.integers(-4096, 4096, items).astype(np.int16), rng.integers(0, 2, items).astype(bool)
    x = rng.integers(0, 1 << 16, items).astype(np.uint16).view(np.float16)
    y = rng.integers(-128, 128, items).astype(np.int8)
    t = rng.integers(0, 1 << 63, (items, 3)).astype(np.uint64)
    empty = np.zeros((items, 0), np.uint8)
    mixed = kera_hw.load(str(tmp_path / "mixed.kera")).function("mixed")
    wanted = mixed.batch(p={"a": a, "b": b}, x=x, y=y, t=t, e=empty)
    script = f"""
import {{ load, results }} from "./mixed.js";
const kernel = await load();
const found = kernel.run({{
  "p.a": Int16Array.from({a.tolist()}), "p.b": Uint8Array.from({b.astype(int).tolist()}),
  x: Uint16Array.from({x.view(np.uint16).tolist()}), y: Int8Array.from({y.tolist()}),
  t: BigUint64Array.from({[str(v) for v in t.ravel().tolist()]}.map(BigInt)), e: new Uint8Array(0),
}});
const bytes = results.map((leaf) => Array.from(new Uint8Array(found[leaf.name].buffer)));
console.log(JSON.stringify(bytes));
for (const wrong of [{{}}, {{ x: 1 }}, {{ nobody: 1 }}]) {{
  let refused = false;
  try {{ kernel.run(wrong); }} catch (error) {{ refused = error instanceof TypeError; }}
  if (!refused) throw new Error("not refused");
}}
"""
    (out / "try.mjs").write_text(script, encoding="utf-8")
    call = [node(), "try.mjs"]
    done = subprocess.run(call, cwd=out, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = [bytes(leaf) for leaf in json.loads(done.stdout)]
    leaves = [wanted[0]["a"], wanted[0]["b"], wanted[1], wanted[2]]
    assert found == [np.ascontiguousarray(leaf).tobytes() for leaf in leaves]


def test_options_of_hardware_are_for_hardware(kera: Kera, tmp_path: Path) -> None:
    """A device beside the target means two things at once."""
    path = ROOT / "examples" / "fir.kera"
    done = kera("build", path, "--target", "wasm", "--device", "ecp5-25k", "-o", tmp_path)
    assert done.status == 2 and "K0903" in done.err
