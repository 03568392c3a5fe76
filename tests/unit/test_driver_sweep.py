"""Sweeps over intervals: what asks for less takes no more, what nothing beats is marked and plotted."""
from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kera_hw.cli.main import app
from kera_hw.cli.output import Exit
from kera_hw.driver.design import HardwareDesign
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.report.tradeoff import tradeoff_svg
from kera_hw.driver.session import compile_text
from kera_hw.driver.sweep import Sweep, sweep
from kera_hw.schedule.explain import Refusal
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.plan import Resources
from kera_hw.support import Diagnostic, KeraError, SourceFile

BIQUAD = """\
pub stream biquad(x: i16) -> i16 {
    state x1: i16 = 0; state x2: i16 = 0; state y1: i16 = 0; state y2: i16 = 0;
    let acc = mul_wide(x, 3213i16) as i40 + mul_wide(x1, 6426i16) as i40 + mul_wide(x2, 3213i16) as i40
        - mul_wide(y1, -15567i16) as i40 - mul_wide(y2, 6935i16) as i40;
    let y = round_to::<fix<16, 0>>(bitcast::<fix<40, 14>>(acc), half_even, saturate) as i16;
    x2 = x1; x1 = x; y2 = y1; y1 = y;
    y
}
"""
MATVEC = """\
pub fn matvec(w: [i8; 3, 3], x: [i8; 3]) -> [i32; 3] {
    let mut y = [0i32; 3];
    for i in 0..3 { for k in 0..3 { y[i] += (w[i, k] as i32) * (x[k] as i32); } }
    y
}
"""
FIR = """\
pub stream fir(x: i16, taps: [i16; 5]) -> i34 {
    state line: [i16; 5] = [0; 5];
    line = shift_in(line, x);
    sum(zip(line, taps, |a, b| mul_wide(a, b)) as i34)
}
"""


def swept(source: str, interval: int | None, **more: Any) -> Sweep:
    graph = compile_text(SourceFile("f.kera", source.encode()), Path("f.kera")).graph
    assert graph is not None
    options = TargetOptions(device="ecp5-25k", clock_mhz=150.0, interval=interval)
    return sweep(graph, graph.exports[0], options, **more)


def check(found: Sweep, most: int) -> None:
    assert [point.interval for point in found.points] == list(range(1, most + 1))
    made = [point for point in found.points if point.area is not None]
    areas = [point.area or 0 for point in made]
    assert areas == sorted(areas, reverse=True)
    for point in found.points:  # the area falls, or the sweep says why not
        assert point.note or (point.area is not None and point.made_for == point.interval)
    for point in made:
        beaten = any(
            (other.area or 0) <= (point.area or 0) and other.latency_cycles <= point.latency_cycles
            and other.items_per_s >= point.items_per_s
            and (other.area, other.latency_cycles) != (point.area, point.latency_cycles)
            for other in made
        )
        assert point.on_front == (not beaten and point.made_for == point.interval)
    shown = [node.text or "" for node in ET.fromstring(tradeoff_svg(found)).iter()]
    marks = {int(text.split(" ")[1]) for text in shown if text.startswith("II ")}
    assert marks == {point.made_for for point in made}


def test_products_of_a_matrix_come_to_share_a_multiplier() -> None:
    found = swept(MATVEC, 9)
    check(found, 9)
    assert found.points[0].dsp == 9
    assert found.points[-1].dsp <= 3
    assert (found.points[-1].area or 0) < 0.8 * (found.points[0].area or 0)


def test_a_filter_takes_less_or_the_sweep_says_why_not() -> None:
    found = swept(FIR, 16)
    check(found, 16)
    first, last = found.points[0], found.points[-1]
    assert (first.dsp, last.dsp) == (5, 1)
    assert (last.area or 0) < 0.95 * (first.area or 0)


