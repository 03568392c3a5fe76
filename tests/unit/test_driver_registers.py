"""What software is given for a design behind AXI4-Lite agrees with the map that the circuit has."""

from __future__ import annotations

import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kera_hw
from kera_hw.driver.build import verilog_files
from kera_hw.driver.hardware import HardwareDesign, design_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.rtl_target import pack_inputs
from kera_hw.rtl.emit.register_map import RegisterMap
from kera_hw.rtl.sim.axi_lite import memory_words

SOURCE = """
struct Pair { low: u20, high: i5 }
pub fn kinds(a: [i40; 30], x: i9, s: [i5; 3], f: f32, h: [bf16; 2], p: [Pair; 2], q: Pair, yes: bool, w: u64)
    -> ([i40; 30], i9, [i5; 3], f32, [bf16; 2], [Pair; 2], Pair, bool, u64)
{ (a, x, s, f, h, p, q, yes, w) }
"""
ITEM: dict[str, Any] = {
    "a": [-(1 << 39), (1 << 39) - 1, *range(-14, 14)], "x": -200, "s": [-16, 15, -1], "f": 1.5,
    "h": [0.5, -3.0],
    "p": [{"low": 5, "high": -16}, {"low": 0xFFFFF, "high": 15}], "q": {"low": 77, "high": -1}, "yes": True,
    "w": (1 << 64) - 2,
}  # fmt: skip


class Bus:
    """Words by offset."""

    def __init__(self) -> None:
        self.words: dict[int, int] = {}

    def read(self, offset: int) -> int:
        return self.words.get(offset, 0)

    def write(self, offset: int, word: int) -> None:
        assert 0 <= word < 1 << 32 and offset % 4 == 0
        self.words[offset] = word


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[HardwareDesign, Path]:
    out = tmp_path_factory.mktemp("registers")
    (out / "kinds.kera").write_text(SOURCE)
    graph = kera_hw.load(out / "kinds.kera").graph
    design = design_hardware(graph, graph.exports[0], TargetOptions(interface="axi-lite"))
    files = verilog_files(design)
    assert {"kinds.v", "kinds.h", "kinds_driver.py", "kinds_instance.v"} == set(files)
    for name, text in files.items():
        (out / name).write_text(text)
    return design, out


def expected_words(design: HardwareDesign) -> dict[int, int]:
    """The words of the parameters, by the rules that the circuit is simulated by."""
    import ml_dtypes

    given = ITEM
    batch = {
        "a": np.array([given["a"]]), "x": np.array([given["x"]]), "s": np.array([given["s"]]),
        "f": np.array([given["f"]], np.float32), "h": np.array([given["h"]], ml_dtypes.bfloat16),
        "p": {key: np.array([[item[key] for item in given["p"]]]) for key in ("low", "high")},
        "q": {key: np.array([value]) for key, value in given["q"].items()},
        "yes": np.array([True]), "w": np.array([given["w"]], np.uint64),
    }  # fmt: skip
    words = pack_inputs(design, batch, 1)
    buses = {port.name: word for port, word in zip(design.emitted.data_inputs, words)}
    found: dict[int, int] = {}
    for entry in RegisterMap.of(design.ports).entries:
        if entry.is_parameter:
            row = memory_words(entry, buses[entry.value.bus])[0].tolist()
            found |= {entry.offset + 4 * k: word for k, word in enumerate(row)}
    return found


def masked(design: HardwareDesign, words: dict[int, int]) -> dict[int, int]:
    """The bits that are of values; what extends them the circuit does not look at."""
    masks = {
        entry.offset + 4 * k: sum((1 << p.width) - 1 << p.word_low for p in entry.pieces(k) if not p.repeats)
        for entry in RegisterMap.of(design.ports).entries if entry.is_parameter for k in range(entry.words)
    }  # fmt: skip
    return {offset: words[offset] & mask for offset, mask in masks.items()}


def test_the_driver_in_python(built: tuple[HardwareDesign, Path]) -> None:
    design, out = built
    found = runpy.run_path(str(out / "kinds_driver.py"))
    bus = Bus()
    kernel = found["Kinds"](bus)
    for name, value in ITEM.items():
        kernel.set(name, value)
        assert kernel.get(name) == value
    assert masked(design, bus.words) == masked(design, expected_words(design))
    # The function gives its parameters back: a result has the words of its parameter, at its own place.
    entries = {entry.name: entry for entry in RegisterMap.of(design.ports).entries}
    for k, name in enumerate(ITEM):
        given, result = entries[name], entries[f"result_{k}"]
        assert given.size_bytes == result.size_bytes
        for at in range(0, given.size_bytes, 4):
            bus.words[result.offset + at] = bus.words[given.offset + at]
    bus.words[0] = 2
    assert kernel.is_done() and tuple(map(kernel.get, found["RESULTS"])) == tuple(ITEM.values())
    with pytest.raises(TypeError, match="parameters are a, x"):
        kernel.call(x=1)
    with pytest.raises(TimeoutError):  # nobody is there who would finish it
        kernel.call(timeout_s=0.01, **ITEM)
    assert bus.words[0] == 1
    with pytest.raises(OverflowError):
        kernel.set("x", 256)
    with pytest.raises(ValueError, match="elements"):
        kernel.set("s", [1, 2])
    bus.words[0] = 4
    assert kernel.is_idle() and not kernel.is_done()


def test_the_header(built: tuple[HardwareDesign, Path], tmp_path: Path) -> None:
    design, out = built
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc")
    main = tmp_path / "main.c"
    main.write_text(
        '#include "kinds.h"\n#include <stdio.h>\n'
        "static uint32_t space[1024];\n"
        "int main(void) {\n"
        f"  int64_t a[30] = {{{', '.join(f'{value}LL' for value in ITEM['a'])}}};\n"
        "  int8_t s[3] = {-16, 15, -1}, back[3];\n  uint16_t h[2] = {0x3f00, 0xc040};\n"
        f"  uint32_t p[2] = {{{5 | 16 << 20}u, {0xFFFFF | 15 << 20}u}}, q = {77 | 31 << 20}u;\n"
        "  kinds_set_a(space, a); kinds_set_x(space, -200); kinds_set_s(space, s);\n"
        "  kinds_set_f(space, 1.5f);  kinds_set_h(space, h); kinds_set_p(space, p);\n"
        "  kinds_put(space, KINDS_Q_OFFSET, &q, 4);\n"
        "  kinds_set_yes(space, 1); kinds_set_w(space, 0xfffffffffffffffeULL);\n"
        "  kinds_get_result_2(space, back); (void)kinds_get_result_3(space);\n"
        "  kinds_start(space); kinds_interrupt_when_done(space, 1); (void)kinds_acknowledge(space);\n"
        "  if (space[0] != KINDS_START || kinds_is_done(space) || kinds_is_idle(space)) return 1;\n"
        "  for (int k = 4; k < 1024; k++) printf(\"%u\\n\", space[k]);\n  return 0;\n}\n"
    )
    program = tmp_path / "main"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{out}"]
    done = subprocess.run([compiler, *flags, str(main), "-o", str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    words = {4 * (k + 4): int(word) for k, word in enumerate(printed)}
    assert masked(design, words) == masked(design, expected_words(design))
