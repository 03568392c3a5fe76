"""What a search for a circuit found, kept from one build to the next: which way was best, and against what.

An entry says how the best circuit is mapped and scheduled, not what it is. Whoever finds one maps and
schedules once and has the same plan, instead of dozens to choose from; an entry that is damaged, or does not
lead to the plan it names, is as good as none. So nothing that is kept can change a circuit.

Entries are JSON below the cache directory (``KERA_CACHE_DIR``), named by the graph, the device and options,
and the sources of the compiler itself. ``KERA_PLAN_CACHE=off`` does without; a path says
where they lie instead.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import kera_hw
from kera_hw.driver.files import write_atomically
from kera_hw.driver.options import APART
from kera_hw.rtl.techmap.options import Controls
from kera_hw.rtl.toolchain.cache import cache_directory
from kera_hw.rtl.toolchain.tools import version_of_package
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import Plan

if TYPE_CHECKING:
    from kera_hw.driver.options import TargetOptions

_log = logging.getLogger("kera_hw.driver")
SWITCH = "KERA_PLAN_CACHE"
FORMAT = "kera-decision-2"
MAX_ENTRIES = 4096
_MAX_BYTES = 1 << 20
_LIBRARIES = ("numpy", "highspy")
_FIGURES = ("dsp", "lut", "ff", "bram", "latency_cycles", "initiation_interval", "cost")


@dataclass(frozen=True, slots=True)
class Decision:
    """How the best circuit is made, and the figures of those it was better than.

    ``lowered_for`` is the interval that loops were kept for, with ``rolled`` of the rounds of a loop that
    stays one; ``interval`` what was asked of the schedule. ``blocks``, ``far``, ``clock_ps`` and ``controls``
    are the way it is mapped, ``finer`` which netlist of refined logic it is,
    ``turns`` how many products share a multiplier. ``plan`` is the digest of the
    netlist and the plan that come out.
    """

    lowered_for: int
    rolled: bool
    interval: int | None
    clock_mhz: float
    blocks: int | None
    far: bool | None
    clock_ps: int
    controls: Controls
    finer: str | None
    turns: int
    note: str | None
    against: tuple[dict[str, Any], ...]
    plan: str


def digest_of(netlist: Netlist, plan: Plan) -> str:
    """Names the cells, wherever they come from, and their schedule with its figures and notes."""
    cells = [replace(cell, origin=None, name=None) for cell in netlist.cells]
    parts = (
        cells, netlist.outputs, netlist.states, plan.stage, plan.state_write, plan.latency_cycles,
        plan.initiation_interval, plan.clock_ps, plan.register_bits, plan.estimate, plan.interface,
        plan.notes,
    )  # fmt: skip
    return hashlib.sha3_256(repr(parts).encode()).hexdigest()


def key_of(fingerprint: str, options: TargetOptions, scale: float, *part: object) -> str | None:
    """The name of the entry for a graph and what is asked; None where nothing is to be kept.

    ``part``: which part of the design, where it is not for all of it. Whatever writes the circuit down, it is
    the same circuit.
    """
    if options.plan is not None or os.environ.get(SWITCH, "").lower() in ("off", "0", "no"):
        return None
    apart = {*APART, "emitter"}
    asked = sorted(item for item in asdict(options).items() if item[0] not in apart)
    parts = (FORMAT, _compiler(), fingerprint, asked, scale, *part)
    return hashlib.sha3_256(repr(parts).encode()).hexdigest()


@cache
def _compiler() -> str:
    """The compiler's own sources and tables, and the libraries that decide with it."""
    root = Path(kera_hw.__file__).parent
    found = hashlib.sha3_256()
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.toml")]):
        data = path.read_bytes()
        found.update(f"{path.relative_to(root)}\0{len(data)}\0".encode())
        found.update(data)
    versions = [platform.python_version(), *(version_of_package(name) for name in _LIBRARIES)]
    found.update(repr(versions).encode())
    return found.hexdigest()


def _shelf() -> Path:
    named = os.environ.get(SWITCH, "")
    return Path(named) if os.path.isabs(named) else cache_directory() / "decisions"


def recall(key: str) -> Decision | None:
    """The entry, if there is a sound one."""
    path = _shelf() / f"{key}.json"
    try:
        if path.stat().st_size > _MAX_BYTES:
            return None
        found = _read(json.loads(path.read_text(encoding="utf-8")))
        os.utime(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        _log.warning("ignored a damaged entry of the cache: %s", path)
        return None
    return found


def remember(key: str, decision: Decision) -> None:
    """Keep the entry; the least recently used ones beyond MAX_ENTRIES go. A full disk is no error."""
    path = _shelf() / f"{key}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        row = {"format": FORMAT, **asdict(decision)}
        write_atomically(path, json.dumps({**row, "sum": _sum(row)}))
        _prune(path)
    except OSError as fault:
        _log.warning("the cache cannot be written: %s", fault)


def _sum(row: dict[str, Any]) -> str:
    return hashlib.sha3_256(json.dumps(row).encode()).hexdigest()


def _prune(keep: Path) -> None:
    def age(path: Path) -> float:
        try:
            return path.stat().st_mtime
        except FileNotFoundError:
            return 0.0

    entries = list(keep.parent.glob("*.json"))
    if len(entries) > MAX_ENTRIES:
        for path in sorted(entries, key=age)[:-MAX_ENTRIES]:
            if path != keep:
                path.unlink(missing_ok=True)


def _read(data: Any) -> Decision:
    """The entry in plain JSON. Raises ValueError for anything else."""
    if not isinstance(data, dict):
        raise ValueError("no object")
    row = cast("dict[str, Any]", data)
    if row.pop("sum", None) != _sum(row):
        raise ValueError("sum")
    if row.pop("format", None) != FORMAT:
        raise ValueError("format")
    return read_decision(row)


def read_decision(row: dict[str, Any]) -> Decision:
    """The decision that ``asdict`` made plain data of. Raises ValueError, which names the field at fault."""
    kinds: dict[str, tuple[type, ...]] = {
        "lowered_for": (int,), "rolled": (bool,), "interval": (int, _NONE), "clock_mhz": (float, int),
        "blocks": (int, _NONE), "far": (bool, _NONE), "clock_ps": (int,), "controls": (str,),
        "finer": (str, _NONE), "turns": (int,), "note": (str, _NONE), "against": (list,), "plan": (str,),
    }  # fmt: skip
    odd = sorted(row.keys() ^ kinds.keys())
    if odd:
        raise ValueError(odd[0])
    for name, allowed in kinds.items():
        if type(row[name]) not in allowed:
            raise ValueError(name)
    if row["controls"] not in get_args(Controls):
        raise ValueError("controls")
    against = tuple(_figures(item) for item in row["against"])
    fields = {name: row[name] for name in kinds if name != "against"}
    return Decision(**fields, against=against)


_NONE = type(None)


def _figures(item: Any) -> dict[str, int]:
    if not isinstance(item, dict):
        raise ValueError("figures")
    row = cast("dict[str, Any]", item)
    if tuple(row) != _FIGURES or any(type(value) is not int for value in row.values()):
        raise ValueError("figures")
    return row
