"""Enables and resets of states: found where they save logic, right in what they do, bound to their stage."""
from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kera_hw.driver.hardware import plan_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import compile_text
from kera_hw.graph import Store
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.rtl.techmap import MapOptions, map_design
from kera_hw.rtl.techmap.options import Controls
from kera_hw.schedule.fpga.bits import cell_bits
from kera_hw.schedule.fpga.cells import Lut, Moves, RegisterPin, Restart, StateNext
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.fpga.netlist import Netlist, StateControl
from kera_hw.schedule.fpga.resource_model import netlist_luts
from kera_hw.schedule.fpga.simulate import simulate_netlist
from kera_hw.schedule.planner import schedule
from kera_hw.schedule.verifier import verify_plan
from kera_hw.support import SourceFile
from tests.netlist_reference import evaluate

WAYS: tuple[Controls, ...] = ("none", "shared", "enables", "own")


def flat_of(text: str, name: str = "f") -> FlatDesign:
    loaded = compile_text(SourceFile("c.kera", text.encode()), Path("c.kera"))
    assert loaded.graph is not None, loaded.diagnostics
    export = loaded.graph.export(name)
    assert export is not None
    flat = flatten_export(export, Store(), 1, True)
    assert isinstance(flat, FlatDesign)
    return flat


def mapped(text: str, controls: Controls = "shared", device: str = "ecp5-85k") -> Netlist:
    return map_design(flat_of(text), device, 10_000, MapOptions(controls=controls))


def controls_of(netlist: Netlist) -> dict[str, list[tuple[int, int, bool, bool]]]:
    """For each state its controls: low, width, enable, reset."""
    return {
        state.name: [(c.low, c.width, c.enable is not None, c.reset is not None) for c in state.controls]
        for state in netlist.states
    }


def signals(netlist: Netlist, kind: type[Moves | Restart]) -> list[int]:
    return [cell.state for cell in netlist.cells if isinstance(cell, kind)]


def test_a_state_kept_under_a_condition_has_an_enable() -> None:
    text = "pub stream f(c: bool, x: u8) -> u8 { state s: u8 = 3; let r = s; if c { s = x; } r }"
    netlist = mapped(text)
    assert controls_of(netlist) == {"s": [(0, 8, True, False)]}
    assert netlist_luts(netlist, DEVICE) == 1  # the condition, and whether the pipeline moves
    assert netlist_luts(mapped(text, "none"), DEVICE) == 8
    (pin,) = (cell for cell in netlist.cells if isinstance(cell, RegisterPin))
    assert pin.registers == 8 and not pin.reset


def test_what_a_state_takes_is_made_for_where_it_is_enabled() -> None:
    text = """pub stream f(a: bool, b: bool, c: bool, x: u8, y: u8) -> u8 {
        state s: u8 = 3;
        let r = s;
        if a && b { if c { s = x; } else { s = y; } }
        r
    }"""
    netlist = mapped(text)
    assert controls_of(netlist) == {"s": [(0, 8, True, False)]}
    assert netlist_luts(netlist, DEVICE) == 8 + 1  # whether `a && b` is no matter for the choice


START = """pub stream f(c: bool, x: u8) -> u8 {{
    state s: u8 = {initial};
    let r = s;
    s = if c {{ {initial} }} else {{ {other} }};
    r
}}"""


def test_a_state_that_starts_anew_has_a_reset() -> None:
    text = START.format(initial=3, other="s + x")
    assert controls_of(mapped(text)) == {"s": [(0, 8, False, True)]}
    other = text.replace("if c { 3 }", "if c { 4 }")  # bits 0 to 2 differ from the initial value
    assert controls_of(mapped(other)) == {"s": [(3, 5, False, True)]}


def test_both_at_once() -> None:
    text = """pub stream f(c: bool, e: bool, x: u12) -> u12 {
        state s: u12 = 0;
        let r = s;
        if c { s = 0; } else if e { s = rotl(s, 1) + x; }
        r
    }"""
    netlist = mapped(text)
    assert controls_of(netlist) == {"s": [(0, 12, True, True)]}
    assert netlist_luts(netlist, DEVICE) == 12 + 2
    masked = mapped(text.replace("rotl(s, 1)", "s"))  # the carry cells add nothing at no cost
    assert controls_of(masked) == {"s": [(0, 12, False, True)]}
    assert netlist_luts(masked, DEVICE) == 12 + 1


def test_logic_that_has_room_for_the_choice_keeps_it() -> None:
    text = START.format(initial=3, other="s ^ x")
    assert controls_of(mapped(text)) == {"s": []}


