"""Plans of circuits as files: what was asked, and what was decided, to be made again bit for bit.

`kera plan --target .. --save p.toml` writes one, every `plan.json` holds one, and `--plan FILE` takes either
in place of a search. A plan says which graph it is for, the options, and how the circuit is mapped and
scheduled; the digest at its end names the circuit that came out. Whoever changes a decision by hand leaves
the digest out: then what comes out is taken as it is, checked like every plan.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from kera_hw.driver.files import read_bytes
from kera_hw.driver.options import APART, CLOCK_MHZ, DSP, INTERVAL, TargetOptions
from kera_hw.driver.remembered import Decision, digest_of, read_decision
from kera_hw.driver.session import single_export_graph
from kera_hw.support import Diagnostic, KeraError, SourceFile, Span

if TYPE_CHECKING:
    from kera_hw.graph import Export, Graph
    from kera_hw.schedule.fpga.netlist import Netlist
    from kera_hw.schedule.plan import Plan

FORMAT = "kera-circuit-plan-1"
KEY = "decided"
"""Where `plan.json` holds its plan."""
_MOST_SCALE = 1000


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """How the circuit of one graph is made: ``scale`` is the stretch of wire delays that it was planned for.

    ``decision.plan`` is empty where whatever comes out is right.
    """

    function: str
    graph: str
    options: TargetOptions
    scale: float
    decision: Decision

    def to_json(self) -> dict[str, Any]:
        """Plain data that ``plan_of_data`` reads back."""
        options = {key: value for key, value in asdict(self.options).items() if key not in APART}
        return {
            "format": FORMAT, "function": self.function, "graph": self.graph, "scale": self.scale,
            "options": options, "decision": asdict(self.decision),
        }  # fmt: skip

    def to_toml(self) -> str:
        """The same as a text to read and to edit; what is absent was left to the planner."""
        data = self.to_json()
        decision = data.pop("decision")
        against = decision.pop("against")
        lines = [f"# How the circuit of `{self.function}` is made for {self.options.device}."]
        lines += _rows({key: value for key, value in data.items() if key != "options"})
        lines += ["", "[options]", *_rows(data["options"])]
        lines += ["", "[decision]", *_rows({key: value for key, value in decision.items() if key != "plan"})]
        if self.decision.plan:
            lines.append("# Names the circuit that comes out; leave it out when you change what is above.")
            lines += _rows({"plan": self.decision.plan})
        for row in against:
            lines += ["", "[[decision.against]]", *_rows(row)]
        return "\n".join([*lines, ""])

    def check_made(self, netlist: Netlist, plan: Plan) -> None:
        """Raises KeraError (K0822) for another circuit than the one that the plan names."""
        if self.decision.plan not in ("", digest_of(netlist, plan)):
            note = "Another version made it, or it was changed; without the line `plan` any circuit is taken."
            _refuse("another circuit than the one it names comes out", note)

    def check(self, program: Graph, export: Export) -> None:
        """Raises KeraError (K0822) for the graph of another function than the plan's."""
        if self.function != export.name:
            _refuse(f"it is for `{self.function}`, not for `{export.name}`")
        if self.graph != single_export_graph(program, export).fingerprint:
            note = f"It is for the graph {self.graph}; plan `{export.name}` again."
            _refuse(f"`{export.name}` has changed since it was made", note)


def no_circuit(refusal: Diagnostic | None) -> NoReturn:
    """Raises KeraError (K0822) for a decision that leads to none."""
    _refuse("its decision leads to no circuit", None if refusal is None else refusal.message)


def is_circuit_plan(path: Path) -> bool:
    """Whether the file looks like a plan of a circuit and not one of loops; an unreadable one does not."""
    data = read_bytes(path)
    return isinstance(data, bytes) and (data.lstrip().startswith(b"{") or FORMAT.encode() in data)


