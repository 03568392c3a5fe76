"""Holding a build directory against its receipt: every file's hash, the graph, and the Verilog made again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from kera_hw.driver.build import full_plan, verilog_files
from kera_hw.driver.files import MAX_DATA_BYTES, read_bytes
from kera_hw.driver.hardware import design_hardware
from kera_hw.driver.receipt import NAME, Receipt, hash_file, read_receipt, tool_versions
from kera_hw.driver.session import load_program
from kera_hw.driver.software_build import MAKERS
from kera_hw.driver.web.build import items_file
from kera_hw.graph import Export, Graph
from kera_hw.support import Diagnostic, KeraError

# In `plan.json` from place and route, and of the program that the `.keg` was taken from.
_NOT_REPEATED = ("achieved", "rounds", "program_fingerprint")


@dataclass(frozen=True, slots=True)
class Check:
    """One statement of the receipt that was tried; ``fault`` says how it fails."""

    what: str
    fault: Diagnostic | None = None


@dataclass(frozen=True, slots=True)
class Recheck:
    """What came of a receipt's statements. ``versions``: tools now against then, where they differ.

    ``strangers`` are files of the directory that the receipt does not speak of, which is no fault.
    """

    receipt: Receipt
    path: Path
    checks: tuple[Check, ...]
    versions: Mapping[str, tuple[str | None, str | None]]
    strangers: tuple[str, ...]

    def __repr__(self) -> str:
        verdict = "holds" if self.holds else f"{len(self.faults)} of {len(self.checks)} fail"
        return f"<Recheck of {self.path}: {verdict}>"

    @property
    def holds(self) -> bool:
        return all(item.fault is None for item in self.checks)

    @property
    def faults(self) -> tuple[Diagnostic, ...]:
        return tuple(item.fault for item in self.checks if item.fault is not None)

    def text(self) -> str:
        """For people: a line a statement, then what is remarkable."""
        verdict = "holds" if self.holds else "DOES NOT HOLD"
        lines = [f"{self.path}: {verdict}", f"  {self.receipt.fingerprint}"]
        lines += [f"  {'FAILED' if item.fault else 'ok    '} {item.what}" for item in self.checks]
        for name, (then, now) in self.versions.items():
            lines.append(f"  note: built with {name} {then or '(absent)'}, here is {now or 'none'}")
        if self.strangers:
            lines.append(f"  note: not in the receipt: {', '.join(self.strangers)}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {
            "receipt": self.path,
            "holds": self.holds,
            "fingerprint": self.receipt.fingerprint,
            "function": self.receipt.function,
            "checks": [{"what": item.what, "holds": item.fault is None} for item in self.checks],
            "versions": {name: {"then": then, "now": now} for name, (then, now) in self.versions.items()},
            "not_in_receipt": self.strangers,
        }


def recheck(place: Path) -> Recheck:
    """Checks the receipt at ``place``, a build directory or its receipt.

    Raises KeraError where there is no receipt to check (K0901) or it is none (K0808); all else is a fault
    in the result.
    """
    path = place / NAME if place.is_dir() else place
    data = read_bytes(path)
    if isinstance(data, Diagnostic):
        raise KeraError([data])
    receipt = read_receipt(data)
    if isinstance(receipt, str):
        raise KeraError([Diagnostic("K0808", f"{path} is no receipt to rely on: {receipt}.")])
    directory = path.parent
    checks = [_file(directory, name, dict(row)) for name, row in receipt.artefacts.items()]
    plan = _written_plan(directory)
    message = f"{directory / 'plan.json'} is for another graph, function or way of building."
    other = None if plan is not None and receipt.is_of(plan) else Diagnostic("K0810", message)
    checks.append(Check("plan.json is the plan that the receipt names", other))
    now, then = tool_versions(), receipt.tools
    versions = {
        name: (then.get(name), now.get(name))
        for name in sorted({*then, *now}) if then.get(name) != now.get(name)
    }  # fmt: skip
    checks += _again(receipt, directory, plan, bool(versions))
    found = {item.name for item in directory.iterdir() if item.is_file()} - {NAME}
    return Recheck(receipt, path, tuple(checks), versions, tuple(sorted(found - set(receipt.artefacts))))


def _file(directory: Path, name: str, row: dict[str, Any]) -> Check:
    what = f"{name} is the file that was written"
    if Path(name).name != name:
        message = f"The receipt names {name!r}, which is outside its directory."
        return Check(what, Diagnostic("K0809", message))
    path = directory / name
    if not path.is_file():
        return Check(what, Diagnostic("K0809", f"{path} is missing."))
    if hash_file(path) != row:
        message = f"{path} is not the file that the build wrote: its hash differs from the receipt's."
        return Check(what, Diagnostic("K0809", message))
    return Check(what)


def _again(
    receipt: Receipt, directory: Path, plan: Mapping[str, Any] | None, other_tools: bool
) -> list[Check]:
    """Reads the graph, plans it with the options recorded, and compares names, plan and Verilog."""
    name = receipt.function
    keg = directory / f"{name}.keg"
    what = f"{keg.name} holds the graph that the receipt names"
    loaded = load_program(keg)
    if loaded.graph is None or loaded.has_errors:
        return [Check(what, next(item for item in loaded.diagnostics if item.is_error))]
    export = loaded.graph.export(name)
    if loaded.graph.fingerprint != receipt.fingerprint or export is None:
        message = f"{keg} holds the graph {loaded.graph.fingerprint}, but its receipt is for another."
        return [Check(what, Diagnostic("K0810", message))]
    checks = [Check(what)]
    try:
        made, plan_again = _made(receipt, loaded.graph, export, directory)
    except KeraError as fault:
        return [*checks, Check("it can be made again", fault.diagnostics[0])]
    hint = "It was made by other versions; check it with those." if other_tools else None
    again = {"plan.json": plan is not None and _same_plan(plan, plan_again)}
    for file, content in made.items():
        again[file] = read_bytes(directory / file, MAX_DATA_BYTES) == content
    for file, same in again.items():
        what = f"{file} comes out of {keg.name} again"
        message = f"{directory / file} is not what {keg.name} gives with the options in the receipt."
        fault = Diagnostic("K0811", message, notes=(hint,) if hint else ())
        checks.append(Check(what, None if same else fault))
    return checks


def _made(
    receipt: Receipt, graph: Graph, export: Export, directory: Path
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The files that follow from the graph, the options recorded and the items kept, and `plan.json`.

    Raises KeraError.
    """
    if receipt.emit in MAKERS:
        items = read_bytes(directory / items_file(export), MAX_DATA_BYTES)
        kept = {} if isinstance(items, Diagnostic) else {items_file(export): items}
        made = MAKERS[receipt.emit](graph, export, kept)
        # What `--emit` left out is in no receipt.
        files = {file: content for file, content in made.files.items() if file in receipt.artefacts}
        return files, made.plan
    design = design_hardware(graph, export, receipt.options, scale=receipt.scale)
    return {file: text.encode() for file, text in verilog_files(design).items()}, full_plan(design)


def _written_plan(directory: Path) -> Mapping[str, Any] | None:
    """What `plan.json` holds, if that is an object."""
    data = read_bytes(directory / "plan.json", MAX_DATA_BYTES)
    try:
        written: Any = json.loads(b"" if isinstance(data, Diagnostic) else data)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", written) if isinstance(written, dict) else None


def _same_plan(written: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
    """Whether the plan says what planning says again; what place and route measured is not repeated."""
    again: Mapping[str, Any] = json.loads(json.dumps(made))

    def lasting(plan: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in plan.items() if key not in _NOT_REPEATED}

    return lasting(written) == lasting(again)
