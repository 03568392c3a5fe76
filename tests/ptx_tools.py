"""NVIDIA's assembler and disassembler, where they are: they judge our PTX, and nothing of ours needs them.

    pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm      # 330 MB, so that no group of dependencies has them
"""
from __future__ import annotations

import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100")
_INSTALL = "pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm"


def tool(name: str) -> str:
    """The program on the path, or that of the wheel; the test is skipped without."""
    found = shutil.which(name)
    spec = find_spec("nvidia")
    places = spec.submodule_search_locations if spec is not None else None
    for place in () if found else places or ():
        found = next((str(path) for path in Path(place).glob(f"cu*/bin/{name}")), found)
    if found is None:
        pytest.skip(f"there is no {name} ({_INSTALL})")
    return found


def assemble(text: str, architecture: str, into: Path) -> str:
    """What ptxas has against a text; nothing if it takes it."""
    source = into.with_suffix(".ptx")
    source.write_text(text, encoding="utf-8")
    call = [tool("ptxas"), f"-arch={architecture}", "-o", str(into), str(source)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def machine_code(text: str, architecture: str = "sm_80") -> str:
    """The instructions that ptxas makes of a text."""
    disassembler = tool("nvdisasm")
    with tempfile.TemporaryDirectory() as directory:
        into = Path(directory) / "k.cubin"
        assert assemble(text, architecture, into) == ""
        call = [disassembler, "-c", str(into)]
        done = subprocess.run(call, capture_output=True, text=True, timeout=300, check=True)
    return done.stdout
