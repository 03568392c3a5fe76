"""What `kera build --target cpu` writes: an object, a shared library and a C header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from kera_hw.cpu_gpu.architectures import ARCHITECTURES
from kera_hw.cpu_gpu.dwarf import rows_of
from kera_hw.cpu_gpu.elf import Named, object_file, shared_library
from kera_hw.cpu_gpu.engine import CpuFunction, compile_export
from kera_hw.driver.cpu_target import code_plan, level_of
from kera_hw.driver.software import Leaf, Made, graph_to_compile, leaves_of, notes_on_leaves
from kera_hw.graph import Export, Graph, signature, without_probes

ENDINGS = {"obj": ".o", "header": ".h", "so": ".so"}
"""Of the files, by what `--emit` calls them."""
_TYPES = {
    "<i1": "int8_t", "<i2": "int16_t", "<i4": "int32_t", "<i8": "int64_t", "<u1": "uint8_t",
    "<u2": "uint16_t", "<u4": "uint32_t", "<u8": "uint64_t", "<f4": "float", "<f8": "double",
}  # fmt: skip


def make_code(graph: Graph, export: Export, kept: Mapping[str, bytes], target: str) -> Made:
    """What a build writes, for the level that the target is here. Raises KeraError."""
    compiled = graph_to_compile(graph, export)
    function = compile_export(compiled.exports[0], level=level_of(target), graph=compiled)
    plan = cpu_plan(graph, export, function)
    size_bytes, loops = len(function.machine.code), function.vector_loops
    summary = f"{export.name} for {plan['isa']}: {size_bytes:,} bytes, {loops} loops run as vectors"
    return Made(code_files(export, function, plan["fingerprint"]), plan, summary)


def cpu_plan(graph: Graph, export: Export, function: CpuFunction) -> dict[str, Any]:
    """`plan.json`: what was decided, for the level that the code is for, and the leaves."""
    params, results = leaves_of(export, function.params, function.results)
    return {
        **code_plan(graph, export, function, function.level.name),
        "memory_bytes": function.layout.end,
        "parameters": [_shown(leaf) for leaf in params], "results": [_shown(leaf) for leaf in results],
    }  # fmt: skip


def _shown(leaf: Leaf) -> dict[str, Any]:
    kind = _TYPES[leaf.dtype.str.replace("|", "<")]
    return {
        "name": leaf.name, "type": str(leaf.type), "shape": list(leaf.shape), "size": leaf.size, "c": kind,
    }  # fmt: skip


def code_files(export: Export, function: CpuFunction, fingerprint: str) -> dict[str, bytes]:
    """The object, the library and the header, by file name."""
    name = export.name
    image = function.layout.image()
    machine = ARCHITECTURES[function.level.architecture].elf
    kernel, rows = Named(f"{name}_kernel", function.machine.code), rows_of(function.machine)
    data = [Named(f"{name}_image", image), Named(f"{name}_fingerprint", fingerprint.encode() + b"\0")]
    return {
        f"{name}.o": object_file(machine, kernel, data, rows),
        f"lib{name}.so": shared_library(machine, f"lib{name}.so", kernel, data, rows),
        f"{name}.h": _header(export, function, fingerprint, len(image)).encode(),
    }


def _header(export: Export, function: CpuFunction, fingerprint: str, image_bytes: int) -> str:
    environment = Environment(
        loader=PackageLoader("kera_hw.driver.cpu", "."), undefined=StrictUndefined, autoescape=False,
        keep_trailing_newline=True,
    )  # fmt: skip
    params, results = leaves_of(export, function.params, function.results)
    # C's words and the function's own names end in no digit after `_`: a leaf's name does.
    names = [f"{leaf.name.replace('.', '_')}_{k}" for k, leaf in enumerate((*params, *results))]
    pointers = [
        f"{'const ' if k < len(params) else ''}{_TYPES[leaf.dtype.str.replace('|', '<')]} *{name}"
        for k, (leaf, name) in enumerate(zip((*params, *results), names))
    ]
    sizes = ", ".join(f"{name} {leaf.size}" for leaf, name in zip((*params, *results), names)) or "none"
    facts = {
        "name": export.name, "symbol": export.name, "signature": signature(without_probes(export)),
        "fingerprint": fingerprint, "isa": function.level.name, "notes": notes_on_leaves(export),
        "memory_bytes": function.layout.end, "image_bytes": image_bytes, "sizes": sizes,
        "parameters": ", ".join(["void *memory", "uint64_t items", *pointers]),
        "leaves": ", ".join(names) or "0", "is_stream": export.kind == "stream",
    }  # fmt: skip
    return environment.get_template("header.h.j2").render(facts)
