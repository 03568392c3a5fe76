"""Designs too large for a device are refused before they are mapped, and none that fits ever is."""
from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from kera_hw.driver import mapping
from kera_hw.driver.hardware import plan_hardware
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import compile_text, load_program, optimise, single_export_graph
from kera_hw.graph import Export, Graph, Store
from kera_hw.loops.counting import count_operations
from kera_hw.lower.export import lower_export
from kera_hw.rtl.lower import FlatDesign, flatten, flatten_export
from kera_hw.rtl.techmap.bound import Needs, least_needs
from kera_hw.schedule.fpga.device import Device, find_device
from kera_hw.support import Diagnostic, KeraError, SourceFile

BENCH = Path(__file__).parents[2] / "bench" / "kernels"

LARGE = BENCH.parent / "large"
DOT, MATMUL, SOBEL = (
    (LARGE / f"{name}.kera").read_text(encoding="utf-8") for name in ("dot1024", "matmul64", "sobel640")
)


def compiled(source: str) -> tuple[Graph, SourceFile]:
    file = SourceFile("p.kera", source.encode())
    loaded = compile_text(file, Path("p.kera"))
    assert loaded.graph is not None, loaded.diagnostics
    return loaded.graph, file


def optimised(graph: Graph, export: Export) -> Graph:
    return optimise(single_export_graph(graph, export))


def flat_of(graph: Graph, export: Export) -> FlatDesign:
    found = flatten_export(optimised(graph, export).exports[0], Store())
    assert isinstance(found, FlatDesign)
    return found


def refusal(source: str, **options: object) -> tuple[Diagnostic, SourceFile]:
    graph, file = compiled(source)
    with pytest.raises(KeraError) as caught:
        asked = TargetOptions(**{"interface": "none", **options})  # type: ignore[arg-type]
        plan_hardware(graph, graph.exports[0], asked, files={"p.kera": file})
    (found,) = caught.value.diagnostics
    return found, file


