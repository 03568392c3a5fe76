"""What `kera build --target wasm` writes: the module, and its loader for JavaScript with types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from kera_hw.driver.software import Leaf, Made, leaves_of, notes_on_leaves
from kera_hw.driver.wasm.target import design_module, module_plan
from kera_hw.graph import Export, Graph, signature, without_probes
from kera_hw.wasm.module import append_section, source_map_url
from kera_hw.wasm.program import WasmModule
from kera_hw.wasm.source_map import source_map

_ARRAYS = {
    "<i1": "Int8Array", "<i2": "Int16Array", "<i4": "Int32Array", "<i8": "BigInt64Array",
    "<u1": "Uint8Array", "<u2": "Uint16Array", "<u4": "Uint32Array", "<u8": "BigUint64Array",
    "<f4": "Float32Array", "<f8": "Float64Array",
}  # fmt: skip


def make_wasm(graph: Graph, export: Export, kept: Mapping[str, bytes]) -> Made:
    """What a build writes. Raises KeraError for what has no module."""
    module = design_module(graph, export)
    plan = wasm_plan(graph, export, module)
    size_bytes, loops = len(module.binary), module.vector_loops
    summary = f"{export.name} for WebAssembly: {size_bytes:,} bytes, {loops} loops run as vectors"
    return Made(module_files(export, module, plan["fingerprint"]), plan, summary)


def wasm_plan(graph: Graph, export: Export, module: WasmModule) -> dict[str, Any]:
    """`plan.json`: what was decided, and the leaves that a batch has."""
    params, results = _leaves(export, module)
    return {**module_plan(graph, export, module), "parameters": params, "results": results}


def module_files(export: Export, module: WasmModule, fingerprint: str) -> dict[str, bytes]:
    """The module with its source map, its loader and the loader's types, by file name."""
    environment = Environment(
        loader=PackageLoader("kera_hw.driver.wasm", "."), undefined=StrictUndefined, autoescape=False,
        keep_trailing_newline=True,
    )  # fmt: skip
    params, results = _leaves(export, module)
    facts = {
        "name": export.name, "signature": signature(without_probes(export)), "fingerprint": fingerprint,
        "params": params, "results": results, "room": module.room, "notes": notes_on_leaves(export),
    }  # fmt: skip
    name = f"{export.name}.wasm"
    binary = append_section(module.binary, *source_map_url(f"{name}.map"))
    made = {name: binary, f"{name}.map": source_map(module)}
    for template, suffix in (("loader.js.j2", "js"), ("types.d.ts.j2", "d.ts")):
        made[f"{export.name}.{suffix}"] = environment.get_template(template).render(facts).encode()
    return made


def _leaves(export: Export, module: WasmModule) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Parameter and result leaves as plain data."""
    params, results = leaves_of(export, module.params, module.results)
    return list(map(_shown, params)), list(map(_shown, results))


def _shown(leaf: Leaf) -> dict[str, Any]:
    return {
        "name": leaf.name, "type": str(leaf.type), "shape": list(leaf.shape), "size": leaf.size,
        "array": _ARRAYS[leaf.dtype.str.replace("|", "<")],
    }  # fmt: skip
