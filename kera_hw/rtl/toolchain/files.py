"""Putting finished files where they belong, so that nothing half-written is ever seen."""
from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data`` in one step: readers see the old bytes or the new ones.

    As with a plain ``open``, a link stays and what it leads to is replaced, an existing file keeps its mode,
    and a device or a pipe is written to: nothing takes the place of /dev/null. The temporary file stands
    beside the target.
    """
    found = _mode(path)
    if found is not None and not stat.S_ISREG(found):
        path.write_bytes(data)
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, 0o666 & ~_umask() if found is None else stat.S_IMODE(found))
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int | None:
    """Of what ``path`` leads to; None where there is nothing."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def move_into_place(source: Path, destination: Path) -> None:
    """Atomically put a finished file where it belongs, as ``write_atomically`` does, across file systems if
    need be."""
    if _mode(destination) is not None:
        write_atomically(destination, source.read_bytes())
        source.unlink()
        return
    destination.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.replace(source, destination)
    except OSError:
        write_atomically(destination, source.read_bytes())
        source.unlink()
