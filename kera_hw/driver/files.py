"""Reading users' files with limits, and writing results so that nothing half-written is ever seen."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from kera_hw.support import Diagnostic, SourceFile

# Far above any program; bounds what a mistaken path (a disk image, /dev/zero) can cost.
MAX_FILE_BYTES = 64 << 20


def read_bytes(path: Path) -> bytes | Diagnostic:
    """The file's bytes, or K0901 saying why they cannot be had."""
    try:
        if not path.is_file():
            what = "is a directory" if path.is_dir() else "does not exist"
            return Diagnostic("K0901", f"The file {path} {what}.")
        with path.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as fault:
        return Diagnostic("K0901", f"The file {path} cannot be read: {fault.strerror or fault}.")
    if len(data) > MAX_FILE_BYTES:
        return Diagnostic("K0901", f"The file {path} is larger than {MAX_FILE_BYTES >> 20} MiB.")
    return data


def module_loader(root: Path) -> Callable[[str], SourceFile | None]:
    """Finds `use name::item` beside the root file; a name never leads out of that directory."""

    def load(name: str) -> SourceFile | None:
        if not name.isidentifier():
            return None
        path = root.parent / f"{name}.kera"
        data = read_bytes(path) if path.is_file() else None
        return SourceFile(str(path), data) if isinstance(data, bytes) else None

    return load


def write_atomically(path: Path, data: bytes | str) -> None:
    """Temporary file beside the target, then rename: readers see the old bytes or the new ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    payload = data.encode() if isinstance(data, str) else data
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(payload)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
