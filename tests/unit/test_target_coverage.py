"""Every target's table is a partition of operations and types, and says what the target does."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import wasmtime

from kera_hw.cpu_gpu.amdgcn.compile import compile_export as compile_for_amd
from kera_hw.cpu_gpu.amdgcn.interpreter.text import read_module as read_amdgcn
from kera_hw.cpu_gpu.engine import compile_export as compile_machine_code
from kera_hw.cpu_gpu.ptx.compile import compile_export as compile_kernels
from kera_hw.cpu_gpu.ptx.interpreter.text import read_module
from kera_hw.driver.coverage import TABLES
from kera_hw.driver.targets import COVERED
from kera_hw.graph import Export, Store
from kera_hw.graph.expand import Expander
from kera_hw.graph.probes import with_probes
from kera_hw.interp import run_region
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_export
from kera_hw.ops.registry import FAMILIES, OPS
from kera_hw.ops.sampling import SAMPLERS
from kera_hw.rtl.formal.reductions import NoMeaning
from kera_hw.rtl.formal.specification import specify
from kera_hw.rtl.formal.terms import Terms
from kera_hw.rtl.lower import flatten_export
from kera_hw.rtl.techmap.mapper import MAPPED
from kera_hw.support import Diagnostic, KeraError
from kera_hw.target import Refusal, TargetTable
from kera_hw.target.coverage import BOUND, gaps, variants
from kera_hw.target.minimal import TYPES, Minimal, minimal_programs
from kera_hw.types import F16, F64, IntType, numpy_dtype, shape_of
from kera_hw.wasm.compile import compile_export


def _interp(export: Export) -> str | None:
    args = [np.zeros((1, *shape_of(kind)), numpy_dtype(kind)) for kind in export.region.params]
    run_region(export.region, args, 1)
    return None


def _loops(export: Export) -> str | None:
    try:
        program = lower_export(export)
    except KeraError as refused:
        return "; ".join(item.message for item in refused.diagnostics)
    assert verify_loops(program) == []
    return None


def _cpu(export: Export) -> str | None:
    try:
        compile_machine_code(export)
    except KeraError as refused:
        return "; ".join(item.message for item in refused.diagnostics)
    return None


def _wasm(export: Export) -> str | None:
    """Compiled, and by a foreign engine's validator."""
    try:
        module = compile_export(export)
    except KeraError as refused:
        return "; ".join(item.message for item in refused.diagnostics)
    wasmtime.Module.validate(wasmtime.Engine(), module.binary)
    return None


def _ptx(export: Export) -> str | None:
    """Compiled, and read by the interpreter."""
    try:
        module = compile_kernels(export, least_rounds=2)
    except KeraError as refused:
        return "; ".join(item.message for item in refused.diagnostics)
    read_module(module.text)
    return None


def _amdgcn(export: Export) -> str | None:
    """Compiled, and read by the interpreter."""
    try:
        module = compile_for_amd(export, least_rounds=2)
    except KeraError as refused:
        return "; ".join(item.message for item in refused.diagnostics)
    read_amdgcn(module.text)
    return None


def _rtl(export: Export) -> str | None:
    flat = flatten_export(with_probes(export), Store())
    if isinstance(flat, Diagnostic):  # of size a table says nothing: three `exp` on f64 are too large
        return None if flat.code == "K0610" else flat.message
    left = {node.opcode for node in flat.region.nodes()} - MAPPED
    return f"technology mapping has no rule for {sorted(left)}" if left else None


def _formal(export: Export) -> str | None:
    try:
        specify(Terms(), with_probes(export))
    except NoMeaning as refused:
        return refused.diagnostic.message
    return None


DO: dict[str, Callable[[Export], str | None]] = {
    "interp": _interp, "loops": _loops, "rtl": _rtl, "formal": _formal, "cpu": _cpu, "wasm": _wasm,
    "ptx": _ptx, "amdgcn": _amdgcn,
}
"""What is against lowering an export, as each target itself says."""


def _programs(opcode: str) -> list[Minimal]:
    """On a type of each kind all that an operation can be told; else the first and the last variant."""
    found: list[Minimal] = []
    for kind in TYPES:
        variants = list(minimal_programs(opcode, kind))
        found += variants if kind in (F16, F64) or len(variants) < 9 else [variants[0], variants[-1]]
    return found


def test_every_target_is_tried() -> None:
    assert set(DO) == set(TABLES) == set(COVERED)


@pytest.mark.parametrize("target", TABLES)
def test_every_operation_is_lowered_or_refused_on_every_type(target: str) -> None:
    assert gaps(TABLES[target]) == []


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("target", TABLES)
def test_a_target_does_what_its_table_says(target: str, family: str) -> None:
    """A minimal program of each operation and type is made, or refused in the table's words."""
    table, expander = TABLES[target], Expander()
    for row in FAMILIES[family]:
        for program in () if row.name in BOUND else _programs(row.name):
            fault = table.fault(program.node, expander)
            said = None if fault is None else fault.message
            assert DO[target](program.export) == said, (row.name, str(program.kind), program.node.attrs)
            assert fault is None or (fault.code == table.code and fault.notes), row.name


def test_every_operation_has_a_minimal_program() -> None:
    assert [name for name in OPS if not variants(name)] == []


@pytest.mark.parametrize("target", ["loops", "rtl", "formal"])
def test_a_forgotten_operation_is_named(target: str) -> None:
    table = TABLES[target]
    lacking = {name: rule for name, rule in table.lowerings.items() if name != "integer.mul"}
    (found,) = gaps(replace(table, lowerings=lacking))
    assert found.startswith(f"{target}: integer.mul on u1, ") and "neither lowered nor refused" in found


def test_what_is_said_twice_or_never_holds_is_named() -> None:
    table: TargetTable[str] = TargetTable(
        "toy", "toy", {name: "" for name in OPS if name not in BOUND} | {"bits.none": ""},
        {"bits.not": (Refusal("it is", "Do."),), "bits.and": (Refusal("no", "Do.", lambda _: False),)},
    )
    assert gaps(table) == [
        "toy: bits.none is no operation",
        "toy: bits.and is refused for a reason that never holds: no",
        "toy: bits.not is lowered and refused on every type",
    ]


@pytest.mark.parametrize("target", ["loops", "rtl", "formal"])
def test_an_unknown_operation_is_a_diagnostic(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row in the registry that no target was told about."""
    fake = replace(OPS["bits.not"], name="bits.fake")
    monkeypatch.setitem(OPS, "bits.fake", fake)
    monkeypatch.setitem(SAMPLERS, "bits.fake", SAMPLERS["bits.not"])
    (program,) = minimal_programs("bits.fake", IntType(8, False))
    fault = TABLES[target].fault(program.node, Expander())
    assert fault is not None and fault.code == "K0704" and "`bits.fake` on u8" in fault.message
    assert DO[target](program.export) == fault.message
    assert any(f"{target}: bits.fake on bool, u1, " in gap for gap in gaps(TABLES[target]))


def test_the_interpreter_knows_an_operation_by_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPS, "bits.fake", replace(OPS["bits.not"], name="bits.fake"))
    monkeypatch.setitem(SAMPLERS, "bits.fake", SAMPLERS["bits.not"])
    (program,) = minimal_programs("bits.fake", IntType(8, False))
    assert TABLES["interp"].fault(program.node, Expander()) is None and _interp(program.export) is None
