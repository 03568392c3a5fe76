"""LLVM's assembler, where it is: it judges our AMDGCN, and nothing of ours needs it.

LLVM 14 knows gfx90a; gfx942 came with LLVM 17 (`apt install llvm-19`).
"""
from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache

import pytest

_TRIPLE = "amdgcn-amd-amdhsa"
_NAMES = ("llvm-mc", *(f"llvm-mc-{version}" for version in range(30, 13, -1)))
_METADATA = re.compile(r"\t\.amdgpu_metadata\n.*?\t\.end_amdgpu_metadata\n", re.DOTALL)


@cache
def _assembler(processor: str) -> str | None:
    """One that knows the processor."""
    for name in _NAMES:
        path = shutil.which(name)
        if path is None:
            continue
        call = [path, f"-triple={_TRIPLE}", f"-mcpu={processor}", "-filetype=null"]
        done = _run(call, "s_endpgm\n")
        if done.returncode == 0 and "not a recognized processor" not in done.stderr:
            return path
    return None


def _run(call: list[str], text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(call, input=text, capture_output=True, text=True, timeout=300, check=False)


def assemble(text: str, processor: str) -> str:
    """What the assembler has against a text; nothing if it takes it. The test is skipped without one."""
    path = _assembler(processor)
    if path is None:
        pytest.skip(f"there is no llvm-mc that knows {processor} (`apt install llvm-19`)")
    call = [path, f"-triple={_TRIPLE}", f"-mcpu={processor}", "-filetype=obj", "-o", "/dev/null"]
    done = _run(call, text)
    return "" if done.returncode == 0 else done.stderr


def joined(texts: list[str]) -> str:
    """Several modules as one text for one run of the assembler: names made different, notes of the first."""
    found: list[str] = []
    for number, text in enumerate(texts):
        text = re.sub(r"(\.L|\b)(kera_|b\d+_)", rf"\1m{number}_\2", text)
        if number:
            text = _METADATA.sub("", text)
            text = re.sub(r"\t\.amdgcn_target .*\n", "", text)
        found.append(text)
    return "\n".join(found)