def test_parts_of_a_state_have_their_own() -> None:
    text = """pub stream f(a: bool, b: bool, x: u8) -> u16 {
        state s: u16 = 0;
        let r = s;
        s = cat(if a { x } else { s.bits(15, 8) }, if b { x } else { s.bits(7, 0) });
        r
    }"""
    assert controls_of(mapped(text)) == {"s": [(0, 8, True, False), (8, 8, True, False)]}


def test_elements_written_by_index_have_an_enable_each() -> None:
    text = """pub stream f(i: u2, x: u8) -> u8 {
        state m: [u8; 4] = [0; 4];
        let r = m[i];
        m[i] = x;
        r
    }"""
    found = controls_of(mapped(text))
    assert [len(found[f"m_{k}"]) for k in range(4)] == [1] * 4


def test_bits_that_start_anew_keep_the_enable_of_those_that_do_not() -> None:
    """A timer loaded with small numbers: its upper bits are set back, all are held under one condition."""
    text = """pub stream f(load: bool, long: bool, run: bool, x: u12) -> u12 {
        state t: u12 = 0;
        let r = t;
        if load { t = if long { 7 } else { 5 }; } else if run { t = rotl(t, 1) + x; }
        r
    }"""
    netlist = mapped(text)
    assert controls_of(netlist) == {"t": [(0, 3, True, False), (3, 9, True, True)]}
    (low, high) = netlist.states[0].controls
    assert low.enable == high.enable
    assert netlist_luts(netlist, DEVICE) == 12 + 3 + 2


def test_few_flip_flops_do_without() -> None:
    text = "pub stream f(c: bool, a: u4, x: u2) -> u2 { state s: u2 = 0; if c { s = x; } s }"
    assert controls_of(mapped(text)) == {"s": []}


def test_where_the_chosen_value_is_asked_for_itself_the_logic_stays() -> None:
    """A result made of the next value needs the choice anyway: an enable would only come on top."""
    text = """pub stream f(c: bool, x: u8, y: u8, z: u8) -> u8 {
        state s: u8 = 0;
        if c { s = x; }
        s & y ^ z
    }"""
    assert controls_of(mapped(text)) == {"s": []}


def test_a_result_that_is_the_next_value_is_read_from_the_state() -> None:
    text = "pub stream f(c: bool, x: u8) -> (u8, u8) { state s: u8 = 0; if c { s = x; } (s, s ^ 3) }"
    netlist = mapped(text.replace("(s, s ^ 3)", "(s, 7)"))
    assert controls_of(netlist) == {"s": [(0, 8, True, False)]}
    assert [type(netlist.cells[s.cell]) for s in netlist.outputs[0].bits if s.cell is not None] == [StateNext]
    plan, _ = schedule(netlist, DEVICE, 10_000)
    assert plan is not None and verify_plan(netlist, plan, MODEL) == []
    assert (plan.latency_cycles, plan.register_bits) == (1, 0)
    both = mapped(text)
    plan, _ = schedule(both, DEVICE, 10_000)
    assert plan is not None and plan.register_bits == 2  # the others are the state's as well
    items = [{"in_c": k % 3 == 0, "in_x": k} for k in range(20)]
    assert evaluate(netlist, items)[-1]["out_0"] == evaluate(both, items)[-1]["out_0"] == 18


def test_registers_that_start_inverted_show_no_results() -> None:
    """An iCE40 flip-flop starts with 0: a bit that starts with 1 is kept inverted, and needs a LUT."""
    text = "pub stream f(x: u8) -> u8 { state s: u8 = 240; s = s + x; s }"
    shown = {
        device: sum(
            segment.width for segment in netlist.outputs[0].bits
            if segment.cell is not None and isinstance(netlist.cells[segment.cell], StateNext)
        )
        for device in ("ecp5-85k", "ice40-hx8k") if (netlist := mapped(text, device=device))
    }
    assert shown == {"ecp5-85k": 8, "ice40-hx8k": 4}


CHAIN = """pub stream f(c: bool, x: u8) -> u8 {
    state z: [u8; 4] = [0; 4];
    let r = z[3];
    if c { z = shift_in(z, x); }
    r
}"""


def test_states_under_one_condition_share_its_signal_unless_each_has_its_own() -> None:
    assert len(set(signals(mapped(CHAIN, "shared"), Moves))) == 1
    assert sorted(signals(mapped(CHAIN, "own"), Moves)) == [0, 1, 2, 3]
    assert signals(mapped(CHAIN, "none"), Moves) == []


