"""The one place where stages meet: SourceFile -> graph -> optimised graph -> plan -> artefact.

Each arrow is one function; each product is immutable. Stages report diagnostics; ``Session`` collects them
and never raises for a user's mistake.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from kera_hw.driver.files import module_loader, read_bytes
from kera_hw.driver.messages import shown
from kera_hw.frontend import Frontend, Given, compile_source
from kera_hw.graph import Export, Graph, Store, read_keg
from kera_hw.passes import pipeline, run_pipeline
from kera_hw.support import Diagnostic, SourceFile


@dataclass(frozen=True, slots=True)
class Loaded:
    """A program from source or from a `.keg`; ``graph`` is absent when there were errors."""

    path: Path
    graph: Graph | None
    frontend: Frontend | None
    diagnostics: tuple[Diagnostic, ...]

    def __repr__(self) -> str:
        return f"<Loaded {self.path}: {self.graph!r}, {len(self.diagnostics)} diagnostics>"

    @property
    def has_errors(self) -> bool:
        return any(item.is_error for item in self.diagnostics)


def load_program(path: Path) -> Loaded:
    """Reads and compiles a `.kera` file, or reads a `.keg`; what the bytes begin with decides."""
    data = read_bytes(path)
    if isinstance(data, Diagnostic):
        return Loaded(path, None, None, (data,))
    if path.suffix == ".keg" or data.startswith(b"KEG\0"):
        graph, diagnostics = read_keg(data, str(path))
        return Loaded(path, graph, None, tuple(diagnostics))
    return compile_text(SourceFile(str(path), data), path)


def compile_text(file: SourceFile, path: Path, given: Given = MappingProxyType({})) -> Loaded:
    """Compiles source that is already in memory; modules are looked for beside ``path``."""
    frontend = compile_source(file, module_loader(path), given)
    return Loaded(path, frontend.graph, frontend, tuple(frontend.diagnostics))


def find_export(loaded: Loaded, name: str | None) -> Export | Diagnostic:
    """The named export; the only one when no name is given; else K0902 with what there is."""
    assert loaded.graph is not None
    exports = loaded.graph.exports
    if name is None and len(exports) == 1:
        return exports[0]
    found = loaded.graph.export(name) if name is not None else None
    if found is not None:
        return found
    names = ", ".join(item.name for item in exports) or "none"
    if name is not None and name in _left_out(loaded):
        return Diagnostic("K0902", f"`{name}` has an effect that no target performs yet, so it was left out.")
    if name is None and not exports:
        return Diagnostic("K0902", "The program exports no function that could be run.")
    if name is None:
        return Diagnostic("K0902", f"The program exports several functions; name one with --fn: {names}.")
    return Diagnostic("K0902", f"The program does not export {shown(name)}; its exports are: {names}.")


def _left_out(loaded: Loaded) -> set[str]:
    """Public functions of the source that the graph lacks (K0502)."""
    program = loaded.frontend.program if loaded.frontend is not None else None
    if program is None or loaded.graph is None:
        return set()
    named = {item.public_name for item in program.functions if item.public_name is not None}
    return named - {item.name for item in loaded.graph.exports}


def optimise(graph: Graph, level: str = "standard") -> Graph:
    """The graph after a named pipeline of passes; the fingerprint stays that of the input."""
    return run_pipeline(graph, pipeline(level), Store())


def single_export_graph(graph: Graph, export: Export) -> Graph:
    """A graph of one export: what is built, run and compared, and whose fingerprint names all of that."""
    scopes = dict(graph.scopes)
    for whole in graph.exports:  # of which this may be a part: without what it prints, say
        if whole.name == export.name and whole.region in scopes:
            scopes.setdefault(export.region, scopes[whole.region])
    return Graph([export], graph.origins, scopes)


def identity(program: Graph, export: Export) -> dict[str, str]:
    """The names of one export's graph and of the program it was taken from, as every output holds them.

    They are equal when the program has no other export. A change elsewhere in the program changes the
    second alone.
    """
    built = single_export_graph(program, export)
    return {"fingerprint": built.fingerprint, "program_fingerprint": program.fingerprint}


def source_files(loaded: Loaded) -> dict[str, SourceFile]:
    """The sources by path, for diagnostics and the report; empty for a `.keg`."""
    program = loaded.frontend.program if loaded.frontend is not None else None
    if program is None:
        return {}
    files = {function.file.path: function.file for function in program.functions}
    return {**files, program.root.path: program.root}
