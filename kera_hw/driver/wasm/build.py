"""What `kera build --target wasm` writes: the module, and its loader for JavaScript with types."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from kera_hw.driver.software import Made
from kera_hw.driver.wasm.target import design_module, module_plan
from kera_hw.graph import Export, Graph, signature, without_probes
from kera_hw.loops.program import Buffer
from kera_hw.schedule.software.layout import native_dtype
from kera_hw.types import FixType, FloatType, IntType, Type, element_type, flatten_type, leaf_types
from kera_hw.wasm.program import WasmModule

_ARRAYS = {
    "<i1": "Int8Array", "<i2": "Int16Array", "<i4": "Int32Array", "<i8": "BigInt64Array",
    "<u1": "Uint8Array", "<u2": "Uint16Array", "<u4": "Uint32Array", "<u8": "BigUint64Array",
    "<f4": "Float32Array", "<f8": "Float64Array",
}  # fmt: skip


def make_wasm(graph: Graph, export: Export) -> Made:
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
