"""Operations equal their expansions, bit for bit, on all their types."""
from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from kera_hw.graph.expand import Expander
from kera_hw.graph.node import Node
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.numerics.arrays import Array
from kera_hw.numerics.floatbits import from_bits
from kera_hw.ops.choosing import Chooser, Sample
from kera_hw.ops.convert import MODES, OVERFLOWS
from kera_hw.ops.registry import FAMILIES, OPS
from kera_hw.ops.sampling import sample
from kera_hw.ops.spec import TypeRuleError
from kera_hw.types import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    BoolType,
    FixType,
    FloatType,
    IntType,
    TensorType,
    Type,
    numpy_dtype,
)
from tests.loop_programs import same_bits, values_of

EXPANDED = [name for name, spec in OPS.items() if spec.expansion is not None]
TRIALS, LANES = 60, 16


def node_of(store: Store, name: str, drawn: Sample) -> Node:
    params = [store.param(k, kind) for k, kind in enumerate(drawn.types)]
    return store.node(name, params, drawn.attrs)


def compared(name: str, drawn: Sample, args: list[Array], lanes: int) -> bool:
    """Whether the operation has an expansion on these types; raises where it is not the operation."""
    store = Store()
    node = node_of(store, name, drawn)
    parts = Expander().region_of(node)
    if parts is None:
        return False
    assert all(part.opcode != name for part in parts.nodes()) or len(parts.nodes()) > 1, "it is its own"
    whole = store.region(drawn.types, [node.out(k) for k in range(len(node.types))])
    wanted, found = run_region(whole, args, lanes), run_region(parts, args, lanes)
    assert [ref.type for ref in parts.results] == list(node.types)
    for first, second in zip(wanted, found, strict=True):
        assert same_bits(np.asarray(first), np.asarray(second)), (name, drawn)
    return True


@pytest.mark.parametrize("name", EXPANDED)
def test_an_expansion_is_its_operation(name: str) -> None:
    """Random types, attributes and values, of which edges are many."""
    some = False
    for seed in range(TRIALS):
        drawn = sample(name, Chooser(random.Random(seed).randrange, (), True))
        args = [values_of(kind, LANES, random.Random(seed)) for kind in drawn.types]
        some |= compared(name, drawn, args, LANES)
    assert some, "no trial reached the expansion"


NARROW = tuple(IntType(width, signed) for width in (1, 2, 3, 4) for signed in (False, True))
FORMATS = tuple(
    FixType(width, fraction, signed)
    for width in (1, 2, 4) for fraction in range(0, width + 1, 2) for signed in (False, True)
)


def every(kind: Type) -> list[int]:
    """All values of a narrow scalar type, in storage form."""
    if isinstance(kind, BoolType):
        return [0, 1]
    raw = kind.raw if isinstance(kind, FixType) else kind
    assert isinstance(raw, IntType)
    return list(range(raw.min, raw.max + 1))


def all_tuples(kinds: Sequence[Type]) -> list[Array]:
    rows = list(itertools.product(*map(every, kinds)))
    return [np.array([row[k] for row in rows]).astype(numpy_dtype(kind)) for k, kind in enumerate(kinds)]


def narrow_cases(name: str) -> Iterator[Sample]:
    """The operation on all narrow types, with all of its attributes."""
    verb = name.partition(".")[2]
    if name == "convert.round_to":
        for source, target in itertools.product((*NARROW, *FORMATS), FORMATS):
            for mode, overflow in itertools.product(MODES, OVERFLOWS):
                yield Sample((source,), {"mode": mode, "overflow": overflow, "type": target})
    elif name == "convert.cast":
        yield from (Sample((a,), {"type": b}) for a in (*NARROW, *FORMATS) for b in (*NARROW, *FORMATS))
    elif name == "integer.add_carry":
        yield from (Sample((kind, kind, BOOL), {}) for kind in NARROW)
    elif name == "fixed.mul":
        yield from (Sample((a, b), {}) for a in FORMATS for b in FORMATS if a.signed == b.signed)
    elif verb in ("shl", "shr", "rotl", "rotr"):
        kinds = NARROW if verb.startswith("rot") else FORMATS
        yield from (Sample((kind, IntType(width, False)), {}) for kind in kinds for width in (1, 2, 4))
    elif verb == "extract":
        for kind in NARROW:
            pairs = itertools.combinations_with_replacement(range(kind.width_bits), 2)
            yield from (Sample((kind,), {"high": high, "low": low}) for low, high in pairs)
    elif verb == "test":
        yield from (Sample((kind,), {"index": k}) for kind in NARROW for k in range(kind.width_bits))
    elif verb == "cat":
        yield from (Sample(kinds, {}) for kinds in itertools.product(NARROW[:4], NARROW[2:6]))
    elif verb != "reverse_bytes":
        count = 1 if verb in UNARY else 2
        kinds = [(kind,) * count for kind in (*NARROW, *FORMATS)]
        yield from (Sample(types, {}) for types in kinds if accepted(name, types))


