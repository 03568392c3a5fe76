"""What the shell offers for arguments and options: the words that a command would take there.

``incomplete`` is the word begun; Typer passes it by that name.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

_PROGRAMS = (".kera", ".keg")


def programs(incomplete: str) -> list[str]:
    """Programs that the path begun leads to: in its directory, else in those below it."""
    head, slash, tail = incomplete.rpartition("/")
    directory = Path(head + slash or ".")
    shown = [f"{head}{slash}{name}" for name in _programs_in(directory) if name.startswith(tail)]
    for inner in _directories(directory):
        if inner.startswith(tail) and not (inner.startswith(".") and not tail.startswith(".")):
            shown += [f"{head}{slash}{inner}/{name}" for name in _programs_in(directory / inner)]
    return shown or [f"{head}{slash}{name}/" for name in _directories(directory) if name.startswith(tail)]


def capabilities(incomplete: str) -> list[str]:
    """What processors may have beside the native set."""
    from kera_hw.legal.native import CAPABILITIES

    return [name for name in CAPABILITIES if name.startswith(incomplete)]


def builds(incomplete: str) -> list[str]:
    """Programs, and with ``--receipt`` the directories that hold a receipt."""
    if "--receipt" not in _words():
        return programs(incomplete)
    found = Path(incomplete) if incomplete.endswith("/") else Path(incomplete or ".").parent
    places = [path.parent for pattern in ("receipt.json", "*/receipt.json") for path in found.glob(pattern)]
    return [str(path) for path in sorted(set(places)) if str(path).startswith(incomplete)]


def plans(incomplete: str) -> list[str]:
    """Saved plans, and the `plan.json` of builds, that the path begun leads to."""
    found = Path(incomplete) if incomplete.endswith("/") else Path(incomplete or ".").parent
    places = {path for pattern in ("*.toml", "plan.json", "*/plan.json") for path in found.glob(pattern)}
    return [str(path) for path in sorted(places) if str(path).startswith(incomplete)]


def functions(incomplete: str) -> list[str]:
    """Public functions and streams of the program among the words; none where there is no readable one."""
    given = next((word for word in _words() if word.endswith(_PROGRAMS)), None)
    return [] if given is None else _beginning(incomplete, _public(Path(given)))


def _words() -> list[str]:
    """The command line so far. Parsing it gives nothing yet: its last option still lacks the value."""
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or ""
    try:
        return shlex.split(line)
    except ValueError:  # a quotation not closed yet
        return line.split()


def _public(path: Path) -> Iterator[str]:
    """Names of public items, from the syntax alone: quick, and there for a program with mistakes."""
    from kera_hw.driver.files import read_bytes
    from kera_hw.driver.session import load_program
    from kera_hw.frontend.parser import parse
    from kera_hw.frontend.syntax import ast
    from kera_hw.support import SourceFile

    if path.suffix == ".keg":
        graph = load_program(path).graph
        yield from (item.name for item in graph.exports) if graph is not None else ()
        return
    data = read_bytes(path)
    if isinstance(data, bytes):
        unit, _ = parse(SourceFile(str(path), data))
        for item in unit.items:
            if isinstance(item, (ast.FnItem, ast.StreamItem)) and item.is_pub and item.name_token is not None:
                yield item.name_token.text


def targets(incomplete: str) -> list[str]:
    """Targets that run a function."""
    return _beginning(incomplete, _targets())


def target_lists(incomplete: str) -> list[str]:
    """The last of several targets, after those named before it."""
    head, comma, tail = incomplete.rpartition(",")
    named = head.split(",")
    return [f"{head}{comma}{name}" for name in _beginning(tail, _targets()) if name not in named]


def hardware_targets(incomplete: str) -> list[str]:
    """Targets that are hardware."""
    return _beginning(incomplete, (name for name in _targets() if name.startswith("fpga:")))


def devices(incomplete: str) -> list[str]:
    """Names of parts."""
    from kera_hw.schedule.fpga.device import device_names

    return _beginning(incomplete, device_names())


def interfaces(incomplete: str) -> list[str]:
    from kera_hw.driver.options import INTERFACES

    return _beginning(incomplete, INTERFACES)


def emitters(incomplete: str) -> list[str]:
    from kera_hw.driver.options import EMITTERS

    return _beginning(incomplete, EMITTERS)


def isas(incomplete: str) -> list[str]:
    from kera_hw.driver.options import ISAS

    return _beginning(incomplete, ISAS)


def simulators(incomplete: str) -> list[str]:
    from kera_hw.driver.options import SIMULATORS

    return _beginning(incomplete, SIMULATORS)


def products(incomplete: str) -> list[str]:
    from kera_hw.driver.cpu.build import ENDINGS
    from kera_hw.driver.options import PRODUCTS

    return _beginning(incomplete, (*PRODUCTS, *ENDINGS))


def built_targets(incomplete: str) -> list[str]:
    from kera_hw.driver.options import SOFTWARE_PRODUCTS

    devices = (name for name in _targets() if name.startswith("fpga:"))
    return _beginning(incomplete, [*SOFTWARE_PRODUCTS, *devices])


def benches(incomplete: str) -> list[str]:
    from kera_hw.driver.testbench import KINDS

    return _beginning(incomplete, KINDS)


def explained(incomplete: str) -> list[str]:
    """Codes of diagnostics, in either case, built-ins, operations and targets."""
    from kera_hw.driver.targets import COVERED
    from kera_hw.frontend.sema.names.builtin_docs import DESCRIBED
    from kera_hw.ops.registry import OPS
    from kera_hw.support import CODES

    codes = [code.lower() if incomplete.islower() else code for code in sorted(CODES)]
    return _beginning(incomplete, [*codes, *sorted({*DESCRIBED, *OPS, *COVERED})])


def _targets() -> tuple[str, ...]:
    from kera_hw.driver.targets import TARGETS
    from kera_hw.schedule.fpga.device import device_names

    return (*TARGETS, *(f"fpga:{name}" for name in device_names()))


def _beginning(begun: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(begun)]


def _programs_in(directory: Path) -> list[str]:
    return sorted(path.name for path in _entries(directory) if path.suffix in _PROGRAMS and path.is_file())


def _directories(directory: Path) -> list[str]:
    return sorted(path.name for path in _entries(directory) if path.is_dir())


def _entries(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []
