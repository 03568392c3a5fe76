"""The order `exact`: its expansion, the loops and the circuit give the one rounding of the reference."""
from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import prod

import numpy as np
import pytest

from kera_hw.graph import Export
from kera_hw.graph.expand import Expander
from kera_hw.graph.node import Region
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.loops.evaluator import run_program
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_export
from kera_hw.numerics import floatbits
from kera_hw.numerics.arrays import Array
from kera_hw.ops.expansions import exact_apart
from kera_hw.ops.spec import Expansion
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.types import BF16, F16, F32, F64, FloatType, TensorType, element_type
from tests.loop_programs import same_bits

FORMATS = (F16, BF16, F32, F64)
VERBS = ("sum", "dot", "prod", "mean")


def values(kind: FloatType, shape: tuple[int, ...], seed: int) -> Array:
    """Rows of any bits, near 1, subnormal, of zeros, near overflow, or that cancel but for the last."""
    rng = np.random.default_rng(seed)
    word = np.dtype(f"u{kind.width_bits // 8}")
    fraction, bias = kind.fraction_bits, (1 << (kind.exponent_bits - 1)) - 1

    def some(low: int, high: int) -> Array:
        sign = rng.integers(0, 2, shape).astype(word) << word.type(kind.width_bits - 1)
        return rng.integers(low, high, shape, dtype=word) | sign

    near = some((bias - 4) << fraction, (bias + 4) << fraction)
    cancelling = near.copy()
    half = shape[-1] // 2
    cancelling[..., half : 2 * half] = near[..., :half] ^ word.type(1 << (kind.width_bits - 1))
    cancelling[..., -1:] >>= word.type(fraction // 2)
    large = some(bias << fraction, (bias + 3) << fraction)
    large[..., :1] = 0  # one zero among numbers, whose product has a large exponent
    kinds = [
        some(0, 1 << (kind.width_bits - 1)), near, some(0, 3 << fraction), some(0, 1),
        some((2 * bias - 1) << fraction, (2 * bias + 1) << fraction), cancelling, large,
    ]
    which = rng.integers(0, len(kinds), (shape[0], *(1,) * (len(shape) - 1)))
    return floatbits.from_bits(np.select([which == k for k in range(len(kinds))], kinds).astype(word), kind)


def case(verb: str, source: TensorType, axis: int) -> Export:
    store, given = Store(), [source] * (2 if verb == "dot" else 1)
    params = [store.param(k, each) for k, each in enumerate(given)]
    attrs = {"mul": "fused"} if verb == "dot" else {"axis": axis}
    result = store.op(f"reduce.{verb}", *params, order="exact", **attrs)
    named = tuple((f"x{k}", each) for k, each in enumerate(given))
    return Export("f", "fn", named, result.type, store.region(given, [result]))


def arguments(export: Export, lanes: int) -> list[Array]:
    found: list[Array] = []
    for k, (_, source) in enumerate(export.params):
        kind = element_type(source)
        assert isinstance(source, TensorType) and isinstance(kind, FloatType)
        found.append(values(kind, (lanes, *source.shape), k))
    return found


def expanded(region: Region, own: Mapping[str, Expansion] | None = None) -> Region:
    (node,) = (ref.node for ref in region.results)
    found = Expander(own).region_of(node)
    assert found is not None
    return found


def check(export: Export, lanes: int) -> None:
    """Both forms: the accumulator in memory, and the digits apart as circuits have them."""
    args = arguments(export, lanes)
    (wanted,) = run_region(export.region, args, lanes)
    for own in (None, exact_apart.EXPANSIONS):
        (found,) = run_region(expanded(export.region, own), args, lanes)
        assert same_bits(np.asarray(wanted), np.asarray(found))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 9, 130])
@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("verb", VERBS)
def test_the_expansion_is_the_operation(verb: str, kind: FloatType, count: int) -> None:
    export = case(verb, TensorType(kind, (count,)), -1)
    check(export, 900)


@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
@pytest.mark.parametrize("verb", ["sum", "prod"])
def test_every_axis(verb: str, axis: int) -> None:
    export = case(verb, TensorType(F32, (2, 5, 3)), axis)
    check(export, 300)


@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("verb", VERBS)
def test_loops_and_circuit_give_it(verb: str, kind: FloatType) -> None:
    export = case(verb, TensorType(kind, (5,)), 0)
    args = arguments(export, 600)
    (wanted,) = run_region(export.region, args, 600)
    program = lower_export(export)
    assert verify_loops(program) == []
    (looped, *_), _ = run_program(program, args, [], 600)
    assert same_bits(np.asarray(wanted), looped)
    design = flatten_export(export, Store())
    assert isinstance(design, FlatDesign)
    scalars = [arg[:, k] for arg in args for k in range(5)]
    assert same_bits(np.asarray(wanted), np.asarray(run_region(design.region, scalars, 600)[0]))


@pytest.mark.parametrize("verb", ["sum", "prod"])
def test_it_is_the_rational_number_rounded(verb: str) -> None:
    """Against Python's rationals, which know nothing of digits; its conversion to f64 rounds once."""
    rng = np.random.default_rng(3)
    significands = rng.integers(-(1 << 53), 1 << 53, (200, 6)).astype(np.float64)
    rows = np.ldexp(significands, rng.integers(-160, 120, (200, 6)))
    export = case(verb, TensorType(F64, (6,)), 0)
    (found,) = run_region(expanded(export.region), [rows], 200)
    join = sum if verb == "sum" else prod
    assert found.tolist() == [float(join(map(Fraction, row))) for row in rows.tolist()]
