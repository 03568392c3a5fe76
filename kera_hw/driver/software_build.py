"""`kera build` for software: what the target makes, the graph, the plan, and the receipt of them all."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kera_hw.driver.files import replace_files
from kera_hw.driver.options import PLACEMENT_SEED, TargetOptions
from kera_hw.driver.ptx.target import make_ptx
from kera_hw.driver.receipt import Request, make_receipt
from kera_hw.driver.session import single_export_graph
from kera_hw.driver.software import Made
from kera_hw.driver.wasm.build import make_wasm
from kera_hw.graph import Export, Graph, write_keg

MAKERS: Mapping[str, Callable[[Graph, Export], Made]] = {"ptx": make_ptx, "wasm": make_wasm}
"""By target: of each name in ``options.SOFTWARE_PRODUCTS`` one. The same graph gives the same bytes."""


@dataclass(frozen=True, slots=True)
class SoftwareBuild:
    """What was written."""

    directory: Path
    files: tuple[str, ...]
    plan: dict[str, Any]
    summary: str


def build_software(target: str, graph: Graph, export: Export, directory: Path) -> SoftwareBuild:
    """Builds one export into ``directory``. Raises KeraError for what the target refuses."""
    made = MAKERS[target](graph, export)
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".build-") as temporary:
        work = Path(temporary)
        for file, content in made.files.items():
            (work / file).write_bytes(content)
        (work / f"{export.name}.keg").write_bytes(write_keg(single_export_graph(graph, export)))
        (work / "plan.json").write_text(json.dumps(made.plan, indent=1) + "\n", encoding="utf-8")
        files = sorted(path.name for path in work.iterdir())
        request = Request(TargetOptions(), 1.0, PLACEMENT_SEED.example, target)
        receipt = make_receipt(made.plan, request, work, files)
        (work / "receipt.json").write_text(json.dumps(receipt, indent=1) + "\n", encoding="utf-8")
        replace_files(work, directory, [*files, "receipt.json"])
    return SoftwareBuild(directory, (*files, "receipt.json"), made.plan, made.summary)
