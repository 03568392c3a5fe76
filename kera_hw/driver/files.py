"""Reading users' files with limits, and writing results so that nothing half-written is ever seen."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from kera_hw.rtl.toolchain import files
from kera_hw.support import Diagnostic, SourceFile

# Far above any program; bounds what a mistaken path (a disk image, say) can cost.
MAX_FILE_BYTES = 16 << 20
MAX_DATA_BYTES = 4 << 30


def read_bytes(path: Path, limit_bytes: int = MAX_FILE_BYTES) -> bytes | Diagnostic:
    """The file's bytes, or K0901 saying why they cannot be had."""
    try:
        if not path.is_file():
            if not path.exists():
                return Diagnostic("K0901", f"The file {path} does not exist.")
            what = "is a directory" if path.is_dir() else "is no regular file"
            return Diagnostic("K0901", f"{path} {what}.")
        if path.stat().st_size > limit_bytes:
            return Diagnostic("K0901", f"The file {path} is larger than {limit_bytes >> 20} MiB.")
        return path.read_bytes()
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or fault
        return Diagnostic("K0901", f"The file {path} cannot be read: {reason}.")


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
    """Replace ``path`` in one step, where a directory is no file; raises OSError that names ``path``."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        files.write_atomically(path, data.encode() if isinstance(data, str) else data)
    except OSError as fault:
        raise OSError(fault.errno, fault.strerror, str(path)) from None


def replace_files(source: Path, destination: Path, names: list[str]) -> None:
    """Moves finished files from one directory to another on the same file system, in the order given."""
    for name in names:
        os.replace(source / name, destination / name)