@pytest.fixture
def unmapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be mapped."""

    def refuse(*_: object) -> None:
        raise AssertionError("mapped")

    monkeypatch.setattr(mapping, "logic_of", refuse)


@pytest.mark.usefixtures("unmapped")
@pytest.mark.parametrize("source,code,line,interval,work", [
    (DOT, "K0604", 4, 3, "1,024 products of 16 by 16 bits"),
    (MATMUL, "K0610", 4, 205, "262,144 products of 8 by 8 bits and 262,144 additions"),
    (SOBEL, "K0610", 4, 343, "in the loops of lines 4 and 5, 478 x 638 times: 3,354,604 additions"),
])  # fmt: skip
def test_what_is_far_too_large_is_refused_with_its_loop(
    source: str, code: str, line: int, interval: int, work: str
) -> None:
    found, file = refusal(source)
    assert (found.code, found.file) == (code, file)
    assert found.span is not None and file.line_column(found.span.start)[0] == line
    text = "\n".join((found.message, *found.notes))
    assert work in text and f"an item every {interval:,} cycles at the earliest" in text


def test_ports_are_counted_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, _ = compiled(SOBEL)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("made")

    monkeypatch.setattr(flatten, "Walker", refuse)
    found = flatten_export(graph.exports[0], Store())
    assert isinstance(found, Diagnostic) and "307,200 values" in found.message


def test_a_smaller_part_and_fewer_blocks_need_a_longer_interval() -> None:
    graph, _ = compiled(DOT)
    needs = least_needs(flat_of(graph, graph.exports[0]), device("ecp5-85k"))
    assert needs.products.total() == 1024
    # Of 1,024 products of 15 added rows of 16 bits, an item can leave 156 to multipliers.
    assert needs.least_luts(device("ecp5-85k")) == (1024 - 156) * 15 * 16
    assert needs.least_luts(device("ecp5-85k"), 0) == 1024 * 15 * 16
    parts = [device(name) for name in ("ecp5-85k", "ecp5-25k", "ice40-hx8k")]
    assert [needs.least_initiation_interval(part) for part in parts] == [3, 8, 32]
    assert needs.least_initiation_interval(parts[0], 0) == 3
    assert Needs().least_initiation_interval(parts[0]) == 1
    assert needs.least_luts(parts[1], None, 8) <= parts[1].lut < needs.least_luts(parts[1], None, 7)


@pytest.mark.parametrize("body", [
    "acc += mul_wide(x[0], y[0]) as i42;",  # one product, 64 times
    "acc += mul_wide(x[k], y[k]) as i42 - mul_wide(x[k], y[k]) as i42;",
    "acc += mul_wide(x[k], 3) as i42;",
    "let p = mul_wide(x[k], y[k]) as i42; acc = (acc + p) - p + 1;",
    "let p = mul_wide(x[k], y[k]); acc += if (p << 1) == 1 { 1 } else { 0 };",
    "acc += (mul_wide(x[k] & 1, y[k]) as i42) & 1;",
])  # fmt: skip
def test_what_comes_to_little_is_not_counted(body: str) -> None:
    source = DOT.replace("acc += mul_wide(x[k], y[k]) as i42;", body).replace("1024", "64")
    graph, _ = compiled(source)
    needs = least_needs(flat_of(graph, graph.exports[0]), device("ecp5-85k"))
    assert needs.least_luts(device("ecp5-85k"), 0) <= 15 * 16


def device(name: str) -> Device:
    found = find_device(name)
    assert found is not None
    return found


def check_bound(graph: Graph, export: Export, name: str, blocks: int | None) -> float:
    """The bound of an export, which its plan must not be below."""
    part = device(name)
    bound = least_needs(flat_of(graph, export), part).least_luts(part, blocks)
    plan = plan_hardware(graph, export, TargetOptions(device=name, dsp=blocks)).plan
    assert plan.estimate.lut >= bound, (export.name, name, blocks)
    return bound


@pytest.mark.parametrize("name", ["fir", "conv", "cmvm8", "firc"])
def test_no_kernel_is_smaller_than_its_bound(name: str) -> None:
    graph = load_program(BENCH / f"{name}.kera").graph
    assert graph is not None
    bounds = [check_bound(graph, graph.exports[0], "ecp5-85k", blocks) for blocks in (0, 3)]
    assert (bounds[0] > 0) == (name in ("fir", "conv"))


def random_program(seed: int) -> str:
    """Sums of products that share, cancel, wrap and are cut, of narrow and wide operands."""
    draw = random.Random(seed)
    widths = [draw.randint(1, 12) for _ in range(4)]
    params = ", ".join(f"p{k}: {draw.choice('iu')}{width}" for k, width in enumerate(widths))
    width = draw.choice([9, 16, 24])
    lines = [f"let a{k} = p{k} as i{width};" for k in range(4)]
    names = [f"a{k}" for k in range(4)]

    def operand() -> str:
        name = draw.choice(names)
        forms = ("{}", "{}", "(0 - {})", "({} + 5)", "({} ^ 3)", "({} & 12)", "({} >> 2)", "({} << 3)")
        return draw.choice(forms).format(name)

    def product() -> str:
        return f"a{draw.randrange(4)} * a{draw.randrange(4)} + {draw.choice(names)}"

    makers: list[Callable[[], str]] = [
        product, product,
        lambda: f"{operand()} * {operand()}",
        lambda: f"{operand()} * {operand()} + {operand()}",
        lambda: f"{operand()} - {operand()}",
        lambda: f"if {operand()} < {operand()} {{ {operand()} }} else {{ {operand()} * {operand()} }}",
        lambda: f"max(min({operand()}, 100), -100)",
    ]
    for k in range(draw.randint(3, 9)):
        lines.append(f"let b{k} = {draw.choice(makers)()};")
        names.append(f"b{k}")
    results = draw.sample(names, 2)
    cut = draw.choice([width, max(1, width // 2)])
    given = f"({results[0]} as i{cut}, {operand()} - {results[1]})"
    return f"pub fn f({params}) -> (i{cut}, i{width}) {{\n" + "\n".join(lines) + f"\n{given}\n}}\n"


@pytest.mark.parametrize("seed", range(8))
def test_no_random_design_is_smaller_than_its_bound(seed: int) -> None:
    graph, _ = compiled(random_program(seed))
    check_bound(graph, graph.exports[0], "ice40-hx8k", None)


def test_a_sum_whose_terms_vanish_below_its_width_is_mapped() -> None:
    graph, _ = compiled("""
pub fn f(p: u3, q: u12, r: u2) -> i9 {
    let (a, b, c) = (p as i9, q as i9, r as i9);
    let d = (b + 5) * (c + 5) + (a + 5);
    (d << 3) * b + (a << 3) - (d >> 2) * (a & 12)
}
""")
    check_bound(graph, graph.exports[0], "ice40-hx8k", None)


def counts(source: str) -> dict[str, int]:
    graph, _ = compiled(source)
    found: dict[str, int] = {}
    program = lower_export(optimised(graph, graph.exports[0]).exports[0])
    for counted, times in count_operations(program).items():
        found[counted.opcode] = found.get(counted.opcode, 0) + times
    return found


def test_operations_are_counted_without_unrolling() -> None:
    assert counts(MATMUL) == {"integer.mul_wide": 64**3, "integer.add": 64**3}


def test_what_counters_and_constants_say_is_not_counted() -> None:
    found = counts("""
const T: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
pub fn f(x: [u8; 8]) -> u8 {
    let mut step: u8 = 1;
    let mut acc: u8 = 0;
    for k in 0..8 {
        step = step * 3 + T[k];
        if k % 2 == 0 { acc ^= x[k] + step; }
    }
    acc
}
""")
    assert found == {"integer.add": 8, "bits.xor": 8}
