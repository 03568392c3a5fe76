"""Every element-wise operation on every kind of type, written out natively, gives the registry's bits."""
from __future__ import annotations

import numpy as np
import pytest

from kera_hw.legal.legalise import legalise
from kera_hw.legal.native import CAPABILITIES, NATIVE, Signature
from kera_hw.loops.program import Op, statements
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait
from kera_hw.types import BF16, F16, F32, F64, FloatType, IntType, Type
from tests.legal_cases import Case, case, edges, operands, program_of, sampled, with_constant, wrong_lanes

ELEMENTWISE = sorted(name for name, spec in OPS.items() if Trait.ELEMENTWISE in spec.traits)
_SAMPLES, _LANES = 60, 600


@pytest.mark.parametrize("opcode", ELEMENTWISE)
def test_an_operation_written_out_has_the_bits_of_its_row(opcode: str) -> None:
    for number, item in enumerate(sorted(sampled(opcode, _SAMPLES), key=str)):
        wrong = wrong_lanes(item, operands(item.kinds, _LANES, number))
        assert not wrong, (item, wrong)


@pytest.mark.long
@pytest.mark.parametrize("opcode", ELEMENTWISE)
def test_many_types_and_operands(opcode: str) -> None:
    for seed in range(8):
        for number, item in enumerate(sorted(sampled(opcode, 400, seed + 1), key=str)):
            wrong = wrong_lanes(item, operands(item.kinds, 3000, 1000 * seed + number))
            assert not wrong, (item, wrong)


_U32, _U13, _I13 = IntType(32, False), IntType(13, False), IntType(13, True)


@pytest.mark.parametrize("kinds", [(F32, F32), (F16, F16), (BF16, BF16), (F64, F64)], ids=str)
@pytest.mark.parametrize("opcode", ["floating.min", "floating.max", "floating.div", "floating.copysign"])
def test_floats_beside_constants(opcode: str, kinds: tuple[FloatType, FloatType]) -> None:
    _beside_constants(opcode, kinds, edges(kinds[0]))


@pytest.mark.parametrize("kind", [IntType(8, True), IntType(64, True), _U32, _U13, _I13], ids=str)
@pytest.mark.parametrize("opcode", ["integer.div", "integer.rem", "bits.and", "integer.mul", "integer.max"])
def test_integers_beside_constants(opcode: str, kind: IntType) -> None:
    powers = [kind.wrap(1 << place) for place in range(kind.width_bits)]
    _beside_constants(opcode, (kind, kind), np.array([*powers, *edges(kind)], edges(kind).dtype))


@pytest.mark.parametrize("kind", [IntType(8, True), IntType(64, False), _U13, _I13], ids=str)
@pytest.mark.parametrize("opcode", ["bits.shl", "bits.shr", "bits.rotl", "bits.rotr"])
def test_constant_amounts(opcode: str, kind: IntType) -> None:
    item = case(opcode, (kind, IntType(8, False)))
    args = operands(item.kinds, 100, 0)
    for amount in range(70):
        wrong = wrong_lanes(*with_constant(item, args, 1, np.array(amount, np.uint8)))
        assert not wrong, (item, amount, wrong)


def _beside_constants(opcode: str, kinds: tuple[Type, Type], values: np.ndarray) -> None:  # type: ignore[type-arg]
    item = case(opcode, kinds)
    args = operands(kinds, 200, 0)
    for value in values:
        for place in (0, 1):
            wrong = wrong_lanes(*with_constant(item, args, place, value))
            assert not wrong, (item, place, value, wrong)


# Machines with more


@pytest.mark.parametrize("name", CAPABILITIES)
def test_a_capability_is_used_and_changes_no_bit(name: str) -> None:
    extra = CAPABILITIES[name]
    items = {item for opcode in {row.opcode for row in extra} for item in sampled(opcode, 40)}
    items |= {_case_of(row) for row in extra}
    used: set[Signature] = set()
    for number, item in enumerate(sorted(items, key=str)):
        wrong = wrong_lanes(item, operands(item.kinds, 300, number), extra)
        assert not wrong, (item, wrong)
        used |= {
            Signature(op.opcode, tuple(operand.type for operand in op.operands), op.results[0].type)
            for op in statements(legalise(program_of(item), extra).body) if isinstance(op, Op)
        }
    assert extra.keys() <= used


def test_all_capabilities_together() -> None:
    extra = {signature: domain for native in CAPABILITIES.values() for signature, domain in native.items()}
    for opcode in ELEMENTWISE:
        for number, item in enumerate(sorted(sampled(opcode, 12), key=str)):
            wrong = wrong_lanes(item, operands(item.kinds, 200, number), extra)
            assert not wrong, (item, wrong)


def test_each_row_is_an_operation_of_the_registry() -> None:
    for native in (NATIVE, *CAPABILITIES.values()):
        for signature in native:
            assert _case_of(signature).types == (signature.result,)


def _case_of(row: Signature) -> Case:
    """The operation of a row of a native set."""
    attrs = {"type": row.result} if row.opcode.startswith("convert.") else {}
    return case(row.opcode, row.operands, attrs)
