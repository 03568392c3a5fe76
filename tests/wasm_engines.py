"""Modules in every engine there is: wasmtime and Node.js give the same bits, WABT finds them valid."""
from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kera_hw.graph import Export
from kera_hw.loops.program import Buffer
from kera_hw.wasm import engine
from kera_hw.wasm.compile import compile_export
from kera_hw.wasm.program import WasmModule
from tests import node
from tests.alike import Alike

WABT = "wast2json"
NO_WABT = f"there is no {WABT} (apt-get install wabt)"


@dataclass(frozen=True, slots=True)
class Made:
    """A module with the export that its loader is for."""

    export: Export
    module: WasmModule

    @property
    def params(self) -> tuple[Buffer, ...]:
        return self.module.params

    @property
    def vector_loops(self) -> int:
        return self.module.vector_loops


def everywhere(made: Made) -> Alike:
    """One module in wasmtime, and in Node.js where that is."""
    first = engine.Instance(made.module)
    return Alike([first] if node.node() is None else [first, node.Instance(made.module, made.export)])


class Modules:
    """Compiles, and keeps what it made for ``check``."""

    def __init__(self) -> None:
        self._binaries: list[bytes] = []

    def compile(self, export: Export, vectors: bool = True) -> Made:
        module = compile_export(export, vectors)
        self._binaries.append(module.binary)
        return Made(export, module)

    def check(self) -> None:
        """All of them at once by WABT's reader and validator, where they are."""
        if shutil.which(WABT) is not None:
            assert faults_of(self._binaries) == ""


def faults_of(binaries: Sequence[bytes]) -> str:
    """What WABT says of modules."""
    strings = ["".join(map("\\{:02x}".format, binary)) for binary in binaries]
    lines = [f'(module binary "{text}")' for text in strings]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "modules.wast"
        script.write_text("\n".join(lines), encoding="ascii")
        call = [WABT, str(script), "-o", str(Path(folder) / "modules.json")]
        done = subprocess.run(call, capture_output=True, text=True, timeout=300, check=False)
    return done.stderr + ("" if done.returncode == 0 else f"status {done.returncode}")
