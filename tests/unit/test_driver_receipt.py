"""One identity for what was built, and a receipt against which every file can be held."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kera_hw
from kera_hw.driver import build as build_module
from kera_hw.driver.receipt import hash_file, hash_json
from tests.unit.cli_support import Kera

ACC = """
pub stream acc(x: i16) -> i16 {
    state s: i16 = 0;
    s = s + x;
    s
}
"""
STRUCTS = """
struct Inner { low: i4, high: i4 }
pub struct Pair { one: Inner, twos: [Inner; 2], flags: (bool, u3) }
pub fn turn(p: Pair, q: [Pair; 2]) -> (Pair, Inner) { (q[1], p.one) }
"""
OTHERS = [f"pub fn other{k}(a: u8, b: u8) -> u8 {{ a * {k} + b }}\n" for k in range(2, 6)]


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


def program(directory: Path, exports: int) -> Path:
    path = directory / f"of{exports}.kera"
    path.write_text(ACC + "".join(OTHERS[: exports - 1]))
    return path


def build(kera: Kera, directory: Path, exports: int = 1, *options: str) -> Path:
    out = directory / f"out{exports}"
    done = kera("build", program(directory, exports), "--fn", "acc", "--emit", "verilog", "-o", out, *options)
    assert done.status == 0, done.err
    return out


@pytest.mark.parametrize("exports", [1, 2, 5])
def test_what_is_built_has_one_name_in_every_file(kera: Kera, tmp_path: Path, exports: int) -> None:
    out = build(kera, tmp_path, exports)
    source = kera_hw.load(tmp_path / f"of{exports}.kera")
    name = kera_hw.load(out / "acc.keg").fingerprint
    plan, receipt = (json.loads((out / file).read_text()) for file in ("plan.json", "receipt.json"))
    assert plan["fingerprint"] == receipt["fingerprint"] == name == source.function("acc").fingerprint
    assert plan["program_fingerprint"] == receipt["program_fingerprint"] == source.fingerprint
    assert (name == source.fingerprint) == (exports == 1)
    assert f"// Graph {name}\n" in (out / "acc.v").read_text()
    assert name in (out / "report.html").read_text()
    path = tmp_path / f"of{exports}.kera"
    verify = ["verify", path, "--vectors", "9"]
    for call in (["run", path, "-i", "x=1"], *([verify] if exports == 2 else [])):
        data = kera(*call, "--fn", "acc", "--json").json
        assert (data["fingerprint"], data["program_fingerprint"]) == (name, source.fingerprint), call
    assert kera("inspect", path, "--fn", "acc", "--json").json["fingerprint"] == name
    assert kera("verify", "--receipt", out).status == 0


def test_the_name_stays_when_the_rest_of_the_program_changes(kera: Kera, tmp_path: Path) -> None:
    one, five = (json.loads((build(kera, tmp_path, k) / "receipt.json").read_text()) for k in (1, 5))
    assert one["fingerprint"] == five["fingerprint"]
    assert one["program_fingerprint"] != five["program_fingerprint"]


@pytest.mark.parametrize(
    "options",
    [[], ["--clock", "211MHz"], ["--latency", "4"], ["--ii", "2"], ["--interface", "none", "--dsp", "0"],
     ["--emitter", "amaranth"], ["--target", "fpga:ice40-hx8k"]],
    ids=" ".join,
)  # fmt: skip
def test_a_receipt_holds_whatever_the_options(kera: Kera, tmp_path: Path, options: list[str]) -> None:
    out = build(kera, tmp_path, 2, *options)
    for place in (out, out / "receipt.json"):
        done = kera("verify", place, "--receipt", "--json")
        assert done.status == 0 and done.json["holds"], done.out
        assert all(check["holds"] for check in done.json["checks"]) and len(done.json["checks"]) == 12


def test_a_receipt_holds_where_structs_have_names(kera: Kera, tmp_path: Path) -> None:
    (tmp_path / "structs.kera").write_text(STRUCTS)
    out = tmp_path / "out"
    done = kera("build", tmp_path / "structs.kera", "--emit", "verilog", "--interface", "none", "-o", out)
    assert done.status == 0, done.err
    assert "Pair = data.StructLayout" in (out / "turn_instance.py").read_text()
    assert kera("verify", "--receipt", out).status == 0
    assert "(Pair, Inner)" in repr(kera_hw.load(out / "turn.keg"))


def test_the_stretch_of_a_later_round_is_in_the_receipt(
    kera: Kera, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = iter([140.0, 171.0])

    def place(design: Any, seed: int, directory: Path, progress: Any) -> dict[str, Any]:
        (directory / "acc.bit").write_text("bits")
        return {"lut": 1, "ff": 1, "dsp": 0, "bram": 0, "fmax_mhz": next(reached), "serial_shell": None,
                "seed": seed, "bitstream": "acc.bit", "critical_path": []}  # fmt: skip

    monkeypatch.setattr(build_module, "_implement", place)
    path = program(tmp_path, 1)
    assert kera("build", path, "--clock", "170MHz", "-o", tmp_path / "o").status == 0
    receipt = json.loads((tmp_path / "o" / "receipt.json").read_text())
    assert receipt["request"]["scale"] == round(170 / 140, 3) and "acc.bit" in receipt["artefacts"]
    assert kera("verify", "--receipt", tmp_path / "o").status == 0


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


@pytest.mark.parametrize("harm", [flip, append, Path.unlink], ids=["flip", "append", "remove"])
@pytest.mark.parametrize("name", ["acc.keg", "acc.v", "plan.json", "report.html"])
def test_tampering_with_any_file_is_found(
    kera: Kera, tmp_path: Path, name: str, harm: Callable[[Path], None]
) -> None:
    out = build(kera, tmp_path)
    harm(out / name)
    done = kera("verify", "--receipt", out)
    assert done.status == 1 and "DOES NOT HOLD" in done.out and f"FAILED {name} is" in done.out
    assert "K0809" in done.err and name in done.err


def test_a_changed_receipt_is_found(kera: Kera, tmp_path: Path) -> None:
    out = build(kera, tmp_path)
    path = out / "receipt.json"
    whole = path.read_bytes()
    for old, new in ((b'"seed": 1', b'"seed": 2'), (b"keg:sha3-256:", b"keg:sha3-256:0"), (b"{", b"[")):
        path.write_bytes(whole.replace(old, new, 1))
        assert whole != path.read_bytes()
        done = kera("verify", "--receipt", out)
        assert done.status == 1 and "K0808" in done.err
    path.write_bytes(b"[" * 100_000)
    assert "K0808" in kera("verify", "--receipt", path).err
    path.unlink()
    assert kera("verify", "--receipt", out).status == 2


def forge(out: Path, **changes: Any) -> None:
    """A receipt whose hashes all fit what stands there now."""
    path = out / "receipt.json"
    data = json.loads(path.read_text())
    del data["receipt_sha3_256"]
    data["artefacts"] = {name: hash_file(out / name) for name in data["artefacts"]}
    data |= changes
    path.write_text(json.dumps({**data, "receipt_sha3_256": hash_json(data)}))


def test_fitting_hashes_do_not_hide_another_circuit(kera: Kera, tmp_path: Path) -> None:
    out = build(kera, tmp_path)
    (out / "acc.v").write_text((out / "acc.v").read_text().replace(" + ", " - ", 1))
    plan = json.loads((out / "plan.json").read_text())
    (out / "plan.json").write_text(json.dumps({**plan, "latency_cycles": 7}))
    forge(out)
    done = kera("verify", "--receipt", out)
    assert done.status == 1 and done.err.count("K0811") == 2 and done.err.count("K0810") == 1
    assert "FAILED acc.v comes out" in done.out and "FAILED plan.json comes out" in done.out


def test_fitting_hashes_do_not_hide_another_graph(kera: Kera, tmp_path: Path) -> None:
    out = build(kera, tmp_path)
    shutil.copy(kera_keg(kera, tmp_path), out / "acc.keg")
    forge(out)
    done = kera("verify", "--receipt", out)
    assert done.status == 1 and "K0810" in done.err


@pytest.mark.parametrize("value", [None, 5, -1, "x", [], {}, True, 1e308, float("nan")], ids=repr)
def test_no_forged_entry_holds_or_ends_in_a_fault_of_ours(kera: Kera, tmp_path: Path, value: Any) -> None:
    out = build(kera, tmp_path, 1, "--clock", "160MHz", "--dsp", "3", "--latency", "2", "--ii", "2")
    whole = json.loads((out / "receipt.json").read_text())
    # Versions are shown; a limit that is not met, and the seed where nothing is placed, have no effect.
    free = {"receipt_sha3_256", "tools", "dsp", "seed"}
    places = [(key,) for key in whole] + [("request", key) for key in whole["request"]]
    for *outer, key in [place for place in places if place[-1] not in free]:
        changed = json.loads(json.dumps(whole))
        entry = changed[outer[0]] if outer else changed
        if entry[key] == value:
            continue
        entry[key] = value
        del changed["receipt_sha3_256"]
        text = json.dumps({**changed, "receipt_sha3_256": hash_json(changed)})
        (out / "receipt.json").write_text(text)
        status = kera("verify", "--receipt", out).status
        assert status in (1, 2), (outer, key, value)


def kera_keg(kera: Kera, tmp_path: Path) -> Path:
    other = tmp_path / "other.kera"
    other.write_text(ACC.replace("s + x", "s - x"))
    assert kera("inspect", other, "--keg", tmp_path / "other.keg").status == 0
    return tmp_path / "other.keg"


def test_a_receipt_names_no_file_outside_its_directory(kera: Kera, tmp_path: Path) -> None:
    out = build(kera, tmp_path)
    rows = json.loads((out / "receipt.json").read_text())["artefacts"]
    forge(out, artefacts={**rows, "../of1.kera": hash_file(tmp_path / "of1.kera")})
    done = kera("verify", "--receipt", out)
    assert done.status == 1 and "outside its directory" in done.err


def test_other_tool_versions_are_shown_and_are_no_fault(kera: Kera, tmp_path: Path) -> None:
    out = build(kera, tmp_path)
    tools = json.loads((out / "receipt.json").read_text())["tools"]
    forge(out, tools={**tools, "numpy": "0.1"})
    (out / "notes.txt").write_text("mine")
    done = kera("verify", "--receipt", out)
    assert done.status == 0 and "built with numpy 0.1" in done.out
    assert "not in the receipt: notes.txt" in done.out


def test_no_option_goes_with_a_receipt(kera: Kera, tmp_path: Path) -> None:
    done = kera("verify", "--receipt", tmp_path, "--clock", "9MHz")
    assert done.status == 2 and "no other option" in done.err
