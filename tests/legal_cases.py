"""Operations on scalars as programs of their own, with the operands at which native forms go wrong."""
from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kera_hw.legal.legalise import legalise
from kera_hw.legal.native import NATIVE, NOTHING_MORE, Native
from kera_hw.legal.verifier import verify_native
from kera_hw.loops.evaluator import Lanes
from kera_hw.loops.program import Block, Buffer, Literal, Load, LoopProgram, Op, Operand, Store, Var
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.emitter import bits_of
from kera_hw.numerics.arrays import Array
from kera_hw.ops.choosing import FLOATS, Chooser, Sample
from kera_hw.ops.registry import OPS
from kera_hw.ops.sampling import random_constant, sample
from kera_hw.ops.spec import EvalCall, TypeRuleError
from kera_hw.types import (
    BoolType,
    FixType,
    FloatType,
    IntType,
    TensorType,
    Type,
    bit_width,
    element_type,
    numpy_dtype,
)
from tests.native_machine import run_native, strange


class Case(NamedTuple):
    """An operation on scalars of certain types; some operands may be constants."""

    opcode: str
    kinds: tuple[Type, ...]
    attrs: tuple[tuple[str, Any], ...] = ()
    constants: tuple[tuple[int, Literal], ...] = ()

    @property
    def types(self) -> tuple[Type, ...]:
        return OPS[self.opcode].infer(self.kinds, dict(self.attrs))


def case(opcode: str, kinds: Sequence[Type], attrs: Mapping[str, Any] = {}) -> Case:
    return Case(opcode, tuple(kinds), tuple((key, attrs[key]) for key in OPS[opcode].attrs))


def program_of(item: Case) -> LoopProgram:
    """The operation between loads of parameters and stores of results."""
    params = [Buffer(f"in.{k}", kind, (), "param") for k, kind in enumerate(item.kinds)]
    results = [Buffer(f"out.{k}", kind, (), "result") for k, kind in enumerate(item.types)]
    inputs = [Var(f"v{k}", kind) for k, kind in enumerate(item.kinds)]
    outputs = [Var(f"w{k}", kind) for k, kind in enumerate(item.types)]
    constants = dict(item.constants)
    operands: list[Operand] = [constants.get(k, var) for k, var in enumerate(inputs)]
    body = (
        *(Load(var, buffer.name, ()) for var, buffer in zip(inputs, params)),
        Op(tuple(outputs), item.opcode, tuple(operands), item.attrs),
        *(Store(buffer.name, (), var) for var, buffer in zip(outputs, results)),
    )
    return LoopProgram("f", (*params, *results), Block(body))


def reference(item: Case, args: Sequence[Array]) -> list[Array]:
    """The registry's results."""
    call = EvalCall(Lanes(len(args[0])), tuple(args), item.kinds, item.types, dict(item.attrs))
    return list(OPS[item.opcode].evaluate(call))


def wrong_lanes(
    item: Case, args: Sequence[Array], extra: Native = NOTHING_MORE
) -> list[tuple[object, ...]]:
    """Where the native program gives other bits: operands, its result, the registry's result."""
    program = legalise(program_of(item), extra)
    assert verify_loops(program) == []
    assert verify_native(program, extra) == []
    found, _ = run_native(program, [strange(arg) for arg in args], [], len(args[0]), {**NATIVE, **extra})
    wrong: list[tuple[object, ...]] = []
    for wanted, got in zip(reference(item, args), found, strict=True):
        word = np.dtype(f"u{wanted.dtype.itemsize}")
        bad = np.flatnonzero(np.ascontiguousarray(wanted).view(word) != got.view(word))
        wrong += [(*(arg[i] for arg in args), got[i], wanted[i]) for i in bad[:4]]
    return wrong


# Operands


def edges(kind: Type) -> Array:
    """The ends of a type, what lies beside them, and where roundings and conversions turn."""
    dtype = numpy_dtype(kind)
    if isinstance(kind, BoolType):
        return np.array([False, True])
    if isinstance(kind, FloatType):
        word = np.dtype(f"u{dtype.itemsize}")
        bits = [m | sign << (kind.width_bits - 1) for m in _magnitudes(kind) for sign in (0, 1)]
        return np.array([*bits, kind.canonical_nan], word).view(dtype)
    raw = kind.raw if isinstance(kind, FixType) else kind
    assert isinstance(raw, IntType)
    return np.array(sorted({raw.wrap(number) for number in _numbers(raw)}), object).astype(dtype)


