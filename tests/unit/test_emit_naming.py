"""Every word that a language or a tool keeps, as the name of everything that a user names."""
from __future__ import annotations

import json
import keyword
import re
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal

import kera_hw
from kera_hw.cli.main import main
from kera_hw.driver.hardware import HardwareDesign, design_hardware, plan_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.verify import verify_export
from kera_hw.frontend.syntax.kinds import KEYWORDS
from kera_hw.rtl.emit.convert import module_verilog
from kera_hw.rtl.emit.naming import field_name, inner_name, module_name, module_refusal
from kera_hw.rtl.emit.reserved import CPP_WORDS, PYTHON_WORDS, TOOL_WORDS, VERILOG_WORDS
from kera_hw.rtl.emit.verilog import emit_verilog
from kera_hw.rtl.toolchain.process import scratch
from kera_hw.rtl.toolchain.verilator import build, lint
from kera_hw.rtl.toolchain.yosys import check
from kera_hw.support import KeraError
from tests.icarus import icarus_problems

# Members of Verilator's classes, macros of C, functions that its output calls, our own signals and ports.
OTHERS = """
    std TOP main Vdut VerilatedContext VerilatedModel IData QData VlWide eval eval_step final trace name
    contextp rootp vlSymsp vlSelf vlNamep stdin stdout errno NULL EOF INFINITY NAN linux unix major minor
    threads prepareClone abs max min exp sqrt sin log pow rand exit signal read write open close printf
    malloc string vector list map queue stack complex iterator function ref near far interrupt size_t int8_t
    bool display finish random bits clog2 clk rst advance valid_stage0 in_valid in_ready out_valid out_ready
    out_data out_0 holds due recent pause admitted datapath kernel i o payload valid_ ready_ data eq shape
    as_value as_bits lowermethod std_ TOP_ begin_ class_ std__ bench dut top work design __Vfunc __PVT__x
    a__DOT__b sc_in sc_clock
"""
KEPT_BY_KERA = {word.decode() for word in KEYWORDS} | {"valid", "ready"}
WORDS = sorted((VERILOG_WORDS | CPP_WORDS | TOOL_WORDS | PYTHON_WORDS | set(OTHERS.split())) - KEPT_BY_KERA)
FEW = ("std", "TOP", "main", "begin", "wire", "double", "class_", "eval", "std_")


def kera(word: str) -> str:
    """A program in which the function, a parameter, a field, a state and a local are called alike."""
    return f"""
struct Pair {{ {word}: i8, {word}_: u4 }}

pub stream {word}({word}: Pair, other: u8) -> Pair {{
    state {word}_: u8 = 7;
    let in_{word} = {word}_ + other;
    {word}_ = in_{word} ^ 3;
    let {word}__ = {word}.{word} - 3;
    Pair {{ {word}: {word}__ * (in_{word} as i8), {word}_: {word}.{word}_ }}
}}
"""


def design(word: str, emitter: str) -> HardwareDesign:
    graph = compiled(kera(word)).graph
    return design_hardware(graph, graph.exports[0], TargetOptions("ecp5-25k", 50.0, emitter=emitter))


def crowd(words: list[str]) -> str:
    """A program with all these words as parameters, fields, states and locals of one stream."""
    fields = ", ".join(f"{word}: i8" for word in words)
    lines = [f"struct Crowd {{ {fields} }}", f"pub stream crowd(all: Crowd, {fields}) -> Crowd {{"]
    lines += [f"    state {word}_s: i8 = {k % 100};" for k, word in enumerate(words)]
    lines += [f"    let {word}_ = all.{word} ^ ({word} & {word}_s);" for word in words]
    lines += [f"    {word}_s = {word}_s + {word}_;" for word in words]
    results = ", ".join(f"{word}: {word}_s - {word}_" for word in words)
    return "\n".join([*lines, f"    Crowd {{ {results} }}", "}", ""])


def compiled(text: str) -> kera_hw.Program:
    with scratch("names") as folder:
        path = folder / "n.kera"
        path.write_text(text)
        return kera_hw.load(path)


@pytest.mark.parametrize("emitter", ["text", "amaranth"])
def test_all_words_as_parameters_fields_states_and_locals(emitter: str, tmp_path: Path) -> None:
    graph = compiled(crowd(WORDS)).graph
    options = TargetOptions("ecp5-85k", 50.0, emitter=emitter)
    emitted = design_hardware(graph, graph.exports[0], options).emitted
    path = tmp_path / "crowd.v"
    path.write_text(emitted.verilog)
    assert len(emitted.states) == len(WORDS)
    assert lint([path], "crowd") == []
    assert check([path], "crowd") == []
    for generation in ("2005", "2012"):
        assert icarus_problems([path], "crowd", tmp_path, generation=generation) == []


