"""Every operation has a sampler, every sample type-checks, and evaluation gives what the types promise."""
from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from kera_hw.ops import sampling
from kera_hw.ops.choosing import Chooser
from kera_hw.ops.core import decode_constant
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Array, EvalCall, RegionLike, Trait
from kera_hw.types import FloatType, TokenType, Type, element_type, numpy_dtype, shape_of
from tests.unit.ops_oracle import check_array

BATCH = 3


class Constants:
    """An evaluation context in which every region gives random constants of its result types."""

    def __init__(self, choose: Chooser, batch: int) -> None:
        self.choose, self.batch = choose, batch

    def run(self, region: RegionLike, args: Sequence[Array], batch: int | None = None) -> list[Array]:
        lanes = self.batch if batch is None else batch
        for arg, kind in zip(args, region.params, strict=True):
            check_array(arg, kind, lanes)
        return [random_batch(kind, self.choose, lanes) for kind in region.result_types]


def random_batch(kind: Type, choose: Chooser, batch: int) -> Array:
    """Random canonical values, one for each lane."""
    rows = [decode_constant(kind, sampling.random_constant(kind, choose)) for _ in range(batch)]
    return np.stack(rows)


def test_no_operation_lacks_a_sampler() -> None:
    assert sampling.without_sampler() == []
    assert set(sampling.SAMPLERS) == set(OPS)


@pytest.mark.parametrize("longest", [1, 130, 300])
@pytest.mark.parametrize("op", OPS)
def test_tensors_of_any_length_are_accepted(op: str, longest: int) -> None:
    choose = Chooser(random.Random(op).randrange, longest=longest)
    for _ in range(30):
        drawn = sampling.sample(op, choose)
        OPS[op].infer(drawn.types, drawn.attrs)


@pytest.mark.parametrize("op", OPS)
def test_samples_are_accepted_and_evaluate_to_their_types(op: str) -> None:
    choose = Chooser(random.Random(op).randrange)
    spec = OPS[op]
    for _ in range(30):
        drawn = sampling.sample(op, choose)
        assert drawn.attrs.keys() == set(spec.attrs)
        types = spec.infer(drawn.types, drawn.attrs)
        if op == "core.param" or any(isinstance(kind, TokenType) for kind in drawn.types):
            continue
        args = tuple(random_batch(kind, choose, BATCH) for kind in drawn.types)
        call = EvalCall(Constants(choose, BATCH), args, drawn.types, types, drawn.attrs)
        before = [arg.copy() for arg in args]
        outs = spec.evaluate(call)
        assert len(outs) == len(types)
        for out, kind in zip(outs, types):
            check_array(out, kind, BATCH)
        for arg, copy in zip(args, before):
            assert arg.tobytes() == copy.tobytes(), "an operand was written to"


@pytest.mark.parametrize("op", [op for op, spec in OPS.items() if Trait.CONTROL not in spec.traits])
def test_equal_lanes_give_what_different_storage_gives(op: str) -> None:
    """A value broadcast over lanes (zero stride) means the same as one written out in each lane."""
    choose = Chooser(random.Random("lanes" + op).randrange, floats=False)
    spec = OPS[op]
    for _ in range(12):
        drawn = sampling.sample(op, choose)
        types = spec.infer(drawn.types, drawn.attrs)
        if op == "core.param":
            return
        rows = [random_batch(kind, choose, 1) for kind in drawn.types]
        shared = tuple(np.broadcast_to(row, (BATCH, *row.shape[1:])) for row in rows)
        written = tuple(np.repeat(row, BATCH, axis=0) for row in rows)
        context = Constants(choose, BATCH)
        first = spec.evaluate(EvalCall(context, shared, drawn.types, types, drawn.attrs))
        second = spec.evaluate(EvalCall(context, written, drawn.types, types, drawn.attrs))
        for a, b in zip(first, second, strict=True):
            assert a.tobytes() == b.tobytes(), (op, drawn)


def test_floats_can_be_left_out() -> None:
    choose = Chooser(random.Random(1).randrange, floats=False)
    for op, spec in OPS.items():
        if op.startswith(("floating.", "neural.")):
            continue
        for _ in range(40):
            drawn = sampling.sample(op, choose)
            if op not in ("convert.bitcast", "effect.print"):
                types = spec.infer(drawn.types, drawn.attrs)
                kinds = map(element_type, (*drawn.types, *types))
                assert not any(isinstance(kind, FloatType) for kind in kinds), (op, drawn)


def test_random_constants_are_canonical_and_little_endian() -> None:
    choose = Chooser(random.Random(2).randrange)
    for _ in range(300):
        kind = choose.tensor(sampling.ANY)
        data = sampling.random_constant(kind, choose)
        OPS["core.constant"].infer((), {"type": kind, "value": data})
        array = decode_constant(kind, data)
        assert array.shape == shape_of(kind) and array.dtype == numpy_dtype(kind)
