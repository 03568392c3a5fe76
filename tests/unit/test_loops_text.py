"""Loop programs as text: what prints is read back, and any other text is refused with its line."""
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kera_hw.driver.session import load_program
from kera_hw.loops.parser import MAX_DEPTH, parse_program
from kera_hw.loops.printer import print_program
from kera_hw.loops.program import Affine, affine, of_var
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_export
from kera_hw.support import KeraError
from tests.tidy.repo import ROOT
from tests.unit.test_loops_verifier import SOUND

REFUSED = {
    "": "Line 0 is no loop program: the text ends too early",
    "loop f": "`loops` is wanted, not `loop`",
    "loops f\n{\n  v1: u65 = load x\n}": "`u65` is no scalar type",
    "loops f\n{\n  v1: u8 = nothing.here\n}": "there is no operation `nothing.here`",
    "loops f\n{\n  store x v1\n}": "`v1` has no value here",
    "loops f\nx: other u8\n{\n}": "`other` is no kind of buffer",
    "loops f\nx: const u8 = 0g\n{\n}": "the contents are no hexadecimal digits",
    "loops f\nx: const u8[3] = 00 times 99999999999\n{\n}": "the buffer has 3 elements",
    "loops f\nx: const u8[99999999999] = 00 times 99999999999\n{\n}": "more than 268,435,456 bytes",
    "loops f\n{\n  ?\n}": "`?` is no token",
    "loops f\n{\n" + "parallel i0 < 1 {\n" * (MAX_DEPTH + 1): f"blocks nest deeper than {MAX_DEPTH}",
}


@pytest.mark.parametrize("text", REFUSED)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(KeraError) as caught:
        parse_program(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "K0820" and REFUSED[text] in diagnostic.message


def test_the_printed_form() -> None:
    assert print_program(parse_program(SOUND)) == SOUND


def test_equal_elements_are_written_once() -> None:
    text = "loops f\nx: const i32[64, 64] = 01000000 times 4096\ny: const u8[2] = 0102\n{\n}\n"
    program = parse_program(text)
    assert program.buffers[0].data == b"\1\0\0\0" * 4096
    assert print_program(program) == text


def test_source_lines_stand_beside() -> None:
    loaded = load_program(ROOT / "examples" / "fir.kera")
    assert loaded.graph is not None
    program = lower_export(loaded.graph.exports[0], loaded.graph.origins)
    text = print_program(program)
    assert "fir.kera:" in text and "fir.kera:" not in print_program(program, places=False)
    assert parse_program(text) == program


@settings(deadline=None)
@given(st.text(alphabet="loopsf{}[]:=<>-+*, \nvit0123u8x.load storeyieldparallel", max_size=200))
def test_any_text(text: str) -> None:
    try:
        verify_loops(parse_program("loops f\n" + text))
    except KeraError as error:
        assert error.diagnostics[0].code == "K0820"


@settings(deadline=None)
@given(st.data())
def test_edited_programs(data: st.DataObject) -> None:
    """A piece of the text replaced by another piece: refused, or a program that the verifier can judge."""
    places = st.integers(0, len(SOUND))
    (a, b), (c, d) = (sorted((data.draw(places), data.draw(places))) for _ in range(2))
    try:
        verify_loops(parse_program(SOUND[:a] + SOUND[c : min(d, c + 40)] + SOUND[b:]))
    except KeraError as error:
        assert error.diagnostics[0].code == "K0820"


def test_index_expressions_have_a_normal_form() -> None:
    loop = parse_program(SOUND).body.body[2]
    var = loop.var  # type: ignore[union-attr]
    x = of_var(var)
    assert (x * 3 + 2) - x * 3 == Affine(2) and x * 0 == Affine()
    assert affine(1, ((var, 2), (var, -2))) == Affine(1)
    assert (x + 1).replace({var: Affine(4)}) == Affine(5)
