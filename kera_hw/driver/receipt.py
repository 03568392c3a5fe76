"""The receipt of a build: what was made, from which graph, with which tools; every artefact by its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kera_hw.graph import Graph
from kera_hw.rtl.toolchain.tools import TOOLS, version_of_package

SCHEMA = "kera-receipt-1"
# The compiler itself and the libraries whose versions decide what comes out.
_LIBRARIES = ("kera-hw", "numpy", "highspy", "amaranth")


def make_receipt(
    graph: Graph, function: str, plan: Mapping[str, Any], directory: Path, artefacts: list[str]
) -> dict[str, Any]:
    """Plain JSON data; the same build on the same versions gives the same receipt."""
    return {
        "schema": SCHEMA,
        "fingerprint": graph.fingerprint,
        "function": function,
        "emitter": plan["emitter"],
        "plan_sha3_256": hash_json(plan),
        "tools": tool_versions(),
        "artefacts": {name: hash_file(directory / name) for name in sorted(artefacts)},
    }


def hash_json(data: Mapping[str, Any]) -> str:
    """SHA3-256 (hex) of a JSON object with sorted keys and no white space."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha3_256(text.encode()).hexdigest()


def hash_file(path: Path) -> dict[str, Any]:
    """Size and SHA3-256 (hex) of a file."""
    data = path.read_bytes()
    return {"size_bytes": len(data), "sha3_256": hashlib.sha3_256(data).hexdigest()}


def tool_versions() -> dict[str, str]:
    """Versions of the compiler, its libraries and the external tools that come as packages."""
    names = [*_LIBRARIES, *(tool.distribution for tool in TOOLS.values() if tool.distribution)]
    return {
        name: version for name in dict.fromkeys(names) if (version := version_of_package(name)) is not None
    }
