"""What `kera build --target web` writes: a page with the module, the graph, items and recorded results."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from kera_hw.driver.options import VECTORS
from kera_hw.driver.sampling import random_value
from kera_hw.driver.session import single_export_graph
from kera_hw.driver.software import Made
from kera_hw.driver.values import Array, count_items, read_inputs
from kera_hw.driver.wasm.build import module_files, wasm_plan
from kera_hw.driver.wasm.target import design_module
from kera_hw.graph import Export, Graph, signature, without_probes, write_keg
from kera_hw.interp.exports import flatten_inputs, run_leaves
from kera_hw.loops.program import Buffer
from kera_hw.schedule.software.layout import native_dtype
from kera_hw.support import Diagnostic, KeraError
from kera_hw.types import element_type, leaf_types, numpy_dtype

MOST_BYTES = 1 << 26
"""Of items and recorded results in a page."""
_SCRIPTS = ("keg", "check", "page")


def items_file(export: Export) -> str:
    """The name of the file that keeps the items of a page."""
    return f"{export.name}.items.npz"


@dataclass(frozen=True, slots=True)
class Items:
    """What a page is to show: ``given`` as NAME=FILE, else so many random ones."""

    given: tuple[str, ...] = ()
    vectors: int = 64


RANDOM_ITEMS = Items()


def chosen_items(export: Export, asked: Items) -> dict[str, bytes]:
    """The file of items. Raises KeraError."""
    export = without_probes(export)
    vectors = VECTORS.check(asked.vectors)
    if asked.given:
        inputs = read_inputs(export, asked.given)
        items = count_items(export, inputs)
    else:
        rng = np.random.default_rng(1)
        items, inputs = vectors, {name: random_value(kind, vectors, rng) for name, kind in export.params}
    leaves = flatten_inputs(export, inputs, items)
    stored = {
        f"leaf{k}": np.ascontiguousarray(leaf).view(np.dtype(f"u{leaf.dtype.itemsize}"))
        for k, leaf in enumerate(leaves)
    }
    out = io.BytesIO()
    np.savez(out, items=np.array(items), **stored)  # pyright: ignore[reportArgumentType]
    return {items_file(export): out.getvalue()}


def _kept_items(export: Export, kept: Mapping[str, bytes]) -> tuple[list[Array], int]:
    """Parameter leaves and how many items there are, from the file of items. Raises KeraError (K0809)."""
    name = items_file(export)
    kinds = [kind for _, whole in export.params for kind in leaf_types(whole)]
    try:
        with np.load(io.BytesIO(kept[name]), allow_pickle=False) as found:
            items = int(found["items"])
            raw = [found[f"leaf{k}"] for k in range(len(kinds))]
        leaves = [one.view(numpy_dtype(element_type(kind))) for one, kind in zip(raw, kinds)]
        fits = all(len(leaf) == items for leaf in leaves)
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise _no_items(name, export, f": {error}") from None
    if not fits:
        raise _no_items(name, export, "")
    return leaves, items


def _no_items(name: str, export: Export, why: str) -> KeraError:
    return KeraError([Diagnostic("K0809", f"{name} holds no items for `{export.name}`{why}.")])


def make_web(graph: Graph, export: Export, kept: Mapping[str, bytes]) -> Made:
    """What a build writes. Raises KeraError: K07xx, K0705 for a page that would be too large."""
    module = design_module(graph, export)
    plan: dict[str, Any] = {**wasm_plan(graph, export, module), "target": "web"}
    bare = without_probes(export)
    leaves, items = _kept_items(bare, kept)
    wanted = run_leaves(bare, leaves, items)
    size_bytes = sum(leaf.nbytes for leaf in (*leaves, *wanted))
    if size_bytes > MOST_BYTES:
        message = f"A page of `{export.name}` has {size_bytes:,} bytes of items; {MOST_BYTES:,} is the most."
        raise KeraError([Diagnostic("K0705", message)])
    made = module_files(export, module, plan["fingerprint"])
    record = {
        "fingerprint": plan["fingerprint"], "items": items, "wasm": _text(module.binary),
        "keg": _text(write_keg(single_export_graph(graph, export))),
        "inputs": _leaves(plan["parameters"], module.params, leaves),
        "wanted": _leaves(plan["results"], module.results, wanted),
    }  # fmt: skip
    page = _page(bare, plan, record, made[f"{export.name}.js"])
    summary = f"{export.name} as a page: {len(page):,} bytes, {items:,} items with their results"
    return Made({f"{export.name}.html": page}, {**plan, "items": items}, summary)


def _leaves(named: Sequence[Mapping[str, Any]], buffers: Sequence[Buffer], leaves: Sequence[Array]) -> Any:
    return {
        row["name"]: _text(np.ascontiguousarray(leaf).view(native_dtype(buffer.element)).tobytes())
        for row, buffer, leaf in zip(named, buffers, leaves, strict=True)
    }


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _page(export: Export, plan: Mapping[str, Any], record: Mapping[str, Any], loader: bytes) -> bytes:
    """The page; its scripts are modules that find each other by name, as in Node.js."""
    environment = Environment(
        loader=PackageLoader("kera_hw.driver.web", "."), undefined=StrictUndefined, autoescape=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    here = files("kera_hw.driver.web")
    scripts = {name: (here / f"{name}.mjs").read_bytes() for name in _SCRIPTS} | {"kernel": loader}
    urls = {name: f"data:text/javascript;base64,{_text(script)}" for name, script in scripts.items()}
    shape = _shape_shown(plan["results"])
    width = shape[-1] if len(shape) > 1 else max(1, round(record["items"] ** 0.5))
    facts: dict[str, Any] = {
        "name": export.name, "signature": signature(export), "fingerprint": plan["fingerprint"],
        "items": record["items"], "params": plan["parameters"], "results": plan["results"],
        "picture": len(shape) > 1, "width": width,
        "css": (here / "page.css").read_text(encoding="utf-8"),
        "record": _json(record), "imports": _json({"imports": urls}),
    }  # fmt: skip
    return environment.get_template("page.html.j2").render(facts).encode()


def _shape_shown(results: Sequence[Mapping[str, Any]]) -> list[int]:
    """Of the first result, without an axis of three colours."""
    shape: list[int] = list(results[0]["shape"]) if results else []
    return shape[:-1] if len(shape) > 2 and shape[-1] == 3 else shape


def _json(data: Mapping[str, Any]) -> str:
    """For a script element, which ends at the first `</`."""
    return json.dumps(data).replace("<", "\\u003c")
