"""The conformance checks in short: few vectors, all operations, formats and conversions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from kera_hw.ops.registry import FAMILIES
from kera_hw.types import BF16, F16, F32, F64, FloatType, IntType
from tests.conformance import arithmetic, conversions, elementary, reductions
from tests.conformance.report import Row
from tests.conformance.vectors import draw, draw_near, special_bits

_WIDTHS = (1, 7, 16, 24, 25, 32, 53, 54, 63, 64)
WIDTHS = tuple(IntType(width, signed) for width in _WIDTHS for signed in (False, True))


def assert_none_differ(rows: Iterable[Row]) -> list[Row]:
    found = list(rows)
    assert found and all(row.vectors > 0 for row in found)
    assert [row for row in found if row.differences] == []
    return found


@pytest.mark.parametrize("kind", arithmetic.FORMATS, ids=str)
def test_every_operation_equals_its_oracle(kind: FloatType) -> None:
    rows = assert_none_differ(arithmetic.checks(4000, [kind], exhaustive=False))
    elementary = {"exp", "exp2", "log", "log2", "sin", "cos", "tanh", "sigmoid", "erf", "gelu", "silu"}
    wanted = {spec.name for spec in FAMILIES["floating"]} - {f"floating.{name}" for name in elementary}
    assert wanted <= {row.op for row in rows}, "an operation without a check"


def test_floats_convert_into_each_other() -> None:
    assert_none_differ(conversions.float_to_float(4000, exhaustive=False))


def test_integers_convert_both_ways() -> None:
    assert_none_differ(conversions.integer_to_float(1000, WIDTHS))
    assert_none_differ(conversions.float_to_integer(2000, WIDTHS, exhaustive=False))
    assert_none_differ(conversions.soft_to_integer(1000))


def test_fixed_point_converts_both_ways() -> None:
    assert_none_differ(conversions.fixed(200, 12))


@pytest.mark.parametrize("kind", arithmetic.FORMATS, ids=str)
def test_reductions_contractions_and_composites_equal_their_steps(kind: FloatType) -> None:
    rows = assert_none_differ(reductions.checks_of(kind, (0, 1, 2, 5, 65, 130), 8))
    wanted = {spec.name for spec in (*FAMILIES["reduce"], *FAMILIES["neural"])} - {"reduce.any", "reduce.all"}
    assert wanted <= {row.op for row in rows}, "an operation without a check"


def test_long_sums_cross_blocks() -> None:
    assert_none_differ(reductions.folds(F32, (4095, 4096, 4097, 8300), 1))
    assert_none_differ(reductions.dots(F16, (4097,), 1))


def test_elementary_functions_equal_theirs() -> None:
    assert_none_differ(elementary.correctly_rounded(F32, 1500))
    assert_none_differ(elementary.within_an_ulp(1000))


@pytest.mark.long
@pytest.mark.parametrize("module", [arithmetic, conversions, elementary, reductions], ids=str)
def test_at_length(module: Any) -> None:
    """What ``python -m`` runs, without writing its result."""
    assert_none_differ(module.checks())


@pytest.mark.parametrize("kind", [F16, BF16, F32, F64], ids=str)
def test_vectors_reach_the_edges(kind: FloatType) -> None:
    rng = np.random.default_rng(7)
    bits = draw(kind, 20_000, rng)
    assert set(special_bits(kind)) <= set(bits.tolist())
    exponent = (bits >> kind.fraction_bits) & ((1 << kind.exponent_bits) - 1)
    assert np.count_nonzero(exponent == 0) > 500, "subnormals"
    near = draw_near(kind, bits, rng)
    assert np.count_nonzero(arithmetic.run_float("floating.add", kind, bits, near) == 0) > 500, "cancellation"


def test_a_wrong_bit_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    real = arithmetic.run_float

    def broken(op: str, kind: FloatType, *columns: np.ndarray) -> np.ndarray:
        out = real(op, kind, *columns)
        if op == "floating.mul":
            out = out.copy()
            out[17] ^= 1
        return out

    monkeypatch.setattr(arithmetic, "run_float", broken)
    rows = [row for row in arithmetic.checks(500, [F32], exhaustive=False) if row.differences]
    assert {row.op for row in rows} == {"floating.mul"}
