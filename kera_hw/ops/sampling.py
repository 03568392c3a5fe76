"""Random valid operand types and attributes for every operation: what random graphs are made of.

Every row of the registry has a sampler here (a test demands it), so no operation can be forgotten by the
differential tests. Randomness comes from the caller: a function that gives an integer below its argument.
Regions cannot be made at this layer; a sample asks for one by its types (``RegionWanted``).
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kera_hw.ops.choosing import FLOATS, MAX_EXTENT, Chooser, RegionWanted, Sample, Types
from kera_hw.ops.memory import SPACES
from kera_hw.ops.registry import OPS
from kera_hw.types import (
    BOOL,
    F32,
    U32,
    BoolType,
    FixType,
    FloatType,
    IntType,
    TensorType,
    Type,
    numpy_dtype,
)

Sampler = Callable[[Chooser], Sample]

_INT = (IntType,)
_FIX = (FixType,)
_FLOAT = (FloatType,)
_LOGIC = (IntType, BoolType)
_RAW = (IntType, FixType)
_NUMBER = (IntType, FixType, FloatType)
ANY = (IntType, IntType, FixType, BoolType, FloatType)


def sample(op: str, choose: Chooser) -> Sample:
    """Random operand types and attributes the operation accepts; KeyError if it has no sampler."""
    return SAMPLERS[op](choose)


def _same(count: int, kinds: Sequence[type[Type]]) -> Sampler:
    def make(choose: Chooser) -> Sample:
        return Sample(choose.mixed([choose.scalar(kinds)] * count), {})

    return make


def _amount(kinds: Sequence[type[Type]]) -> Sampler:
    def make(choose: Chooser) -> Sample:
        return Sample(choose.mixed([choose.scalar(kinds), choose.integer(signed=False)]), {})

    return make


def _param(choose: Chooser) -> Sample:
    kind = choose.pick([choose.scalar(ANY), choose.tensor(ANY)])
    return Sample((), {"index": choose.below(4), "type": kind})


def _constant(choose: Chooser) -> Sample:
    kind = choose.pick([choose.scalar(ANY), choose.tensor(ANY)])
    return Sample((), {"type": kind, "value": random_constant(kind, choose)})


def random_constant(kind: Type, choose: Chooser) -> bytes:
    """Canonical bytes of a random constant of the type: edges more often than chance would."""
    element, count = (kind.element, kind.size) if isinstance(kind, TensorType) else (kind, 1)
    dtype = numpy_dtype(kind).newbyteorder("<")
    if isinstance(element, BoolType):
        return bytes(choose.below(2) for _ in range(count))
    if isinstance(element, FloatType):
        size_bytes = element.width_bits // 8
        return b"".join(_float_bits(element, choose).to_bytes(size_bytes, "little") for _ in range(count))
    raw = element.raw if isinstance(element, FixType) else element
    assert isinstance(raw, IntType)
    edges = [raw.wrap(value) for value in (0, 1, 2, -1, raw.min, raw.max)]
    numbers = [
        choose.pick(edges) if choose.coin() else raw.min + choose.below(raw.max - raw.min + 1)
        for _ in range(count)
    ]
    return np.array(numbers, dtype=object).astype(numpy_dtype(kind)).astype(dtype).tobytes()


def _float_bits(kind: FloatType, choose: Chooser) -> int:
    """A bit pattern: small halves, the edges of each class of numbers, or anything but a second NaN."""
    fraction_bits = kind.fraction_bits
    top = (1 << kind.exponent_bits) - 1
    one, infinity = (top >> 1) << fraction_bits, top << fraction_bits
    mood = choose.below(4)
    if mood == 0:  # 0.5, 1, 1.5, ... 4
        magnitude = one + (choose.below(7) - 2) * (1 << (fraction_bits - 1))
    elif mood == 1:
        least = 1 << fraction_bits
        edges = (0, 0, 1, least - 1, least, one - 1, one + 1, infinity - 1, infinity, infinity + 1)
        magnitude = choose.pick(edges)
    else:
        magnitude = choose.below(1 << (kind.width_bits - 1))
    if magnitude > infinity:
        return kind.canonical_nan
    return magnitude | choose.below(2) << (kind.width_bits - 1)


def _add_carry(choose: Chooser) -> Sample:
    kind = choose.integer()
    return Sample(choose.mixed([kind, kind, BOOL]), {})


def _mul_wide(choose: Chooser) -> Sample:
    return Sample(choose.mixed([choose.integer(high=32)] * 2), {})


def _clmul(choose: Chooser) -> Sample:
    return Sample(choose.mixed([choose.integer(signed=False)] * 2), {})


def _fixed_mul(choose: Chooser) -> Sample:
    a = choose.fixed(high=32)
    b = FixType(choose.between(1, 32), 0, a.signed)
    return Sample(choose.mixed([a, FixType(b.width_bits, choose.below(b.width_bits + 1), a.signed)]), {})


def _cast(choose: Chooser) -> Sample:
    source = choose.scalar(ANY)
    if isinstance(source, BoolType):
        target: Type = choose.scalar(_LOGIC)
    else:
        target = choose.scalar(_NUMBER)
    return Sample(choose.mixed([source]), {"type": target})


def _bitcast(choose: Chooser) -> Sample:
    source = choose.scalar(ANY)
    width_bits = 1 if isinstance(source, BoolType) else getattr(source, "width_bits", 1)
    targets: list[Type] = [
        IntType(width_bits, True), IntType(width_bits, False),
        FixType(width_bits, choose.below(width_bits + 1), choose.coin()),
        *(kind for kind in (BOOL,) if width_bits == 1),
        *(kind for kind in FLOATS if kind.width_bits == width_bits),
    ]
    return Sample(choose.mixed([source]), {"type": choose.pick(targets)})


def _round_to(choose: Chooser) -> Sample:
    types = choose.mixed([choose.scalar(_RAW)])
    attrs = {
        "mode": choose.pick(("floor", "trunc", "half_up", "half_even")),
        "overflow": choose.pick(("wrap", "saturate")),
        "type": choose.fixed(),
    }
    return Sample(types, attrs)


def _reverse_bytes(choose: Chooser) -> Sample:
    return Sample(choose.mixed([choose.whole_bytes()]), {})


def _extract(choose: Chooser) -> Sample:
    kind = choose.integer()
    low = choose.below(kind.width_bits)
    return Sample(choose.mixed([kind]), {"high": choose.between(low, kind.width_bits - 1), "low": low})


def _test(choose: Chooser) -> Sample:
    kind = choose.integer()
    return Sample(choose.mixed([kind]), {"index": choose.below(kind.width_bits)})


def _cat(choose: Chooser) -> Sample:
    parts: list[Type] = []
    room = 64
    for _ in range(choose.between(1, 4)):
        if room == 0:
            break
        kind = choose.integer(high=min(room, 33))
        parts.append(kind)
        room -= kind.width_bits
    return Sample(choose.mixed(parts), {})


def _indices(choose: Chooser, tensor: TensorType) -> Types:
    return tuple(choose.integer() for _ in tensor.shape)


def _index(choose: Chooser) -> Sample:
    tensor = choose.tensor(ANY)
    return Sample((tensor, *_indices(choose, tensor)), {})


def _slice(choose: Chooser) -> Sample:
    tensor = choose.tensor(ANY)
    sizes = tuple(choose.between(min(extent, 1), extent) for extent in tensor.shape)
    return Sample((tensor, *_indices(choose, tensor)), {"sizes": sizes})


def _update(choose: Chooser) -> Sample:
    tensor = choose.tensor(ANY)
    return Sample((tensor, tensor.element, *_indices(choose, tensor)), {})


def _update_slice(choose: Chooser) -> Sample:
    tensor = choose.tensor(ANY)
    sizes = tuple(choose.between(min(extent, 1), extent) for extent in tensor.shape)
    patch = TensorType(tensor.element, sizes, tensor.space)
    return Sample((tensor, patch, *_indices(choose, tensor)), {})


def _reshape(choose: Chooser) -> Sample:
    tensor = choose.tensor(ANY)
    shapes = [(tensor.size,), (1, *tensor.shape), tensor.shape[::-1], (*tensor.shape, 1)]
    return Sample((tensor,), {"shape": choose.pick(shapes)})


def _permute(choose: Chooser) -> Sample:
    tensor = choose.tensor(ANY)
    rest, axes = list(range(len(tensor.shape))), list[int]()
    while rest:
        axes.append(rest.pop(choose.below(len(rest))))
    return Sample((tensor,), {"axes": tuple(axes)})


def _broadcast(choose: Chooser) -> Sample:
    shape = choose.shape()
    element = choose.scalar(ANY)
    kept = shape[choose.below(len(shape) + 1):]
    source = tuple(1 if choose.coin() else extent for extent in kept)
    return Sample((TensorType(element, source) if source else element,), {"shape": shape})


def _concat(choose: Chooser) -> Sample:
    tensor = choose.tensor(ANY)
    axis = choose.below(len(tensor.shape))
    parts = [
        TensorType(
            tensor.element,
            (*tensor.shape[:axis], choose.between(0, MAX_EXTENT), *tensor.shape[axis + 1:]), tensor.space,
        )
        for _ in range(choose.below(3))
    ]
    return Sample((tensor, *parts), {"axis": axis})


def _pad(choose: Chooser) -> Sample:
    tensor = choose.tensor(ANY)
    low, high = (tuple(choose.below(3) for _ in tensor.shape) for _ in range(2))
    return Sample((tensor, tensor.element), {"high": high, "low": low})


def _reverse(choose: Chooser) -> Sample:
    tensor = choose.tensor(ANY)
    return Sample((tensor,), {"axis": choose.below(len(tensor.shape))})


def _gather(choose: Chooser) -> Sample:
    tensor = choose.tensor(ANY)
    return Sample((tensor, TensorType(choose.integer(), choose.shape(), tensor.space)), {})


def _iota(choose: Chooser) -> Sample:
    return Sample((), {"size": choose.between(0, 9), "type": choose.scalar(_NUMBER)})


def _stack(choose: Chooser) -> Sample:
    kind = choose.pick([choose.scalar(ANY), choose.tensor(ANY)])
    return Sample((kind,) * choose.between(1, 4), {})


def _shift_in(choose: Chooser) -> Sample:
    tensor = choose.tensor(ANY)
    rest = tensor.shape[1:]
    row = TensorType(tensor.element, rest, tensor.space) if rest else tensor.element
    return Sample((tensor, row), {})


def _axis(choose: Chooser, tensor: TensorType) -> int:
    return choose.between(-1, len(tensor.shape) - 1)


def _order(choose: Chooser, element: Type) -> str:
    return choose.pick(("lanes", "sequential", "tree", "exact")) if isinstance(element, FloatType) else ""


def _mul(choose: Chooser, element: Type) -> str:
    if not isinstance(element, FloatType):
        return ""
    return choose.pick(("fused", "unfused", "wide") if element == F32 else ("fused", "unfused"))


def _fold(kinds: Sequence[type[Type]], least: int = 0, ordered: bool = False) -> Sampler:
    def make(choose: Chooser) -> Sample:
        tensor = choose.tensor(kinds, least=least)
        attrs: dict[str, Any] = {"axis": _axis(choose, tensor)}
        if ordered:
            attrs["order"] = _order(choose, tensor.element)
        return Sample((tensor,), attrs)

    return make


def _mean(choose: Chooser) -> Sample:
    holds_count = max(8, choose.longest.bit_length() + 1)
    element = choose.scalar((IntType, FloatType), low=holds_count)
    tensor = TensorType(element, choose.shape())
    return Sample((tensor,), {"axis": _axis(choose, tensor), "order": _order(choose, element)})


def _dot(choose: Chooser) -> Sample:
    a = choose.tensor((IntType, IntType, FloatType), rank=1)
    return Sample((a, a), {"mul": _mul(choose, a.element), "order": _order(choose, a.element)})


def _matmul(choose: Chooser) -> Sample:
    a = choose.tensor((IntType, IntType, FloatType), rank=2)
    b = TensorType(a.element, (a.shape[1], choose.between(1, MAX_EXTENT)), a.space)
    return Sample((a, b), {"mul": _mul(choose, a.element)})


def _conv2d(choose: Chooser) -> Sample:
    x = choose.tensor((IntType, IntType, FloatType), rank=3, least=1)
    pad = choose.below(3)
    kernel = tuple(choose.between(1, extent + 2 * pad) for extent in x.shape[1:])
    w = TensorType(x.element, (choose.between(1, 3), x.shape[0], *kernel), x.space)
    return Sample((x, w), {"mul": _mul(choose, x.element), "pad": pad, "stride": choose.between(1, 3)})


def _pool(kinds: Sequence[type[Type]], least_bits: int) -> Sampler:
    def make(choose: Chooser) -> Sample:
        element = choose.scalar(kinds, least_bits)
        shape = (choose.between(0, 2), choose.between(1, 5), choose.between(1, 5))
        size = choose.between(1, min(shape[1:]))
        attrs = {"pad": choose.below(size), "size": size, "stride": choose.between(1, 3)}
        return Sample((TensorType(element, shape),), attrs)

    return make


def _softmax(choose: Chooser) -> Sample:
    tensor = choose.tensor(_FLOAT, least=1)
    return Sample((tensor,), {"axis": _axis(choose, tensor)})


def _norm(choose: Chooser) -> Sample:
    tensor = choose.tensor(_FLOAT, least=1)
    return Sample((tensor, tensor.element), {"axis": _axis(choose, tensor)})


def _attention(choose: Chooser) -> Sample:
    element = choose.pick(FLOATS)
    rows, keys, depth, width = (choose.between(1, MAX_EXTENT) for _ in range(4))
    return Sample(tuple(TensorType(element, s) for s in ((rows, depth), (keys, depth), (keys, width))), {})


def _leaf(choose: Chooser) -> Type:
    return choose.tensor(ANY) if choose.below(4) == 0 else choose.scalar(ANY)


def _leaves(choose: Chooser, low: int, high: int) -> Types:
    return tuple(_leaf(choose) for _ in range(choose.between(low, high)))


def _select(choose: Chooser) -> Sample:
    kind = choose.scalar(ANY)
    return Sample(choose.mixed([BOOL, kind, kind]), {})


def _call(choose: Chooser) -> Sample:
    types = _leaves(choose, 0, 3)
    return Sample(types, {"region": RegionWanted(types, _leaves(choose, 1, 2))})


def _loop(choose: Chooser) -> Sample:
    carried, captures = _leaves(choose, 1, 2), _leaves(choose, 0, 2)
    index = choose.integer(low=8)
    start, count = choose.between(0, 15), choose.between(0, 4)
    step = choose.between(1, 3) if not index.signed or choose.coin() else -choose.between(1, 3)
    attrs = {
        "carried": len(carried), "count": count, "index_type": index, "start": start, "step": step,
        "region": RegionWanted((index, *carried, *captures), carried),
    }
    return Sample((*carried, *captures), attrs)


def _while(choose: Chooser) -> Sample:
    carried, captures = _leaves(choose, 1, 2), _leaves(choose, 0, 2)
    types = (*carried, *captures)
    attrs = {
        "body": RegionWanted(types, carried), "carried": len(carried),
        "cond": RegionWanted(types, (BOOL,)), "max": choose.between(0, 4),
    }
    return Sample(types, attrs)


def _branch(choose: Chooser) -> Sample:
    captures, results = _leaves(choose, 0, 3), _leaves(choose, 1, 2)
    selector: Type = BOOL if choose.coin() else choose.integer(signed=False)
    count = 2 if selector == BOOL else choose.between(1, 4)
    regions = tuple(RegionWanted(captures, results) for _ in range(count))
    return Sample((selector, *captures), {"regions": regions})


def _map(choose: Chooser) -> Sample:
    shape, captures = choose.shape(), _leaves(choose, 0, 1)
    elements = tuple(choose.scalar(ANY) for _ in range(choose.between(1, 3)))
    region = RegionWanted((*elements, *captures), _leaves(choose, 1, 2))
    types = (*(TensorType(kind, shape) for kind in elements), *captures)
    return Sample(types, {"arity": len(elements), "region": region})


def _scan(choose: Chooser) -> Sample:
    length = choose.between(0, 4)
    carried, rows, captures = _leaves(choose, 0, 2), _leaves(choose, 0, 2), _leaves(choose, 0, 1)
    results = (*carried, *_leaves(choose, 0 if carried else 1, 1))
    spaces = (kind.space if isinstance(kind, TensorType) else "host" for kind in rows)
    items = tuple(TensorType.tensor(kind, (length,), space) for kind, space in zip(rows, spaces))
    attrs = {
        "carried": len(carried), "items": len(items), "length": length,
        "region": RegionWanted((*carried, *rows, *captures), results),
    }
    return Sample((*carried, *items, *captures), attrs)


def _transfer(choose: Chooser) -> Sample:
    return Sample((choose.tensor(ANY),), {"space": choose.pick(SPACES)})


def _flag(choose: Chooser) -> Sample:
    return Sample((BOOL,), {"label": choose.pick(("", "x")), "site": choose.below(3)})


def _print(choose: Chooser) -> Sample:
    entries, words, width_bits = choose.between(1, 3), choose.between(1, 3), choose.pick((1, 8, 33))
    kinds = (
        U32, TensorType(IntType(16, False), (entries,)),
        TensorType(IntType(width_bits, False), (entries, words)),
    )
    return Sample(kinds, {"labels": ("x",), "types": ((IntType(width_bits, True),) * words,)})


def _family(prefix: str, count: int, kinds: Sequence[type[Type]], verbs: str) -> dict[str, Sampler]:
    return {f"{prefix}.{verb}": _same(count, kinds) for verb in verbs.split()}


SAMPLERS: dict[str, Sampler] = {
    "core.param": _param,
    "core.constant": _constant,
    **_family("integer", 2, _INT, "add sub mul div rem min max saturating_add saturating_sub saturating_mul"),
    **_family("integer", 1, _INT, "neg abs sign"),
    "integer.add_carry": _add_carry,
    "integer.mul_wide": _mul_wide,
    **_family("fixed", 2, _FIX, "add sub min max saturating_add saturating_sub saturating_mul"),
    **_family("fixed", 1, _FIX, "neg abs sign"),
    "fixed.mul": _fixed_mul,
    **_family("floating", 2, _FLOAT, "add sub mul div min max copysign"),
    **_family("floating", 1, _FLOAT, "neg abs sign sqrt rsqrt recip floor ceil round trunc"),
    **_family("floating", 1, _FLOAT, "exp exp2 log log2 sin cos tanh sigmoid erf relu gelu silu"),
    **_family("floating", 1, _FLOAT, "is_nan is_finite"),
    "floating.fma": _same(3, _FLOAT),
    **_family("compare", 2, ANY, "eq ne lt le gt ge"),
    "convert.cast": _cast,
    "convert.bitcast": _bitcast,
    "convert.round_to": _round_to,
    **_family("bits", 2, _LOGIC, "and or xor"),
    "bits.not": _same(1, _LOGIC),
    "bits.clmul": _clmul,
    "bits.shl": _amount(_RAW),
    "bits.shr": _amount(_RAW),
    "bits.rotl": _amount(_INT),
    "bits.rotr": _amount(_INT),
    **_family("bits", 1, _INT, "reverse_bits popcount clz ctz"),
    "bits.reverse_bytes": _reverse_bytes,
    "bits.extract": _extract,
    "bits.test": _test,
    "bits.cat": _cat,
    "tensor.index": _index,
    "tensor.slice": _slice,
    "tensor.update": _update,
    "tensor.update_slice": _update_slice,
    "tensor.reshape": _reshape,
    "tensor.permute": _permute,
    "tensor.broadcast": _broadcast,
    "tensor.concat": _concat,
    "tensor.pad": _pad,
    "tensor.reverse": _reverse,
    "tensor.gather": _gather,
    "tensor.iota": _iota,
    "tensor.stack": _stack,
    "tensor.shift_in": _shift_in,
    "reduce.sum": _fold(_NUMBER, ordered=True),
    "reduce.prod": _fold((IntType, FloatType), ordered=True),
    "reduce.min": _fold(_NUMBER, least=1),
    "reduce.max": _fold(_NUMBER, least=1),
    "reduce.any": _fold((BoolType,)),
    "reduce.all": _fold((BoolType,)),
    "reduce.argmin": _fold(_NUMBER, least=1),
    "reduce.argmax": _fold(_NUMBER, least=1),
    "reduce.mean": _mean,
    "reduce.dot": _dot,
    "reduce.matmul": _matmul,
    "reduce.conv2d": _conv2d,
    "reduce.max_pool2d": _pool(_NUMBER, 1),
    "reduce.avg_pool2d": _pool((IntType, FloatType), 8),
    "neural.softmax": _softmax,
    "neural.layer_norm": _norm,
    "neural.rms_norm": _norm,
    "neural.attention": _attention,
    "control.select": _select,
    "control.call": _call,
    "control.loop": _loop,
    "control.while": _while,
    "control.branch": _branch,
    "control.map": _map,
    "control.scan": _scan,
    "memory.transfer": _transfer,
    "effect.assert": _flag,
    "effect.cover": _flag,
    "effect.print": _print,
}


def without_sampler() -> list[str]:
    """Operations the registry has and this module forgot."""
    return [op for op in OPS if op not in SAMPLERS]
