"""The end of the demo: every target on its data, in one table under the fingerprint."""
from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from kera_hw.cpu_gpu.engine import best_level
from tests.tidy.repo import ROOT

NAME = "keg:sha3-256:477115265cf65d73f14f924bb2f5e99de3cc368b4ca13fc5ff5f4240a865a9c8"


def wrong(_: list[str]) -> int:
    return 1


@pytest.fixture
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_target_in_one_table(
    demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = demo.parse(["-o", str(tmp_path)])
    samples = np.arange(-10, 10, dtype=np.int16)
    assert demo.verify("fir.kera", "fir", {"x": samples}, options)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("$ kera verify ") and " --targets all " in lines[0]
    assert lines[1:3] == ["fir: 120 items, 3840 bits each target", f"  {NAME}"]
    rows = {line.split()[0]: line for line in lines[3:]}
    assert rows["interp"].endswith("reference")
    wanted = {"rtl", "wasm", "ptx", *(["cpu"] if best_level() is not None else [])}
    assert {name for name, row in rows.items() if "equal, 0 differing bits" in row} >= wanted
    assert "module of" in rows["wasm"] and "sm_75, 1 kernel, run " in rows["ptx"]
    monkeypatch.setattr(demo.cli, "main", wrong)
    assert not demo.verify("fir.kera", "fir", {"x": samples}, options)