def accepted(name: str, types: tuple[Type, ...]) -> bool:
    try:
        OPS[name].infer(types, {})
    except TypeRuleError:
        return False
    return True


UNARY = {"neg", "abs", "sign", "popcount", "clz", "ctz", "reverse_bits"}
SCALARS = [
    name for name in EXPANDED if name.startswith(("integer.", "fixed.", "bits.", "convert.", "compare."))
]


@pytest.mark.parametrize("name", [name for name in SCALARS if name != "bits.reverse_bytes"])
def test_on_narrow_types_every_value_is_tried(name: str) -> None:
    cases = list(narrow_cases(name))
    if name.startswith("bits.") and name.split(".")[1] in UNARY:
        cases = [Sample((kind,), {}) for kind in (*NARROW, IntType(9, False), IntType(8, True))]
    expanded = 0
    for drawn in cases:
        args = all_tuples(drawn.types)
        expanded += compared(name, drawn, args, len(args[0]))
    assert expanded


@pytest.mark.parametrize("kind", [F16, BF16], ids=str)
@pytest.mark.parametrize("name", [name for name in EXPANDED if name.startswith("floating.")])
def test_on_16_bit_floats_every_value_is_tried(name: str, kind: FloatType) -> None:
    """Of functions of one number; others meet every number beside others drawn at random."""
    rng = np.random.default_rng(1)
    arity = 2 if name.split(".")[1] in ("min", "max", "copysign") else 1
    words = [np.arange(1 << 16), *(rng.integers(0, 1 << 16, 1 << 16) for _ in range(arity - 1))]
    args = [from_bits(word.astype(np.uint16), kind) for word in words]
    assert compared(name, Sample((kind,) * arity, {}), args, 1 << 16)


WIDE = (FixType(64, 7, True), FixType(64, 64, False), FixType(54, 0, True))


@pytest.mark.parametrize("kind", [F16, BF16, F32, F64], ids=str)
@pytest.mark.parametrize("format_", WIDE, ids=str)
def test_wide_formats_round_once_into_floats(kind: FloatType, format_: FixType) -> None:
    """Numbers beside the middle of two floats, where rounding twice is wrong."""
    raw, values = format_.raw, list[int]()
    for bits in range(2, raw.width_bits):
        for digits in (kind.fraction_bits + 1, kind.fraction_bits + 2, 53, 54):
            top = (1 << bits) - (1 << max(bits - digits, 0))
            values += [sign * (top + near) for sign in (1, -1) for near in (-1, 0, 1)]
    kept = [value for value in values if raw.min <= value <= raw.max]
    array = np.array(kept, dtype=object).astype(numpy_dtype(format_))
    assert compared("convert.cast", Sample((format_,), {"type": kind}), [array], len(kept))


def in_space(kind: Type) -> Type:
    return TensorType(kind.element, kind.shape, "device") if isinstance(kind, TensorType) else kind


@pytest.mark.parametrize("name", EXPANDED)
def test_an_expansion_stays_in_the_memory_of_its_operands(name: str) -> None:
    for seed in range(20):
        drawn = sample(name, Chooser(random.Random(seed).randrange, (), True))
        Expander().region_of(node_of(Store(), name, Sample(tuple(map(in_space, drawn.types)), drawn.attrs)))


def test_expansions_end() -> None:
    """Taken apart again and again, every operation comes to others that have no expansion."""
    expander, done = Expander(), set[Node]()

    def settle(node: Node, around: tuple[str, ...]) -> None:
        assert len(around) < 40, around
        region = expander.region_of(node) if node not in done else None
        done.add(node)
        for part in region.nodes() if region is not None else ():
            settle(part, (*around, node.opcode))

    for name in EXPANDED:
        for seed in range(6):
            settle(node_of(Store(), name, sample(name, Chooser(random.Random(seed).randrange, (), True))), ())


def test_every_composite_has_an_expansion_with_a_text() -> None:
    composites = {spec.name for spec in FAMILIES["neural"]} | {"reduce.mean"}
    assert composites <= set(EXPANDED)
    for name in EXPANDED:
        text = OPS[name].expansion.__doc__
        assert text and text.strip().endswith("."), name
