"""What a result was found on: hashes of lowered graphs, and of the code that is the reference.

A record says with one of them what it is about. When today's hash is another one, the record is stale: it
speaks of something that is no longer there (``python -m tests.conformance.current`` lists those).
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import io
import tempfile
import tokenize
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from kera_hw.driver.session import load_program, optimise, single_export_graph
from kera_hw.graph.node import Region
from kera_hw.graph.store import Store
from kera_hw.numerics.elementary import FUNCTIONS
from kera_hw.ops.registry import OPS
from kera_hw.rtl.lower import FlatDesign, flatten_export
from kera_hw.schedule.fpga.device import find_device
from kera_hw.support.tables import SUFFIX

_DEVICE = "ecp5-85k"
_NUMERICS = "kera_hw.numerics"
_ELEMENTARY = f"{_NUMERICS}.elementary"
_ALGORITHMS = (f"{_ELEMENTARY}.narrow", f"{_ELEMENTARY}.wide")  # which it loads by name


def digits(region: Region) -> str:
    """The first sixteen digits of a region's hash."""
    return region.hash.hex()[:16]


@cache
def lowered(source: str, interval: int = 1) -> str:
    """Of the flat region that hardware makes of a program of one export."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "unit.kera"
        path.write_text(source, encoding="utf-8")
        loaded = load_program(path)
    assert loaded.graph is not None, loaded.diagnostics
    store, device = Store(), find_device(_DEVICE)
    assert device is not None
    optimised = optimise(single_export_graph(loaded.graph, loaded.graph.exports[0]))
    flat = flatten_export(optimised.exports[0], store, interval, device.carry_logic)
    assert isinstance(flat, FlatDesign), flat
    return digits(flat.region)


@cache
def reference(op: str) -> str:
    """Of the code that evaluates an operation: its family's table and all of `numerics` that it reaches.

    Elementary functions are reached by themselves and by neural composites only.
    """
    family, _, verb = op.partition(".")
    roots = [OPS[op].evaluate.__module__]
    if verb in FUNCTIONS or family == "neural":
        return digest([*roots, *_ALGORITHMS], _NUMERICS)
    return digest(roots, _NUMERICS, _ELEMENTARY)


def digest(roots: Iterable[str], package: str, without: str = "-") -> str:
    """Of the modules' code and of what they import of ``package``, directly or not, with their tables.

    Comments, docstrings and blank lines are left out, so that only a change of code makes another hash.
    """
    found: dict[str, ModuleType] = {}
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name not in found and not name.startswith(without):
            found[name] = import_module(name)
            pending += [other for other in _imports(found[name]) if other.startswith(package)]
    total = hashlib.sha3_256()
    for name in sorted(found):
        total.update(f"{name}\n{code(inspect.getsource(found[name]))}".encode())
        tables = Path(inspect.getfile(found[name])).with_suffix(SUFFIX)
        if tables.exists():
            total.update(tables.read_bytes())
    return total.hexdigest()[:16]


@cache
def _imports(module: ModuleType) -> tuple[str, ...]:
    """Modules of this project that a module's import statements name; of ``from a import b``, a and a.b."""
    names: dict[str, None] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Import):
            names.update(dict.fromkeys(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom) and node.module:
            names[node.module] = None
            names.update(dict.fromkeys(f"{node.module}.{alias.name}" for alias in node.names))
    return tuple(name for name in names if name.startswith("kera_hw.") and _is_module(name))


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # `a.b.c` of a module a.b that is no package
        return False


@cache
def code(text: str) -> str:
    """A module's text without comments, docstrings, blank lines and spaces at line ends."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, owners) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            assert first.end_lineno is not None
            for row in range(first.lineno - 1, first.end_lineno):
                lines[row] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())