# Schedules

DEVICE = find_device("ecp5-85k") or pytest.fail("the device is gone")
MODEL = DelayModel(DEVICE)

FRAMES = """
pub stream f(rx: bool) -> u8 {
    state phase: u2 = 0;
    state timer: u16 = 0;
    state count: u3 = 0;
    state shift: u8 = 0;
    match phase {
        0 => { if !rx { phase = 1; timer = 3; } }
        1 => {
            if timer != 0 { timer -= 1; } else if rx { phase = 0; } else { phase = 2; count = 0; timer = 7; }
        }
        2 => {
            if timer == 0 {
                shift = cat(rx, shift.bits(7, 1));
                timer = 7;
                if count == 7 { phase = 3; }
                count += 1;
            } else { timer -= 1; }
        }
        3 => { if timer == 0 { phase = 0; } else { timer -= 1; } }
    }
    shift
}
"""


@pytest.mark.parametrize("clock_ps", [10_000, 5_500])
def test_a_controlled_state_is_written_where_its_control_is(clock_ps: int) -> None:
    netlist = mapped(FRAMES)
    assert controls_of(netlist)["shift"] == [(0, 8, True, False)]
    plan, faults = schedule(netlist, DEVICE, clock_ps)
    assert plan is not None, faults
    assert verify_plan(netlist, plan, MODEL) == []
    for state, write in zip(netlist.states, plan.state_write):
        assert {plan.stage[pin] for pin in state.pins()} <= {write}


def test_the_checker_notices_a_control_in_another_stage() -> None:
    netlist = mapped(FRAMES)
    plan, _ = schedule(netlist, DEVICE, 5_000)
    assert plan is not None and plan.latency_cycles > 1
    faults = (
        (RegisterPin, "controls it in another"), (Moves, "speaks of the stage"), (StateNext, "or not yet"),
    )
    for kind, words in faults:
        cell = next(k for k, cell in enumerate(netlist.cells) if isinstance(cell, kind))
        moved = tuple(
            (stage + 1) % plan.latency_cycles if k == cell else stage for k, stage in enumerate(plan.stage)
        )
        problems = verify_plan(netlist, replace(plan, stage=moved, available=moved), MODEL)
        assert any(words in problem for problem in problems), problems
    left = next(k for k, cell in enumerate(netlist.cells) if isinstance(cell, StateNext))
    last = len(netlist.cells)
    reads = Lut(width=8, inputs=(cell_bits(left, 8),), expr=("not", ("in", 0)))
    wrong = replace(netlist, cells=(*netlist.cells, reads))
    more = [(*row, row[left]) for row in (plan.stage, plan.available, plan.arrival_ps)]
    damaged = replace(plan, stage=more[0], available=more[1], arrival_ps=more[2])
    assert f"cell {last} reads what an item has left in a state" in verify_plan(wrong, damaged, MODEL)


def test_the_checker_notices_a_reset_that_comes_too_late() -> None:
    """What a reset needs before the edge counts: a clock that data make can be too fast for it."""
    text = START.format(initial=0, other="s + x")
    netlist = mapped(text)
    plan, _ = schedule(netlist, DEVICE, 10_000)
    assert plan is not None
    (pin,) = (k for k, cell in enumerate(netlist.cells) if isinstance(cell, RegisterPin))
    need = plan.arrival_ps[pin] + MODEL.setup_ps
    assert need == max(plan.arrival_ps) + MODEL.setup_ps
    assert verify_plan(netlist, replace(plan, clock_ps=need), MODEL) == []
    assert verify_plan(netlist, replace(plan, clock_ps=need - 1), MODEL) == [
        f"cell {pin} settles after {plan.arrival_ps[pin]} ps of {need - 1}"
    ]


def test_a_clock_too_fast_for_a_control_names_it() -> None:
    netlist = mapped(FRAMES)
    plan, faults = schedule(netlist, DEVICE, 3_000)
    assert plan is None
    assert faults[0].code == "K0601"
    assert "flip-flops" in faults[0].message


@pytest.mark.parametrize("clock_mhz", [60.0, 120.0, 180.0, 240.0, 300.0])
def test_a_design_with_controls_is_never_slower_than_one_without(clock_mhz: float) -> None:
    loaded = compile_text(SourceFile("c.kera", FRAMES.encode()), Path("c.kera"))
    assert loaded.graph is not None
    export = loaded.graph.export("f")
    assert export is not None
    found = plan_hardware(loaded.graph, export, TargetOptions("ecp5-85k", clock_mhz))
    clock_ps = int(1e6 / clock_mhz)
    netlist = map_design(flat_of(FRAMES), "ecp5-85k", clock_ps, MapOptions(controls="none"))
    plain, _ = schedule(netlist, DEVICE, clock_ps)
    assert plain is not None
    assert found.plan.initiation_interval <= plain.initiation_interval
    assert found.plan.latency_cycles <= plain.latency_cycles
    assert found.plan.estimate.lut <= plain.estimate.lut


