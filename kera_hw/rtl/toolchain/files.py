"""Putting finished files where they belong, so that nothing half-written is ever seen."""
from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data`` in one step: readers see the old bytes or the new ones.

    The temporary file stands beside the target; its mode is what a plain ``open`` would have given.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def move_into_place(source: Path, destination: Path) -> None:
    """Atomically put a finished file where it belongs, across file systems if need be."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.replace(source, destination)
    except OSError:
        write_atomically(destination, source.read_bytes())
        source.unlink()
