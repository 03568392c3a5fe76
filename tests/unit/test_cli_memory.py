"""Running out of memory is the program's size against the machine's, and said so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.unit.cli_support import Kera


def test_a_run_that_fits_no_memory_is_no_crash(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A hundred items of eight tebibytes exceed any address space: the allocation fails at once."""
    program, items = tmp_path / "huge.kera", tmp_path / "x.npy"
    program.write_text(
        "pub fn f(x: u64) -> u64 {\n"
        "    let mut t = [x; 1048576, 1048576];\n"
        "    t[0, 1] = 3;\n"
        "    t[1, 1] + x\n"
        "}\n"
    )
    np.save(items, np.arange(100, dtype=np.uint64))
    done = Kera(capsys)("run", program, "-i", f"x={items}", "--batch", "-o", tmp_path / "out.npz")
    assert done.status == 1 and "K0907" in done.err and "memory" in done.err
    assert not (tmp_path / "out.npz").exists()