# Random programs

WIDTHS = {"a": 8, "b": 8, "c": 5, "d": 3, "e": 1}


class Program:
    """Random nested conditions over states, inputs and constants."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        initial = {name: self.rng.choice([0, 0, self.rng.getrandbits(w)]) for name, w in WIDTHS.items()}
        states = "".join(f"    state {n}: u{w} = {initial[n]};\n" for n, w in WIDTHS.items())
        self.initial = initial
        body = "\n".join(line for _ in range(self.rng.randint(2, 4)) for line in self._statement(2))
        shown = ", ".join(f"r{n}" for n in WIDTHS)
        kinds = ", ".join(f"u{w}" for w in WIDTHS.values())
        reads = "".join(f"    let r{n} = {n};\n" for n in WIDTHS)
        self.text = f"pub stream f(x: u8, y: u8) -> ({kinds}) {{\n{states}{reads}{body}\n    ({shown})\n}}\n"

    def _condition(self) -> str:
        name = self.rng.choice(list(WIDTHS))
        return self.rng.choice([
            f"{name} == {self.rng.getrandbits(WIDTHS[name])}", f"x.bit({self.rng.randrange(8)})",
            f"y.bit({self.rng.randrange(8)}) && {name} != 0", "x < y",
        ])

    def _value(self, name: str) -> str:
        width = WIDTHS[name]
        part = f"{self.rng.choice('xy')}.bits({width - 1}, 0)" if width < 8 else self.rng.choice("xy")
        return self.rng.choice([part, str(self.initial[name]), str(self.rng.getrandbits(width)),
                                f"({name} ^ {part})", f"{name} + 1"])

    def _statement(self, depth: int) -> Iterator[str]:
        if depth == 0 or self.rng.random() < 0.3:
            name = self.rng.choice(list(WIDTHS))
            yield f"    {name} = {self._value(name)};"
            return
        yield f"    if {self._condition()} {{"
        for _ in range(self.rng.randint(1, 2)):
            yield from self._statement(depth - 1)
        if self.rng.random() < 0.6:
            yield "    } else {"
            yield from self._statement(depth - 1)
        yield "    }"


@pytest.mark.parametrize("device", ["ecp5-85k", "ice40-hx8k"])
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_do_the_same_with_and_without(seed: int, device: str) -> None:
    flat = flat_of(Program(seed).text)
    rng = random.Random(seed)
    items = [{"in_x": rng.getrandbits(8), "in_y": rng.getrandbits(8)} for _ in range(300)]
    columns = {bus: [item[bus] for item in items] for bus in ("in_x", "in_y")}
    results: list[list[dict[str, int]]] = []
    luts: list[int] = []
    for way in WAYS:
        netlist = map_design(flat, device, 20_000, MapOptions(controls=way))
        results.append(evaluate(netlist, items))
        simulated = simulate_netlist(netlist, columns)
        assert [{bus: simulated[bus][k] for bus in simulated} for k in range(len(items))] == results[-1]
        part = find_device(device)
        assert part is not None
        luts.append(netlist_luts(netlist, part))
        plan, faults = schedule(netlist, part, 25_000)
        assert plan is not None, faults
        assert verify_plan(netlist, plan, DelayModel(part)) == []
    assert all(result == results[0] for result in results)
    assert max(luts) == luts[0]


def test_random_programs_have_controls() -> None:
    """The comparison above is of something."""
    kinds: set[tuple[bool, bool]] = set()
    for seed in range(12):
        for found in controls_of(mapped(Program(seed).text)).values():
            kinds |= {(enable, reset) for _, _, enable, reset in found}
    assert kinds == {(True, False), (False, True), (True, True)}


def test_groups_cover_all_bits_in_order() -> None:
    netlist = mapped(FRAMES, "none")
    state = replace(netlist.states[1], controls=(StateControl(2, 3, 1, None), StateControl(9, 7, None, 2)))
    assert [(g.low, g.width, g.enable, g.reset) for g in state.groups()] == [
        (0, 2, None, None), (2, 3, 1, None), (5, 4, None, None), (9, 7, None, 2),
    ]
