"""Names for profilers: where code that this process wrote lies, in the file that Linux's `perf` reads.

tools/perf/Documentation/jit-interface.txt of the Linux kernel.
"""
from __future__ import annotations

import os
from pathlib import Path

ASKED = "KERA_PERF_MAP"
"""Set in the environment by who wants the file."""


def map_file() -> Path:
    return Path(f"/tmp/perf-{os.getpid()}.map")


def announce(name: str, address: int, size_bytes: int) -> None:
    """A line more, if somebody asked for it."""
    if os.environ.get(ASKED):
        with map_file().open("a", encoding="utf-8") as file:
            file.write(f"{address:x} {size_bytes:x} kera::{name}\n")
