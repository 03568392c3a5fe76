"""Every element-wise operation on every kind of type, written out natively, gives the registry's bits at edges."""
from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from kera_hw.legal.legalise import legalise
from kera_hw.legal.native import CAPABILITIES, NATIVE, NOTHING_MORE, Native
from kera_hw.legal.verifier import verify_native
from kera_hw.loops.evaluator import Lanes
from kera_hw.loops.program import Block, Buffer, Load, LoopProgram, Op, Store, Var
from kera_hw.loops.verifier import verify_loops
from kera_hw.numerics.arrays import Array
from kera_hw.ops.choosing import FLOATS, Chooser, Sample
from kera_hw.ops.registry import OPS
from kera_hw.ops.sampling import random_constant, sample
from kera_hw.ops.spec import EvalCall, Trait
from kera_hw.types import BoolType, FixType, FloatType, IntType, TensorType, Type, element_type, numpy_dtype
from tests.loop_programs import same_bits
from tests.native_machine import run_native, strange

ELEMENTWISE = sorted(name for name, spec in OPS.items() if Trait.ELEMENTWISE in spec.traits)
_SAMPLES = 60
_LANES = 600


class Case(NamedTuple):
    """An operation on scalars of certain types."""

    opcode: str
    kinds: tuple[Type, ...]
    attrs: tuple[tuple[str, Any], ...]

    @property
    def types(self) -> tuple[Type, ...]:
        return OPS[self.opcode].infer(self.kinds, dict(self.attrs))


def program_of(case: Case) -> LoopProgram:
    """The operation between loads of parameters and stores of results."""
    params = [Buffer(f"in.{k}", kind, (), "param") for k, kind in enumerate(case.kinds)]
    results = [Buffer(f"out.{k}", kind, (), "result") for k, kind in enumerate(case.types)]
    inputs = [Var(f"v{k}", kind) for k, kind in enumerate(case.kinds)]
    outputs = [Var(f"w{k}", kind) for k, kind in enumerate(case.types)]
    body = (
        *(Load(var, buffer.name, ()) for var, buffer in zip(inputs, params)),
        Op(tuple(outputs), case.opcode, tuple(inputs), case.attrs),
        *(Store(buffer.name, (), var) for var, buffer in zip(outputs, results)),
    )
    return LoopProgram("f", (*params, *results), Block(body))


def reference(case: Case, args: list[Array]) -> list[Array]:
    call = EvalCall(Lanes(len(args[0])), tuple(args), case.kinds, case.types, dict(case.attrs))
    return list(OPS[case.opcode].evaluate(call))


def wrong_lanes(case: Case, args: list[Array], extra: Native = NOTHING_MORE) -> list[tuple[object, ...]]:
    """Where the native program gives other bits: operands, result, the registry's result."""
    program = legalise(program_of(case), extra)
    assert verify_loops(program) == []
    assert verify_native(program, extra) == []
    lanes = len(args[0])
    found, _ = run_native(program, [strange(arg) for arg in args], [], lanes, {**NATIVE, **extra})
    wrong: list[tuple[object, ...]] = []
    for wanted, got in zip(reference(case, args), found):
        if not same_bits(wanted, got):
            word = np.dtype(f"u{wanted.dtype.itemsize}")
            bad = np.flatnonzero(np.ascontiguousarray(wanted).view(word) != got.view(word))
            wrong += [(*(arg[i] for arg in args), got[i], wanted[i]) for i in bad[:4]]
    return wrong


