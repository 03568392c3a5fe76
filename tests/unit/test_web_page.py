"""`kera build --target web`: the page's files, its logic in Node.js, and all of it in Chromium."""
from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kera_hw
from kera_hw.driver import web
from kera_hw.driver.recheck import recheck
from tests.browser import Browser
from tests.tidy.repo import ROOT
from tests.unit.cli_support import Kera
from tests.unit.test_wasm_build import node

FIR = ROOT / "examples" / "fir.kera"
_MIXED = """
struct Pair { a: i13, b: bool }
pub fn mixed(p: Pair, x: f16, y: fix<8, 4>, t: [u64; 3]) -> (Pair, [f32; 4, 6], bf16, u64) {
    let s = t[0] + t[1] * 3 + t[2];
    (Pair { a: p.a + (s as i13), b: !p.b }, [[(x as f32) * 0.5; 6]; 4], y as bf16, s)
}
"""


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    path = tmp_path / "mixed.kera"
    path.write_text(_MIXED, encoding="utf-8")
    return path


def page_of(kera: Kera, path: Path, out: Path, *options: object) -> Path:
    done = kera("build", path, "--target", "web", "-o", out, "--json", *options)
    assert done.status == 0, done.err
    return out / f"{done.json['function']}.html"


def record_of(page: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="record">(.*?)</script>', page.read_text("utf-8"))
    assert found is not None
    return json.loads(found[1])


def test_files_and_receipt(kera: Kera, tmp_path: Path) -> None:
    page = page_of(kera, FIR, tmp_path, "-i", "x=[1000, 0, -3]")
    names = {"fir.html", "fir.items.npz", "fir.keg", "plan.json", "receipt.json"}
    assert {path.name for path in tmp_path.iterdir()} == names
    record = record_of(page)
    wanted = kera_hw.load(FIR).function("fir").batch(x=np.array([1000, 0, -3], np.int16))
    assert record["items"] == 3 and base64.b64decode(record["wanted"]["out"]) == wanted.tobytes()
    assert recheck(tmp_path).holds
    text = page.read_text("utf-8")
    assert not re.search(r"(src|href)=", text), "the page brings everything along"
    page.write_text(text.replace("Checking", "Trusting"), "utf-8")
    assert {fault.code for fault in recheck(tmp_path).faults} == {"K0809", "K0811"}


@pytest.mark.parametrize("damage", [b"", b"PK\x05\x06", b"no archive"])
def test_items_that_are_none(kera: Kera, tmp_path: Path, damage: bytes) -> None:
    page_of(kera, FIR, tmp_path, "--vectors", 5)
    (tmp_path / "fir.items.npz").write_bytes(damage)
    codes = [fault.code for fault in recheck(tmp_path).faults]
    assert codes == ["K0809", "K0809"]


def test_what_a_page_is_not_for(kera: Kera, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kera("build", FIR, "--target", "web", "-i", "y=[1]", "-o", tmp_path).status == 2
    assert kera("build", FIR, "--target", "wasm", "-i", "x=[1]", "-o", tmp_path).status == 2
    assert "K0908" in kera("build", FIR, "--target", "web", "--vectors", 0, "-o", tmp_path).err
    monkeypatch.setattr("kera_hw.driver.web.build.MOST_BYTES", 10)
    assert "K0705" in kera("build", FIR, "--target", "web", "-o", tmp_path).err
    assert not list(tmp_path.iterdir())


# Logic, in Node.js

_LOGIC = """
import { readFileSync } from "node:fs";
import { arraysOf, compare, identify, measure, numbers, open, params, parse, results, written } from "check";
const record = JSON.parse(readFileSync("record.json", "utf8"));
const named = await identify(record), kernel = await open(record);
const inputs = arraysOf(params, record.inputs), wanted = arraysOf(results, record.wanted);
const found = kernel.run(inputs, record.items);
const said = { named, ...compare(found, wanted) };
const last = results.at(-1), other = { ...found, [last.name]: found[last.name].slice() };
other[last.name][2] ^= 5n;
said.other = compare(other, wanted);
said.again = params.every((leaf) => {
  const bytes = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength);
  const texts = Array.from({ length: record.items }, (_, k) => written(leaf, inputs[leaf.name], k));
  const back = parse(leaf, texts.join(" "));
  return bytes(back).equals(bytes(inputs[leaf.name]));
});
let clock = 0;
said.time = measure(kernel, inputs, record.items, () => (clock += 30));
said.frozen = measure(kernel, inputs, record.items, () => 0, 100, 8);
const every = Uint16Array.from({ length: 65536 }, (_, k) => k);
for (const type of ["f16", "bf16"]) {
  const leaf = { name: "x", type, size: 1, array: Uint16Array };
  said[type] = Array.from(numbers(leaf, every), String);
  const nan = type === "f16" ? 0x7e00 : 0x7fc0;
  const texts = Array.from(every, (bits) => written(leaf, Uint16Array.of(bits), 0));
  said[type + "back"] = parse(leaf, texts.join(" ")).every((bits, k) => bits === k || bits === nan);
  said[type + "near"] = Array.from(parse(leaf, JSON.parse(readFileSync("near.json", "utf8")).join(" ")));
}
said.refused = JSON.parse(readFileSync("wrong.json", "utf8")).map(([type, array, text]) => {
  try { parse({ name: "x", type, size: 2, array: globalThis[array] }, text); }
  catch (error) { return error.message; }
  return "taken";
});
console.log(JSON.stringify(said));
"""
_WRONG = [
    ("i13", "Int16Array", "1"), ("i13", "Int16Array", "4096 0"), ("u8", "Uint8Array", "-1 0"),
    ("u64", "BigUint64Array", "18446744073709551616 0"), ("i8", "Int8Array", "1.5 0"),
    ("bool", "Uint8Array", "2 0"),
    ("f32", "Float32Array", "x 1"), ("fix<8, 4>", "Int8Array", "8 0"), ("fix<8, 4>", "Int8Array", "nan 0"),
]  # fmt: skip


def test_the_logic_in_node(kera: Kera, mixed: Path, tmp_path: Path) -> None:
    page = page_of(kera, mixed, tmp_path / "out", "--vectors", 40)
    here = Path(web.__file__).parent
    (found,) = re.findall(r'<script type="importmap">(.*?)</script>', page.read_text("utf-8"))
    urls = json.loads(found)["imports"]
    for name in ("keg", "check", "kernel"):
        place = tmp_path / "node_modules" / name
        place.mkdir(parents=True)
        script = base64.b64decode(urls[name].partition(",")[2])
        assert name == "kernel" or script == (here / f"{name}.mjs").read_bytes()
        (place / "index.mjs").write_bytes(script)
        (place / "package.json").write_text('{"exports": "./index.mjs"}')
    near = np.random.default_rng(1).normal(size=500) * np.exp2(np.arange(500) % 40 - 25.0)
    (tmp_path / "near.json").write_text(json.dumps(near.tolist()))
    (tmp_path / "record.json").write_text(json.dumps(record_of(page)))
    (tmp_path / "wrong.json").write_text(json.dumps(_WRONG))
    (tmp_path / "try.mjs").write_text(_LOGIC)
    call = [node(), "try.mjs"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["named"]["same"] and said["named"]["graph"] == kera_hw.load(mixed).fingerprint
    assert (said["differing"], said["first"]) == (0, None)
    assert said["bits"] == 40 * (16 + 8 + 24 * 32 + 16 + 64)
    assert said["other"]["differing"] == 2
    assert said["other"]["first"] == {"leaf": "out.3", "item": 2, "element": 0}
    assert said["again"] and said["time"]["rounds"] == 1 << 16 and said["frozen"]["rounds"] == 8
    for name, decoded in (("f16", _f16), ("bf16", _bf16)):
        wanted = decoded(np.arange(1 << 16, dtype=np.uint16))
        assert np.array_equal(np.array([_number(text) for text in said[name]]), wanted, equal_nan=True)
        assert said[f"{name}back"]
    assert said["f16near"] == near.astype(np.float16).view(np.uint16).tolist()
    assert all(message != "taken" and message.startswith("x") for message in said["refused"]), said["refused"]


def _number(text: str) -> float:
    return float(text.replace("Infinity", "inf"))


def _f16(bits: Any) -> Any:
    return bits.view(np.float16).astype(np.float64)


def _bf16(bits: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


# The page, in Chromium

_CONTRAST = """
(() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, w, k) => sum + w * linear(parts(c)[k] / 255), 0);
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const found = getComputedStyle(one).backgroundColor, [, , , alpha = 1] = parts(found);
      if (alpha > 0) return found;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = [...document.querySelectorAll("main *")].filter((one) =>
    [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) || "value" in one);
  return Math.min(...texts.map((one) => {
    const [a, b] = [light(getComputedStyle(one).color), light(ground(one))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  }));
})()
"""
_CHANGED = "document.getElementById('leaf').dispatchEvent(new Event('change'))"
_UNNAMED = """
[...document.querySelectorAll("button, input, select, textarea, canvas")].filter((one) =>
  !(one.labels?.length || one.tagName === "BUTTON" && one.textContent.trim() || one.ariaLabel))
  .map((one) => one.id)
"""


def test_the_page_in_a_browser(kera: Kera, tmp_path: Path) -> None:
    page = page_of(kera, FIR, tmp_path, "--vectors", 200)
    with Browser() as browser:
        assert browser.load(page) == "same"
        text = browser.ask("document.body.innerText")
        assert "200 items, 6,400 bits: 0 differ" in text and kera_hw.load(FIR).fingerprint in text
        assert " ns an item" in text
        assert "A line of 200 values" in browser.ask("document.getElementById('canvas').ariaLabel")
        assert browser.ask(_UNNAMED) == []
        assert sum(browser.ask("window.shifts")) == 0
        for scheme in ("light", "dark"):
            feature = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.call("Emulation.setEmulatedMedia", features=feature)
            assert browser.ask(_CONTRAST) >= 4.5, scheme
        metrics = {"width": 320, "height": 640, "deviceScaleFactor": 1, "mobile": False}
        browser.call("Emulation.setDeviceMetricsOverride", **metrics)
        assert browser.ask("document.documentElement.scrollWidth <= window.innerWidth")
        assert browser.complaints == []


def test_what_is_seen_of_a_page_that_is_worse(kera: Kera, tmp_path: Path) -> None:
    """Pale text, a control without a name, and what moves what is read are found."""
    page = page_of(kera, FIR, tmp_path)
    with Browser() as browser:
        assert browser.load(page) == "same"
        browser.ask("document.getElementById('caption').style.color = '#999'")
        assert browser.ask(_CONTRAST) < 4.5
        browser.ask("document.getElementById('width').labels[0].remove()")
        assert browser.ask(_UNNAMED) == ["width"]
        browser.ask("document.querySelector('main').style.paddingTop = '20rem'")
        browser.ask("new Promise((done) => setTimeout(done, 500))")
        assert sum(browser.ask("window.shifts")) > 0


def test_by_keyboard_alone(kera: Kera, tmp_path: Path) -> None:
    page = page_of(kera, FIR, tmp_path)
    with Browser() as browser:
        assert browser.load(page) == "same"
        order: list[str] = []
        while "run" not in order and len(order) < 20:
            browser.press("Tab")
            order.append(browser.ask("document.activeElement.id"))
            assert browser.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            if order[-1] == "in-x":
                browser.ask("document.activeElement.select()")
                browser.write("1000, 0, -3")
        # How wide a picture is, is asked of a picture alone.
        assert order == ["again", "leaf", "view", "play", "in-x", "run"]
        browser.ask("document.getElementById('view').value = 'picture'")
        assert browser.ask("getComputedStyle(document.getElementById('width')).visibility") == "visible"
        browser.ask("document.getElementById('view').value = 'series'")
        browser.press("Enter")
        wanted = kera_hw.load(FIR).function("fir").batch(x=np.array([1000, 0, -3], np.int16))
        assert browser.ask("document.getElementById('answer').textContent") == (
            f"out = {' | '.join(map(str, wanted))}"
        )
        assert browser.ask("document.getElementById('caption').textContent").startswith("A line of 3 values")
        browser.ask("document.getElementById('in-x').value = '40000'")
        browser.press(" ")
        assert "40000 is not from" in browser.ask("document.getElementById('answer').textContent")


def test_a_picture(kera: Kera, mixed: Path, tmp_path: Path) -> None:
    """A tensor is shown as one, and other leaves by choice."""
    page = page_of(kera, mixed, tmp_path / "out", "--vectors", 3)
    with Browser() as browser:
        assert browser.load(page) == "same"
        browser.ask("document.getElementById('leaf').selectedIndex = 2")
        browser.ask(_CHANGED)
        assert browser.ask("document.getElementById('canvas').ariaLabel").startswith("out.1: A line of 72")
        browser.ask("document.getElementById('view').value = 'picture'")
        browser.ask("document.getElementById('width').value = 6")
        browser.ask(_CHANGED)
        shown = browser.ask("document.getElementById('canvas').ariaLabel")
        assert shown.startswith("out.1: A picture of 6 by 12")
        assert browser.complaints == []


def test_what_differs_is_said(kera: Kera, tmp_path: Path) -> None:
    page = page_of(kera, FIR, tmp_path)
    text, record = page.read_text("utf-8"), record_of(page)
    other = bytearray(base64.b64decode(record["wanted"]["out"]))
    other[4 * 7] ^= 6
    graph = bytearray(base64.b64decode(record["keg"]))
    graph[-1] ^= 1
    cases = (
        (record["wanted"]["out"], other, "different", "2 of 2,048 bits differ; first in out, item 7"),
        (record["keg"], graph, "failed", "could not do its work"),
    )
    with Browser() as browser:
        for was, changed, state, said in cases:
            page.write_text(text.replace(was, base64.b64encode(changed).decode()), "utf-8")
            assert browser.load(page) == state
            assert said in browser.ask("document.body.innerText")