@pytest.mark.long
def test_a_recurrence_sets_where_a_biquad_begins() -> None:
    found = swept(BIQUAD, 16)
    check(found, 16)
    first, *_, last = [point for point in found.points if point.area is not None]
    assert first.interval == 4
    assert last.dsp == 1
    assert (last.area or 0) < 0.6 * (first.area or 0)


def test_what_would_grow_is_not_taken_and_told() -> None:
    """Circuits of given areas: none, a gain, a loss that is not taken, a gain again, and no end in sight."""
    luts = {2: 500, 3: 300, 4: 320, 5: 300, 6: 200}
    device = find_device("ecp5-25k")

    def plan(graph: Any, export: Any, options: TargetOptions, *_: Any) -> HardwareDesign:
        assert options.interval is not None
        if options.interval == 1:
            raise KeraError([Diagnostic("K0603", "Too often: by a long way.")])
        estimate = Resources(luts.get(options.interval, 200), 10, 0, 0, 200.0)
        pace = (7, options.interval)
        design = SimpleNamespace(
            clock_mhz=150.0, estimate=estimate, device=device, core_paces=(pace, pace), area=estimate.lut
        )
        return cast(HardwareDesign, design)

    found = swept(MATVEC, None, plan=plan)
    check(found, len(found.points))
    assert [point.area for point in found.points[:6]] == [None, 500, 300, 300, 300, 200]
    assert [point.made_for for point in found.points[:6]] == [1, 2, 3, 3, 3, 6]
    assert found.points[0].note == "Too often"
    assert found.points[3].note == "its own circuit would take 320"
    assert found.points[4].note == "its own circuit would take as much"
    assert found.points[-1].interval == 16, "it stops once nothing has fallen for a while"


def test_a_sweep_goes_on_where_a_large_design_says_that_its_least_interval_is() -> None:
    """A picture has none of the first 64: it is asked once, not 64 times, then in steps of a quarter."""
    tried: list[int] = []

    def plan(graph: Any, export: Any, options: TargetOptions, *_: Any) -> HardwareDesign:
        assert options.interval is not None
        tried.append(options.interval)
        if options.interval < 80_000:
            raise KeraError([Refusal("K0603", "Too often: by a long way.", least=80_000)])
        estimate, pace = Resources(500, 10, 0, 0, 200.0), (7, options.interval)
        design = SimpleNamespace(
            clock_mhz=150.0, estimate=estimate, device=find_device("ecp5-25k"), core_paces=(pace, pace),
            area=500,
        )
        return cast(HardwareDesign, design)

    found = swept(MATVEC, None, plan=plan)
    assert tried == [1, 80_000, 100_000, 125_000]
    assert [point.made_for for point in found.points] == [1, 80_000, 80_000, 80_000]
    shown = [node.text or "" for node in ET.fromstring(tradeoff_svg(found)).iter()]
    assert "2 k/s" in shown, "its rates are no millions"
    tried.clear()
    assert [point.interval for point in swept(MATVEC, 90_000, plan=plan).points] == [1, 80_000, 90_000]
    tried.clear()
    with pytest.raises(KeraError) as caught:
        swept(MATVEC, 8, plan=plan)
    assert tried == [1] and caught.value.diagnostics[0].code == "K0603"


def test_the_command_prints_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, plot = tmp_path / "f.kera", tmp_path / "f.svg"
    path.write_text(MATVEC.replace("3]", "1]").replace("3, ", "1, ").replace("..3", "..1"))
    with pytest.raises(Exit) as done:
        app(["plan", str(path), "--sweep", "--ii", "2", "--svg", str(plot), "-q"], standalone_mode=False)
    assert done.value.status == 0
    assert "area is sites" in capsys.readouterr().out
    assert "II 1" in plot.read_text()
    with pytest.raises(Exit):
        app(["plan", str(path), "--sweep", "--ii", "1", "--json"], standalone_mode=False)
    data = json.loads(capsys.readouterr().out)
    assert [point["interval"] for point in data["points"]] == [1]
