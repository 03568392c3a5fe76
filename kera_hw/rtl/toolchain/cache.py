"""A cache of built files, shared by concurrent processes: entries appear whole or not at all."""
from __future__ import annotations

import fcntl
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_log = logging.getLogger("kera_hw.toolchain")
MAX_ENTRIES = 256
_ABANDONED_AFTER_S = 24 * 3600.0


@cache
def cache_directory() -> Path:
    """``$KERA_CACHE_DIR``, else ``kera-hw`` in the user's cache; a temporary one when that is read-only."""
    named = os.environ.get("KERA_CACHE_DIR")
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    directory = Path(named) if named else Path(user) / "kera-hw"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return directory.resolve()
    except OSError as error:
        replacement = Path(tempfile.gettempdir()) / f"kera-hw-{os.getuid()}"
        _log.warning("the cache %s cannot be written (%s): using %s", directory, error.strerror, replacement)
        replacement.mkdir(mode=0o700, parents=True, exist_ok=True)
        if replacement.stat().st_uid != os.getuid():
            raise
        return replacement


@contextmanager
def _locked(path: Path) -> Generator[None]:
    """Hold an advisory lock; the kernel drops it when the process ends, however it ends."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def cached(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """The directory of entry ``key`` of ``kind``; ``build`` fills an empty one when it is not there yet.

    Concurrent callers of one key wait for the first instead of building twice. When ``build`` raises,
    nothing is kept. The least recently used entries beyond MAX_ENTRIES of a kind are removed.
    """
    shelf = cache_directory() / kind
    entry = shelf / key
    if _touch(entry):
        return entry
    shelf.mkdir(parents=True, exist_ok=True)
    with _locked(shelf / f".{key[:2]}.lock"):
        if _touch(entry):
            return entry
        temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=shelf))
        try:
            build(temporary)
            temporary.rename(entry)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        _prune(shelf, keep=entry)
    return entry


def _touch(entry: Path) -> bool:
    """Mark the entry as used just now; False when it is not there."""
    try:
        os.utime(entry)
    except FileNotFoundError:
        return False
    return True


def _prune(shelf: Path, keep: Path) -> None:
    """Remove the oldest finished entries, and what processes that were killed left half-built."""

    def age(path: Path) -> float:
        try:
            return path.stat().st_mtime
        except FileNotFoundError:
            return 0.0

    for stale in shelf.glob(".new-*"):
        if age(stale) < time.time() - _ABANDONED_AFTER_S:
            shutil.rmtree(stale, ignore_errors=True)
    entries = sorted((p for p in shelf.iterdir() if not p.name.startswith(".")), key=age)
    for entry in entries[:-MAX_ENTRIES]:
        if entry != keep:
            shutil.rmtree(entry, ignore_errors=True)