def _magnitudes(kind: FloatType) -> list[int]:
    """Bits without a sign: borders of the classes of numbers, halves, powers of two of word sizes."""
    fraction, bias = kind.fraction_bits, (1 << (kind.exponent_bits - 1)) - 1
    top, unit = (1 << kind.exponent_bits) - 1, 1 << kind.fraction_bits
    borders = (0, unit, top * unit, *((bias + power) * unit for power in (-1, 0, 1, fraction)))
    words = (min(bias + power, top - 1) * unit for power in (7, 8, 15, 16, 31, 32, 63, 64))
    near = {place + step for place in (*borders, *words) for step in (-1, 0, 1)}
    near |= {2, 3, top * unit - 2, bias * unit + unit // 2, (bias - 1) * unit + unit // 2}
    return sorted(bits for bits in near if 0 <= bits <= top * unit)


def _numbers(kind: IntType) -> Iterator[int]:
    """The ends of the range; what lies half-way between numbers of a float format, and just beside that."""
    middle = 1 << kind.width_bits // 2
    yield from range(-3, 4)
    yield from (kind.min, kind.min + 1, kind.max, kind.max - 1, middle, middle - 1, -middle)
    for top in (kind.width_bits - 1, kind.width_bits - 2):
        for digits in (8, 11, 24, 53):
            if top > digits:
                for step in (-1, 0, 1):
                    half = (1 << top) + (1 << (top - digits)) + step
                    yield from (half, -half, half + (1 << (top - digits + 1)))


def operands(kinds: Sequence[Type], lanes: int, seed: int) -> list[Array]:
    """Edges against edges, all of them or ``lanes`` drawn, and as many random values."""
    below = random.Random(seed)
    columns = [edges(kind) for kind in kinds]
    count = 1
    for column in columns:
        count *= len(column)
    drawn = list(range(count)) if count <= lanes else [below.randrange(count) for _ in range(lanes)]
    found: list[Array] = []
    for kind, column in zip(kinds, columns):
        places = np.array([k % len(column) for k in drawn])
        drawn = [k // len(column) for k in drawn]
        data = random_constant(TensorType(kind, (lanes,)), Chooser(below.randrange, (), True))
        dtype = numpy_dtype(kind)
        values = np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype)
        found.append(np.concatenate([column[places], values]))
    return found


def with_constant(item: Case, args: Sequence[Array], place: int, value: Array) -> tuple[Case, list[Array]]:
    """The case with one operand a constant."""
    kind = item.kinds[place]
    constant = Literal(kind, bits_of(kind, value))
    changed = [np.full(len(arg), value) if k == place else arg for k, arg in enumerate(args)]
    return item._replace(constants=((place, constant),)), changed


# Cases


def sampled(opcode: str, count: int, seed: int = 0) -> set[Case]:
    """Random types and attributes; of integers of one type every width, of floats every format."""
    chooser = Chooser(random.Random(f"{opcode} {seed}").randrange, (), True)
    samples: list[Sample] = [sample(opcode, chooser) for _ in range(count)]
    found = {case(opcode, tuple(map(element_type, item.types)), item.attrs) for item in samples}
    arity = len(samples[0].types)
    kinds: list[Type] = list(FLOATS)
    if not OPS[opcode].attrs:
        kinds += [IntType(width, signed) for width in range(1, 65) for signed in (True, False)]
        found |= {case(opcode, (kind,) * arity) for kind in kinds if takes(opcode, (kind,) * arity)}
    return found


def takes(opcode: str, kinds: tuple[Type, ...]) -> bool:
    """Whether an operation without attributes takes operands of these types, and gives what programs hold."""
    try:
        results = OPS[opcode].infer(kinds, {})
    except TypeRuleError:
        return False
    return all(bit_width(kind) <= 64 for kind in results)  # circuits alone hold more
