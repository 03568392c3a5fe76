"""The receipt of a build: what was made, from which graph, how, with which tools; every file by its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

from kera_hw.driver.options import APART, PLACEMENT_SEED, PRODUCTS, SOFTWARE_PRODUCTS, TargetOptions
from kera_hw.driver.plan_file import SavedPlan, plan_of_data
from kera_hw.rtl.toolchain.tools import TOOLS, version_of_package
from kera_hw.support import KeraError

SCHEMA = "kera-receipt-2"
NAME = "receipt.json"
# The compiler itself and the libraries whose versions decide what comes out.
_LIBRARIES = ("kera-hw", "numpy", "highspy", "amaranth")
_MOST_SCALE = 1000
_OWN_HASH = "receipt_sha3_256"


@dataclass(frozen=True, slots=True)
class Request:
    """What a build was asked for: with its `.keg` all that is needed to make its Verilog again.

    ``scale`` is the stretch of wire delays of the plan that was kept, ``seed`` that of placement. A plan that
    was given stands there as a whole. ``emit``: a name in ``PRODUCTS`` or ``SOFTWARE_PRODUCTS``.
    """

    options: TargetOptions
    scale: float
    seed: int
    emit: str

    def to_json(self) -> dict[str, Any]:
        given, options = self.options.plan, asdict(replace(self.options, plan=None))
        options = {name: value for name, value in options.items() if name not in APART}
        plan = {"plan": given.to_json()} if isinstance(given, SavedPlan) else {}
        return {**options, **plan, "scale": self.scale, "seed": self.seed, "emit": self.emit}


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt read back; ``data`` is its JSON object."""

    data: Mapping[str, Any]

    @property
    def fingerprint(self) -> str:
        return self.data["fingerprint"]

    @property
    def function(self) -> str:
        return self.data["function"]

    @property
    def tools(self) -> Mapping[str, str]:
        return self.data["tools"]

    @property
    def artefacts(self) -> Mapping[str, Mapping[str, Any]]:
        return self.data["artefacts"]

    @property
    def options(self) -> TargetOptions:
        """What was asked. Raises KeraError for what is no option, or a plan of others."""
        request, known = self.data["request"], {item.name for item in fields(TargetOptions)} - APART
        plan = plan_of_data(request["plan"]) if "plan" in request else None
        return TargetOptions(**{key: value for key, value in request.items() if key in known}, plan=plan)

    @property
    def scale(self) -> float:
        return self.data["request"]["scale"]

    @property
    def emit(self) -> str:
        return self.data["request"]["emit"]

    def is_of(self, plan: Mapping[str, Any]) -> bool:
        """Whether this is the receipt of that `plan.json`: its hash, what it names, and how it was placed."""
        named = ("fingerprint", "program_fingerprint", "function")
        achieved, request = plan.get("achieved"), self.data["request"]
        circuit = "verilog" if achieved is None else "bitstream"
        emit = plan["target"] if plan.get("target") in SOFTWARE_PRODUCTS else circuit
        return (
            hash_json(plan) == self.data["plan_sha3_256"]
            and all(plan.get(key) == self.data[key] for key in named)
            and request["emit"] == emit
            and (achieved is None or achieved.get("seed") == request["seed"])
        )


def make_receipt(
    plan: Mapping[str, Any], request: Request, directory: Path, artefacts: list[str]
) -> dict[str, Any]:
    """Plain JSON data; the same build on the same versions gives the same receipt."""
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "fingerprint": plan["fingerprint"],
        "program_fingerprint": plan["program_fingerprint"],
        "function": plan["function"],
        "request": request.to_json(),
        "plan_sha3_256": hash_json(plan),
        "tools": tool_versions(),
        "artefacts": {name: hash_file(directory / name) for name in sorted(artefacts)},
    }
    return {**data, _OWN_HASH: hash_json(data)}


def read_receipt(text: bytes) -> Receipt | str:
    """The receipt, or what is wrong with it: not JSON, another format, or changed since it was written."""
    try:
        parsed: Any = json.loads(text)
    except (ValueError, RecursionError):
        return "it is not JSON"
    data = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    schema = data.get("schema")
    if schema != SCHEMA:
        return f"its format is {schema!r}, where this version reads {SCHEMA!r}"
    if data.get(_OWN_HASH) != hash_json({key: item for key, item in data.items() if key != _OWN_HASH}):
        return "it was changed after it was written"
    return Receipt(data) if _well_formed(data) else "entries are missing or of another kind"


def _well_formed(data: Mapping[str, Any]) -> bool:
    texts = all(isinstance(data.get(key), str) for key in ("fingerprint", "program_fingerprint", "function"))
    request, tools, artefacts = (data.get(key) for key in ("request", "tools", "artefacts"))
    if not (texts and isinstance(request, dict) and isinstance(tools, dict) and isinstance(artefacts, dict)):
        return False
    options = {item.name for item in fields(TargetOptions)} - APART
    wanted = {item.name for item in fields(Request)} - {"options"} | options | {"plan"}
    rows, asked = cast("dict[str, Any]", artefacts), cast("dict[str, Any]", request)
    return (
        set(asked) | {"plan"} == wanted
        and _is_plan(asked.get("plan"))
        and asked["emit"] in (*PRODUCTS, *SOFTWARE_PRODUCTS)
        and _is_number(asked["scale"], 1, _MOST_SCALE)
        and _is_number(asked["seed"], PLACEMENT_SEED.least, PLACEMENT_SEED.most)
        and all(isinstance(version, str) for version in cast("dict[str, Any]", tools).values())
        and {f"{data['function']}.keg", "plan.json"} <= set(rows)
        and all(isinstance(row, dict) and "sha3_256" in row for row in rows.values())
    )


def _is_plan(value: object) -> bool:
    if value is None:
        return True
    try:
        plan_of_data(cast("dict[str, Any]", value))
    except (KeyError, TypeError, ValueError, AttributeError, KeraError):
        return False
    return True


def _is_number(value: object, least: float, most: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most


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
