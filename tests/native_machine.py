"""The least that any machine does with a native program, for tests of what is legalised.

Operations mean what the registry says within their domains. Beyond them this machine gives noise, and stops
at a division that some processor stops at; a NaN comes out as any NaN, signalling or not, of either sign. A
program that has the right bits here has them on every machine that has the native set.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.graph import Export
from kera_hw.interp import run_region
from kera_hw.legal.native import NATIVE, Domain, Native, Signature
from kera_hw.loops.evaluator import Evaluation, Frame, contents, empty
from kera_hw.loops.program import LoopProgram, Op
from kera_hw.numerics.arrays import Array
from kera_hw.types import FloatType, IntType, Type, leaf_types, numpy_dtype
from tests.loop_programs import inputs_of, same_bits

_MOVING = ("control.select", "convert.bitcast")
"""What keeps the bits of a NaN."""


class Machine(Evaluation):
    def __init__(self, lanes: int, native: Native, seed: int = 0) -> None:
        super().__init__(lanes)
        self._native = native
        self._rng = np.random.default_rng(seed)

    def _op(self, op: Op, frame: Frame) -> None:
        kinds = tuple(operand.type for operand in op.operands)
        (result,) = op.results
        domain = self._native[Signature(op.opcode, kinds, result.type)]
        args = [self.get(operand, frame) for operand in op.operands]
        if op.opcode == "convert.bitcast":
            found = args[0].view(numpy_dtype(result.type))
        elif op.opcode == "floating.copysign":
            found = np.copysign(*args)
        else:
            super()._op(op, frame)
            found, _ = self.values[result]
        outside = self._outside(domain, args, kinds, result.type)
        if outside is not None:
            found = np.where(outside, self._noise(frame.count, result.type), found)
        if isinstance(result.type, FloatType) and op.opcode not in _MOVING:
            found = self._any_nan(found, result.type)
        self.set(result, found, frame)

    def _outside(
        self, domain: Domain, args: Sequence[Array], kinds: Sequence[Type], result: Type
    ) -> Array | None:
        """Lanes beyond the domain."""
        match domain:
            case Domain.AMOUNT_BELOW_WIDTH:
                assert isinstance(result, IntType)
                return args[1] >= result.width_bits
            case Domain.SAFE_DIVISOR:
                kind = kinds[0]
                assert isinstance(kind, IntType)
                stops = args[1] == 0
                if kind.signed:
                    stops = stops | ((args[1] == -1) & (args[0] == kind.min))
                assert not stops.any(), "the machine stopped at a division"
                return None
            case Domain.VALUE_FITS:
                assert isinstance(result, IntType)
                whole = np.trunc(args[0].astype(np.float64))
                return ~((whole >= float(result.min)) & (whole < float(result.max + 1)))
            case _:
                return None

    def _noise(self, count: int, kind: Type) -> Array:
        dtype = numpy_dtype(kind)
        return np.frombuffer(self._rng.bytes(count * dtype.itemsize), dtype)

    def _any_nan(self, values: Array, kind: FloatType) -> Array:
        nan = np.isnan(values.astype(np.float64))
        if not nan.any():
            return values
        word = np.dtype(f"u{kind.width_bits // 8}")
        infinity = ((1 << kind.exponent_bits) - 1) << kind.fraction_bits
        noise = self._noise(len(values), kind).view(word) | word.type(infinity) | word.type(1)
        return np.where(nan, noise, values.view(word)).view(values.dtype)


def run_native(
    program: LoopProgram, args: Sequence[Array], states: Sequence[Array], lanes: int, native: Native = NATIVE
) -> tuple[list[Array], list[Array]]:
    """Results and next states of a native program, arrays in native storage; constants are not copied."""
    machine = Machine(lanes, native)
    given = iter(args), iter(states)
    for buffer in program.buffers:
        dtype = numpy_dtype(buffer.element)
        match buffer.kind:
            case "param":
                array = np.ascontiguousarray(next(given[0])).view(dtype)
            case "state":
                array = np.array(next(given[1])).view(dtype)
            case "const":
                array = np.broadcast_to(contents(buffer), (lanes, *buffer.shape))
            case _:
                array = empty(buffer, lanes)
        machine.storage[buffer.name] = (array, 0)
    with np.errstate(all="ignore"):
        machine.run(program.body, machine.root)
    found = [machine.storage[buffer.name][0] for buffer in program.of_kind("result")]
    return found, [machine.storage[buffer.name][0] for buffer in program.of_kind("state")]


def differing_native(
    export: Export, program: LoopProgram, lanes: int, seed: int, native: Native = NATIVE
) -> list[int]:
    """Which results (then next states) of the native program are not the graph's, bit for bit."""
    args, states = inputs_of(export, lanes, seed)
    wanted = run_region(export.region, [*args, *states], lanes)
    results, following = run_native(program, [strange(arg) for arg in args], states, lanes, native)
    own = len(leaf_types(export.result))
    found = [*results[:own], *following, *results[own:]]
    assert len(found) == len(wanted)
    return [k for k, pair in enumerate(zip(wanted, found)) if not same_bits(*pair)]


def strange(values: Array) -> Array:
    """A parameter with NaNs that are not the canonical one."""
    if values.dtype.kind not in "fV":
        return values
    word = np.dtype(f"u{values.dtype.itemsize}")
    nan = np.isnan(values.astype(np.float64))
    other = values.view(word) ^ word.type(1 << (8 * word.itemsize - 1) | 3)
    return np.where(nan, other, values.view(word)).view(values.dtype)
