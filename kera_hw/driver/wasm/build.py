"""`kera build --target wasm`: the module, its loader for JavaScript with types, the graph, the receipt."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from kera_hw.driver.files import replace_files
from kera_hw.driver.options import PLACEMENT_SEED, TargetOptions
from kera_hw.driver.receipt import Request, make_receipt
from kera_hw.driver.session import single_export_graph
from kera_hw.driver.wasm.target import design_module, module_plan
from kera_hw.graph import Export, Graph, signature, without_probes, write_keg
from kera_hw.loops.program import Buffer
from kera_hw.schedule.software.layout import native_dtype
from kera_hw.types import FixType, FloatType, IntType, Type, element_type, flatten_type, leaf_types
from kera_hw.wasm.program import WasmModule

_ARRAYS = {
    "<i1": "Int8Array", "<i2": "Int16Array", "<i4": "Int32Array", "<i8": "BigInt64Array",
    "<u1": "Uint8Array", "<u2": "Uint16Array", "<u4": "Uint32Array", "<u8": "BigUint64Array",
    "<f4": "Float32Array", "<f8": "Float64Array",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class WasmBuild:
    """What was written."""

    directory: Path
    files: tuple[str, ...]
    plan: dict[str, Any]


def build_wasm(graph: Graph, export: Export, directory: Path) -> WasmBuild:
    """Builds one export into ``directory``. Raises KeraError for what has no module."""
    module = design_module(graph, export)
    plan = wasm_plan(graph, export, module)
    name = export.name
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".build-") as temporary:
        work = Path(temporary)
        for file, content in module_files(export, module, plan["fingerprint"]).items():
            (work / file).write_bytes(content)
        (work / f"{name}.keg").write_bytes(write_keg(single_export_graph(graph, export)))
        (work / "plan.json").write_text(json.dumps(plan, indent=1) + "\n", encoding="utf-8")
        made = sorted(path.name for path in work.iterdir())
        request = Request(TargetOptions(), 1.0, PLACEMENT_SEED.example, "wasm")
        receipt = make_receipt(plan, request, work, made)
        (work / "receipt.json").write_text(json.dumps(receipt, indent=1) + "\n", encoding="utf-8")
        replace_files(work, directory, [*made, "receipt.json"])
    return WasmBuild(directory, (*made, "receipt.json"), plan)


def wasm_plan(graph: Graph, export: Export, module: WasmModule) -> dict[str, Any]:
    """`plan.json`: what was decided, and the leaves that a batch has."""
    params, results = _leaves(export, module)
    return {**module_plan(graph, export, module), "parameters": params, "results": results}


def module_files(export: Export, module: WasmModule, fingerprint: str) -> dict[str, bytes]:
    """The module, its loader and the loader's types, by file name."""
    environment = Environment(
        loader=PackageLoader("kera_hw.driver.wasm", "."), undefined=StrictUndefined, autoescape=False,
        keep_trailing_newline=True,
    )  # fmt: skip
    params, results = _leaves(export, module)
    facts = {
        "name": export.name, "signature": signature(without_probes(export)), "fingerprint": fingerprint,
        "params": params, "results": results, "room": module.room, "notes": _notes(export),
    }  # fmt: skip
    made = {f"{export.name}.wasm": module.binary}
    for template, suffix in (("loader.js.j2", "js"), ("types.d.ts.j2", "d.ts")):
        made[f"{export.name}.{suffix}"] = environment.get_template(template).render(facts).encode()
    return made


def _leaves(export: Export, module: WasmModule) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Parameter and result leaves as plain data, under the names that JavaScript gives them."""
    params = [
        (".".join((name, *leaf.path)), leaf.type)
        for name, kind in export.params for leaf in flatten_type(kind)
    ]
    results = [(".".join(("out", *leaf.path)), leaf.type) for leaf in flatten_type(export.result)]
    return (
        [_leaf(*named, buffer) for named, buffer in zip(params, module.params)],
        [_leaf(*named, buffer) for named, buffer in zip(results, module.results)],
    )


def _leaf(name: str, kind: Type, buffer: Buffer) -> dict[str, Any]:
    return {
        "name": name, "type": str(kind), "shape": list(buffer.shape), "size": buffer.size,
        "array": _ARRAYS[native_dtype(buffer.element).str.replace("|", "<")],
    }  # fmt: skip


def _notes(export: Export) -> str:
    """What the types of an array do not say."""
    wholes = (*(kind for _, kind in export.params), export.result)
    elements = [element_type(kind) for whole in wholes for kind in leaf_types(whole)]
    said: list[str] = []
    if any(isinstance(kind, FixType) for kind in elements):
        said.append("Fixed point is its raw integer.")
    if any(isinstance(kind, FloatType) and kind.width_bits == 16 for kind in elements):
        said.append("Floats of 16 bits are their bits.")
    if any(isinstance(kind, IntType) and kind.width_bits not in (8, 16, 32, 64) for kind in elements):
        said.append("Integers of other widths lie extended in the next of 8, 16, 32 and 64 bits.")
    return " ".join(said) or "Numbers are as they are."
