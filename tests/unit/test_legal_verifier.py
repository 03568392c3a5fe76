"""What is not native is named, and what a legalised program gets wrong is seen."""
from __future__ import annotations

import pytest

from kera_hw.legal.legalise import legalise
from kera_hw.legal.native import FUSED_MULTIPLY_ADD
from kera_hw.legal.verifier import verify_native
from kera_hw.loops.parser import parse_program
from kera_hw.loops.printer import print_program
from kera_hw.types import BF16, F32, F64, IntType
from tests.legal_cases import case, operands, program_of, reference
from tests.native_machine import run_native

I32 = IntType(32, True)


def _faults(body: str) -> list[str]:
    return verify_native(parse_program(
        "loops f\nin.x: param i32\nin.y: param i32\nout.0: result i32\n"
        f"{{\n  v1: i32 = load in.x\n  v2: i32 = load in.y\n{body}\n}}\n"
    ))


def test_operations_and_types_that_are_not_native() -> None:
    program = program_of(case("integer.add", (IntType(13, True),) * 2))
    found = verify_native(program)
    assert "`in.0` has elements of i13, which no memory has." in found
    assert "`w0`: `integer.add i13 i13 -> i13` is not native." in found
    assert verify_native(legalise(program)) == []


def test_what_one_machine_has_another_has_not() -> None:
    program = legalise(program_of(case("floating.fma", (F64,) * 3)), FUSED_MULTIPLY_ADD)
    assert verify_native(program, FUSED_MULTIPLY_ADD) == []
    assert verify_native(program) == ["`v4`: `floating.fma f64 f64 f64 -> f64` is not native."]


def test_temporaries_have_types_too() -> None:
    (fault,) = _faults("  t3: temp bool[4]\n  store out.0 v1")
    assert fault == "`t3` has elements of bool, which no memory has."


STOPS = "`v9`: a machine may stop at this division."


ZERO = "  v3: bool = compare.eq v2 0x0:i32\n"
MINUS_ONE = "  v4: bool = compare.eq v2 0xffffffff:i32\n"
OF_DIVIDEND = "  v4: bool = compare.eq v1 0xffffffff:i32\n"
EITHER, BOTH = "  v5: bool = bits.or v3 v4\n", "  v5: bool = bits.and v3 v4\n"
CHOSEN = "  v8: i32 = control.select v5 0x1:i32 v2"


@pytest.mark.parametrize(("divisor", "fault"), [
    ("  v8: i32 = integer.max v2 0x1:i32", []),
    ("  v8: i32 = integer.max v2 0x0:i32", [STOPS]),
    ("  v8: i32 = integer.min v2 0xfffffffe:i32", []),
    ("  v8: i32 = integer.min v2 0xffffffff:i32", [STOPS]),
    (f"{ZERO}  v8: i32 = control.select v3 0x1:i32 v2", [STOPS]),
    (f"{MINUS_ONE}  v8: i32 = control.select v4 0x1:i32 v2", [STOPS]),
    (f"{ZERO}{MINUS_ONE}{EITHER}{CHOSEN}", []),
    (f"{ZERO}{OF_DIVIDEND}{EITHER}{CHOSEN}", [STOPS]),
    (f"{ZERO}{MINUS_ONE}{EITHER}{CHOSEN}".replace("0x1:i32 v2", "0x0:i32 v2"), [STOPS]),
    (f"{ZERO}{MINUS_ONE}{BOTH}{CHOSEN}", [STOPS]),
])
def test_divisions_at_which_a_machine_stops(divisor: str, fault: list[str]) -> None:
    assert _faults(f"{divisor}\n  v9: i32 = integer.div v1 v8\n  store out.0 v9") == fault


def test_the_guard_of_every_division_is_understood() -> None:
    for width in (7, 8, 32, 33, 64):
        for signed in (True, False):
            for verb in ("div", "rem"):
                program = legalise(program_of(case(f"integer.{verb}", (IntType(width, signed),) * 2)))
                assert verify_native(program) == []
                text = print_program(program)
                assert "control.select" in text
                unguarded = text.replace("compare.eq", "compare.ne")
                assert verify_native(parse_program(unguarded)) != []


# Faults planted in native programs


@pytest.mark.parametrize(("opcode", "kind", "old", "new"), [
    ("floating.add", F32, "control.select v4 v3 0x7fc00000:f32", "control.select v4 v3 0x7fc00001:f32"),
    ("floating.add", F32, "compare.eq v3 v3", "compare.eq v1 v1"),
    ("floating.mul", BF16, "0x7fff:u32", "0x8000:u32"),
    ("floating.mul", BF16, "floating.mul", "floating.add"),
    ("integer.div", I32, "compare.eq v2 0x0:i32", "compare.eq v1 0x0:i32"),
    ("integer.add", IntType(13, True), "bits.shr", "bits.shl"),
    ("bits.popcount", IntType(32, False), "0x55555555:u32", "0x55555554:u32"),
])
def test_planted_faults_are_seen(opcode: str, kind: IntType, old: str, new: str) -> None:
    """By the machine of the tests: in the bits, or because it stops."""
    item = case(opcode, (kind,) * (1 if opcode == "bits.popcount" else 2))
    program = legalise(program_of(item))
    text = print_program(program)
    assert old in text
    args = operands(item.kinds, 600, 0)
    lanes = len(args[0])
    (wanted,) = reference(item, args)

    def bits(native: str) -> bytes | None:
        try:
            (found,), _ = run_native(parse_program(native), args, [], lanes)
        except AssertionError:
            return None
        return found.tobytes()

    assert bits(text) == wanted.tobytes()
    assert bits(text.replace(old, new)) != wanted.tobytes()
