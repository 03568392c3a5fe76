"""Elementary functions written out in operations equal their rows, bit for bit."""
from __future__ import annotations

import numpy as np
import pytest

from kera_hw.graph import Export
from kera_hw.graph.expand import Expander
from kera_hw.graph.node import Region
from kera_hw.graph.store import Store
from kera_hw.interp import run_region
from kera_hw.loops.evaluator import run_program
from kera_hw.loops.parser import parse_program
from kera_hw.loops.printer import print_program
from kera_hw.loops.program import Op, statements
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_export
from kera_hw.numerics.elementary import FUNCTIONS, evaluate
from kera_hw.ops.expansions.elementary import EXPANSIONS
from kera_hw.ops.registry import OPS
from kera_hw.types import BF16, F16, F32, F64, FloatType, TensorType, TupleType
from tests.elementary_arguments import arguments
from tests.loop_programs import same_bits

FORMATS = (F16, BF16, F32, F64)


def expanded(name: str, kind: FloatType) -> Region:
    store = Store()
    region = Expander().region_of(store.node(f"floating.{name}", [store.param(0, kind)]))
    assert region is not None
    return region


@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_written_out_is_its_operation(name: str, kind: FloatType) -> None:
    values = arguments(kind, 20_000)
    (found,) = run_region(expanded(name, kind), [values], len(values))
    wanted = evaluate(name, values, kind)
    bits = np.dtype(f"u{kind.width_bits // 8}")
    wrong = np.flatnonzero(found.view(bits) != wanted.view(bits))
    assert not len(wrong), [(hex(values.view(bits)[i]), found[i], wanted[i]) for i in wrong[:5]]


@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_is_left_but_arithmetic_and_tables(name: str, kind: FloatType) -> None:
    """What a target must have: + - * / and comparisons on f64, 64-bit words, flags, tables of constants."""
    verbs = {node.opcode for node in expanded(name, kind).nodes()}
    assert not verbs & EXPANSIONS.keys()
    assert verbs <= {
        "core.param", "core.constant", "convert.cast", "convert.bitcast", "control.select", "tensor.index",
        "floating.add", "floating.sub", "floating.mul", "floating.div", "compare.lt", "compare.le",
        "compare.eq", "integer.add", "integer.sub", "integer.mul", "bits.and", "bits.or", "bits.xor",
        "bits.shl", "bits.shr",
    }


def test_every_elementary_function_of_the_registry_is_here() -> None:
    fixed = "by a fixed program of +, -, * and /"
    assert set(EXPANSIONS) == {name for name, spec in OPS.items() if fixed in spec.doc}


def of_scalar_and_tensor(name: str, kind: FloatType) -> Export:
    """The function of a number, and of each number of a tensor."""
    store, three = Store(), TensorType(kind, (3,))
    results = [store.op(f"floating.{name}", store.param(k, each)) for k, each in enumerate((kind, three))]
    region = store.region([kind, three], results)
    return Export(name, "fn", (("x", kind), ("t", three)), TupleType((kind, three)), region)


@pytest.mark.parametrize("kind", FORMATS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_loops_with_a_function_written_out_give_its_bits(name: str, kind: FloatType) -> None:
    export = of_scalar_and_tensor(name, kind)
    program = lower_export(export, expanding=EXPANSIONS)
    assert verify_loops(program) == []
    written = {item.opcode for item in statements(program.body) if isinstance(item, Op)}
    assert "floating.mul" in written and not written & EXPANSIONS.keys()
    values = arguments(kind, 500)[::5]
    args = [values, np.stack([values, values[::-1], np.roll(values, 1)], axis=1)]
    found, _ = run_program(program, args, [], len(values))
    for got, given in zip(found, args):
        assert same_bits(got, evaluate(name, given, kind))
    assert parse_program(print_program(program)) == program