def read_plan(path: Path) -> SavedPlan:
    """The plan in a file, TOML or `plan.json`. Raises KeraError: K0901 for no file, K0822 for no plan."""
    data = read_bytes(path)
    if isinstance(data, Diagnostic):
        raise KeraError([data])
    source = SourceFile(str(path), data)
    try:
        if data.lstrip().startswith(b"{"):
            found: Any = json.loads(data).get(KEY)
        else:
            found = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        _refuse(f"it is neither TOML nor JSON ({error})", source=source)
    if not isinstance(found, dict):
        _refuse(f"it is JSON without `{KEY}`, as `plan.json` of a circuit has it", source=source)
    table = cast("dict[str, Any]", found)
    if "format" not in table and "step" in table:
        note = "Circuits are planned by `kera plan FILE --target fpga:DEVICE --save PLAN`."
        _refuse("it is a plan of loops, and circuits take none", note, source)
    try:
        return plan_of_data(table)
    except KeyError as lack:
        _refuse(f"`{lack.args[0]}` is missing", source=source)
    except ValueError as fault:
        _refuse(f"`{fault}` is not what it should be", source=source)


def options_with(plan: str | os.PathLike[str] | None, **given: Any) -> TargetOptions:
    """Options as given; those that are None are the plan's, or the defaults where there is no plan.

    Raises KeraError for options that cannot be used, for a file that is no plan, and for other options beside
    a plan than its own.
    """
    known = {name: value for name, value in given.items() if value is not None}
    if plan is None:
        return TargetOptions(**known)
    saved = read_plan(Path(plan))
    return replace(saved.options, **known, plan=saved)


def plan_of_data(data: Mapping[str, Any]) -> SavedPlan:
    """The plan of plain data. Raises KeyError or ValueError, which name the entry at fault, and KeraError."""
    known = {"format", "function", "graph", "scale", "options", "decision"}
    odd = sorted(set(data) - known)
    if odd:
        raise ValueError(odd[0])
    if data["format"] != FORMAT:
        raise ValueError("format")
    scale = data["scale"]
    if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not 1 <= scale <= _MOST_SCALE:
        raise ValueError("scale")
    for name, kind in (("function", str), ("graph", str), ("options", dict), ("decision", dict)):
        if not isinstance(data[name], kind):
            raise ValueError(name)
    options = _with_absent(data["options"], TargetOptions, APART)
    row = _with_absent(data["decision"], Decision, set())
    row["plan"], row["against"] = row["plan"] or "", list(row["against"] or ())
    decision = read_decision(row)
    INTERVAL.check(decision.lowered_for)
    INTERVAL.check(decision.turns)
    INTERVAL.check_given(decision.interval)
    DSP.check_given(decision.blocks)
    for clock_mhz in (decision.clock_mhz, 1e6 / max(1, decision.clock_ps)):
        CLOCK_MHZ.check(clock_mhz)
    return SavedPlan(data["function"], data["graph"], TargetOptions(**options), float(scale), decision)


def _with_absent(given: Mapping[str, Any], kind: type[Any], without: Set[str]) -> dict[str, Any]:
    """All fields of a dataclass, those that TOML cannot hold (None) among them. Raises ValueError."""
    names = [item.name for item in fields(kind) if item.name not in without]
    odd = sorted(set(given) - set(names))
    if odd:
        raise ValueError(odd[0])
    return {name: given.get(name) for name in names}


def _rows(row: Mapping[str, Any]) -> list[str]:
    # Strings, numbers and truth values of JSON are those of TOML.
    given = ((key, value) for key, value in row.items() if value is not None)
    return [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in given]


def _refuse(reason: str, note: str | None = None, source: SourceFile | None = None) -> NoReturn:
    span = None if source is None else Span(0, min(1, len(source.data)))
    notes = () if note is None else (note,)
    raise KeraError([Diagnostic("K0822", f"The plan cannot be used: {reason}.", source, span, notes=notes)])
