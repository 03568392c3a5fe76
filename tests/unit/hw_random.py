"""For the hardware lowering tests: exports of single operations, compared with the interpreter."""
from __future__ import annotations

import random

import numpy as np

from kera_hw.graph.node import Export, Ref
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.rtl.techmap import map_design
from kera_hw.rtl.techmap.bitwise.refine import refined
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.device import find_device
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.types import BoolType, FixType, IntType, TensorType, TupleType, Type, numpy_dtype, shape_of
from tests.netlist_reference import evaluate


def width(kind: Type) -> int:
    return getattr(kind, "width_bits", 1)


def corner(kind: Type, rng: random.Random) -> int:
    """A raw value, corners as likely as not."""
    if isinstance(kind, BoolType):
        return rng.randrange(2)
    raw = kind.raw if isinstance(kind, FixType) else kind
    assert isinstance(raw, IntType)
    if rng.random() < 0.4:
        corners = [0, 1, -1, 2, raw.min, raw.max, raw.max - 1, raw.min + 1, 1 << rng.randrange(64)]
        return raw.wrap(rng.choice(corners))
    return raw.wrap(rng.getrandbits(64) >> rng.randrange(64))


def values(kind: Type, count: int, rng: random.Random) -> np.ndarray:
    element = kind.element if isinstance(kind, TensorType) else kind
    shape = (count, *shape_of(kind))
    flat = [corner(element, rng) for _ in range(int(np.prod(shape)))]
    return np.array(flat, dtype=object).astype(numpy_dtype(element)).reshape(shape)


def pack(array: np.ndarray, kind: Type) -> int:
    element = kind.element if isinstance(kind, TensorType) else kind
    w = width(element)
    out = 0
    for i, v in enumerate(np.asarray(array).ravel().tolist()):
        out |= (int(v) & ((1 << w) - 1)) << (i * w)
    return out


def export_of(store: Store, params: list[Type], results: list[Ref], name: str = "f") -> Export:
    kinds = tuple(ref.type for ref in results)
    result = kinds[0] if len(kinds) == 1 else TupleType(kinds)
    named = tuple((f"p{i}", kind) for i, kind in enumerate(params))
    return Export(name, "fn", named, result, store.region(params, results))


def check(
    store: Store, params: list[Type], results: list[Ref], count: int = 60, seed: int = 1,
    device: str = "ecp5-85k", clock_ps: int = 4000,
) -> tuple[FlatDesign, Netlist]:
    """Flatten and map, then compare flat region and netlists with the interpreter on random items."""
    rng = random.Random(seed)
    export = export_of(store, params, results)
    flat = flatten_export(export, store)
    assert isinstance(flat, FlatDesign), flat
    netlist = map_design(flat, device, clock_ps)
    args = [values(kind, count, rng) for kind in params]
    expected = run_region(export.region, args, batch=count)
    scalars = [column for a in args for column in a.reshape(count, -1).T]
    got_flat = run_region(flat.region, scalars, batch=count)
    joined = [column for e in expected for column in e.reshape(count, -1).T]
    assert len(got_flat) == len(joined)
    for got, want in zip(got_flat, joined):
        assert np.array_equal(got, want)
    items = [
        {f"in_p{i}": pack(a[k], kind) for i, (a, kind) in enumerate(zip(args, params))} for k in range(count)
    ]
    part = find_device(device)
    assert part is not None
    buses = ["out_data"] if len(results) == 1 else [f"out_{i}" for i in range(len(results))]
    for cells in (netlist, *(cells for _, cells in refined(netlist, DelayModel(part), clock_ps))):
        got = evaluate(cells, items)
        for k in range(count):
            for bus, want, ref in zip(buses, expected, results):
                packed = pack(want[k], ref.type)
                assert got[k][bus] == packed, (items[k], bus, got[k][bus], packed)
    return flat, netlist
