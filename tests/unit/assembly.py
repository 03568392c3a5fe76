"""Assemblers of others, as foreign judges of encodings."""
from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest


def assembled(prefix: str, flags: Sequence[str], lines: Sequence[str], folder: Path) -> bytes:
    """What GNU as for a machine makes of lines of text; skips where there is none."""
    as_, objcopy = f"{prefix}-as", f"{prefix}-objcopy"
    if shutil.which(as_) is None or shutil.which(objcopy) is None:
        pytest.skip(f"there is no {as_}")
    source, made, flat = folder / "a.s", folder / "a.o", folder / "a.bin"
    source.write_text("\n".join([*lines, ""]), encoding="utf-8")
    subprocess.run([as_, *flags, str(source), "-o", str(made)], check=True, timeout=60)
    subprocess.run([objcopy, "-O", "binary", "-j", ".text", str(made), str(flat)], check=True, timeout=60)
    return flat.read_bytes()
