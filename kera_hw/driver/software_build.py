"""`kera build` for software: what the target makes, the graph, the plan, and the receipt of them all."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kera_hw.driver.cpu.build import ENDINGS, make_code
from kera_hw.driver.files import replace_files
from kera_hw.driver.gpu.amdgcn import make_amdgcn
from kera_hw.driver.gpu.ptx import make_ptx
from kera_hw.driver.options import AMD_TARGETS, CPU_TARGETS, PLACEMENT_SEED, TargetOptions, check_choice
from kera_hw.driver.receipt import Request, make_receipt
from kera_hw.driver.session import single_export_graph
from kera_hw.driver.software import Made
from kera_hw.driver.wasm.build import make_wasm
from kera_hw.driver.web.build import RANDOM_ITEMS, Items, chosen_items, make_web
from kera_hw.graph import Export, Graph, write_keg
from kera_hw.support import Diagnostic, KeraError

Maker = Callable[[Graph, Export, Mapping[str, bytes]], Made]
"""Of an export and what is kept beside it, files by name: the same of the same."""
MAKERS: Mapping[str, Maker] = {
    **{target: partial(make_code, target=target) for target in CPU_TARGETS},
    **{target: partial(make_amdgcn, target=target) for target in AMD_TARGETS},
    "ptx": make_ptx, "wasm": make_wasm, "web": make_web,
}
"""By target: of each name in ``options.SOFTWARE_PRODUCTS`` one."""


@dataclass(frozen=True, slots=True)
class SoftwareBuild:
    """What was written."""

    directory: Path
    files: tuple[str, ...]
    plan: dict[str, Any]
    summary: str


def endings_of(target: str, products: str | None) -> tuple[str, ...]:
    """The endings of files that `--emit` names for a target, of all where it is absent. Raises KeraError."""
    if products is None:
        return ("",)
    if target not in CPU_TARGETS:
        message = f"`--emit {products}` is for circuits and `cpu`; what `{target}` makes is written whole."
        raise KeraError([Diagnostic("K0908", message)])
    return tuple(
        ENDINGS[check_choice("product (`--emit`)", part.strip(), tuple(ENDINGS))]
        for part in products.split(",")
    )


def build_software(
    target: str, graph: Graph, export: Export, directory: Path, endings: tuple[str, ...] = ("",),
    items: Items = RANDOM_ITEMS,
) -> SoftwareBuild:
    """Builds one export into ``directory``; of what the target makes, files with one of the endings.

    ``items`` are those of a page. Raises KeraError for what the target refuses.
    """
    kept = chosen_items(export, items) if target == "web" else {}
    made = MAKERS[target](graph, export, kept)
    written = {file: content for file, content in made.files.items() if file.endswith(endings)}
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".build-") as temporary:
        work = Path(temporary)
        for file, content in {**written, **kept}.items():
            (work / file).write_bytes(content)
        (work / f"{export.name}.keg").write_bytes(write_keg(single_export_graph(graph, export)))
        (work / "plan.json").write_text(json.dumps(made.plan, indent=1) + "\n", encoding="utf-8")
        files = sorted(path.name for path in work.iterdir())
        request = Request(TargetOptions(), 1.0, PLACEMENT_SEED.example, made.plan["target"])
        receipt = make_receipt(made.plan, request, work, files)
        (work / "receipt.json").write_text(json.dumps(receipt, indent=1) + "\n", encoding="utf-8")
        replace_files(work, directory, [*files, "receipt.json"])
    return SoftwareBuild(directory, (*files, "receipt.json"), made.plan, made.summary)