def edges(kind: Type) -> Array:
    """The ends of a type and what lies beside them; all classes of floats and the borders between them."""
    if isinstance(kind, BoolType):
        return np.array([False, True])
    dtype = numpy_dtype(kind)
    if isinstance(kind, FloatType):
        fraction, bias = kind.fraction_bits, (1 << (kind.exponent_bits - 1)) - 1
        top = (1 << kind.exponent_bits) - 1
        magnitudes = [
            0, 1, 2, 3, (1 << fraction) - 1, 1 << fraction, (1 << fraction) + 1, (bias - 1) << fraction,
            (bias << fraction) - 1, bias << fraction, (bias << fraction) + 1, (bias << fraction) + (1 << fraction) // 2,
            (bias + 1) << fraction, (bias + 1 << fraction) + 1, (bias + fraction) << fraction,
            (bias + fraction + 1 << fraction) + 1, (top << fraction) - 1, (top << fraction) - 2, top << fraction,
            *((min(bias + power, top - 1) << fraction) + last for power in (7, 8, 15, 16, 31, 32, 63, 64) for last in (-1, 0, 1)),
        ]
        word = np.dtype(f"u{dtype.itemsize}")
        bits = [m | sign << (kind.width_bits - 1) for m in magnitudes for sign in (0, 1)]
        return np.array([*bits, kind.canonical_nan], word).view(dtype)
    raw = kind.raw if isinstance(kind, FixType) else kind
    assert isinstance(raw, IntType)
    middle = 1 << raw.width_bits // 2
    numbers = (0, 1, 2, 3, -1, -2, raw.min, raw.min + 1, raw.max, raw.max - 1, middle, middle - 1, -middle)
    return np.array(sorted({raw.wrap(number) for number in numbers}), object).astype(dtype)


def operands(kinds: tuple[Type, ...], lanes: int, seed: int) -> list[Array]:
    """Edges against edges, as far as they go, and random values."""
    below = random.Random(seed)
    columns = [edges(kind) for kind in kinds]
    count = 1
    for column in columns:
        count *= len(column)
    picked = range(count) if count <= lanes else sorted(below.sample(range(count), lanes))
    found: list[Array] = []
    for kind, column in zip(kinds, columns):
        places = np.array([k % len(column) for k in picked])
        picked = [k // len(column) for k in picked]
        data = random_constant(TensorType(kind, (lanes,)), Chooser(below.randrange, (), True))
        dtype = numpy_dtype(kind)
        found.append(np.concatenate([column[places], np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype)]))
    return found


def cases_of(opcode: str) -> Iterator[Case]:
    """Sampled types and attributes, and every width of integers where one type is all there is to say."""
    seen: set[Case] = set()
    chooser = Chooser(random.Random(opcode).randrange, (), True)
    found: list[Sample] = [sample(opcode, chooser) for _ in range(_SAMPLES)]
    for item in found:
        seen.add(_case(opcode, tuple(map(element_type, item.types)), item.attrs))
    alike = [item for item in found if len({*map(element_type, item.types)}) == 1 and not item.attrs]
    if alike and isinstance(element_type(alike[0].types[0]), IntType):
        count = len(alike[0].types)
        seen.update(
            _case(opcode, (IntType(width, signed),) * count, {})
            for width in range(1, 65) for signed in (True, False) if _takes(opcode, IntType(width, signed), count)
        )
    if opcode.startswith("floating."):
        seen.update(_case(opcode, (kind,) * len(found[0].types), {}) for kind in FLOATS)
    yield from sorted(seen, key=str)


def _case(opcode: str, kinds: tuple[Type, ...], attrs: Mapping[str, Any]) -> Case:
    return Case(opcode, kinds, tuple((key, attrs[key]) for key in OPS[opcode].attrs))


def _takes(opcode: str, kind: Type, count: int) -> bool:
    try:
        OPS[opcode].infer((kind,) * count, {})
    except Exception:  # noqa: BLE001
        return False
    return True


@pytest.mark.parametrize("opcode", ELEMENTWISE)
def test_an_operation_written_out_has_the_bits_of_its_row(opcode: str) -> None:
    for number, case in enumerate(cases_of(opcode)):
        wrong = wrong_lanes(case, operands(case.kinds, _LANES, number))
        assert not wrong, (case, wrong)