def test_all_words_as_functions_side_by_side(tmp_path: Path) -> None:
    graph = compiled("pub fn f(x: i8) -> i8 { x * x }").graph
    planned = plan_hardware(graph, graph.exports[0], TargetOptions("ecp5-85k", 50.0, interface="none"))
    made = [
        emit_verilog(replace(planned.netlist, name=word), planned.plan, "none", "ecp5") for word in WORDS
    ]
    assert len({item.name for item in made}) == len(made)
    path, lines = tmp_path / "all_names.v", ["module all_names(input wire clk, input wire [7:0] x);"]
    for k, item in enumerate(made):
        lines.append(f"  wire [7:0] y{k}; {item.name} part{k}(.clk(clk), .in_x(x), .out_data(y{k}));")
    path.write_text("\n".join([*(item.verilog for item in made), *lines, "endmodule", ""]))
    assert lint([path], "all_names", allowed=("DECLFILENAME", "UNUSEDSIGNAL")) == []
    assert check([path], "all_names") == []
    for generation in ("2005", "2012"):
        assert icarus_problems([path], "all_names", tmp_path, generation=generation) == []


@pytest.mark.parametrize("emitter", ["text", "amaranth"])
@pytest.mark.parametrize("word", FEW)
def test_a_few_as_the_top_of_a_simulation(word: str, emitter: str, tmp_path: Path) -> None:
    made = design(word, emitter)
    path = tmp_path / "design.v"
    path.write_text(made.emitted.verilog)
    top = made.emitted.name
    assert lint([path], top) == []
    # As a user would, with the class and its file called after the module.
    bench = f'#include "V{top}.h"\nint main() {{ V{top} top; top.eval(); top.final(); return 0; }}\n'
    assert build(bench, [path], top, tmp_path / "build", prefix=f"V{top}", optimisation="-O0").exists()
    options = TargetOptions("ecp5-25k", 50.0, emitter=emitter)
    assert verify_export(made.graph, made.export, ["interp", "rtl"], 50, 1, [], options).equal


def test_the_words_are_those_of_the_languages() -> None:
    """As the standards count them, C++ with `final`, `override`, `import` and `module` beside its 92."""
    assert {"uwire", "checker", "untyped", "endproperty"} <= VERILOG_WORDS and len(VERILOG_WORDS) == 248
    assert {"co_await", "constinit", "xor_eq", "char8_t"} <= CPP_WORDS and len(CPP_WORDS) == 92 + 4
    assert set(keyword.kwlist) <= PYTHON_WORDS


def test_no_two_functions_share_a_module() -> None:
    names = [word + "_" * count for word in WORDS for count in range(4)]
    assert len({module_name(name) for name in set(names)}) == len(set(names))
    assert len({field_name(name) for name in set(names)}) == len(set(names))
    assert (module_name("std"), module_name("std_"), module_name("fir")) == ("std_", "std__", "fir")
    assert re.fullmatch(r"\w+__datapath", inner_name("fir", "datapath"))


def test_a_renamed_top_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "std.kera", tmp_path / "out"
    path.write_text("pub fn std(x: u8) -> u8 { x + 1 }\n")
    assert main(["build", str(path), "--emit", "verilog", "-o", str(out)]) == 0
    assert "K0616" in capsys.readouterr().err
    assert re.search(r"^module std_\b", (out / "std_.v").read_text(), re.MULTILINE)
    plan = json.loads((out / "plan.json").read_text())
    assert (plan["function"], plan["top"]) == ("std", "std_")


@pytest.mark.parametrize("name", ["LUT4", "kera_ecp5_add", "SB_CARRY", "fir__datapath", "fir__ecp5_lut"])
def test_names_of_circuit_elements_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "n.kera"
    path.write_text(f"pub fn {name}(x: u8) -> u8 {{ x }}\n")
    graph = kera_hw.load(path).graph
    with pytest.raises(KeraError) as refused:
        design_hardware(graph, graph.exports[0], TargetOptions())
    assert [item.code for item in refused.value.diagnostics] == ["K0614"]
    assert name in refused.value.diagnostics[0].message


def test_a_name_out_of_a_file_may_be_anything() -> None:
    assert module_refusal("two words") and module_refusal("7up") and not module_refusal("fir")


def test_a_choice_of_one_of_several_is_read_by_every_tool(tmp_path: Path) -> None:
    """Yosys writes it as a function, whose name is beside those of signals."""
    m, which, q = Module(), Signal(3), Signal(8)
    given = [Signal(8, name=f"chosen_{k}") for k in range(3)]
    with m.Switch(which):
        for k, signal in enumerate(given):
            with m.Case(1 << k):
                m.d.comb += q.eq(signal)
    path = tmp_path / "choice.v"
    path.write_text(module_verilog(m, "choice", [which, q, *given]))
    assert "function" in path.read_text()
    assert icarus_problems([path], "choice", tmp_path) == []
